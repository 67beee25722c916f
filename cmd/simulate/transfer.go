package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"anelab/anesim"
	"anelab/anesim/devicelog"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/view"
	"anelab/internal/format"
)

type transferOptions struct {
	output outputFlags
	from   string
	to     string
	write  string
	log    logFlag
	shots  string
}

func newTransferCmd(c *console.Console) *cobra.Command {
	o := &transferOptions{}
	cmd := &cobra.Command{
		Use:   "transfer CALLS",
		Short: "A device or model from a relative and at most five timed calls",
		Long: `Fit the constants of a relative to a few timed calls of single chunks. What the
calls cannot tell keeps the relative's value and a wide range. More calls than
five are a calibration.

CALLS is a file of any kind that calibrate reads, or the JSON of anemll-bench,
whose calls stream weights and tell nothing else; - is standard input.`,
		Example: `  simulate transfer calls.csv --from mac --to m4 --write-devices .
  simulate transfer pasted.log --log device=m4,context=2048 --from mac
  simulate transfer e4b.csv --from iphone17pro
  simulate transfer anemll-bench.json --from mac --to m4pro --write-devices .`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("transfer takes one file of timed calls, got %d; see simulate transfer --help", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			o.shots = args[0]
			return runTransfer(c, o)
		},
	}
	cmd.Flags().StringVar(&o.from, "from", defaultDevice, "`DEVICE` that is the relative: a name or a file")
	cmd.Flags().StringVar(&o.to, "to", "", "`DEVICE` whose calls these are, if it is known: a name or a file")
	complete(cmd, "from", deviceNames())
	complete(cmd, "to", deviceNames())
	o.log.add(cmd)
	cmd.Flags().StringVar(&o.write, "write-devices", "", "write the device to `DIR`/NAME.yaml, for --device")
	o.output.add(cmd, "text", "json", "csv", "markdown")
	return cmd
}

func runTransfer(c *console.Console, o *transferOptions) error {
	source, err := loadDevice(o.from)
	if err != nil {
		return err
	}
	session, err := readSession(c, o.shots, &o.log)
	if err != nil {
		return err
	}
	t, calls, err := o.transfer(c, &source, &session)
	if err != nil {
		return err
	}
	if err := (&calibrateOptions{write: o.write}).writeDevices(c, []anesim.Device{t.Device}); err != nil {
		return err
	}
	return o.output.emit(c, &view.Transfer{Device: view.Device{Made: made(c), Device: t.Device}, From: source, Calls: calls, Fit: t.Fit, Notes: t.Notes})
}

// transfer fits what the file holds: chunks of a layout, or streams of weights.
func (o *transferOptions) transfer(c *console.Console, source *anesim.Device, s *devicelog.Session) (t anesim.Transfer, calls int, err error) {
	path := nameOfInput(o.shots)
	if len(s.Measurements) == 0 && len(s.Calls) > 0 {
		t, calls, err = o.streams(c, source, s.Calls)
	} else {
		t, calls, err = o.chunks(source, chunksAlone(c, s.Measurements))
	}
	if err != nil {
		var usage usageError
		if errors.As(err, &usage) {
			return t, 0, err
		}
		return t, 0, &format.Error{Path: path, Err: err}
	}
	return t, calls, nil
}

// chunksAlone leaves out what a console line says besides the times of its chunks, and says so.
func chunksAlone(c *console.Console, rows []anesim.Measurement) []anesim.Measurement {
	var chunks []anesim.Measurement
	var others []string
	for _, m := range rows {
		if _, err := strconv.Atoi(m.Component); err == nil {
			chunks = append(chunks, m)
		} else if !slices.Contains(others, m.Component) {
			others = append(others, m.Component)
		}
	}
	if len(others) > 0 && len(chunks) > 0 {
		c.Warn("only the calls of chunks are transferred; left out: " + strings.Join(others, ", "))
		return chunks
	}
	return rows
}

func (o *transferOptions) chunks(source *anesim.Device, rows []anesim.Measurement) (anesim.Transfer, int, error) {
	if len(rows) == 0 {
		return anesim.Transfer{}, 0, &format.Error{Path: "calls", Got: "no timed calls", Want: fmt.Sprintf("1 to %d", anesim.MaxShots)}
	}
	target, relation, err := o.target(source, rows[0].Device, rows[0].SoC)
	if err != nil {
		return anesim.Transfer{}, 0, err
	}
	models, err := measuredModels()
	if err != nil {
		return anesim.Transfer{}, 0, err
	}
	t, err := anesim.TransferTo(target, *source, relation, rows, models)
	return t, len(rows), err
}

// streams takes the calls that ran on the Neural Engine with weights of a known size, and says which did not.
func (o *transferOptions) streams(c *console.Console, source *anesim.Device, calls []devicelog.Call) (anesim.Transfer, int, error) {
	target, _, err := o.target(source, calls[0].Device, "")
	if err != nil {
		return anesim.Transfer{}, 0, err
	}
	var streams []anesim.Stream
	for _, call := range calls {
		switch {
		case call.Device != calls[0].Device:
			return anesim.Transfer{}, 0, &format.Error{Path: "calls", Field: call.Name, Got: "device " + call.Device, Want: calls[0].Device + ", as the first", Fix: "transfer to each by itself"}
		case call.Backend != "ANE":
			c.Warn(fmt.Sprintf("%s: backend %s may be any engine: left out", call.Name, strconv.Quote(call.Backend)))
		case call.WeightBytes == 0:
			c.Warn(call.Name + ": no size: left out")
		default:
			streams = append(streams, anesim.Stream{Name: call.Name, WeightBytes: call.WeightBytes, Seconds: call.Seconds})
		}
	}
	t, err := anesim.TransferStreams(target, *source, streams)
	return t, len(streams), err
}

// target is the device of the calls: the one that was named, the relative itself when only the model is another, or a new one
// under the name in the file, of the kind of the shipped device that it says it is.
func (o *transferOptions) target(source *anesim.Device, name, soc string) (anesim.Device, anesim.Relation, error) {
	if o.to != "" {
		d, err := loadDevice(o.to)
		if !slices.Contains(d.MeasuredAs, name) {
			d.MeasuredAs = append(slices.Clone(d.MeasuredAs), name)
		}
		return d, anesim.OtherDevice, err
	}
	if slices.Contains(source.MeasuredAs, name) {
		return *source, anesim.OtherModel, nil
	}
	d := anesim.Device{Name: strings.ToLower(strings.Join(strings.Fields(name), "-")), Title: name, SoC: soc, Class: classOf(name, source.Class),
		MeasuredAs: []string{name}, Noise: source.Noise}
	return d, anesim.OtherDevice, nil
}

// classOf guesses the class by what devices are called; limits hang on it.
func classOf(name string, otherwise anesim.Class) anesim.Class {
	switch lower := strings.ToLower(name); {
	case strings.Contains(lower, "iphone"), strings.Contains(lower, "ipad"), strings.HasPrefix(lower, "apple a"):
		return anesim.IPhone
	case strings.Contains(lower, "mac"), strings.HasPrefix(lower, "apple m"):
		return anesim.Mac
	}
	return otherwise
}
