#!/usr/bin/env python3
"""Golden token ids of the two demo models, made by Hugging Face `tokenizers` (Python) from the models' GGUF files.

    python3 -m venv /tmp/goldens && /tmp/goldens/bin/pip install tokenizers==0.23.3 gguf==0.19.0
    /tmp/goldens/bin/python tools/make_tokenizer_goldens.py smollm2=SmolLM2.gguf gemma3=gemma-3-270m.gguf
        [--llama-server smollm2=http://127.0.0.1:8081 ...]

Writes tests/data/tokenizer/corpus.txt and one <name>.golden for each model. A line of the corpus is

    text <percent-encoded UTF-8>                  a text
    range <first> <count> <between> <after>       every code point of a range (no surrogates) with `between` before each and
                                                  `after` behind each, percent-encoded

and line i of a golden file is `<number of ids> <FNV-1a 64 of the ids as little-endian u32> [<ids, where they are few>]`.
The pipelines below are written out from the models' published tokenizer.json, not from this repository's code.
With --llama-server, llama.cpp's ids are compared too, and the differences are printed. There are none for smollm2; for gemma3 there
are 27, all at runs of a literal U+2581 in the text: the added tokens for runs of spaces are named with it, so that `tokenizers` takes
such a run for spaces, while llama.cpp stores those tokens as spaces and finds none.
"""

import json
import pathlib
import random
import struct
import sys
import urllib.parse
import urllib.request

from gguf import GGUFReader
from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE

DATA = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "tokenizer"
SAFE = "".join(chr(c) for c in range(0x21, 0x7F) if chr(c) != "%")


def quote(text):
    return urllib.parse.quote(text, safe=SAFE) or "%"  # a lone % is the empty text


# ---- the corpus ----------------------------------------------------------------------------------------------------------

WORDS = """Hello world the quick brown fox naïve façade Ünïcödé Grüße Straße ŁÓDŹ İstanbul ıI ΑΒΓ ἄνθρωπος Привет мир Ґанок שלום
עִבְרִית مرحبا العَرَبِيَّة فارسی नमस्ते क्षत्रिय বাংলা தமிழ் తెలుగు ಕನ್ನಡ ไทย ภาษาไทย ລາວ မြန်မာ ខ្មែរ ქართული ᲡᲐᲥ Հայերեն አማርኛ 中文 汉字漢字 日本語 ひらがな
カタカナ ﾊﾝｶｸ 한국어 한 𝕳𝖊𝖑𝖑𝖔 𐍈𐌰𐌿 𓀀𓂀 𠀀𠮷 ﷽ ﬀ ǅ ⅷ Ⅻ ½ ² ① 🄯 𝟘𝟙𝟚 ٠١٢ ०१२ ០១""".split()
EMOJI = ["😀", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷", "1️⃣", "❤️‍🔥", "🧑🏿‍🚀", "☺️", "©️", "🫠🫨🩷"]
SPECIAL = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<repo_name>", "<jupyter_code>", "<bos>", "<eos>", "<pad>", "<unk>",
           "<mask>", "<start_of_turn>", "<end_of_turn>", "[multimodal]", "<unused0>", "<unused98>", "<table>", "</table>",
           "<h1>", "<0x0A>", "<0x41>", "<s>", "</s>", "<|im_start", "|im_end|>", "<<|im_end|>>", "<start_of_image>"]
CODE = [
    "#include <vector>\nint main() {\n\tstd::vector<int> v{1, 2, 3};\n\tfor (auto& x : v) x <<= 2;\n\treturn v[0] ? -1 : 0xFF;\n}\n",
    "def f(x: int = 42) -> str:\n    \"\"\"Doc.\"\"\"\n    if x != 3.14e-10:\n        return f'{x!r:>10}'  # comment\n\n\n",
    "SELECT a.*, COUNT(*) FROM t AS a WHERE x LIKE '%foo_%' -- it's\r\n  AND y IN (1,22,333);\r\n",
    "<!DOCTYPE html>\n<html><body class=\"a b\">&nbsp;&#x1F600;<br/></body></html>",
    "{\"k\\u00e9y\": [1, 2.5, -3e+7, true, null], \"s\": \"line\\nbreak\\t\\\"quoted\\\"\"}",
    "$ ls -la ~/.config | grep -v '^d' && echo \"done\" >> /tmp/x.log 2>&1 || exit 1",
    "let π = 3.14159; // ünïcode\nconst ƒ = (α, β) => α ** β ?? `${α}`;",
    "http://user:pa$$@example.com:8080/a/b/../c?q=1&r=%20#frag foo@bar.baz +49 (0)30 123-456",
    "\\begin{align} \\frac{\\partial^2 u}{\\partial x^2} &= \\nabla \\cdot \\mathbf{F} \\\\ \\end{align}",
]


def runs():
    for unit in [" ", "\n", "\t", "\r\n", "\r", "\u00a0", "\u3000", "\u2009", "\u0085", "\u2028", "\u200b", "a", "=", "-", "▁", ".",
                 "é", "e\u0301", "中", "😀", "\u0301", "\u200d"]:
        for n in (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100):
            yield unit * n
    for n in range(1, 40):
        yield " " * n + "x"
        yield "x" + " " * n
        yield "x" + "\n" * n + "y"
        yield "\t" * (n % 9) + "if" + " " * n + "\n" * (n % 5)
    for n in (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 20, 21, 40, 100):
        yield "1234567890" * (n // 10) + "1234567890"[: n % 10]
        yield "x" + "7" * n + "."
    yield from (" \n", "\n ", " \n \n ", "\n\n \n", "\t \t", " \t", "a \n b", "a\n \nb", "  \r\n  ", "\u00a0 \u00a0", " \u3000 ", "\x00", "a\x00b", "\x7f",
                "\x1b[31mred\x1b[0m", "\ufeffBOM", "\ufffd", "\ufffe\uffff", "\U0010ffff", "\u00ad", "a\u00adb")


def contractions():
    for word in ("I'm", "you're", "DON'T", "he'Ll", "we'VE", "it's's", "'tis", "''s", "'S", "’s", "can't'd", "x'y", "' s", "'\u017f"):
        yield word
        yield " " + word + " "


def mixtures(rng):
    pool = WORDS + EMOJI + SPECIAL + [" ", "  ", "\n", "\t", "\n\n", "   ", "1", "23", "456", "7890", ".", ",", "!?", "'s", "'re", "_", "__", "-", "▁", "▁▁",
                                      "\u0301", "\u0308", "\u200d", "\ufe0f", "\u00a0", "=>", "::", "/*", "*/"]
    for _ in range(160):
        yield "".join(rng.choice(pool) + rng.choice(["", "", " "]) for _ in range(rng.randint(2, 14)))


def code_points(rng):
    ranges = [(0, 0xD800), (0xE000, 0x30000), (0x30000, 0x32400), (0xE0000, 0xE0200), (0xF0000, 0xF0100), (0x10FF00, 0x110000)]
    assigned = [c for first, end in ranges for c in range(first, end)]
    for _ in range(120):
        yield "".join(chr(rng.choice(assigned)) for _ in range(rng.randint(1, 12)))


def corpus():
    rng = random.Random(20240607)
    texts = ["", *WORDS, *[" " + w for w in WORDS[:30]], *EMOJI, *CODE, *SPECIAL, *[f"a{s}b" for s in SPECIAL], *[f" {s} " for s in SPECIAL]]
    texts += ["<|im_start|>user\nHi there<|im_end|>\n<|im_start|>assistant\n", "<bos><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n",
              " ".join(WORDS), "".join(WORDS), "".join(EMOJI), "\n".join(CODE), "A" * 300, "ab" * 300, "The " * 200]
    texts += [*runs(), *contractions(), *mixtures(rng), *code_points(rng)]
    lines = ["text " + quote(t) for t in dict.fromkeys(texts)]
    spans = [(c, 256) for c in range(0, 0x20000, 256) if not 0xD800 <= c < 0xE000]
    spans += [(c, 4096) for c in range(0x20000, 0x33000, 4096)] + [(0xE0000, 4096), (0xF0000, 4096), (0x10F000, 4096)]
    for first, count in spans:
        for between, after in (("", ""), (" ", ""), ("a", "1")):
            lines.append(f"range {first:x} {count} {quote(between)} {quote(after)}")
    return lines


def text_of(line):
    kind, *fields = line.split(" ")
    part = lambda field: "" if field == "%" else urllib.parse.unquote(field)
    if kind == "text":
        return part(fields[0])
    first, count = int(fields[0], 16), int(fields[1])
    return "".join(part(fields[2]) + chr(c) + part(fields[3]) for c in range(first, first + count))


# ---- the tokenizers ------------------------------------------------------------------------------------------------------


class Fields:
    def __init__(self, path):
        self.reader = GGUFReader(path)

    def __call__(self, name):
        field = self.reader.fields.get("tokenizer.ggml." + name)
        return field.contents() if field else None


def smollm2(fields):
    """Digits one by one, then the byte-level pre-tokenizer with its own expression."""
    names, types = fields("tokens"), fields("token_type")
    merges = [tuple(m.split(" ")) for m in fields("merges")]
    tokenizer = Tokenizer(BPE({n: i for i, n in enumerate(names)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(n, special=True, normalized=False) for n, t in zip(names, types) if t == 3])
    return tokenizer


def gemma3(fields):
    """SentencePiece BPE: merges from scores, as transformers.convert_slow_tokenizer.generate_merges derives them."""
    names, types, scores = fields("tokens"), fields("token_type"), fields("scores")
    names = ["▁" * len(n) if t == 4 and n.strip(" ") == "" else n for n, t in zip(names, types)]
    scores = [0.0 if t == 4 else s for s, t in zip(scores, types)]  # the piece's own score; the file has -1000 for added tokens
    vocabulary = {n: i for i, n in enumerate(names)}
    vocabulary.setdefault("\t", vocabulary["<0x09>"])  # where no token is a tab, pieces still begin with one
    merges = []
    for name, kind, score in zip(names, types, scores):
        if kind not in (1, 4):
            continue
        local = [(name[:i], name[i:], score) for i in range(1, len(name)) if name[:i] in vocabulary and name[i:] in vocabulary]
        merges += sorted(local, key=lambda m: (vocabulary[m[0]], vocabulary[m[1]]))
    merges.sort(key=lambda m: (m[2], len(m[0]), len(m[1])), reverse=True)
    tokenizer = Tokenizer(BPE(vocabulary, [m[:2] for m in merges], unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_tokens([AddedToken(n, special=t == 3, normalized=False) for n, t in zip(names, types) if t in (3, 4)])
    return tokenizer


MAKERS = {"smollm2": smollm2, "gemma3": gemma3}


def fnv1a(ids):
    value = 0xCBF29CE484222325
    for byte in struct.pack(f"<{len(ids)}I", *ids):
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return value


def golden(ids):
    line = f"{len(ids)} {fnv1a(ids):016x}"
    return line + (" " + " ".join(map(str, ids)) if 0 < len(ids) <= 12 else "")


def compare(server, lines, tokenizer):
    different = 0
    for line in lines:
        text = text_of(line)
        body = json.dumps({"content": text, "add_special": False, "parse_special": True}).encode()
        request = urllib.request.Request(server + "/tokenize", body, {"Content-Type": "application/json"})
        theirs = json.load(urllib.request.urlopen(request))["tokens"]
        ours = tokenizer.encode(text, add_special_tokens=False).ids
        if ours != theirs:
            different += 1
            at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
            show = lambda ids: [(i, tokenizer.id_to_token(i)) for i in ids[at : at + 4]]
            print(f"  {line[:60]}: at {at}: {show(ours)} llama.cpp {show(theirs)}")
    print(f"  {different} of {len(lines)} differ from llama.cpp")


def main(arguments):
    models = dict(a.split("=", 1) for a in arguments if a.split("=")[0] in MAKERS)
    servers = {}
    if "--llama-server" in arguments:
        at = arguments.index("--llama-server")
        servers = dict(a.split("=", 1) for a in arguments[at + 1 :])
        models = dict(a.split("=", 1) for a in arguments[:at])
    lines = corpus()
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / "corpus.txt").write_text("\n".join(lines) + "\n")
    for name, path in models.items():
        tokenizer = MAKERS[name](Fields(path))
        goldens = [golden(tokenizer.encode(text_of(line), add_special_tokens=False).ids) for line in lines]
        (DATA / f"{name}.golden").write_text("\n".join(goldens) + "\n")
        print(f"{name}: {len(lines)} cases")
        if name in servers:
            compare(servers[name], lines, tokenizer)


if __name__ == "__main__":
    main(sys.argv[1:])
