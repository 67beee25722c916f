// Package quality answers: what does a layout do to recall at a distance, and to the tokens?
//
// A [Set] is sequences with questions whose answers stand in the sequence, so one pass over a sequence asks all of them (teacher
// forcing). A [Unit] names one piece of work completely: the checkpoint and the set by content, the attention policy and the
// encoding of every layer, the numerics mode, the tasks and a range of sequences. [Run] turns it into [Sums] and looks at nothing
// else, so the same unit gives the same bytes on any machine of one architecture, and [Unit.Name] can name the file of its result.
//
//	task        what is counted                                                       needs
//	recall      answers that are the argmax, by distance; topics; −ln p               questions
//	passkey     the same for one pair at a depth of plain filler, by depth and length questions
//	ppl         −ln p of the scored targets, and how often they are the argmax        tokens
//	agreement   argmax equal to the full model's in f32, and KL(full ‖ this)           tokens
//
// Sums add up: [Sums.Add] in the order of units gives the totals, [Sums.Figures] the figures. The distance of a question is the
// position of its key, where the answer is predicted, minus that of the planted value: a window w shows the value iff distance < w.
//
// Start at [Run].
package quality
