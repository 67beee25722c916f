package main

import (
	"flag"
	"log"
	"math"
	"strings"

	"anelab"
	"anelab/gemma4"
)

func main() {
	log.SetFlags(0)
	vocab := flag.String("vocab", "", "GGUF file with the tokenizer")
	gguf := flag.String("gguf", "", "GGUF file to write")
	pack := flag.String("packed", "", "packed file to write")
	seed := flag.Uint64("seed", 1, "seed of the weights")
	flag.Parse()
	if err := run(*vocab, *gguf, *pack, *seed); err != nil {
		log.Fatal("peerweights: ", err)
	}
}

func run(vocab, gguf, pack string, seed uint64) error {
	text, err := anelab.Files.ReadFile("testdata/configs/e2b.json")
	if err != nil {
		return err
	}
	config, err := gemma4.ParseConfig("e2b.json", text)
	if err != nil {
		return err
	}
	tensors, err := list(config, seed)
	if err != nil {
		return err
	}
	if pack != "" {
		if err := writePacked(pack, text, tensors); err != nil {
			return err
		}
	}
	if gguf == "" {
		return nil
	}
	return writeGGUF(gguf, vocab, config, tensors)
}

// tensor is one weight under both of its names.
type tensor struct {
	name, gguf string
	rows, cols int     // cols 0: a vector of rows numbers, all of the same value
	value      float32 // of a vector; d of a matrix
	seed       uint64
}

// fill writes the 4-bit integers q of row r, 0 to 15; cols is a multiple of 16.
func (t *tensor) fill(r int, q []byte) {
	z := t.seed + uint64(r)*0x9e3779b97f4a7c15
	for i := 0; i < len(q); i += 16 {
		z += 0x9e3779b97f4a7c15
		v := (z ^ z>>30) * 0xbf58476d1ce4e5b9
		v = (v ^ v>>27) * 0x94d049bb133111eb
		v ^= v >> 31
		for k := range q[i : i+16] {
			q[i+k] = byte(v >> (4 * k) & 15)
		}
	}
}

// list is every tensor of the model in the order of the layers.
func list(c gemma4.Config, seed uint64) ([]tensor, error) {
	layers, err := c.Layers()
	if err != nil {
		return nil, err
	}
	l := lister{seed: seed}
	d, p := c.HiddenSize, c.HiddenSizePerLayer
	l.matrix("embed_tokens", "token_embd", c.VocabSize, d)
	l.matrix("embed_tokens_per_layer", "per_layer_token_embd", c.VocabSizePerLayerInput, p*len(layers))
	l.matrix("per_layer_model_projection", "per_layer_model_proj", p*len(layers), d)
	l.vector("per_layer_projection_norm.weight", "per_layer_proj_norm.weight", p, 1)
	l.vector("norm.weight", "output_norm.weight", d, 1)
	for _, y := range layers {
		l.layer(y, d, p)
	}
	return l.all, nil
}

type lister struct {
	seed uint64
	all  []tensor
}

// matrix adds a weight whose products keep the size of their input: q−8 has a deviation of 4.6.
func (l *lister) matrix(name, gguf string, rows, cols int) {
	l.seed = l.seed*0x5851f42d4c957f2d + 0x14057b7ef767814f
	d := math.Exp2(-math.Round(math.Log2(4.6 * math.Sqrt(float64(min(cols, 4096))))))
	l.all = append(l.all, tensor{name: name + ".weight", gguf: gguf + ".weight", rows: rows, cols: cols, value: float32(d), seed: l.seed})
}

func (l *lister) vector(name, gguf string, n int, value float32) {
	l.all = append(l.all, tensor{name: name, gguf: gguf, rows: n, value: value})
}

func (l *lister) layer(y gemma4.Layer, d, p int) {
	at := func(s string) (string, string) {
		a, b, _ := strings.Cut(s, "|")
		return "layers." + itoa(y.Index) + "." + a, "blk." + itoa(y.Index) + "." + b
	}
	matrix := func(names string, rows, cols int) {
		a, b := at(names)
		l.matrix(a, b, rows, cols)
	}
	vector := func(names string, n int, value float32) {
		a, b := at(names)
		l.vector(a, b, n, value)
	}
	for _, n := range []string{"input_layernorm|attn_norm", "post_attention_layernorm|post_attention_norm", "pre_feedforward_layernorm|ffn_norm",
		"post_feedforward_layernorm|post_ffw_norm", "post_per_layer_input_norm|post_norm"} {
		a, b, _ := strings.Cut(n, "|")
		vector(a+".weight|"+b+".weight", d, 1)
	}
	vector("layer_scalar|layer_output_scale.weight", 1, 1)
	q := y.Heads * y.HeadDim
	matrix("self_attn.q_proj|attn_q", q, d)
	matrix("self_attn.o_proj|attn_output", d, q)
	vector("self_attn.q_norm.weight|attn_q_norm.weight", y.HeadDim, 0.25)
	if y.OwnsKV() {
		matrix("self_attn.k_proj|attn_k", y.KVWidth(), d)
		matrix("self_attn.v_proj|attn_v", y.KVWidth(), d)
		vector("self_attn.k_norm.weight|attn_k_norm.weight", y.HeadDim, 0.25)
	}
	matrix("mlp.gate_proj|ffn_gate", y.FFN, d)
	matrix("mlp.up_proj|ffn_up", y.FFN, d)
	matrix("mlp.down_proj|ffn_down", d, y.FFN)
	matrix("per_layer_input_gate|inp_gate", p, d)
	matrix("per_layer_projection|proj", d, p)
}
