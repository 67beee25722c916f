package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/talk"
	"anelab/cmd/simulate/internal/texttab"
	"anelab/cmd/simulate/internal/timing"
	"anelab/cmd/simulate/internal/view"
	"anelab/internal/chat"
	"anelab/internal/format"
)

type generateOptions struct {
	talk     talkFlags
	sampling samplingFlags
	output   outputFlags
	tokens   int
	exactly  bool // --tokens was given
	chat     bool
	raw      bool
	ids      bool
	special  bool
	thinking bool
	system   string
	stops    []string
}

func newGenerateCmd(c *console.Console) *cobra.Command {
	o := &generateOptions{}
	cmd := &cobra.Command{
		Use:   "generate CHECKPOINT PROMPT",
		Short: "Let a model speak: text on stdout, tok/s and memory on stderr",
		Long: `Continue a prompt, token by token: in one piece or chunk by chunk, in any
numerics. The text is printed as it comes; speed and memory follow on standard
error.

CHECKPOINT is a directory, a weight file with config.json beside it, a packed
model, formula:NAME, or tiny-e2b: random numbers that come with the program. A
bundle, a folder of Core ML chunks with model_config.json, is run as it is, by
an interpreter: layout, context and embeddings are its own.
PROMPT is text; - reads it from standard input. The vocabulary is tokenizer.json
in the checkpoint's directory; without one, --ids takes and prints numbers.

A checkpoint with a chat template is asked as in a conversation, others continue
the text; --chat and --raw say it. Thoughts go to standard error.`,
		Example: `  simulate generate tiny-e2b 'The window' --raw -n 16
  simulate generate gemma-4-E2B-it 'Why is it blue?' --temperature 1 --top-k 64
  simulate generate model.anelab --tokenizer vocab.gguf --layout @3way -
  simulate generate formula:e2b-10L '2, 1055, 37' --ids`,
		Args: atMostArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("generate wants a checkpoint and a prompt; see simulate generate --help")
			}
			o.exactly = cmd.Flags().Changed("tokens")
			return runGenerate(cmd.Context(), c, o, args[0], args[1])
		},
	}
	f := cmd.Flags()
	o.talk.add(cmd)
	f.IntVarP(&o.tokens, "tokens", "n", 128, "tokens to generate at most")
	f.BoolVar(&o.chat, "chat", false, "ask as in a conversation")
	f.BoolVar(&o.raw, "raw", false, "continue the text as it is")
	f.BoolVar(&o.ids, "ids", false, "token ids instead of text, in and out")
	f.BoolVar(&o.special, "special", false, "markers in raw text are meant: <|turn> becomes one token")
	f.StringVar(&o.system, "system", "", "what a conversation begins with")
	f.BoolVar(&o.thinking, "thinking", false, "ask for thoughts before the answer")
	f.StringArrayVar(&o.stops, "stop", nil, "end at this `TEXT`, without it; may be repeated")
	o.sampling.add(cmd)
	o.output.add(cmd, "text", "json")
	return cmd
}

func (o *generateOptions) check() error {
	switch {
	case o.tokens < 1:
		return usagef("--tokens %d; want 1 or more", o.tokens)
	case o.chat && o.raw, o.chat && o.ids:
		return usagef("--chat excludes --raw and --ids")
	case (o.raw || o.ids) && (o.system != "" || o.thinking):
		return usagef("--system and --thinking are for conversations: leave out --raw and --ids")
	case o.ids && (o.special || len(o.stops) > 0):
		return usagef("--special and --stop are about text: leave out --ids")
	case o.special && !o.raw:
		return usagef("--special is for --raw: in a conversation nobody writes markers")
	}
	for _, s := range o.stops {
		if s == "" {
			return usagef("--stop: an empty text would end every answer at once")
		}
	}
	return o.sampling.check()
}

func runGenerate(ctx context.Context, c *console.Console, o *generateOptions, name, prompt string) error {
	if err := o.check(); err != nil {
		return err
	}
	if prompt == "-" {
		text, err := c.ReadInput("a prompt")
		if err != nil {
			return usageError{err}
		}
		prompt = string(text)
	}
	e, closer, err := o.talk.open(c, name)
	if err != nil {
		return err
	}
	defer closer()
	r := &view.Generate{Made: made(c), Checkpoint: name, Layout: e.Speaker.Layout(), Mode: o.talk.mode.value, Context: e.Context, Sampling: o.sampling.s,
		StepBytes: e.Speaker.StepBytes(), KVBytes: e.Speaker.KVBytes(e.Context)}
	request, err := o.request(e, prompt, r)
	if err != nil {
		return err
	}
	return o.run(ctx, c, e, request, r)
}

// request turns the prompt into ids, and notes in which style.
func (o *generateOptions) request(e *talk.Engine, prompt string, r *view.Generate) (talk.Request, error) {
	q := talk.Request{Most: o.tokens, Sampling: o.sampling.s, Stops: o.stops}
	var err error
	switch {
	case o.ids:
		r.Style = "ids"
		q.Prompt, err = parseIDs(prompt)
	case e.Tokenizer == nil:
		err = &format.Error{Path: r.Checkpoint, Got: "no tokenizer.json", Want: "a vocabulary",
			Fix: "name one with --tokenizer, or give numbers with --ids"}
	case o.conversation(e):
		q.Style = talk.Chat
		q.Prompt, err = o.asked(e, prompt)
		if e.Chat != nil {
			r.Style = "chat " + e.Chat.Name
		}
	default:
		r.Style = "raw"
		encode := e.Tokenizer.Encode
		if o.special {
			encode = e.Tokenizer.EncodeMarked
		}
		if q.Prompt, err = encode(prompt); err == nil {
			q.Prompt = e.Tokenizer.Prompt(q.Prompt)
		}
	}
	if err != nil {
		return q, err
	}
	r.Prompt = q.Prompt
	if !o.exactly {
		q.Most = max(1, min(q.Most, e.Room(len(q.Prompt))))
	}
	return q, e.Fits(len(q.Prompt), q.Most)
}

// conversation: what was asked for, else whether the checkpoint brings a template.
func (o *generateOptions) conversation(e *talk.Engine) bool {
	return o.chat || o.system != "" || o.thinking || !o.raw && e.Tokenizer.ChatTemplate() != ""
}

// asked is the prompt as a conversation of one question.
func (o *generateOptions) asked(e *talk.Engine, prompt string) ([]int, error) {
	if e.Chat == nil {
		_, err := chat.Detect(e.Tokenizer)
		return nil, err
	}
	var messages []chat.Message
	if o.system != "" {
		messages = append(messages, chat.Message{Role: chat.System, Content: o.system})
	}
	thinking := chat.NoThinking
	if o.thinking {
		thinking = chat.WithThinking
	}
	return e.Chat.Prompt(append(messages, chat.Message{Role: chat.User, Content: prompt}), thinking)
}

// parseIDs reads numbers that are separated by commas or white space.
func parseIDs(text string) ([]int, error) {
	var ids []int
	for _, field := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(", \t\r\n[]", c) }) {
		id, err := strconv.ParseUint(field, 10, 31)
		if err != nil {
			return nil, usagef("--ids: %q is no token id; want numbers such as 2,105,37", field)
		}
		ids = append(ids, int(id))
	}
	return ids, nil
}

// run generates; figures are shown even when the text was cut off.
func (o *generateOptions) run(ctx context.Context, c *console.Console, e *talk.Engine, q talk.Request, r *view.Generate) error {
	out, err := o.output.open(c)
	if err != nil {
		return err
	}
	say := &speaker{c: c, out: out, r: r, ids: o.ids, streams: o.output.format.value == string(view.Text)}
	r.Result, err = e.Run(ctx, q, say.token)
	say.end()
	r.PeakRSSBytes = timing.PeakRSS()
	if err == nil && !say.streams {
		err = view.Write(out, r, view.JSON, o.output.paint(c))
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		out.Discard()
		return err
	}
	if say.streams {
		r.Page(texttab.NewPage(c.Err, console.Paint{}))
	}
	if err != nil {
		out.Discard()
		return err
	}
	return out.Commit()
}

// speaker prints tokens as they come, and keeps them.
type speaker struct {
	c         *console.Console
	out       *console.Output
	r         *view.Generate
	ids       bool
	streams   bool
	reasoning bool // the last thing on standard error is a thought
	lineOpen  bool
}

func (s *speaker) token(t talk.Token) error {
	text := t.Part.Content
	if t.ID >= 0 {
		s.r.IDs = append(s.r.IDs, t.ID)
		if s.ids {
			text = strconv.Itoa(t.ID)
			if len(s.r.IDs) > 1 {
				text = " " + text
			}
		}
	}
	s.r.Text += t.Part.Content
	s.r.Reasoning += t.Part.Reasoning
	if !s.streams {
		return nil
	}
	if t.Part.Reasoning != "" {
		fmt.Fprint(s.c.Err, t.Part.Reasoning)
		s.reasoning = true
	}
	if text == "" {
		return nil
	}
	s.endThought()
	s.lineOpen = !strings.HasSuffix(text, "\n")
	if _, err := s.out.WriteString(text); err != nil {
		return err
	}
	return s.out.Flush()
}

func (s *speaker) endThought() {
	if s.reasoning {
		fmt.Fprint(s.c.Err, "\n\n")
		s.reasoning = false
	}
}

// end finishes the line.
func (s *speaker) end() {
	s.endThought()
	if s.streams && s.lineOpen {
		s.out.WriteString("\n")
		s.out.Flush()
	}
}
