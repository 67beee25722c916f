package checkpoint

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"anelab/internal/format"
)

// prefixes of the text model, in the order they are tried: the published multimodal file, MLX conversions, text-only saves,
// and a bare model.
var prefixes = []string{"model.language_model.", "language_model.model.", "model.", ""}

// otherModalities are first parts of names, after an optional "model.", that the text model does not need.
var otherModalities = []string{"vision_tower.", "audio_tower.", "embed_vision.", "embed_audio.", "multi_modal_projector."}

// quantMarks are last parts of names that only quantised checkpoints have.
var quantMarks = map[string]string{
	".scales": "MLX", ".biases": "MLX", ".qweight": "GPTQ or AWQ", ".qzeros": "GPTQ or AWQ",
	".weight_packed": "compressed-tensors", ".weight_scale": "compressed-tensors or FP8", ".weight_scale_inv": "FP8", ".absmax": "bitsandbytes",
}

const (
	embedding = "embed_tokens.weight"
	head      = "lm_head.weight"
)

// name finds the tensors of the text model among all of the store.
func (c *Checkpoint) name(all []string) error {
	prefix, err := c.choosePrefix(all)
	if err != nil {
		return err
	}
	c.stored = make(map[string]string, len(all))
	for _, stored := range all {
		if isOtherModality(stored) {
			continue
		}
		if err := c.refuseQuantised(stored); err != nil {
			return err
		}
		if isHead(stored) {
			if err := c.checkTied(stored, prefix+embedding); err != nil {
				return err
			}
			continue
		}
		name, ok := strings.CutPrefix(stored, prefix)
		if other := prefixOf(stored); !ok || other != prefix && isText(strings.TrimPrefix(stored, other)) {
			return c.stranger(stored, prefix, other)
		}
		c.stored[name] = stored
	}
	return nil
}

// choosePrefix is the prefix of the one embedding table.
func (c *Checkpoint) choosePrefix(all []string) (string, error) {
	var found []string
	for _, p := range prefixes {
		if slices.Contains(all, p+embedding) {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", &format.Error{Path: c.path, Field: embedding, Got: "nothing", Want: "it under one of the prefixes " + quoted(prefixes),
			Fix: "is this a Gemma 4 checkpoint?"}
	}
	return "", &format.Error{Path: c.path, Field: embedding, Got: "the prefixes " + quoted(found), Want: "one text model"}
}

// prefixOf is the first prefix that fits a stored name.
func prefixOf(stored string) string {
	for _, p := range prefixes {
		if strings.HasPrefix(stored, p) {
			return p
		}
	}
	return ""
}

// isText reports whether a name without prefix could be one of a text model.
func isText(name string) bool {
	return slices.ContainsFunc([]string{"layers.", "embed_tokens", "norm.", "per_layer_"}, func(p string) bool { return strings.HasPrefix(name, p) })
}

func isOtherModality(stored string) bool {
	rest := strings.TrimPrefix(stored, "model.")
	return slices.ContainsFunc(otherModalities, func(p string) bool { return strings.HasPrefix(rest, p) })
}

// isHead recognises an output head under any wrapper.
func isHead(stored string) bool {
	return slices.Contains([]string{head, "language_model." + head, "model." + head, "model.language_model." + head}, stored)
}

func (c *Checkpoint) refuseQuantised(stored string) error {
	if scheme, ok := quantMarks[path.Ext(stored)]; ok {
		return &format.Error{Path: c.path, Field: stored, Got: "a checkpoint quantised with " + scheme, Want: "f32, f16 or bf16 weights",
			Fix: "open the unquantised model"}
	}
	return nil
}

// stranger is the error for a tensor outside the chosen prefix.
func (c *Checkpoint) stranger(stored, prefix, other string) error {
	if isText(strings.TrimPrefix(stored, other)) {
		return &format.Error{Path: c.path, Field: stored, Got: "prefix " + strconv.Quote(other), Want: fmt.Sprintf("%q, that of %s", prefix, embedding)}
	}
	return &format.Error{Path: c.path, Field: stored, Got: "unknown tensor", Want: "the tensors of a Gemma 4 model"}
}

// checkTied accepts a stored head that repeats the embedding table, as older savers wrote it. Only one that does not share
// the table's bytes has to be read for that.
func (c *Checkpoint) checkTied(head, table string) error {
	h, err := c.store.Tensor(head)
	if err != nil {
		return err
	}
	e, err := c.store.Tensor(table)
	if err != nil {
		return err
	}
	if h.DType != e.DType || !slices.Equal(h.Shape, e.Shape) || !bytes.Equal(h.Data, e.Data) {
		return &format.Error{Path: c.path, Field: head, Got: "a head that differs from " + table, Want: "the embedding table as head",
			Fix: "models with an untied head are not supported"}
	}
	return nil
}

func quoted(list []string) string {
	q := make([]string, len(list))
	for i, s := range list {
		q[i] = strconv.Quote(s)
	}
	return strings.Join(q, ", ")
}
