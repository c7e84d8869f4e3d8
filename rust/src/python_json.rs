//! The tojson filter as Hugging Face defines it: Python's json.dumps with ensure_ascii off, and no HTML escapes.

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind};

const DEPTH_MAX: usize = 128;
const OUTPUT_BYTES_MAX: usize = 64 << 20;

struct Style {
    indent: Option<String>, // of one level
    item_separator: String,
    key_separator: String,
    ascii: bool,
    sort_keys: bool,
}

/// {{ value | tojson(indent=2, ensure_ascii=true, separators=[",", ":"], sort_keys=true) }}
pub fn tojson(value: Value, indent: Option<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let indent = match kwargs.get::<Option<Value>>("indent")?.or(indent) {
        None => None,
        Some(v) if v.is_none() || v.is_undefined() => None,
        Some(v) => Some(match v.as_str() {
            Some(text) => text.to_owned(),
            None => " ".repeat(usize::try_from(v).unwrap_or(0).min(64)),
        }),
    };
    let separators = kwargs.get::<Option<Value>>("separators")?.filter(|v| !v.is_none() && !v.is_undefined());
    let (item_separator, key_separator) = match separators {
        None if indent.is_some() => (",".to_owned(), ": ".to_owned()),
        None => (", ".to_owned(), ": ".to_owned()),
        Some(pair) => (pair.get_item_by_index(0)?.to_string(), pair.get_item_by_index(1)?.to_string()),
    };
    let style = Style {
        indent,
        item_separator,
        key_separator,
        ascii: kwargs.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        sort_keys: kwargs.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
    };
    kwargs.assert_all_used()?;
    let mut output = String::new();
    write(&mut output, &value, &style, 0)?;
    Ok(Value::from_safe_string(output))
}

fn refused(reason: String) -> Error {
    Error::new(ErrorKind::BadSerialization, format!("tojson: {reason}"))
}

fn write(output: &mut String, value: &Value, style: &Style, depth: usize) -> Result<(), Error> {
    if depth > DEPTH_MAX || output.len() > OUTPUT_BYTES_MAX {
        return Err(refused(format!("deeper than {DEPTH_MAX} levels or longer than {OUTPUT_BYTES_MAX} bytes")));
    }
    match value.kind() {
        ValueKind::None => output.push_str("null"),
        ValueKind::Bool => output.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => output.push_str(&number(value)),
        ValueKind::String => write_string(output, value.as_str().unwrap_or_default(), style.ascii),
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter()?.map(|item| (None, item));
            write_items(output, ('[', ']'), items, style, depth)?;
        }
        ValueKind::Map => {
            let mut entries = Vec::new();
            for key in value.try_iter()? {
                let item = value.get_item(&key)?;
                entries.push((Some(key_text(&key)?), item));
            }
            if style.sort_keys {
                entries.sort_by(|a, b| a.0.cmp(&b.0));
            }
            write_items(output, ('{', '}'), entries.into_iter(), style, depth)?;
        }
        kind => return Err(refused(format!("a value of kind {kind} is not JSON"))),
    }
    Ok(())
}

fn write_items(
    output: &mut String,
    (open, close): (char, char),
    items: impl Iterator<Item = (Option<String>, Value)>,
    style: &Style,
    depth: usize,
) -> Result<(), Error> {
    output.push(open);
    let mut empty = true;
    for (key, item) in items {
        if !empty {
            output.push_str(&style.item_separator);
        }
        empty = false;
        new_line(output, style, depth + 1);
        if let Some(key) = key {
            write_string(output, &key, style.ascii);
            output.push_str(&style.key_separator);
        }
        write(output, &item, style, depth + 1)?;
    }
    if !empty {
        new_line(output, style, depth);
    }
    output.push(close);
    Ok(())
}

fn new_line(output: &mut String, style: &Style, depth: usize) {
    if let Some(indent) = &style.indent {
        output.push('\n');
        for _ in 0..depth {
            output.push_str(indent);
        }
    }
}

fn key_text(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.to_string()),
        ValueKind::None => Ok("null".into()),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.into()),
        ValueKind::Number => Ok(number(key)),
        kind => Err(refused(format!("a key of kind {kind} is not JSON"))),
    }
}

/// As Python's repr: 1.0, 1e+16, 1e-05; NaN and Infinity as json.dumps has them.
fn number(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    let Ok(x) = f64::try_from(value.clone()) else { return value.to_string() };
    if x.is_nan() {
        return "NaN".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    let shortest = format!("{x:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if x != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    format!("{x:?}")
}

fn write_string(output: &mut String, text: &str, ascii: bool) {
    output.push('"');
    for c in text.chars() {
        match c {
            '"' => output.push_str("\\\""),
            '\\' => output.push_str("\\\\"),
            '\n' => output.push_str("\\n"),
            '\r' => output.push_str("\\r"),
            '\t' => output.push_str("\\t"),
            '\u{8}' => output.push_str("\\b"),
            '\u{c}' => output.push_str("\\f"),
            c if (c as u32) < 0x20 || (ascii && c > '~') => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    output.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => output.push(c),
        }
    }
    output.push('"');
}
