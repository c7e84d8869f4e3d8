//! The named pre-tokenizers of GGUF files (tokenizer.ggml.pre), as the pipelines of their models' tokenizer.json.

use serde_json::{json, Value};
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper};

use crate::failure::{corrupt, Failure, FailureKind, Outcome};

/// How text is cut before merging.
enum Cut {
    Gpt2,                            // the byte-level pre-tokenizer's own expression
    DigitsThenGpt2,                  // every digit alone first
    Splits(&'static [&'static str]), // expressions, one after the other, each match isolated
    SplitsThenGpt2(&'static [&'static str]),
}

pub struct PreTokenizer {
    names: &'static [&'static str],
    cut: Cut,
    nfc: bool,               // texts are normalized first
    pub ignore_merges: bool, // a whole piece that is a token is that token, reachable by merges or not
    pub adds_bos: bool,      // where the file doesn't say
}

const LLAMA3: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN35: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK_V3: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;
const PUNCTUATION: &str = r"[\p{P}\$\+<=>\^~\|`]+";
// Letters of the scripts with case, as the model's own file lists them; escaped where normalizing this source would change them.
const DEEPSEEK_LLM_LETTERS: &str = r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\x{1F7D}ᾀ-ᾴᾶ-ᾼ\x{1FBE}ῂ-ῄῆ-ῌῐ-\x{1FD3}ῖ-\x{1FDB}ῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\x{2126}ℨ\x{212A}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+";

const fn plain(names: &'static [&'static str], cut: Cut) -> PreTokenizer {
    PreTokenizer { names, cut, nfc: false, ignore_merges: false, adds_bos: false }
}

const fn nfc(names: &'static [&'static str], cut: Cut) -> PreTokenizer {
    PreTokenizer { names, cut, nfc: true, ignore_merges: false, adds_bos: false }
}

static KNOWN: &[PreTokenizer] = &[
    plain(&["default"], Cut::SplitsThenGpt2(&[r"[\p{P}\$\+<=>\^~\|]+"])),
    PreTokenizer {
        names: &["llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"],
        cut: Cut::Splits(&[LLAMA3]),
        nfc: false,
        ignore_merges: true,
        adds_bos: true,
    },
    plain(&["dbrx", "smaug-bpe"], Cut::Splits(&[LLAMA3])),
    plain(&["gpt-2", "phi-2", "jais"], Cut::Gpt2),
    nfc(&["mpt", "olmo"], Cut::Gpt2),
    plain(&["smollm", "starcoder", "refact", "codeshell"], Cut::DigitsThenGpt2),
    nfc(&["command-r"], Cut::DigitsThenGpt2),
    nfc(&["qwen2", "stablelm2"], Cut::Splits(&[QWEN2])),
    plain(&["deepseek-r1-qwen"], Cut::Splits(&[QWEN2])),
    plain(&["qwen35"], Cut::Splits(&[QWEN35])),
    plain(&["gpt-4o", "llama4"], Cut::Splits(&[GPT4O])),
    PreTokenizer { names: &["tekken"], cut: Cut::Splits(&[TEKKEN]), nfc: false, ignore_merges: true, adds_bos: true },
    plain(
        &["deepseek-llm"],
        Cut::Splits(&[
            r"[\r\n]",
            DEEPSEEK_LLM_LETTERS,
            r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
            r"\s+$",
            r"[一-龥ࠀ-一가-퟿]+",
            r"\p{N}",
        ]),
    ),
    plain(&["deepseek-coder"], Cut::Splits(&[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}"])),
    plain(&["deepseek-v3"], Cut::Splits(&[r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK_V3])),
    plain(&["falcon"], Cut::SplitsThenGpt2(&[PUNCTUATION])),
];

/// An unknown name is refused, with the list of the known ones.
pub fn pre_tokenizer(name: &str) -> Outcome<&'static PreTokenizer> {
    KNOWN.iter().find(|known| known.names.contains(&name)).ok_or_else(|| {
        let mut names: Vec<&str> = KNOWN.iter().flat_map(|known| known.names).copied().collect();
        names.sort_unstable();
        Failure {
            kind: FailureKind::Unsupported,
            message: format!("tokenizer.ggml.pre {name:?} is not known; known are {}", names.join(", ")),
        }
    })
}

fn byte_level(use_regex: bool) -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex})
}

fn split(expression: &str) -> Value {
    json!({"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": false})
}

impl PreTokenizer {
    pub fn build(&self) -> Outcome<PreTokenizerWrapper> {
        let digits = json!({"type": "Digits", "individual_digits": true});
        let mut steps: Vec<Value> = match self.cut {
            Cut::Gpt2 => vec![byte_level(true)],
            Cut::DigitsThenGpt2 => vec![digits, byte_level(true)],
            Cut::Splits(expressions) => expressions.iter().copied().map(split).chain([byte_level(false)]).collect(),
            Cut::SplitsThenGpt2(expressions) => expressions.iter().copied().map(split).chain([byte_level(true)]).collect(),
        };
        if matches!(self.cut, Cut::SplitsThenGpt2(_)) {
            steps.push(split("[0-9][0-9][0-9]"));
        }
        serde_json::from_value(json!({"type": "Sequence", "pretokenizers": steps}))
            .map_err(|e| corrupt(format!("pre-tokenizer {}: {e}", self.names[0])))
    }

    pub fn normalizer(&self) -> Option<NormalizerWrapper> {
        self.nfc.then(|| tokenizers::normalizers::unicode::NFC.into())
    }
}
