//! The byte alphabet of byte-level BPE: every byte is one printable character.

/// The byte that `character` stands for.
pub fn byte_of(character: char) -> Option<u8> {
    let code = character as u32;
    match code {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => Some(code as u8), // stand for themselves
        // The others, in order, from U+0100 on: 0x00..=0x20, 0x7f..=0xa0, 0xad.
        0x100..=0x120 => Some((code - 0x100) as u8),
        0x121..=0x142 => Some((code - 0x121 + 0x7f) as u8),
        0x143 => Some(0xad),
        _ => None,
    }
}

/// The bytes of a token, by its name. A name with a character outside the alphabet stands for itself.
pub fn bytes_of(name: &str) -> Vec<u8> {
    name.chars().map(byte_of).collect::<Option<Vec<u8>>>().unwrap_or_else(|| name.as_bytes().to_vec())
}
