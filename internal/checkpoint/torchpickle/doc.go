// Package torchpickle answers: which tensors does a pytorch_model.bin hold, and where are their bytes?
//
// Such a file is a zip archive whose records are stored, not compressed:
//
//	archive/data.pkl      a pickled dict: name → rebuild(storage number 17, offset, size, stride)
//	archive/data/17       the elements of one storage, little-endian; several tensors may be views of it
//	archive/version, …    ignored; byteorder must be little
//
// A pickle is a program. Two things stand between it and us. [scan] reads it as bytes and lets only the few instructions and
// the few names pass that torch.save writes for a dict of tensors; nothing has run when it refuses. What passes is executed
// by gopickle, with classes that build views and nothing else. Its own loader for torch files is not used: it copies every
// storage into float32.
//
// A contiguous tensor is a part of the mapped file. Memory is bounded by the size of the file: data.pkl, at most a few MiB,
// costs a few hundred bytes per byte; storages cost nothing until a tensor with gaps is asked for.
//
// Older and other forms are refused by name: the legacy stream of pickles, the tar form, TorchScript.
//
// Start at [Open].
package torchpickle
