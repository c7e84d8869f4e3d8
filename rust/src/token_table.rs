//! Names, bytes and kinds of all tokens, computed once, so that decoding never comes back to Rust.

use crate::bridge::TokenTable;
use crate::{byte_level, sentence_piece};

/// How a model's decoder turns names into bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alphabet {
    ByteLevel,
    SentencePiece, // also Metaspace
    Plain,         // names are text
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    Normal,
    Literal, // an added token that is text: its name, unchanged
    Special,
}

pub fn push_token(table: &mut TokenTable, name: &str, kind: TokenKind, alphabet: Alphabet) {
    table.names.extend_from_slice(name.as_bytes());
    table.name_ends.push(table.names.len() as u64);
    match (kind, alphabet) {
        (TokenKind::Special, _) => {}
        (TokenKind::Literal, Alphabet::SentencePiece) => {
            table.bytes.extend_from_slice(name.replace(sentence_piece::SPACE, " ").as_bytes())
        }
        (TokenKind::Literal, _) | (TokenKind::Normal, Alphabet::Plain) => table.bytes.extend_from_slice(name.as_bytes()),
        (TokenKind::Normal, Alphabet::ByteLevel) => table.bytes.extend_from_slice(&byte_level::bytes_of(name)),
        (TokenKind::Normal, Alphabet::SentencePiece) => table.bytes.extend_from_slice(&sentence_piece::bytes_of(name)),
    }
    table.byte_ends.push(table.bytes.len() as u64);
    table.special.push((kind == TokenKind::Special) as u8);
}

pub fn empty_table() -> TokenTable {
    TokenTable {
        names: Vec::new(),
        name_ends: Vec::new(),
        bytes: Vec::new(),
        byte_ends: Vec::new(),
        special: Vec::new(),
        bos: -1,
        eos: -1,
        unk: -1,
        pad: -1,
        adds_bos: false,
        strips_leading_space: false,
    }
}
