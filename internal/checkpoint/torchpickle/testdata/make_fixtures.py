"""Writes views_p<protocol>.bin: the pickles are Python's own, the torch classes are stand-ins with torch's names.

    python3 make_fixtures.py

Made with Python 3.11. Every file holds the same six tensors; a, b and t are views of one storage.
"""
import collections
import io
import pickle
import struct
import sys
import types
import zipfile

torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
sys.modules.update({"torch": torch, "torch._utils": utils})
for kind in ("FloatStorage", "BFloat16Storage", "LongStorage", "BoolStorage"):
    setattr(torch, kind, type(kind, (), {"__module__": "torch", "__qualname__": kind}))
for name in ("_rebuild_tensor_v2", "_rebuild_parameter"):
    function = eval("lambda *args: args")
    function.__module__, function.__qualname__, function.__name__ = "torch._utils", name, name
    setattr(utils, name, function)


class Storage:
    def __init__(self, kind, key, count, data):
        self.kind, self.key, self.count, self.data = kind, key, count, data


class Tensor:
    def __init__(self, storage, offset, size, stride):
        self.args = (storage, offset, size, stride, False, collections.OrderedDict())

    def __reduce_ex__(self, protocol):
        return utils._rebuild_tensor_v2, self.args


class Parameter:
    def __init__(self, data):
        self.data = data

    def __reduce_ex__(self, protocol):
        return utils._rebuild_parameter, (self.data, True, collections.OrderedDict())


class Pickler(pickle.Pickler):
    def persistent_id(self, obj):
        if isinstance(obj, Storage):
            return ("storage", getattr(torch, obj.kind), obj.key, "cpu", obj.count)


class StateDict(collections.OrderedDict):
    def __reduce_ex__(self, protocol):
        return collections.OrderedDict, (), {"_metadata": self.metadata}, None, iter(self.items())


floats = Storage("FloatStorage", "0", 12, struct.pack("<12f", *range(12)))
halves = Storage("BFloat16Storage", "1", 5, struct.pack("<5H", 0x3F80, 0x0001, 0x807F, 0x7F80, 0xFF7F))
longs = Storage("LongStorage", "2", 1, struct.pack("<q", -3))
bools = Storage("BoolStorage", "3", 3, bytes([1, 0, 1]))
state = StateDict(
    a=Tensor(floats, 0, (2, 3), (3, 1)),
    b=Tensor(floats, 6, (2, 3), (3, 1)),
    t=Tensor(floats, 1, (3, 2), (1, 3)),
    p=Parameter(Tensor(halves, 0, (5,), (1,))),
    n=Tensor(longs, 0, (), ()),
    flags=Tensor(bools, 0, (3, 1), (1, 1)),
)
state.metadata = collections.OrderedDict({"": {"version": 1}, "layer": {"version": 300}})

for protocol in (1, 2, 4, 5):
    text = io.BytesIO()
    Pickler(text, protocol).dump(state)
    with zipfile.ZipFile(f"views_p{protocol}.bin", "w") as z:
        def put(name, data):
            z.writestr(zipfile.ZipInfo("views/" + name), data)
        put("data.pkl", text.getvalue())
        put("byteorder", b"little")
        for s in (floats, halves, longs, bools):
            put("data/" + s.key, s.data)
        put("version", b"3\n")
