"""Makes the vocabularies of testdata/tokenizer and the ids that Hugging Face's tokenizers give for them.

    pip install tokenizers==0.23.3
    python make_small_vocabulary.py ../testdata/tokenizer

From mixed.txt, which was written for this, it trains byte-pair pieces and writes

    small.json     2048 pieces: Gemma 4's markers, runs of white space and byte pieces, and what the text's words are made of
    tiny-e2b.json  320 pieces, one for each row of the embedding of testdata/golden/tiny-e2b
    vectors.json   texts with their ids by tokenizers, for both

As in Gemma's files, every split of a piece into two pieces is a merge, and ranks follow the order of the pieces.
"""
import collections
import json
import pathlib
import sys

SPACE = "\u2581"
MARKERS = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>", "<|tool_response>",
           "<tool_response|>", '<|"|>', "<|think|>", "<|channel>", "<channel|>", "<|turn>", "<turn|>"]
RUNS = [c * n for c in ("\n", SPACE, "\t") for n in range(2, 9)]
# Pieces that other tokenizers give a meaning to and Gemma does not, and one that has a space inside.
TRAPS = ["</s>", ">" + SPACE + "</"]

TEXTS = [
    "", " ", "  ", "   ", "\t", "\n", "\n\n", "\n\n\n", "a\n\n\nb", "\n" * 9, "\n" * 40, "    four", " " * 20 + "x", "\t\t\t\tx", "\n \n\n \n\n\n \t \t\t",
    "Hello world", " Hello world", "Hello, world!", "The window of the layer", " the", "the", "The", "THE", "tokens tokens tokens", "tokenstokens",
    " Caf\u00e9", " Cafe\u0301", "\u00c4pfel", "Stra\u00dfe \u00dcbergr\u00f6\u00dfe", "\u0415\u0449\u0451 \u043e\u0431\u044a\u0451\u043c \u0441\u043b\u043e\u0432",
    "\u6587\u672c\u88ab\u5207\u6210\u5c0f\u5757", "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c", "\uc548\ub155\ud558\uc138\uc694", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u0928\u092e\u0938\u094d\u0924\u0947",
    "\U0001F680 (rocket) \U0001F9FF\U0001F9FF", "\U0001F469\u200d\U0001F469\u200d\U0001F467 \U0001F44D\U0001F3FD", "\u20ac20", "\u0120 \u0109 \u010a",
    "3", "33", "333", "3333333333", "3.14159 1,000,000", "x = y + 1;", "\tif a > b {\n\t\treturn a\n\t}\n", "def f(x):\n    return x\n\n\nclass A:\n        pass\n",
    "</s>", "x> </s> y", "<0xE2><0x82><0xAC>", "<bos>", "<|turn>user\nhi<turn|>\n", "<start_of_turn>user\nhi<end_of_turn>\n", "\u2581x", "a\u2581b",
    "a" * 300, "ab" * 200, "QUJD" * 100, "\ufffd", "\x00\x01\x7f", "\u0301", "'''```\"\"\"......!!!!!!??????", "https://example.com/a/b?c=d&e=f#g",
    "\u05e9\u05dc\u05d5\u05dd", "\u0627\u0644\u0633\u0644\u0627\u0645", "\u1780\u17b6\u1793\u17cb", "\u00a0x\u2003y", "\r\n\r\n",
]


def train(text, pieces, size):
    """Appends the most frequent neighbours inside words, joined, until there are size pieces."""
    have = set(pieces)
    words = collections.Counter()
    for line in text.split("\n"):
        for i, word in enumerate(line.split(" ")):
            words[(SPACE if i else "") + word] += 1
    parts = {w: list(w) for w in words}
    while len(pieces) < size:
        count = collections.Counter()
        for w, n in words.items():
            for pair in zip(parts[w], parts[w][1:]):
                count[pair] += n
        if not count:
            sys.exit("the text has too few words")
        (a, b), _ = min(count.items(), key=lambda x: (-x[1], x[0]))
        if a + b not in have:
            have.add(a + b)
            pieces.append(a + b)
        for w, p in parts.items():
            i = 0
            while i + 1 < len(p):
                if p[i] == a and p[i + 1] == b:
                    p[i:i + 2] = [a + b]
                i += 1
    return pieces


def merges(pieces):
    """Every split of a piece that merging can make, in the order of the results."""
    ids = {p: i for i, p in enumerate(pieces)}
    out = []
    for p in pieces:
        if p in MARKERS or p.startswith("<0x"):
            continue
        splits = [(p[:i], p[i:]) for i in range(1, len(p)) if p[:i] in ids and p[i:] in ids]
        out += sorted(splits, key=lambda s: (ids[s[0]], ids[s[1]]))
    return out


def document(pieces):
    bos = {"SpecialToken": {"id": "<bos>", "type_id": 0}}
    sequence = {"Sequence": {"id": "A", "type_id": 0}}
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": pieces.index(m), "content": m, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
                         for m in MARKERS if m in pieces],
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
        "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
        "post_processor": {"type": "TemplateProcessing", "single": [bos, sequence], "pair": [bos, sequence, {"Sequence": {"id": "B", "type_id": 1}}],
                           "special_tokens": {"<bos>": {"id": "<bos>", "ids": [2], "tokens": ["<bos>"]}}},
        "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": SPACE}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": True,
                  "byte_fallback": True, "ignore_merges": False, "vocab": {p: i for i, p in enumerate(pieces)}, "merges": [list(m) for m in merges(pieces)]},
    }


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    import tokenizers
    folder = pathlib.Path(sys.argv[1])
    text = (folder / "mixed.txt").read_text(encoding="utf-8")
    byte_pieces = [f"<0x{b:02X}>" for b in range(256)]
    frequent = [c for c, _ in sorted(collections.Counter(text.replace(" ", SPACE)).items(), key=lambda x: (-x[1], x[0]))]
    tiny = [m for m in MARKERS if "tool" not in m and m != '<|"|>'] + byte_pieces
    small = MARKERS + RUNS + byte_pieces + frequent + ["</", "s>", SPACE + "</"] + TRAPS
    vectors = {"made_with": f"tokenizers {tokenizers.__version__}", "cases": []}
    for name, pieces in (("tiny-e2b.json", train(text, tiny + frequent[:40], 320)), ("small.json", train(text, small, 2048))):
        (folder / name).write_text(json.dumps(document(pieces), ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
        oracle = tokenizers.Tokenizer.from_file(str(folder / name))
        for t in TEXTS + [text]:
            marked = oracle.encode(t, add_special_tokens=False)
            # No marker can be made of a text in which none is written out.
            plain = not any(m in t for m in MARKERS)
            vectors["cases"].append({"vocabulary": name, "text": t, "ids": marked.ids, "plain": plain})
    (folder / "vectors.json").write_text(json.dumps(vectors, ensure_ascii=True, separators=(",", ":")).replace('{"vocab', '\n{"vocab'), encoding="utf-8")


if __name__ == "__main__":
    main()
