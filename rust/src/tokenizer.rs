//! Encoding by Hugging Face `tokenizers`, from a tokenizer.json or from what vocabulary.rs has built.

use serde_json::Value;
use tokenizers::{AddedVocabulary, Encoding, Model, OffsetReferential, OffsetType, PreTokenizer, Tokenizer};

use crate::bridge::TokenTable;
use crate::failure::{corrupt, guarded, invalid, utf8, Failure, FailureKind, Outcome};
use crate::token_table::{empty_table, push_token, Alphabet, TokenKind};

/// Ids above this are refused: a table of names by id would not be worth its memory.
const VOCABULARY_MAX: usize = 1 << 22;

pub struct HfTokenizer {
    tokenizer: Tokenizer,
    /// As the tokenizer's own, but special tokens in a text are text.
    without_special: AddedVocabulary,
    table: Option<TokenTable>,
}

impl HfTokenizer {
    pub fn new(tokenizer: Tokenizer, table: TokenTable) -> Self {
        let mut without_special = tokenizer.get_added_vocabulary().clone();
        without_special.set_encode_special_tokens(true);
        HfTokenizer { tokenizer, without_special, table: Some(table) }
    }

    pub fn encode(&self, text: &[u8], add_special: bool, parse_special: bool) -> Outcome<Vec<u32>> {
        guarded(|| {
            let text = utf8(text, "the text")?;
            self.encode_text(text, add_special, parse_special)
        })
    }

    fn encode_text(&self, text: &str, add_special: bool, parse_special: bool) -> Outcome<Vec<u32>> {
        let failed = |e: tokenizers::Error| invalid(format!("the text cannot be tokenized: {e}"));
        let added = if parse_special { self.tokenizer.get_added_vocabulary() } else { &self.without_special };
        let mut splits = added.extract_and_normalize(self.tokenizer.get_normalizer(), text);
        if let Some(pre_tokenizer) = self.tokenizer.get_pre_tokenizer() {
            pre_tokenizer.pre_tokenize(&mut splits).map_err(failed)?;
        }
        let model = self.tokenizer.get_model();
        splits.tokenize(|piece| model.tokenize(piece.get())).map_err(failed)?;
        let mut ids: Vec<u32> = splits
            .get_splits(OffsetReferential::Original, OffsetType::None)
            .into_iter()
            .flat_map(|(_, _, tokens)| tokens.iter().flatten().map(|token| token.id))
            .collect();
        if add_special && self.tokenizer.get_post_processor().is_some() {
            let encoding = self.tokenizer.post_process(bare_encoding(ids), None, true).map_err(failed)?;
            ids = encoding.get_ids().to_vec();
        }
        Ok(ids)
    }

    pub fn take_table(&mut self) -> Outcome<TokenTable> {
        self.table.take().ok_or_else(|| Failure { kind: FailureKind::Fault, message: "the token table was taken twice".into() })
    }

    pub fn id_of(&self, name: &[u8]) -> i64 {
        guarded(|| Ok(utf8(name, "the name")?.to_owned()))
            .ok()
            .and_then(|name| self.tokenizer.token_to_id(&name))
            .map_or(-1, i64::from)
    }
}

/// Ids as a post-processor takes them; it looks at nothing else.
fn bare_encoding(ids: Vec<u32>) -> Encoding {
    let n = ids.len();
    Encoding::new(
        ids,
        vec![0; n],
        vec![String::new(); n],
        vec![None; n],
        vec![(0, 0); n],
        vec![0; n],
        vec![1; n],
        vec![],
        Default::default(),
    )
}

pub fn tokenizer_from_json(tokenizer_json: &[u8], config_json: &[u8]) -> Outcome<Box<HfTokenizer>> {
    guarded(|| {
        let mut tokenizer = Tokenizer::from_bytes(tokenizer_json).map_err(|e| corrupt(format!("tokenizer.json: {e}")))?;
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).map_err(|e| corrupt(format!("tokenizer.json: {e}")))?;
        let config: Value = if config_json.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(config_json).map_err(|e| corrupt(format!("tokenizer_config.json: {e}")))?
        };
        let decoder = match tokenizer.get_decoder() {
            Some(decoder) => serde_json::to_value(decoder).map_err(|e| corrupt(format!("tokenizer.json: decoder: {e}")))?,
            None => Value::Null,
        };
        let mut table = table_of(&tokenizer, &decoder)?;
        table.strips_leading_space = decoder_strips_leading_space(&decoder);
        for (field, slot) in [
            ("bos_token", &mut table.bos),
            ("eos_token", &mut table.eos),
            ("unk_token", &mut table.unk),
            ("pad_token", &mut table.pad),
        ] {
            *slot = named_id(&tokenizer, &config, field)?;
        }
        let mut result = HfTokenizer::new(tokenizer, table);
        set_adds_bos(&mut result)?;
        Ok(Box::new(result))
    })
}

/// What the tokenizer puts around an empty text tells whether it begins with BOS.
pub fn set_adds_bos(tokenizer: &mut HfTokenizer) -> Outcome<()> {
    let around = tokenizer.encode_text("", true, true)?;
    if let Some(table) = tokenizer.table.as_mut() {
        table.adds_bos = table.bos >= 0 && around.first().map(|&id| i64::from(id)) == Some(table.bos);
    }
    Ok(())
}

/// "bos_token": "<s>" or {"content": "<s>", ...}; -1 if the field is absent or null.
fn named_id(tokenizer: &Tokenizer, config: &Value, field: &str) -> Outcome<i64> {
    let entry = &config[field];
    let name = match entry {
        Value::Null => return Ok(-1),
        Value::String(name) => name.as_str(),
        _ => entry["content"]
            .as_str()
            .ok_or_else(|| corrupt(format!("tokenizer_config.json: {field} is neither a string nor has content")))?,
    };
    let id = tokenizer
        .token_to_id(name)
        .ok_or_else(|| corrupt(format!("tokenizer_config.json: {field} {name:?} is not in the vocabulary")))?;
    Ok(i64::from(id))
}

fn table_of(tokenizer: &Tokenizer, decoder: &Value) -> Outcome<TokenTable> {
    let vocabulary = tokenizer.get_vocab(true);
    let size = vocabulary.values().max().map_or(0, |&id| id as usize + 1);
    if size > VOCABULARY_MAX {
        return Err(corrupt(format!("tokenizer.json: token id {} is above {}", size - 1, VOCABULARY_MAX - 1)));
    }
    let added = tokenizer.get_added_tokens_decoder();
    let mut names: Vec<&str> = vec![""; size];
    for (name, &id) in &vocabulary {
        // Two names may share an id (a byte token and its character); the added or the longer one is the token's own.
        let slot = &mut names[id as usize];
        if added.get(&id).is_some_and(|token| token.content == *name) || (name.len(), name.as_str()) > (slot.len(), slot) {
            *slot = name;
        }
    }
    for (&id, token) in &added {
        names[id as usize] = &token.content;
    }
    let alphabet = alphabet_of(decoder);
    let mut table = empty_table();
    for (id, name) in names.iter().enumerate() {
        let kind = match added.get(&(id as u32)) {
            Some(token) if token.special => TokenKind::Special,
            Some(_) => TokenKind::Literal,
            None => TokenKind::Normal,
        };
        push_token(&mut table, name, kind, alphabet);
    }
    Ok(table)
}

/// All decoders of a sequence, flattened.
fn decoders(decoder: &Value) -> Vec<&Value> {
    match decoder["decoders"].as_array() {
        Some(parts) => parts.iter().flat_map(decoders).collect(),
        None => vec![decoder],
    }
}

fn alphabet_of(decoder: &Value) -> Alphabet {
    let kinds: Vec<&str> = decoders(decoder).iter().filter_map(|d| d["type"].as_str()).collect();
    if kinds.contains(&"ByteLevel") {
        Alphabet::ByteLevel
    } else if kinds.contains(&"ByteFallback") || kinds.contains(&"Metaspace") || kinds.contains(&"Replace") {
        Alphabet::SentencePiece
    } else {
        Alphabet::Plain
    }
}

fn decoder_strips_leading_space(decoder: &Value) -> bool {
    decoders(decoder).iter().any(|d| match d["type"].as_str() {
        Some("Strip") => d["content"] == " " && d["start"].as_u64().unwrap_or(0) > 0,
        Some("Metaspace") => d["prepend_scheme"].as_str().unwrap_or("always") != "never",
        _ => false,
    })
}
