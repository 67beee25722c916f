package main

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"anelab"
	"anelab/attention"
	"anelab/chunking"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/talk"
	"anelab/coreml/bundle"
	"anelab/coreml/interp"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/chat"
	"anelab/internal/checkpoint"
	"anelab/internal/checkpoint/mapped"
	"anelab/internal/format"
	"anelab/internal/tokenizer"
)

// The tiny model that comes with the program, by its name on the command line. Its vocabulary was made for it.
const (
	embeddedName       = "tiny-e2b"
	embeddedVocabulary = "testdata/tokenizer"
)

// talkFlags say which model speaks, cut how, in which numerics.
type talkFlags struct {
	tokenizer string
	layout    string
	mode      choice
	kv        choice
	threads   int
	context   sizes
	memory    byteSize
	sequences int // that are in memory at a time; 0 = one
}

func (o *talkFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.tokenizer, "tokenizer", "", "vocabulary: a tokenizer.json, a folder with one, or a .gguf `FILE` (default: that of the checkpoint)")
	f.StringVar(&o.layout, "layout", "", "compute chunk by chunk as `LAYOUT` says (default: in one piece)")
	o.mode = choice{"f32", arith.Modes, "MODE"}
	addChoice(cmd, "mode", "numerics", &o.mode)
	o.kv = choice{"exact", []string{"exact", "f16"}, "KV"}
	addChoice(cmd, "kv", "stores of keys and values in mode f32", &o.kv)
	f.IntVar(&o.threads, "threads", 0, "threads; 0 = all cores")
	o.context = sizes{values: []int{defaultTalkContext}, most: 1}
	f.Var(&o.context, "context", "positions of a sequence, prompt and answer together")
	addMemory(cmd, &o.memory)
	complete(cmd, "layout", presetNames())
}

// defaultTalkContext is enough for a conversation and little enough for any machine.
const defaultTalkContext = 2048

func presetNames() []string {
	var names []string
	for _, p := range chunking.Presets() {
		names = append(names, p.Name)
	}
	return names
}

// open loads what the flags say. The closer releases the checkpoint.
func (o *talkFlags) open(c *console.Console, name string) (*talk.Engine, func() error, error) {
	if o.threads < 0 {
		return nil, nil, usagef("--threads %d; want 0 or more", o.threads)
	}
	if bundle.Is(name) {
		return o.openBundle(name)
	}
	src, folder, err := openTalking(name)
	if err != nil {
		return nil, nil, err
	}
	e, err := o.load(c, src, name, folder)
	if err != nil {
		src.Close()
		return nil, nil, err
	}
	return e, src.Close, nil
}

// precisions are the roundings of ops that correspond to a mode.
var precisions = map[string]interp.Precision{"f32": interp.Fast, "ane": interp.ANE}

// openBundle opens a folder of chunks. What it was built with cannot be chosen again.
func (o *talkFlags) openBundle(name string) (*talk.Engine, func() error, error) {
	precision, known := precisions[o.mode.value]
	switch {
	case o.layout != "":
		return nil, nil, usagef("--layout %s: %s is a bundle, which is cut already", o.layout, name)
	case !known:
		return nil, nil, usagef("--mode %s: the programs of a bundle run in f32 or ane", o.mode.value)
	}
	b, err := bundle.Open(name, bundle.Options{Precision: precision, Threads: o.threads})
	if err != nil {
		return nil, nil, err
	}
	e := o.engine(name)
	e.Context, e.Speaker = min(e.Context, b.Config.ContextLength), talk.Programs{Bundle: b}
	at := vocabularyAt{}
	if file := b.Tokenizer(); file != "" {
		at = vocabularyAt{mapped.Disk(filepath.Dir(file)), filepath.Base(file)}
	}
	// The flag's own default means all that the bundle has.
	if asked := o.context.values[0]; asked > e.Context && asked != defaultTalkContext {
		err = usagef("--context %d: the chunks of %s are compiled for %d; emit them again with --context %d", asked, name, e.Context, asked)
	} else if err = o.text(e, at, b.Config.VocabSize); err == nil {
		err = enoughMemory(e.Speaker.StepBytes()+e.Speaker.KVBytes(e.Context)*int64(max(o.sequences, 1)), e.Context, o.memory)
	}
	if err != nil {
		b.Close()
		return nil, nil, err
	}
	return e, b.Close, nil
}

// vocabularyAt is where a vocabulary may lie.
type vocabularyAt struct {
	folder mapped.Folder
	file   string // "" = nowhere
}

// openTalking opens a checkpoint, and says where its vocabulary would be.
func openTalking(name string) (*checkpoint.Checkpoint, vocabularyAt, error) {
	src, err := openCheckpoint(name)
	switch {
	case isEmbedded(name):
		return src, vocabularyAt{mapped.In(anelab.Files, embeddedVocabulary), embeddedName + ".json"}, err
	case strings.HasPrefix(name, "formula:"):
		return src, vocabularyAt{}, err
	}
	folder := name
	if info, err := os.Stat(name); err == nil && !info.IsDir() {
		folder = filepath.Dir(name)
	}
	return src, vocabularyAt{mapped.Disk(folder), tokenizer.FileName}, err
}

// openCheckpoint opens a checkpoint of the disk, a formula, or the one that comes with the program.
func openCheckpoint(name string) (*checkpoint.Checkpoint, error) {
	if isEmbedded(name) {
		return checkpoint.OpenFS(anelab.Files, embeddedCheckpoint)
	}
	return checkpoint.Open(name)
}

// isEmbedded: a file of that name on the disk goes first.
func isEmbedded(name string) bool {
	_, err := os.Stat(name)
	return name == embeddedName && errors.Is(err, fs.ErrNotExist)
}

func (o *talkFlags) load(c *console.Console, src *checkpoint.Checkpoint, name string, at vocabularyAt) (*talk.Engine, error) {
	e := o.engine(name)
	if err := o.text(e, at, src.Config.VocabSize); err != nil {
		return nil, err
	}
	policies, plan, err := o.cut(c, src.Config, e)
	if err != nil {
		return nil, err
	}
	a, err := src.Arithmetic(o.mode.value, o.threads)
	if err != nil {
		return nil, usageError{err}
	}
	options := gemma4.Options{Policies: policies}
	if o.kv.value == "f16" {
		options.KV = gemma4.KVFloat16
	}
	if err := (demand{o.mode.value, options, e.Context, max(o.sequences, 1)}).fits(src, o.memory); err != nil {
		return nil, err
	}
	model, err := gemma4.Load(src.Config, src, a, options)
	if err != nil {
		return nil, err
	}
	for _, w := range model.Warnings {
		c.Warn(w.Error())
	}
	if _, err := model.NewState(e.Context); err != nil {
		return nil, err
	}
	e.Speaker = talk.Whole{Model: model}
	if plan != nil {
		e.Speaker = talk.Cut{Whole: talk.Whole{Model: model}, Plan: plan}
	}
	return e, nil
}

func (o *talkFlags) engine(name string) *talk.Engine {
	return &talk.Engine{Name: path.Base(filepath.ToSlash(strings.TrimSuffix(name, "/"))), Context: o.context.values[0]}
}

// text gives an engine its vocabulary and the conversations that it has markers for.
func (o *talkFlags) text(e *talk.Engine, at vocabularyAt, rows int) (err error) {
	if e.Tokenizer, err = o.vocabulary(at); err != nil || e.Tokenizer == nil {
		return err
	}
	if err := e.Tokenizer.Matches(rows); err != nil {
		return err
	}
	if format, err := chat.Detect(e.Tokenizer); err == nil {
		e.Chat = format
	}
	return nil
}

// vocabulary opens the one that was named, else the checkpoint's, else none.
func (o *talkFlags) vocabulary(at vocabularyAt) (*tokenizer.Tokenizer, error) {
	switch {
	case o.tokenizer != "":
		return tokenizer.Open(o.tokenizer)
	case at.file != "" && at.folder.Has(at.file):
		return tokenizer.OpenIn(at.folder, at.file)
	}
	return nil, nil
}

// cut plans the layout, and returns the attention that it asks for.
func (o *talkFlags) cut(c *console.Console, config gemma4.Config, e *talk.Engine) (map[int]attention.Policy, *chunking.Plan, error) {
	if o.layout == "" {
		return nil, nil, nil
	}
	m, err := chunking.NewModel(config)
	if err != nil {
		return nil, nil, err
	}
	l, err := loadLayout(c, o.layout, m)
	if err != nil {
		return nil, nil, err
	}
	if l.Context != 0 {
		e.Context = min(e.Context, l.Context)
	}
	l.Context = e.Context
	policies, err := l.Policies(m)
	if err != nil {
		return nil, nil, err
	}
	plan, err := l.Plan(m)
	return policies, plan, err
}

// samplingFlags say how tokens are chosen.
type samplingFlags struct {
	s    gemma4.Sampling
	seed int64
}

func (o *samplingFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Float64Var(&o.s.Temperature, "temperature", 0, "0 always takes the likeliest token")
	f.IntVar(&o.s.TopK, "top-k", 0, "only of the K likeliest; 0 = off")
	f.Float64Var(&o.s.TopP, "top-p", 1, "only of the likeliest that have this probability together; 1 = off")
	f.Float64Var(&o.s.MinP, "min-p", 0, "only of those with this share of the best one's probability; 0 = off")
	f.Float64Var(&o.s.Repetition, "repetition-penalty", 1, "makes tokens less likely that were there before; 1 = off")
	f.Int64Var(&o.seed, "seed", 0, "the same seed gives the same text, on any machine")
}

// check completes the settings and names the flag that is wrong.
func (o *samplingFlags) check() error {
	o.s.Seed = uint64(o.seed)
	err := o.s.Check()
	var fault *format.Error
	if errors.As(err, &fault) {
		return usagef("--%s %s; want %s", strings.ReplaceAll(fault.Field, "_", "-"), fault.Got, fault.Want)
	}
	return err
}
