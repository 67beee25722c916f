package emit

import (
	"anelab/chunking"
	"anelab/chunking/run"
	"anelab/coreml/mil"
)

// head turns the stream x [1, T, D] into tokens: final norm, tied LM head, soft-cap, first maximum (spec forward.md §2.10). A
// prefill's is that of the row which last_position_mask marks.
func (w *writer) head(x string) {
	w.prefix = ""
	normed := w.rmsNorm("final_norm", x, w.gain("norm.weight", w.c.HiddenSize), w.eps)
	if w.takes("last_position_mask") {
		marked := w.mul("last_row", normed, "last_position_mask")
		normed = w.op("reduce_sum", "last", in("x", marked), w.ints("axes", 1), w.flag("keep_dims", true))
	}
	logits := w.toRows(w.product(opKey{chunking.OpHead, -1}, "embed_tokens.weight", w.toChannels(normed)))
	if limit := w.c.FinalLogitSoftcapping; limit > 0 {
		share := w.op("real_div", "share", in("x", logits), w.set("y", f16(limit)))
		logits = w.scale("logits", w.op("tanh", "tanh", in("x", share)), limit)
	}
	w.tokens(logits)
	switch {
	case w.gives("hidden_normed"):
		w.output("hidden_normed", normed)
	case w.gives("hidden_states_out") && w.fn.Kind == run.Verify:
		w.output("hidden_states_out", x)
	case w.gives("hidden_states_out"):
		w.output("hidden_states_out", normed)
	}
}

// tokens chooses the first maximum of every row of logits [1, T, V].
func (w *writer) tokens(logits string) {
	best := w.op("reduce_argmax", "best", in("x", logits), w.set("axis", mil.Scalar(int32(2))), w.flag("keep_dims", true), w.set("output_dtype", mil.Scalar("int32")))
	if w.gives("token_ids") {
		w.output("token_ids", w.op("squeeze", "ids", in("x", best), w.ints("axes", 2)))
		return
	}
	most := w.op("gather_along_axis", "most", in("x", logits), in("indices", best), w.set("axis", mil.Scalar(int32(2))), w.flag("validate_indices", false))
	w.output("token_id", w.op("squeeze", "id", in("x", best), w.ints("axes", 1, 2)))
	w.output("token_logit", w.op("squeeze", "logit", in("x", most), w.ints("axes", 1, 2)))
}

// takes reports whether the function has such an input, gives whether it has such an output.
func (w *writer) takes(port string) bool { return hasPort(w.fn.sig.Inputs, port) }
func (w *writer) gives(port string) bool { return hasPort(w.fn.sig.Outputs, port) }

func hasPort(ports []chunking.Port, name string) bool {
	for _, p := range ports {
		if p.Name == name {
			return true
		}
	}
	return false
}
