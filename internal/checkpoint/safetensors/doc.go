// Package safetensors answers: which tensors does a .safetensors file, or a set of shards, hold, and where are their bytes?
//
// Layout of a file:
//
//	u64 N │ N bytes of JSON: {"__metadata__": {…}, "name": {"dtype", "shape", "data_offsets": [begin, end)}, …}, spaces │ data
//
// Offsets count from the start of data. The rules of the reference implementation hold, each with an error of its own: names
// are unique (also as JSON keys), tensors tile the data from its first to its last byte without hole or overlap, a tensor has
// exactly the bytes its shape and type need, and only spaces pad the header. Opening checks all of it and reads no data; a
// tensor is a part of the mapped file, at whatever address it starts. Element types this project cannot read are an error
// when that tensor is asked for, not before.
//
// Start at [Open]; [Write] makes such a file.
package safetensors
