package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/serve"
	"anelab/internal/format"
)

type serveOptions struct {
	talk   talkFlags
	listen string
	limits serve.Limits
	body   byteSize
	grace  time.Duration
}

func newServeCmd(c *console.Console) *cobra.Command {
	o := &serveOptions{limits: serve.DefaultLimits()}
	cmd := &cobra.Command{
		Use:   "serve CHECKPOINT",
		Short: "Answer OpenAI clients with a model, in any layout's numerics",
		Long: `Serve /v1/chat/completions, /v1/completions and /v1/models as OpenAI does, whole
or as server-sent events, so that clients and evaluation harnesses can be run
against the numerics of any layout. /health says how busy it is.

The address is printed on standard output. Only this machine can connect unless
--listen says otherwise; there is no authentication. CHECKPOINT as in generate.
Ctrl-C takes no more requests, finishes those that are there, and ends with 0.`,
		Example: `  simulate serve tiny-e2b
  simulate serve gemma-4-E2B-it --layout @3way --mode ane --parallel 4
  curl http://127.0.0.1:8080/v1/completions \
    -H 'Content-Type: application/json' \
    -d '{"model": "tiny-e2b", "prompt": "The window", "max_tokens": 8}'`,
		Args: atMostArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("serve wants a checkpoint; see simulate serve --help")
			}
			return runServe(cmd.Context(), c, o, args[0])
		},
	}
	o.talk.add(cmd)
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "`ADDRESS` to listen on; port 0 takes a free one")
	f.IntVar(&o.limits.Parallel, "parallel", o.limits.Parallel, "requests computed at a time")
	f.IntVar(&o.limits.Queue, "queue", o.limits.Queue, "requests that wait; more are told to come back (429)")
	f.DurationVar(&o.limits.Timeout, "timeout", o.limits.Timeout, "longest time of a request")
	f.DurationVar(&o.grace, "grace", 10*time.Second, "time that requests get when the server ends")
	f.Var(&o.body, "max-body", "largest request, such as 512kB (default 4MiB)")
	return cmd
}

func (o *serveOptions) check() error {
	switch {
	case o.limits.Parallel < 1 || o.limits.Parallel > 1024:
		return usagef("--parallel %d; want 1 to 1024", o.limits.Parallel)
	case o.limits.Queue < 0 || o.limits.Queue > 1<<16:
		return usagef("--queue %d; want 0 to %d", o.limits.Queue, 1<<16)
	case o.limits.Timeout <= 0 || o.grace < 0:
		return usagef("--timeout %v --grace %v; want times such as 30s", o.limits.Timeout, o.grace)
	}
	if o.body.bytes > 0 {
		o.limits.BodyBytes = o.body.bytes
	}
	return nil
}

func runServe(ctx context.Context, c *console.Console, o *serveOptions, name string) error {
	if err := o.check(); err != nil {
		return err
	}
	o.talk.sequences = o.limits.Parallel
	e, closer, err := o.talk.open(c, name)
	if err != nil {
		return err
	}
	defer closer()
	if e.Tokenizer == nil {
		return &format.Error{Path: name, Got: "no tokenizer.json", Want: "a vocabulary", Fix: "name one with --tokenizer"}
	}
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", o.listen, err)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		c.Warn(fmt.Sprintf("%s can be reached by other machines, and asks for no key", l.Addr()))
	}
	conversations := "no conversations: the vocabulary has no markers for them"
	if e.Chat != nil {
		conversations = "chat " + e.Chat.Name
	}
	fmt.Fprintf(c.Err, "%s  mode %s  %s  context %d\n", e.Name, o.talk.mode.value, conversations, e.Context)
	fmt.Fprintf(c.Out, "http://%s/v1\n", l.Addr())
	return serve.New(e, o.limits).Serve(ctx, l, o.grace)
}
