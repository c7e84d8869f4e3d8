//! {% generation %} … {% endgeneration %} marks, for training, what the assistant wrote. For inference it has no effect, and Jinja
//! proper doesn't know it: both tags become an `if` that is always taken, with the tag's own whitespace control.

/// Rewrites the tags outside comments, raw blocks and {{ … }}.
pub fn without_generation_blocks(source: &str) -> String {
    let mut output = String::with_capacity(source.len());
    let mut rest = source;
    let mut raw = false;
    while let Some(at) = rest.find('{') {
        output.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = match rest.as_bytes().get(1) {
            Some(b'#') if !raw => end_of(rest, "#}", false),
            Some(b'{') if !raw => end_of(rest, "}}", true),
            Some(b'%') => end_of(rest, "%}", !raw),
            _ => None,
        };
        let Some(end) = end else {
            output.push('{');
            rest = &rest[1..];
            continue;
        };
        let tag = &rest[..end];
        match tag_name(tag) {
            Some("raw") => raw = true,
            Some("endraw") => raw = false,
            _ => {}
        }
        match tag_name(tag) {
            Some("generation") if !raw => output.push_str(&tag.replacen("generation", "if true", 1)),
            Some("endgeneration") if !raw => output.push_str(&tag.replacen("endgeneration", "endif", 1)),
            _ if raw && tag_name(tag) != Some("raw") => {
                // Inside a raw block "{%" is text: look at what follows it again.
                output.push_str("{%");
                rest = &rest[2..];
                continue;
            }
            _ => output.push_str(tag),
        }
        rest = &rest[end..];
    }
    output.push_str(rest);
    output
}

/// The length of the tag that `text` begins with, its end included; quoted ends don't count if `quotes`.
fn end_of(text: &str, end: &str, quotes: bool) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(2) {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(q) if c == q => quote = None,
            Some(_) => {}
            None if quotes && (c == '"' || c == '\'') => quote = Some(c),
            None if text[at..].starts_with(end) => return Some(at + end.len()),
            None => {}
        }
    }
    None
}

/// The whole content of a block tag, if it is a single word.
fn tag_name(tag: &str) -> Option<&str> {
    let inner = tag.strip_prefix("{%")?.strip_suffix("%}")?;
    let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner);
    let inner = inner.strip_suffix(['-', '+']).unwrap_or(inner).trim();
    (!inner.contains(char::is_whitespace)).then_some(inner)
}
