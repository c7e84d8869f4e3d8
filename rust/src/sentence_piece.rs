//! What SentencePiece vocabularies have of their own: U+2581 for a space, byte tokens, and scores instead of merges.

use ahash::AHashMap;

pub const SPACE: char = '\u{2581}';

/// The byte of a name `<0xNN>`.
pub fn byte_of(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

/// The bytes of a token, by its name.
pub fn bytes_of(name: &str) -> Vec<u8> {
    match byte_of(name) {
        Some(byte) => vec![byte],
        None => name.replace(SPACE, " ").into_bytes(),
    }
}

/// One way to make a token out of two others.
struct Merge<'a> {
    left: &'a str,
    right: &'a str,
    score: f32,
    left_chars: u32,
    right_chars: u32,
    id: u32,
}

/// Ranked BPE merges that do what merging by score does: of all adjacent pairs that make a token, the one with the best score.
/// Several ways to the same score: the one with the longer left part first, which is how runs of one character grow from the
/// left. `pieces`: (name, id, score) of the tokens that may be merged; `ids`: every name a part may have.
pub fn merges_from_scores(pieces: &[(&str, u32, f32)], ids: &AHashMap<String, u32>) -> Vec<(String, String)> {
    let mut merges = Vec::with_capacity(pieces.len() * 2);
    for &(name, id, score) in pieces {
        let chars = name.chars().count() as u32;
        for (left_chars, (at, _)) in name.char_indices().enumerate().skip(1) {
            let (left, right) = name.split_at(at);
            if ids.contains_key(left) && ids.contains_key(right) {
                let left_chars = left_chars as u32;
                merges.push(Merge { left, right, score, left_chars, right_chars: chars - left_chars, id });
            }
        }
    }
    merges.sort_unstable_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then(b.left_chars.cmp(&a.left_chars))
            .then(b.right_chars.cmp(&a.right_chars))
            .then(a.id.cmp(&b.id))
    });
    merges.iter().map(|m| (m.left.to_owned(), m.right.to_owned())).collect()
}
