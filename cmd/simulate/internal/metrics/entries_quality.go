package metrics

// judgements are what quality, heads and frontier print.
var judgements = []Entry{
	{Name: "recall", Aliases: []string{"recall_far", "recall %"}, Unit: "share", Seen: "quality, heads, frontier", Short: "questions whose answer is the argmax over the whole vocabulary",
		Text: "A question asks for a value planted earlier in the sequence. The answers stand in the sequence, so one pass asks them all. recall_far counts distances of 32 and more. " +
			"Of n questions one standard error is √(p(1−p)/n)."},
	{Name: "distance", Seen: "quality", Short: "position of a question's key minus position of the planted value", Text: "A window of w positions shows the value exactly when the distance is below w."},
	{Name: "topic", Aliases: []string{"topic %"}, Unit: "share", Seen: "quality, frontier", Short: "marks after which the argmax is the sequence's second token",
		Text: "It falls when the first positions are out of sight, which sinks prevent."},
	{Name: "answer_nll", Unit: "nats", Seen: "quality, frontier", Short: "mean −ln p of the answers", Text: "It moves long before recall does."},
	{Name: "passkey", Aliases: []string{"passkey %"}, Unit: "share", Seen: "quality, frontier", Short: "one pair planted in plain filler, asked for at the end",
		Text: "By depth, from the beginning (0 %) to right before the question (100 %), and by length. The depths take turns from sequence to sequence."},
	{Name: "ppl", Aliases: []string{"perplexity", "target_top1"}, Seen: "quality, heads, frontier", Short: "exp of the mean −ln p of the scored targets",
		Text: "Softmax over the whole vocabulary, given the true tokens before. In a set with questions only filler is scored: planted pairs cannot be predicted."},
	{Name: "agreement", Aliases: []string{"agreement_top1", "agree %"}, Unit: "share", Seen: "quality, frontier", Short: "positions at which the argmax is that of the full model",
		Text: "The full model is the checkpoint as it is, in f32, with its own attention."},
	{Name: "kl", Seen: "quality, frontier", Unit: "nats", Short: "mean KL divergence of the full model's distribution from this one's", Text: "KL(full ‖ this), over all positions; 0 for the full model itself."},
	{Name: "mass", Aliases: []string{"mass_on_value"}, Unit: "probability", Seen: "heads", Short: "mean attention of a head on the planted value, outside its recent positions",
		Text: "It ranks heads. It overstates need: heads of a layer that others can stand in for have as much."},
	{Name: "dominated", Aliases: []string{"beaten by"}, Seen: "frontier", Short: "another point is no worse in rate and quality, and better in one",
		Text: "Rates are predictions with a range and quality is a sample: points closer together than those mean nothing."},
}
