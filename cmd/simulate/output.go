package main

import (
	"errors"
	"io/fs"

	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/view"
)

// emit writes a result as the flags say.
func (o *outputFlags) emit(c *console.Console, r view.Result) error {
	out, err := o.open(c)
	if err != nil {
		return err
	}
	if err := view.Write(out, r, view.Format(o.format.value), o.paint(c)); err != nil {
		out.Discard()
		return err
	}
	return out.Commit()
}

func (o *outputFlags) open(c *console.Console) (*console.Output, error) {
	out, err := c.Open(o.path)
	if err != nil {
		return nil, usagef("--output %s: %w", o.path, reason(err))
	}
	return out, nil
}

// paint is for text on standard output; a file stays plain unless colour is asked for.
func (o *outputFlags) paint(c *console.Console) console.Paint {
	mode := console.ColorMode(o.color.value)
	if o.path != "" && mode == console.ColorAuto {
		mode = console.ColorNever
	}
	return c.Paint(mode)
}

// made says what made a document.
func made(c *console.Console) view.Made {
	return view.Made{FormatVersion: view.FormatVersion, Tool: "simulate " + version(), Command: append([]string{"simulate"}, c.Args...)}
}

// reason is a file error without the path, which stands in front of it already.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
