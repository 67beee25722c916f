package torchpickle

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// good is a file with one tensor w of 2×3 floats.
func good() []byte {
	return bin(dictOf("w", tensorOf("FloatStorage", "0", 6, 0, []int{2, 3}, []int{3, 1})), map[string]string{"data/0": strings.Repeat("\x00\x00\x80\x3f", 6)})
}

func refused(t *testing.T, data []byte, want ...string) {
	t.Helper()
	_, err := Parse("m.bin", data)
	require.Error(t, err)
	for _, w := range append(want, "m.bin: ") {
		require.ErrorContains(t, err, w)
	}
	require.Less(t, len(err.Error()), 1000)
}

func TestHOST07OnlyTheAllowList(t *testing.T) {
	_, err := Parse("m.bin", good())
	require.NoError(t, err)
	call := func(class string) string { return program(class + tuple(text("touch x")) + "R") }
	stackGlobal := func(module, name string) string {
		return "\x8c" + string(rune(len(module))) + module + "\x94\x8c" + string(rune(len(name))) + name + "\x94\x93"
	}
	for _, c := range []struct {
		name, pickle string
		want         []string
	}{
		{"GLOBAL and REDUCE", call(global("posix", "system")), []string{`"system"`, `"posix"`}},
		{"builtins", call(global("builtins", "getattr")), []string{`"getattr"`, `"builtins"`}},
		{"builtin that gopickle knows", call(global("builtins", "dict")), []string{`"dict"`, `"builtins"`}},
		{"array that gopickle knows", call(global("array", "_array_reconstructor")), []string{`"_array_reconstructor"`, `"array"`}},
		{"object that gopickle knows", call(global("copy_reg", "_reconstructor")), []string{`"_reconstructor"`, `"copy_reg"`}},
		{"protocol 0 text", "cposix\nsystem\n(S'ls'\ntR.", []string{`"system"`, `"posix"`}},
		{"STACK_GLOBAL", program(stackGlobal("os", "system")), []string{"STACK_GLOBAL", `"system"`, `"os"`}},
		{"STACK_GLOBAL from the memo", program(text("system") + "q\x07" + text("os") + "q\x08" + "h\x08h\x07\x93"), []string{`"system"`, `"os"`}},
		{"STACK_GLOBAL from a tuple", program(text("os") + text("system") + "\x86" + text("x") + "\x93"), []string{"computed class name"}},
		{"STACK_GLOBAL of names gopickle knows", program(stackGlobal("array", "_array_reconstructor")), []string{`"_array_reconstructor"`}},
		{"INST", program("(iposix\nsystem\n"), []string{"INST", `"system"`, `"posix"`}},
		{"INST of an allowed class", program("(itorch\nFloatStorage\n"), []string{"INST"}},
		{"OBJ", program("(" + global("os", "system") + "o"), []string{`"system"`}},
		{"OBJ opcode", program("(" + global("torch", "FloatStorage") + "o"), []string{"OBJ"}},
		{"NEWOBJ", program(global("torch", "FloatStorage") + ")\x81"), []string{"NEWOBJ"}},
		{"BUILD on a tensor", dictOf("w", tensorOf("FloatStorage", "0", 6, 0, []int{6}, []int{1})+"}"+text("k")+"Nsb"), []string{"BUILD requires a PyDictSettable"}},
		{"EXT1", program("\x82\x07"), []string{"EXT1"}},
		{"PERSID text", program("Pdata/0\n"), []string{"PERSID"}},
		{"persistent id of a wrong type", program(text("0") + "Q"), []string{"persistent id: got a string"}},
		{"persistent id with a number as key", program(tuple(text("storage"), global("torch", "FloatStorage"), integer(0), text("cpu"), integer(6)) + "Q"), []string{"persistent id", "0"}},
		{"persistent id without class", program(tuple(text("storage"), text("FloatStorage"), text("0"), text("cpu"), integer(6)) + "Q"), []string{"persistent id", "a string"}},
		{"module object instead of a dict", program(global("torch", "FloatStorage")), []string{"want a dict of tensors"}},
		{"unsupported storage", dictOf("w", tensorOf("ComplexFloatStorage", "0", 3, 0, []int{3}, []int{1})), []string{`"ComplexFloatStorage"`, `"torch"`}},
		{"Namespace", call(global("argparse", "Namespace")), []string{`"Namespace"`, `"argparse"`}},
		{"storage called", program(storageOf("FloatStorage", "0", 6) + ")R"), []string{"REDUCE requires a Callable", "storage"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			refused(t, bin(c.pickle, map[string]string{"data/0": strings.Repeat("x", 24)}), append(c.want, pickleRecord)...)
		})
	}
	t.Run("nested pickle in data/0 is only bytes", func(t *testing.T) {
		inner := call(global("posix", "system"))
		f, err := Parse("m.bin", bin(dictOf("w", tensorOf("ByteStorage", "0", len(inner), 0, []int{len(inner)}, []int{1})), map[string]string{"data/0": inner}))
		require.NoError(t, err)
		require.Equal(t, inner, string(tensor(t, f, "w").Data))
	})
}

func TestMalformedPickles(t *testing.T) {
	w := tensorOf("FloatStorage", "0", 6, 0, []int{6}, []int{1})
	for _, c := range []struct{ name, pickle, want string }{
		{"empty", "", "without STOP"},
		{"no STOP", "\x80\x02}", "without STOP"},
		{"bytes after STOP", program("}") + "}.", "2 bytes after STOP"},
		{"odd number of items", program("}(" + text("w") + "u"), "malformed pickle"},
		{"empty LONG1", program("\x8a\x00"), "malformed pickle"},
		{"unhashable key", program(global("collections", "OrderedDict") + ")R]" + w + "s"), "a list"},
		{"name twice", program("}" + text("w") + w + "s" + text("w") + w + "s"), `"w" is there twice`},
		{"number as key", program("}" + integer(3) + w + "s"), "a key that is 3"},
		{"nested dict", dictOf("model", "}"+text("w")+w+"s"), `"model" is a dict, want a tensor; save model.state_dict()`},
		{"epoch", dictOf("epoch", integer(3)), `"epoch" is 3, want a tensor`},
		{"list", program("]"), "got a list"},
		{"stack underflow", program("s"), "stack is empty"},
		{"string longer than the pickle", program("X\xff\xff\xff\x7fabc"), "an argument of 2147483647 bytes where 4 are left"},
		{"8-byte length", program("\x8d\xff\xff\xff\xff\xff\xff\xff\xffabc"), "an argument of 18446744073709551615 bytes"},
		{"frame longer than the pickle", program("\x95\x00\x00\x00\x00\x01\x00\x00\x00}"), "a frame of 4294967296 bytes"},
		{"empty memo", program("h\x05"), "memo entry 5 is empty"},
		{"size is a list that holds itself", dictOf("w", rebuilt(storageOf("FloatStorage", "0", 6), integer(0), "]q\x01h\x01a\x85", numbers(nil))), "size: got a list"},
		{"call of a list that holds itself", program("]q\x01h\x01ah\x01\x85R"), "got a list"},
		{"call of a tuple with such a list", program("]q\x01h\x01a\x85)R"), "REDUCE requires a Callable"},
		{"many BUILDs", program("}" + strings.Repeat("}b", 9)), "BUILD"},
		{"open marks", program(strings.Repeat("(", 65)), "more than 64 open marks"},
		{"opcode 0xff", program("\xff"), "unknown opcode"},
		{"GLOBAL without end", "\x80\x02ctorch\nFloatStorage", "no end of line"},
	} {
		t.Run(c.name, func(t *testing.T) {
			refused(t, bin(c.pickle, map[string]string{"data/0": strings.Repeat("x", 24)}), c.want)
		})
	}
}

func TestViewsStayInsideTheirStorage(t *testing.T) {
	const huge = 1<<31 - 1
	for _, c := range []struct {
		name         string
		count        int
		offset       string
		size, stride []int
		want         string
	}{
		{"past the end", 6, integer(0), []int{2, 4}, []int{3, 1}, "reads element 6 of a storage of 6"},
		{"offset past the end", 6, integer(6), []int{1}, []int{1}, "reads element 6"},
		{"negative offset", 6, integer(-1), []int{1}, []int{1}, "offset: got -1"},
		{"offset is a list that holds itself", 6, "]q\x01h\x01a", []int{1}, []int{1}, "offset: got a list"},
		{"negative size", 6, integer(0), []int{-1}, []int{1}, "got -1"},
		{"negative stride", 6, integer(5), []int{2}, []int{-1}, "got -1"},
		{"big offset", 6, "\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01", []int{1}, []int{1}, "whole number"},
		{"offset 2^63-1", 6, "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", []int{2}, []int{1}, "more elements than can be addressed"},
		{"stride product overflows", 6, integer(0), []int{huge, huge, 3}, []int{huge, huge, huge}, "more elements than can be addressed"},
		{"stride 0 repeats elements", 6, integer(0), []int{huge, 4}, []int{0, 0}, "repeats the 6 elements"},
		{"size and stride differ", 6, integer(0), []int{2, 3}, []int{1}, "with stride [1]"},
		{"33 axes", 6, integer(0), make([]int, 33), make([]int, 33), "at most 32"},
		{"record shorter than the storage", 7, integer(0), []int{1}, []int{1}, `storage "0": 24 bytes, want 7 elements of f32`},
		{"record longer than the storage", 5, integer(0), []int{1}, []int{1}, "24 bytes, want 5 elements"},
		{"negative count", -6, integer(0), []int{1}, []int{1}, "persistent id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := rebuilt(storageOf("FloatStorage", "0", c.count), c.offset, numbers(c.size), numbers(c.stride))
			refused(t, bin(dictOf("w", w), map[string]string{"data/0": strings.Repeat("x", 24)}), c.want)
		})
	}
	t.Run("no such record", func(t *testing.T) {
		refused(t, bin(dictOf("w", tensorOf("FloatStorage", "../x", 6, 0, []int{6}, []int{1})), nil), `storage "../x": no such record`)
	})
	t.Run("no elements", func(t *testing.T) { // an empty tensor may have any offset and stride
		f, err := Parse("", bin(dictOf("w", tensorOf("FloatStorage", "0", 6, 6, []int{2, 0}, []int{9, 9})), map[string]string{"data/0": strings.Repeat("x", 24)}))
		require.NoError(t, err)
		require.Empty(t, tensor(t, f, "w").Data)
	})
}

func TestHOST09Archives(t *testing.T) {
	pickle := dictOf("w", tensorOf("ByteStorage", "0", 1, 0, []int{1}, []int{1}))
	with := func(add func(w *zip.Writer)) []byte {
		return zipOf(func(w *zip.Writer) { store(w, "m/data.pkl", pickle); store(w, "m/data/0", "x"); add(w) })
	}
	add := func(name string) []byte { return with(func(w *zip.Writer) { store(w, name, "x") }) }
	header := func(h zip.FileHeader, data string) []byte {
		return with(func(w *zip.Writer) {
			h.CRC32, h.CompressedSize64 = 1, uint64(len(data))
			f, err := w.CreateRaw(&h)
			must(err)
			_, err = io.WriteString(f, data)
			must(err)
		})
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"deflated storage", with(func(w *zip.Writer) {
			f, err := w.Create("m/data/1")
			must(err)
			_, err = f.Write(make([]byte, 1<<20))
			must(err)
		}), `record "m/data/1": compressed (method 8)`},
		{"deflated data.pkl", zipOf(func(w *zip.Writer) {
			f, err := w.Create("m/data.pkl")
			must(err)
			_, err = f.Write(make([]byte, 1<<20))
			must(err)
		}), `record "m/data.pkl": compressed`},
		{"declares 10 bytes, holds 4", header(zip.FileHeader{Name: "m/data/1", UncompressedSize64: 10}, "1234"), "4 bytes stored for 10"},
		{"encrypted", header(zip.FileHeader{Name: "m/data/1", UncompressedSize64: 4, Flags: 1}, "1234"), `"m/data/1": encrypted`},
		{"too many records", with(func(w *zip.Writer) {
			for i := range 100_000 {
				store(w, fmt.Sprint("m/data/x", i), "")
			}
		}), "100002 records, want at most 65536"},
		{"parent folder", add("m/../x"), "leaves the archive"},
		{"parent first", add("../x"), "leaves the archive"},
		{"absolute", add("/x"), "leaves the archive"},
		{"backslash", add(`m\..\x`), "leaves the archive"},
		{"two folders", add("n/data.pkl"), `outside the folder "m"`},
		{"no folder", add("data.pkl"), `outside the folder "m"`},
		{"name twice", add("m/data/0"), `"m/data/0": the record is there twice`},
		{"TorchScript by code", add("m/code/__torch__.py"), "TorchScript"},
		{"TorchScript by constants", add("m/constants.pkl"), "TorchScript"},
		{"big-endian", with(func(w *zip.Writer) { store(w, "m/byteorder", "big") }), `byteorder: "big", want "little"`},
		{"no pickle", zipOf(func(w *zip.Writer) { store(w, "m/data/0", "x") }), "no data.pkl"},
		{"pickle too long", bin(strings.Repeat("N", maxPickle+1), nil), "data.pkl: 4194305 bytes"},
		{"cut in half", good()[:300], "zip"},
		{"damaged pickle", bytes.Replace(good(), []byte("_rebuild_tensor_v2"), []byte("_rebuild_tensor_v3"), 1), "wrong checksum"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, c.data, c.want) })
	}
	t.Run("two entries share one local header", func(t *testing.T) {
		data := add("m/data/1")
		pointEntryAt(t, data, "m/data/1", "m/data/0")
		refused(t, data, "overlap")
	})
}

// pointEntryAt makes the directory entry of one record refer to the header of another.
func pointEntryAt(t *testing.T, data []byte, from, to string) {
	t.Helper()
	const offsetField, nameField = 42, 46 // of a directory entry
	offset := func(name string) []byte {
		at := bytes.LastIndex(data, []byte(name)) - nameField
		require.Equal(t, "PK\x01\x02", string(data[at:at+4]))
		return data[at+offsetField : at+offsetField+4]
	}
	copy(offset(from), offset(to))
}

func TestAllocationIsBoundedByFileSize(t *testing.T) {
	const n = 1 << 15
	for name, pickle := range map[string]string{
		"promised string":       program("\x8d" + string(binary.LittleEndian.AppendUint64(nil, 1<<40))),
		"promised frame":        program("\x95" + string(binary.LittleEndian.AppendUint64(nil, 1<<40))),
		"marks":                 program(strings.Repeat("(t", n)),
		"dicts":                 program(strings.Repeat("}", n)),
		"ordered dicts":         program(global("collections", "OrderedDict") + "q\x01" + strings.Repeat("h\x01)R", n)),
		"refused call of a lot": program("](" + strings.Repeat("N", n) + "e)R"),
		"repeated elements":     dictOf("w", tensorOf("ByteStorage", "0", 1, 0, []int{1 << 30}, []int{0})),
	} {
		t.Run(name, func(t *testing.T) {
			data := bin(pickle, map[string]string{"data/0": "x"})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _ = Parse("m.bin", data) // most are refused; either way the memory is what counts
			runtime.ReadMemStats(&after)
			got := after.TotalAlloc - before.TotalAlloc
			require.Less(t, got, uint64(400*len(data)+1<<18), "%d bytes for a file of %d", got, len(data))
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(good())
	paths, _ := filepath.Glob("testdata/views_p*.bin")
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { readAll(t, data) })
}

func FuzzPickle(f *testing.F) {
	f.Add(dictOf("w", tensorOf("FloatStorage", "0", 6, 1, []int{1, 2}, []int{1, 2})))
	f.Add(program(global("collections", "OrderedDict") + ")R(" + text("w") + "Nu}" + text("_metadata") + "}sb"))
	f.Add("\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00]\x94(Ne.")
	f.Add("\x80\x02}\x8c\x01w\x94\x8c\x05torch\x94\x8c\x0cFloatStorage\x94\x93s.")
	f.Fuzz(func(t *testing.T, pickle string) {
		readAll(t, bin(pickle, map[string]string{"data/0": strings.Repeat("x", 24)}))
	})
}

// readAll parses data and reads every tensor: an error or consistent tensors, never a panic.
func readAll(t *testing.T, data []byte) {
	f, err := Parse("m.bin", data)
	if err != nil {
		return
	}
	for _, name := range f.Names() {
		x, err := f.Tensor(name)
		require.NoError(t, err)
		require.Len(t, x.Data, x.Len()*x.DType.Size())
		require.LessOrEqual(t, len(x.Data), len(data))
	}
}
