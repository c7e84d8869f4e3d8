//! A tokenizer from what a GGUF file says, built as the same pipeline that the model's tokenizer.json describes.

use ahash::AHashMap;
use serde_json::{json, Value};
use tokenizers::models::bpe::BPE;
use tokenizers::{AddedToken, NormalizerWrapper, PostProcessorWrapper, Tokenizer};

use crate::bridge::{Texts, TokenTable, VocabularyView};
use crate::failure::{corrupt, guarded, Outcome};
use crate::pre_tokenizers::pre_tokenizer;
use crate::sentence_piece::{merges_from_scores, SPACE};
use crate::token_table::{empty_table, push_token, Alphabet, TokenKind};
use crate::tokenizer::{set_adds_bos, HfTokenizer};

const NORMAL: u8 = 1;
const UNKNOWN: u8 = 2;
const CONTROL: u8 = 3;
const USER_DEFINED: u8 = 4;

/// Checked by the C++ side: ends ascend to bytes.len(), one type per token, one score per token of SentencePiece, ids in range.
pub fn tokenizer_from_vocabulary(view: &VocabularyView) -> Outcome<Box<HfTokenizer>> {
    guarded(|| {
        let tokens = texts(&view.tokens, "tokenizer.ggml.tokens")?;
        if view.sentence_piece {
            sentence_piece(view, &tokens)
        } else {
            byte_level(view, &tokens)
        }
    })
}

fn texts<'a>(texts: &Texts<'a>, field: &str) -> Outcome<Vec<&'a str>> {
    let mut start = 0;
    let mut result = Vec::with_capacity(texts.ends.len());
    for (index, &end) in texts.ends.iter().enumerate() {
        let bytes = &texts.bytes[start..end as usize];
        result.push(std::str::from_utf8(bytes).map_err(|_| corrupt(format!("{field}[{index}] is not UTF-8")))?);
        start = end as usize;
    }
    Ok(result)
}

/// The first token of a name has it; a later one is only decoded.
fn ids_by_name<'a>(names: impl Iterator<Item = &'a str>, size: usize) -> AHashMap<String, u32> {
    let mut ids = AHashMap::with_capacity(size);
    for (id, name) in names.enumerate() {
        ids.entry(name.to_owned()).or_insert(id as u32);
    }
    ids
}

fn merges(view: &VocabularyView, ids: &AHashMap<String, u32>) -> Outcome<Vec<(String, String)>> {
    let mut result = Vec::with_capacity(view.merges.ends.len());
    for (index, merge) in texts(&view.merges, "tokenizer.ggml.merges")?.into_iter().enumerate() {
        // A part may itself be a space (a SentencePiece vocabulary); then the middle one separates.
        let at = merge
            .char_indices()
            .filter(|&(at, c)| c == ' ' && at > 0 && at + 1 < merge.len())
            .map(|(at, _)| at)
            .min_by_key(|&at| (2 * at + 1).abs_diff(merge.len()))
            .ok_or_else(|| corrupt(format!("tokenizer.ggml.merges[{index}] {merge:?} is not two tokens with a space between")))?;
        let (left, right) = (&merge[..at], &merge[at + 1..]);
        for name in [left, right] {
            if !ids.contains_key(name) {
                return Err(corrupt(format!(
                    "tokenizer.ggml.merges[{index}] {merge:?}: {name:?} is not in tokenizer.ggml.tokens"
                )));
            }
        }
        if !ids.contains_key(&[left, right].concat()) {
            return Err(corrupt(format!("tokenizer.ggml.merges[{index}] {merge:?}: its result is not in tokenizer.ggml.tokens")));
        }
        result.push((left.to_owned(), right.to_owned()));
    }
    Ok(result)
}

fn byte_level(view: &VocabularyView, tokens: &[&str]) -> Outcome<Box<HfTokenizer>> {
    let name = std::str::from_utf8(view.pre_tokenizer).map_err(|_| corrupt("tokenizer.ggml.pre is not UTF-8"))?;
    let pre = pre_tokenizer(if name.is_empty() { "default" } else { name })?;
    let ids = ids_by_name(tokens.iter().copied(), tokens.len());
    let merges = merges(view, &ids)?;
    let model = BPE::builder()
        .vocab_and_merges(ids, merges)
        .ignore_merges(pre.ignore_merges)
        .build()
        .map_err(|e| corrupt(format!("tokenizer.ggml.merges: {e}")))?;
    let mut tokenizer = Tokenizer::new(model);
    set_normalizer(&mut tokenizer, pre.normalizer())?;
    tokenizer.with_pre_tokenizer(Some(pre.build()?));
    finish(tokenizer, view, tokens, Alphabet::ByteLevel, pre.adds_bos)
}

fn sentence_piece(view: &VocabularyView, tokens: &[&str]) -> Outcome<Box<HfTokenizer>> {
    // A user-defined run of spaces is stored as spaces, and belongs to the merges: it was a piece before the file was made.
    let names: Vec<String> = tokens
        .iter()
        .zip(view.types)
        .map(|(name, &kind)| match kind {
            USER_DEFINED if is_spaces(name) => SPACE.to_string().repeat(name.len()),
            _ => (*name).to_owned(),
        })
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut ids = ids_by_name(names.iter().copied(), names.len());
    // A tab has no piece of its own, but pieces begin with it.
    if let (false, Some(&id)) = (ids.contains_key("\t"), ids.get("<0x09>")) {
        ids.insert("\t".to_owned(), id);
    }
    let merges = if view.merges.ends.is_empty() { merges_from_scores(&pieces(view, &names), &ids) } else { merges(view, &ids)? };
    let has_bytes = ids.contains_key("<0x00>");
    let mut builder = BPE::builder().vocab_and_merges(ids, merges).fuse_unk(true).byte_fallback(has_bytes);
    if let Some(&unk) = usize::try_from(view.unk).ok().and_then(|id| names.get(id)) {
        builder = builder.unk_token(unk.to_owned());
    }
    let model = builder.build().map_err(|e| corrupt(format!("tokenizer.ggml.tokens: {e}")))?;
    let mut tokenizer = Tokenizer::new(model);
    set_normalizer(&mut tokenizer, Some(space_normalizer(view.add_space_prefix != 0)?))?;
    finish(tokenizer, view, &names, Alphabet::SentencePiece, true)
}

fn set_normalizer(tokenizer: &mut Tokenizer, normalizer: Option<NormalizerWrapper>) -> Outcome<()> {
    tokenizer.with_normalizer(normalizer).map(|_| ()).map_err(|e| corrupt(format!("normalizer: {e}")))
}

fn is_spaces(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b == b' ')
}

/// The tokens that merging may produce. Runs of spaces come before everything that has a score.
fn pieces<'a>(view: &VocabularyView, names: &[&'a str]) -> Vec<(&'a str, u32, f32)> {
    names
        .iter()
        .zip(view.types)
        .zip(view.scores)
        .enumerate()
        .filter_map(|(id, ((&name, &kind), &score))| match kind {
            NORMAL => Some((name, id as u32, score)),
            USER_DEFINED if name.chars().all(|c| c == SPACE) => Some((name, id as u32, f32::INFINITY)),
            _ => None,
        })
        .collect()
}

fn space_normalizer(prefix: bool) -> Outcome<NormalizerWrapper> {
    let space = SPACE.to_string();
    let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": space});
    let normalizer = if prefix {
        json!({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": space}, replace]})
    } else {
        replace
    };
    serde_json::from_value(normalizer).map_err(|e| corrupt(format!("normalizer: {e}")))
}

/// Added tokens, BOS and EOS, and the table: the same for both kinds.
fn finish(
    mut tokenizer: Tokenizer,
    view: &VocabularyView,
    names: &[&str],
    alphabet: Alphabet,
    adds_bos_by_default: bool,
) -> Outcome<Box<HfTokenizer>> {
    let mut table = empty_table();
    let mut added = Vec::new();
    for (&name, &kind) in names.iter().zip(view.types) {
        let kind = match kind {
            CONTROL | UNKNOWN => TokenKind::Special,
            USER_DEFINED => TokenKind::Literal,
            _ => TokenKind::Normal,
        };
        if kind != TokenKind::Normal && !name.is_empty() {
            added.push(AddedToken::from(name.to_owned(), kind == TokenKind::Special).normalized(false));
        }
        push_token(&mut table, name, kind, alphabet);
    }
    tokenizer.add_tokens(added).map_err(|e| corrupt(format!("tokenizer.ggml.token_type: {e}")))?;
    table.bos = view.bos;
    table.eos = view.eos;
    table.unk = view.unk;
    table.pad = view.pad;
    let adds_bos = if view.add_bos < 0 { adds_bos_by_default } else { view.add_bos > 0 };
    let adds_eos = view.add_eos > 0;
    tokenizer.with_post_processor(template(names, (adds_bos, view.bos), (adds_eos, view.eos))?);
    strip_rule(&mut table, view, alphabet);
    let mut result = HfTokenizer::new(tokenizer, table);
    set_adds_bos(&mut result)?;
    Ok(Box::new(result))
}

/// The space that the normalizer puts before a text is taken off when decoding.
fn strip_rule(table: &mut TokenTable, view: &VocabularyView, alphabet: Alphabet) {
    table.strips_leading_space = alphabet == Alphabet::SentencePiece && view.add_space_prefix != 0;
}

/// BOS before, EOS after a text. `bos` and `eos`: whether, and which.
fn template(names: &[&str], bos: (bool, i64), eos: (bool, i64)) -> Outcome<Option<PostProcessorWrapper>> {
    let mut single: Vec<Value> = Vec::new();
    let mut special = serde_json::Map::new();
    let mut token = |(wanted, id): (bool, i64), single: &mut Vec<Value>| {
        let Some(&name) = usize::try_from(id).ok().and_then(|id| names.get(id)).filter(|_| wanted) else { return };
        single.push(json!({"SpecialToken": {"id": name, "type_id": 0}}));
        special.insert(name.to_owned(), json!({"id": name, "ids": [id], "tokens": [name]}));
    };
    token(bos, &mut single);
    single.push(json!({"Sequence": {"id": "A", "type_id": 0}}));
    token(eos, &mut single);
    if single.len() == 1 {
        return Ok(None);
    }
    let pair = json!([{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}]);
    let template = json!({"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special});
    serde_json::from_value(template).map(Some).map_err(|e| corrupt(format!("BOS and EOS: {e}")))
}
