package chunking

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"anelab/internal/format"
	"anelab/quant"
)

// Parse reads layout text for a model:
//
//	layout  = ( preset | chunk { "|" chunk } ) { setting }
//	preset  = "@3way" and the like, see [Presets]
//	chunk   = ( [L]lo[-[L]hi][+head] | head ) { w=ENCODING | kv=explicit }
//	setting = [ @LAYER ] attn=POLICY | context=C | tokens=T
//
// Settings follow the last chunk; weights= is a longer name of w=, which after a preset is meant for every chunk. The result
// can be planned: what the model cannot do is refused here, like faults of the text, with a [ParseError] that points at the
// place.
func Parse(text string, m *Model) (Layout, error) {
	p := &parser{text: text, model: m, settingAt: map[settingKey]int{}}
	if err := p.layout(); err != nil {
		return Layout{}, err
	}
	if v := p.out.Violations(m); len(v) > 0 {
		return Layout{}, p.violation(v[0])
	}
	return p.out, nil
}

// parser turns words into a layout and remembers where everything was said.
type parser struct {
	text  string
	model *Model
	out   Layout

	places    []place // of each cut
	settingAt map[settingKey]int
}

// place is where a cut was written, as byte offsets: its first character, its last layer, its head, the end of the word.
type place struct{ begin, hi, head, end int }

// settingKey finds the setting that a violation is about.
type settingKey struct {
	rule  Rule
	layer int // of an attention policy; else −1
}

// segment is what stands between two bars.
type segment struct {
	words []word
	end   int // offset of the bar behind it, or of the end
}

// word is a run of characters without blanks, and its offset.
type word struct {
	text string
	at   int
}

func (p *parser) segments() []segment {
	all := []segment{{}}
	begin := -1
	for i, r := range p.text + " " {
		bar, last := r == '|' && i < len(p.text), &all[len(all)-1]
		switch {
		case !bar && !unicode.IsSpace(r):
			if begin < 0 {
				begin = i
			}
			continue
		case begin >= 0:
			last.words = append(last.words, word{p.text[begin:i], begin})
			begin = -1
		}
		if bar {
			last.end = i
			all = append(all, segment{})
		}
	}
	all[len(all)-1].end = len(p.text)
	return all
}

func (p *parser) layout() error {
	all := p.segments()
	for i, s := range all {
		last := i == len(all)-1
		switch {
		case len(s.words) == 0 && len(all) == 1:
			return p.fault(0, format.Error{Got: "nothing", Want: "chunks or a preset", Fix: "for example L0-7 | L8-24 | L25-34+head, or @3way"})
		case len(s.words) == 0:
			return p.fault(s.end, format.Error{Got: fmt.Sprintf("chunk %d is empty", i+1), Want: "layers between the bars"})
		case strings.HasPrefix(s.words[0].text, "@") && len(all) == 1:
			return p.preset(s)
		}
		if err := p.chunk(s, last); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) preset(s segment) error {
	name := s.words[0]
	l, ok := p.model.Preset(name.text)
	if !ok {
		return p.fault(name.at, format.Error{Got: "unknown preset " + strconv.Quote(name.text), Fix: format.DidYouMean(name.text, presetNames())})
	}
	p.out = l
	end := name.at + len(name.text)
	for range l.Cuts {
		p.places = append(p.places, place{name.at, name.at, name.at, end})
	}
	return p.settings(s.words[1:], p.out.Cuts, true)
}

func (p *parser) chunk(s segment, last bool) error {
	w := s.words[0]
	cut, at, fault := readCut(w.text, p.model)
	if fault != nil {
		return p.fault(w.at+fault.at, fault.Error)
	}
	p.out.Cuts = append(p.out.Cuts, cut)
	p.places = append(p.places, place{w.at, w.at + at.hi, w.at + at.head, w.at + at.end})
	return p.settings(s.words[1:], p.out.Cuts[len(p.out.Cuts)-1:], last)
}

// settings reads the words behind a chunk or a preset. cuts are the chunks that w= is for.
func (p *parser) settings(words []word, cuts []Cut, last bool) error {
	given := map[string]bool{}
	layer := -1
	for i, w := range words {
		if strings.HasPrefix(w.text, "@") {
			var err error
			if layer, err = p.target(words[i:], last); err != nil {
				return err
			}
			continue
		}
		key, value, _ := strings.Cut(w.text, "=")
		at := w.at + len(key) + 1
		if key == "weights" {
			key = "w"
		}
		if err := p.known(w, key, last); err != nil {
			return err
		}
		id := fmt.Sprint(key, layer)
		if given[id] {
			return p.fault(w.at, format.Error{Got: key + " is given twice", Fix: "keep one"})
		}
		given[id] = true
		if err := p.set(word{value, at}, key, layer, cuts); err != nil {
			return err
		}
		layer = -1
	}
	return nil
}

// target reads @LAYER, which must be followed by attn=.
func (p *parser) target(words []word, last bool) (int, error) {
	w := words[0]
	layer, err := readNumber(w.text[1:])
	switch {
	case err != nil:
		return 0, p.fault(w.at, format.Error{Got: strconv.Quote(w.text), Want: "@LAYER attn=POLICY", Fix: "a preset stands alone at the beginning"})
	case !last:
		return 0, p.early(w)
	case len(words) == 1 || !strings.HasPrefix(words[1].text, "attn="):
		return 0, p.fault(w.at, format.Error{Got: w.text + " without attn=", Want: "@LAYER attn=POLICY"})
	}
	return layer, nil
}

// keys of settings; those of the whole layout follow the last chunk.
var (
	chunkKeys  = []string{"w", "kv"}
	layoutKeys = []string{"attn", "context", "tokens"}
)

func (p *parser) known(w word, key string, last bool) error {
	all := append(slices.Clone(chunkKeys), layoutKeys...)
	_, _, notCut := readCut(w.text, p.model)
	switch {
	case notCut == nil:
		return p.fault(w.at, format.Error{Got: strconv.Quote(w.text) + " in the middle of a chunk", Fix: `write "|" between chunks`})
	case !slices.Contains(all, key):
		return p.fault(w.at, format.Error{Got: "unknown setting " + strconv.Quote(w.text), Fix: format.DidYouMean(key, append(all, "weights"))})
	case !strings.Contains(w.text, "="):
		return p.fault(w.at, format.Error{Got: strconv.Quote(w.text), Want: key + "=VALUE"})
	case slices.Contains(layoutKeys, key) && !last:
		return p.early(w)
	}
	return nil
}

func (p *parser) early(w word) error {
	return p.fault(w.at, format.Error{Got: strconv.Quote(w.text) + " before the last chunk", Fix: "it is for the whole layout: write it at the end"})
}

// set gives one setting its value.
func (p *parser) set(value word, key string, layer int, cuts []Cut) error {
	var err error
	switch key {
	case "w":
		var e quant.Encoding
		e, err = quant.ParseEncoding(value.text)
		for i := range cuts {
			cuts[i].Weights = e
		}
	case "kv":
		p.out.KVMode, err = ParseKVMode(value.text)
		p.settingAt[settingKey{RuleKVMode, -1}] = value.at
	case "attn":
		err = CheckPolicy(value.text)
		p.out.Attn = append(p.out.Attn, LayerAttn{layer, value.text})
		p.settingAt[settingKey{RuleAttn, layer}] = value.at
	case "context":
		p.out.Context, err = readSize(value.text, key, maxContext)
		p.settingAt[settingKey{RuleContext, -1}] = value.at
	case "tokens":
		p.out.QueryTokens, err = readSize(value.text, key, maxQueryTokens)
		p.settingAt[settingKey{RuleTokens, -1}] = value.at
	}
	var fault *format.Error
	if errors.As(err, &fault) {
		return p.fault(value.at, *fault)
	}
	return err
}
