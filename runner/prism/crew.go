package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"anelab/quality"
	"anelab/quality/shards"
)

// crew is worker processes that wait for units.
type crew struct {
	idle chan *member
}

// member is one of them: a process, or this one. A process that has ended is started anew for its next unit.
type member struct {
	program string
	job     shards.Job
	here    *shards.Worker // nil for a process
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

// reply is what a worker says of a unit.
type reply struct {
	Error string `json:"error,omitempty"`
}

// newCrew prepares so many processes of a program; none measures in this one.
func newCrew(program string, job shards.Job, processes int) (*crew, error) {
	c := &crew{idle: make(chan *member, max(processes, 1))}
	for range processes {
		c.idle <- &member{program: program, job: job}
	}
	if processes > 0 {
		return c, nil
	}
	w, err := shards.Open(job)
	if err != nil {
		return nil, err
	}
	c.idle <- &member{here: w}
	return c, nil
}

// free waits for a member without a unit.
func (c *crew) free(ctx context.Context) (*member, error) {
	select {
	case m := <-c.idle:
		return m, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *crew) back(m *member) { c.idle <- m }

// do has a unit measured.
func (m *member) do(ctx context.Context, u quality.Unit) error {
	if m.here != nil {
		return m.here.Do(ctx, u)
	}
	if m.command == nil {
		if err := m.start(); err != nil {
			return err
		}
	}
	r, err := m.ask(u)
	if err != nil {
		return errors.Join(err, m.end())
	}
	if r.Error != "" {
		return errors.New(r.Error)
	}
	return nil
}

// start runs the program and tells it the job.
func (m *member) start() error {
	c := exec.Command(m.program, "--measure_units")
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	m.command, m.in, m.out = c, in, bufio.NewScanner(out)
	return json.NewEncoder(in).Encode(m.job)
}

// ask passes a unit on and waits for the answer.
func (m *member) ask(u quality.Unit) (r reply, err error) {
	if err := json.NewEncoder(m.in).Encode(u); err != nil {
		return r, fmt.Errorf("worker process: %w", err)
	}
	if !m.out.Scan() {
		return r, errors.Join(errors.New("worker process: ended without an answer"), m.out.Err())
	}
	return r, json.Unmarshal(m.out.Bytes(), &r)
}

// end closes the input of the process, which ends it.
func (m *member) end() error {
	m.in.Close()
	err := m.command.Wait()
	m.command = nil
	return err
}

// serve is the other side: a job, then units, and an answer to each.
func serve(ctx context.Context, in io.Reader, out io.Writer) error {
	d := json.NewDecoder(in)
	var job shards.Job
	if err := d.Decode(&job); err != nil {
		return err
	}
	w, err := shards.Open(job)
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		var u quality.Unit
		if err := d.Decode(&u); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var r reply
		if err := w.Do(ctx, u); err != nil {
			r.Error = err.Error()
		}
		if err := json.NewEncoder(out).Encode(r); err != nil {
			return err
		}
	}
}
