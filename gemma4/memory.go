package gemma4

import "anelab/internal/arith"

// KVBytes are the bytes that a sequence of that context would keep: what [Model.KVBytes] says of the loaded model, before a weight is
// read.
func KVBytes(c Config, a arith.Arithmetic, o Options, context int) (int64, error) {
	m, err := newModel(c, a, o)
	if err != nil {
		return 0, err
	}
	return m.KVBytes(context), nil
}
