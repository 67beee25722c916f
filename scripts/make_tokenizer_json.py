"""Writes the tokenizer.json that belongs to the vocabulary in a GGUF file, and its chat template.

    python make_tokenizer_json.py MODEL.gguf FOLDER

FOLDER gets tokenizer.json and, if the file has one, chat_template.jinja. Standard library only; the file is read by a reader of this
script's own, so that the Go readers of both forms can be held against each other.
"""
import json
import pathlib
import struct
import sys

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
CONTROL, USER_DEFINED = 3, 4


def metadata(path):
    """The keys and values of a GGUF file."""
    with open(path, "rb") as f:

        def number(code):
            return struct.unpack("<" + code, f.read(struct.calcsize(code)))[0]

        def value(kind):
            if kind == STRING:
                return f.read(number("Q")).decode("utf-8")
            if kind == ARRAY:
                kind, count = number("I"), number("Q")
                if kind in SCALARS:
                    return list(struct.unpack(f"<{count}{SCALARS[kind]}", f.read(count * struct.calcsize(SCALARS[kind]))))
                return [value(kind) for _ in range(count)]
            return number(SCALARS[kind])

        if f.read(4) != b"GGUF" or number("I") not in (2, 3):
            sys.exit(f"{path}: not a GGUF file of version 2 or 3")
        number("Q")
        keys = {}
        for _ in range(number("Q")):
            name = value(STRING)
            keys[name] = value(number("I"))
        return keys


def tokenizer(keys):
    """The document that Hugging Face's tokenizers would load for the same vocabulary."""
    pieces, kinds = keys["tokenizer.ggml.tokens"], keys["tokenizer.ggml.token_type"]
    bos = pieces[keys["tokenizer.ggml.bos_token_id"]]
    single, pair = [{"Sequence": {"id": "A", "type_id": 0}}], [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}]
    special = {"SpecialToken": {"id": bos, "type_id": 0}}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": p, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": k == CONTROL}
            for i, (p, k) in enumerate(zip(pieces, kinds))
            if k in (CONTROL, USER_DEFINED)
        ],
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
        "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [special] + single,
            "pair": [special] + pair,
            "special_tokens": {bos: {"id": bos, "ids": [pieces.index(bos)], "tokens": [bos]}},
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": pieces[keys["tokenizer.ggml.unknown_token_id"]],
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": {p: i for i, p in enumerate(pieces)},
            "merges": [m.split(" ") for m in keys["tokenizer.ggml.merges"]],
        },
    }


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    keys = metadata(sys.argv[1])
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(tokenizer(keys), ensure_ascii=False, separators=(",", ":"))
    (folder / "tokenizer.json").write_text(text, encoding="utf-8")
    template = keys.get("tokenizer.chat_template")
    if template:
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")


if __name__ == "__main__":
    main()
