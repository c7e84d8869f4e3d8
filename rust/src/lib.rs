//! The one face of the Rust side: every function that C++ can call is declared here.
//!
//! Rules: arguments are borrowed, results are owned; a failure is a value (a C++ exception at the edge of the bridge, caught in
//! one place there); no panic leaves this crate.

mod byte_level;
mod chat_template;
mod failure;
mod generation_blocks;
mod grammar;
mod pre_tokenizers;
mod python_compat;
mod python_json;
mod sentence_piece;
mod strftime;
mod token_table;
mod tokenizer;
mod vocabulary;

use chat_template::{compile_chat_template, CompiledTemplate};
use grammar::{compile_grammar, grammar_environment, GrammarEnvironment, GrammarState};
use tokenizer::{tokenizer_from_json, HfTokenizer};
use vocabulary::tokenizer_from_vocabulary;

#[cxx::bridge(namespace = "linnet::rust_text")]
mod bridge {
    /// Many strings in one buffer: string i is bytes[ends[i - 1]..ends[i]].
    struct Texts<'a> {
        bytes: &'a [u8],
        ends: &'a [u64],
    }

    /// A GGUF file's tokenizer; -1 for an id that the file doesn't give.
    struct VocabularyView<'a> {
        sentence_piece: bool,
        pre_tokenizer: &'a [u8],
        tokens: Texts<'a>,
        types: &'a [u8], // as GGUF numbers them; one per token
        scores: &'a [f32],
        merges: Texts<'a>,
        bos: i64,
        eos: i64,
        unk: i64,
        pad: i64,
        add_bos: i8, // -1: not given
        add_eos: i8,
        add_space_prefix: i8,
    }

    /// What decoding needs: for every id its name, the bytes it stands for, and whether it is special.
    struct TokenTable {
        names: Vec<u8>,
        name_ends: Vec<u64>,
        bytes: Vec<u8>,
        byte_ends: Vec<u64>,
        special: Vec<u8>,
        bos: i64,
        eos: i64,
        unk: i64,
        pad: i64,
        adds_bos: bool,
        strips_leading_space: bool,
    }

    struct RenderArguments<'a> {
        messages_json: &'a [u8],
        tools_json: &'a [u8],
        extra_json: &'a [u8],
        bos_token: &'a [u8],
        eos_token: &'a [u8],
        add_generation_prompt: bool,
        unix_time: i64,
        output_bytes_max: usize,
    }

    extern "Rust" {
        type HfTokenizer;
        fn tokenizer_from_json(tokenizer_json: &[u8], config_json: &[u8]) -> Result<Box<HfTokenizer>>;
        fn tokenizer_from_vocabulary(view: &VocabularyView) -> Result<Box<HfTokenizer>>;
        fn encode(self: &HfTokenizer, text: &[u8], add_special: bool, parse_special: bool) -> Result<Vec<u32>>;
        fn take_table(self: &mut HfTokenizer) -> Result<TokenTable>;
        /// -1: no token has this name.
        fn id_of(self: &HfTokenizer, name: &[u8]) -> i64;

        type CompiledTemplate;
        fn compile_chat_template(source: &[u8]) -> Result<Box<CompiledTemplate>>;
        fn render(self: &CompiledTemplate, arguments: &RenderArguments) -> Result<String>;

        type GrammarEnvironment;
        fn grammar_environment(bytes: &[u8], byte_ends: &[u64], special: &[u8], eos: i64) -> Result<Box<GrammarEnvironment>>;
        type GrammarState;
        fn compile_grammar(environment: &GrammarEnvironment, kind: &str, source: &[u8]) -> Result<Box<GrammarState>>;
        fn mask(self: &mut GrammarState, words: &mut [u32]) -> Result<()>;
        fn consume(self: &mut GrammarState, token: u32) -> Result<()>;
        fn accepting(self: &mut GrammarState) -> Result<bool>;
        fn finished(self: &GrammarState) -> bool;
        fn fork(self: &GrammarState) -> Result<Box<GrammarState>>;
    }
}
