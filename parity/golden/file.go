package golden

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"anelab/internal/checkpoint/safetensors"
	"anelab/internal/format"
)

// File is an open golden.
type File struct {
	Kind  Kind
	Run   Run
	cases []*Case
	set   *safetensors.Set
}

// Run says what was computed: the metadata entry "golden".
type Run struct {
	Name    string `json:"run"`     // "fp32", "bf16", "bf16w-fp32" …; "" in formula files
	Weights string `json:"weights"` // "fp32", "bf16", "bin-fp16", or "formula seed …"
	Compute string `json:"compute"` // "torch.float32", "torch.bfloat16" or "torch.float64"
}

// Case is one prompt and what the reference made of it.
type Case struct {
	Name    string // "T21"; "decode" and "formula" in files of one case
	Prompt  []int
	Tokens  []int             // greedy continuation; none in Passes
	tensors map[string]string // key → name in the file
	file    *File
}

// Open reads the names of a golden and checks all of them. Close the file when its tensors have been read.
func Open(path string) (*File, error) {
	set, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	f, err := newFile(set)
	if err != nil {
		set.Close()
		return nil, err
	}
	return f, nil
}

// Parse is Open for bytes that are in memory; path is for errors.
func Parse(path string, data []byte) (*File, error) {
	set, err := safetensors.Parse(path, data)
	if err != nil {
		return nil, err
	}
	return newFile(set)
}

// Close releases the file.
func (f *File) Close() error { return f.set.Close() }

// Path is the file's name.
func (f *File) Path() string { return f.set.Path() }

// Cases are the prompts of the file, shortest first.
func (f *File) Cases() []*Case { return f.cases }

// InvFreq returns the rotary frequencies that the reference used, per layer type "sliding" or "full"; nil when the file has none.
func (f *File) InvFreq(layerType string) []float32 {
	t, err := f.set.Tensor("rope_inv_freq." + layerType)
	if err != nil {
		return nil
	}
	x, _ := t.Floats() // the type was checked when the file was opened
	return x
}

// Keys lists the tensors of a case without its name, sorted: "embeds", "hidden.3" …
func (c *Case) Keys() []string { return slices.Sorted(maps.Keys(c.tensors)) }

// Tensor returns a copy of the values behind a key, and their shape; ok is false when the case has no such tensor.
func (c *Case) Tensor(key string) (values []float32, shape []int, ok bool) {
	name, ok := c.tensors[key]
	if !ok {
		return nil, nil, false
	}
	t, err := c.file.set.Tensor(name)
	if err != nil {
		panic("golden: a tensor is gone that was there when the file was opened")
	}
	values, _ = t.Floats() // the type was checked when the file was opened
	return values, slices.Clone(t.Shape), true
}

// newFile sorts the tensors of a set into cases.
func newFile(set *safetensors.Set) (*File, error) {
	f := &File{Kind: kindOf(set), set: set}
	if err := f.readRun(); err != nil {
		return nil, err
	}
	known, byName := sizes{}, map[string]*Case{}
	for _, name := range set.Names() {
		if err := f.addTensor(name, known, byName); err != nil {
			return nil, err
		}
	}
	for _, c := range byName {
		if err := f.finish(c, known); err != nil {
			return nil, err
		}
		f.cases = append(f.cases, c)
	}
	if len(f.cases) == 0 {
		return nil, f.error("", "no case", "tensors named <case>.<tensor>", "is this a golden?")
	}
	slices.SortFunc(f.cases, func(a, b *Case) int { return len(a.Prompt) - len(b.Prompt) })
	return f, nil
}

// kindOf tells the kinds apart by tensors that only one of them has.
func kindOf(set *safetensors.Set) Kind {
	switch {
	case set.Has("prompt_ids"):
		return Decode
	case set.Has("hidden_last2"):
		return Formula
	}
	return Passes
}

func (f *File) error(field, got, want, fix string) error {
	return &format.Error{Path: f.Path(), Field: field, Got: got, Want: want, Fix: fix}
}

func (f *File) readRun() error {
	text, ok := f.set.Metadata()["golden"]
	if !ok {
		return f.error("__metadata__", `no "golden"`, "the weights and the compute type", "goldens are made by make_goldens.py")
	}
	if err := json.Unmarshal([]byte(text), &f.Run); err != nil {
		return &format.Error{Path: f.Path(), Field: "__metadata__.golden", Err: err}
	}
	if f.Run.Weights == "" || f.Run.Compute == "" {
		return f.error("__metadata__.golden", text, "weights and compute", "")
	}
	return nil
}

func (f *File) addTensor(name string, known sizes, byName map[string]*Case) error {
	p, err := parseName(f.Kind, name)
	if err != nil {
		return f.error(name, err.Error(), "a tensor of "+f.Kind.String(), format.DidYouMean(name, knownNames(f.Kind)))
	}
	t, err := f.set.Describe(name)
	if err != nil {
		return err
	}
	if err := known.check(p.caseName, t, p.spec); err != nil {
		return f.error(name, err.Error(), "", "")
	}
	if p.caseName == "" && f.Kind == Passes {
		return nil // belongs to no case: InvFreq reads it
	}
	c := f.caseNamed(p.caseName, byName)
	c.tensors[p.key] = name
	return nil
}

func (f *File) caseNamed(name string, byName map[string]*Case) *Case {
	if name == "" {
		name = f.Kind.String()
	}
	if byName[name] == nil {
		byName[name] = &Case{Name: name, tensors: map[string]string{}, file: f}
	}
	return byName[name]
}

// finish reads the ids of a case and checks what only makes sense once all its tensors are known.
func (f *File) finish(c *Case, known sizes) error {
	for _, key := range required[f.Kind] {
		if _, ok := c.tensors[key]; !ok {
			return f.error(c.Name, "no "+key, "", "")
		}
	}
	prompt := "input_ids"
	if f.Kind == Decode {
		prompt = "prompt_ids"
	}
	var err error
	if c.Prompt, err = f.ids(c, prompt, known["V"]); err != nil {
		return err
	}
	if f.Kind == Passes {
		if want := strconv.Itoa(len(c.Prompt)); c.Name != "T"+want {
			return f.error(c.Name, "a prompt of "+want+" tokens", "the length in its name", "")
		}
		return nil
	}
	if c.Tokens, err = f.ids(c, "tokens", known["V"]); err != nil {
		return err
	}
	if r, want := known["R"], len(c.Prompt)+len(c.Tokens)-1; f.Kind == Decode && r != 0 && r != want {
		return f.error("k, v", fmt.Sprintf("%d rows", r), fmt.Sprintf("%d: the prompt and all tokens but the last", want), "")
	}
	return nil
}

// ids reads token ids, all below the vocabulary's size.
func (f *File) ids(c *Case, key string, vocab int) ([]int, error) {
	t, err := f.set.Tensor(c.tensors[key])
	if err != nil {
		return nil, err
	}
	wide, _ := t.Float64s() // exact: checked below to be small
	ids := make([]int, len(wide))
	for i, x := range wide {
		if x < 0 || x >= float64(vocab) {
			return nil, f.error(t.Name, fmt.Sprintf("id %v at %d", x, i), fmt.Sprintf("0 to %d", vocab-1), "")
		}
		ids[i] = int(x)
	}
	return ids, nil
}

// knownNames are candidates for a misspelt name.
func knownNames(k Kind) []string {
	names := slices.Sorted(maps.Keys(fileTensors[k]))
	if k == Passes {
		for name := range maps.Keys(passTensors) {
			names = append(names, "T1."+name)
		}
		slices.Sort(names)
	}
	return names
}
