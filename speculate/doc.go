// Package speculate answers: how many tokens does one call of the model yield when somebody guesses ahead, and are they still
// the model's?
//
// A [Drafter] proposes tokens from what the sequence has said so far, without weights: [Lookup] copies what followed the last
// occurrence of the newest tokens, [Suffix] follows the most frequent continuation in a suffix tree. A [Target] checks a proposal
// in one call: given the current token and K−1 drafts it says what follows each of them, and the drafts that agree with the row
// before them are accepted, together with the first token that differs. [Decode] is the loop. With greedy choice and honest rows
// its tokens are those of plain decoding, whatever the drafter says; drafts decide how many calls they take.
//
// Not every verify call is honest (spec forward.md §4.10). The modes:
//
//	clean         every row reads the rows before the call and keeps its whole window       tokens of plain decoding
//	shifted       windows shift by K before they are read: row t loses the K−1−t oldest      may differ past the window
//	contaminated  as shifted, and the call writes all K rows into the caches: rejected       differs as soon as drafts
//	              drafts stay in the windows and push as many older rows out                 are rejected
//
// [Watch] counts how often rows of a mode choose another token than clean rows on the same tokens would, so that a difference is
// counted where it is made and not where it leads. [Profile] is what a run says about acceptance, by position; the cost model
// turns it into tokens per second.
//
// [Exits] is the probe behind LayerSkip: how often the head would choose the same token behind fewer layers.
//
// Start at [Decode].
package speculate
