package gemma4

// KVBytes are the bytes that one sequence of that context keeps with the layers' own policies, before a model is loaded: elemBytes for
// every number of every key and value row.
func KVBytes(layers []Layer, context, elemBytes int) int64 {
	var n int64
	for _, y := range layers {
		if !y.OwnsKV() {
			continue
		}
		keep := y.Policy().Keep()
		for _, reader := range layers {
			if reader.KVSource == y.Index {
				keep = keep.Union(reader.Policy().Keep())
			}
		}
		n += int64(keep.Rows(context)) * int64(2*y.KVWidth()*elemBytes)
	}
	return n
}
