package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"

	"anelab/internal/format"
)

const (
	lengthSize    = 8
	maxHeaderSize = 100_000_000 // the limit of the reference implementation
	maxRank       = 32
	metadataKey   = "__metadata__"
)

// header is the JSON of one file: every span satisfies begin ≤ end and has the length its shape and type need.
type header struct {
	spans    []span
	metadata map[string]string
}

// span is where one tensor lies in the data: bytes [begin, end).
type span struct {
	name       string
	dtype      string
	shape      []int
	begin, end uint64
}

// split cuts a file into JSON and data.
func split(path string, file []byte) (head, data []byte, err error) {
	if len(file) < lengthSize {
		return nil, nil, &format.Error{Path: path, Got: fmt.Sprintf("%d bytes", len(file)), Want: "a header length of 8 bytes, then the header",
			Fix: "the file is cut short or no safetensors file"}
	}
	n, rest := binary.LittleEndian.Uint64(file), file[lengthSize:]
	if n > maxHeaderSize {
		return nil, nil, headerError(path, fmt.Sprintf("header length %d", n), fmt.Sprintf("at most %d", maxHeaderSize), "is this a safetensors file?")
	}
	if n > uint64(len(rest)) {
		return nil, nil, headerError(path, fmt.Sprintf("header length %d, but %d bytes follow", n, len(rest)),
			fmt.Sprintf("%d more bytes", n-uint64(len(rest))), "the file is cut short: fetch it again")
	}
	if n == 0 || rest[0] != '{' {
		return nil, nil, headerError(path, fmt.Sprintf("header length %d without a JSON object", n), `a header that starts with "{"`, "")
	}
	return rest[:n], rest[n:], nil
}

func headerError(path, got, want, fix string) error {
	return &format.Error{Path: path, Field: "header", Got: got, Want: want, Fix: fix}
}

// parseHeader reads the JSON. It walks tokens, because decoding into maps would keep the last of two equal keys and match
// field names in any case.
func parseHeader(path string, text []byte) (header, error) {
	var h header
	if !utf8.Valid(text) {
		return h, headerError(path, "invalid UTF-8", "", "")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	err := object(dec, func(name string) (err error) {
		if name == metadataKey {
			h.metadata, err = parseMetadata(dec)
			return err
		}
		t, err := parseSpan(dec, name)
		h.spans = append(h.spans, t)
		return err
	})
	if err != nil {
		return header{}, &format.Error{Path: path, Field: "header", Err: err}
	}
	if pad := bytes.TrimLeft(text[dec.InputOffset():], " "); len(pad) > 0 {
		return header{}, headerError(path, fmt.Sprintf("byte 0x%02x after the JSON", pad[0]), "padding of spaces only", "")
	}
	return h, nil
}

// object reads the next JSON value, which must be an object without equal keys, and calls field at each value.
func object(dec *json.Decoder, field func(key string) error) error {
	if err := delim(dec, '{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return err
		}
		key := tok.(string) // the decoder lets nothing else be a key
		if seen[key] {
			return fmt.Errorf("%q is there twice", key)
		}
		seen[key] = true
		if err := field(key); err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
	}
	return delim(dec, '}')
}

func delim(dec *json.Decoder, want json.Delim) error {
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	if tok != want {
		return fmt.Errorf("got %v, want %v", tok, want)
	}
	return nil
}

func parseMetadata(dec *json.Decoder) (map[string]string, error) {
	m := map[string]string{}
	return m, object(dec, func(key string) (err error) {
		m[key], err = text(dec)
		return err
	})
}

func text(dec *json.Decoder) (string, error) {
	tok, err := dec.Token()
	if err != nil {
		return "", err
	}
	s, ok := tok.(string)
	if !ok {
		return "", fmt.Errorf("got %v, want a string", tok)
	}
	return s, nil
}

// integers reads a list of at most most non-negative integers, written as digits: 4.0 and 1e3 are no offsets.
func integers(dec *json.Decoder, most int) ([]uint64, error) {
	if err := delim(dec, '['); err != nil {
		return nil, err
	}
	list := []uint64{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		num, ok := tok.(json.Number)
		if !ok {
			return nil, fmt.Errorf("got %v, want an integer", tok)
		}
		n, err := strconv.ParseUint(num.String(), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("got %s, want an integer from 0 to 2^64-1", num)
		}
		if list = append(list, n); len(list) > most {
			return nil, fmt.Errorf("got more than %d numbers", most)
		}
	}
	return list, delim(dec, ']')
}

// parseSpan reads one tensor and checks that its range fits its shape.
func parseSpan(dec *json.Decoder, name string) (span, error) {
	t := span{name: name}
	var dims, offsets []uint64
	err := object(dec, func(key string) (err error) {
		switch key {
		case "dtype":
			t.dtype, err = text(dec)
		case "shape":
			dims, err = integers(dec, maxRank)
		case "data_offsets":
			offsets, err = integers(dec, 2)
		default:
			err = fmt.Errorf("unknown field")
		}
		return err
	})
	switch {
	case err != nil:
		return t, err
	case t.dtype == "" || dims == nil || len(offsets) != 2:
		return t, fmt.Errorf("want dtype, shape and two data_offsets")
	case offsets[0] > offsets[1]:
		return t, fmt.Errorf("data_offsets [%d, %d] run backwards", offsets[0], offsets[1])
	}
	t.begin, t.end = offsets[0], offsets[1]
	return t, t.setShape(dims)
}

// setShape checks dims against the byte range. The size of an unknown element type cannot be checked.
func (t *span) setShape(dims []uint64) error {
	t.shape = make([]int, len(dims))
	n := uint64(1)
	for i, d := range dims {
		hi, lo := bits.Mul64(n, d)
		if hi != 0 || d > math.MaxInt || lo > math.MaxInt {
			return fmt.Errorf("shape %v: more elements than can be addressed", dims)
		}
		t.shape[i], n = int(d), lo
	}
	kind, known := dtypes[t.dtype]
	if !known {
		return nil
	}
	hi, size := bits.Mul64(n, kind.bits)
	if hi != 0 || size%8 != 0 || size/8 != t.end-t.begin {
		return fmt.Errorf("%d bytes at data_offsets [%d, %d], but shape %v of %s needs %d elements of %d bits",
			t.end-t.begin, t.begin, t.end, dims, t.dtype, n, kind.bits)
	}
	return nil
}
