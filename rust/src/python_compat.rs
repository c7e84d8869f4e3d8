//! What Jinja2 and Python have and `minijinja` with its pycompat lacks: a few string methods, lenient number filters, a test.

use minijinja::value::{Kwargs, Rest, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};

pub fn add_python_compat(environment: &mut Environment<'static>) {
    environment.set_unknown_method_callback(method);
    environment.add_filter("int", int);
    environment.add_filter("float", float);
    // What has a length and items: texts and mappings too.
    environment.add_test("sequence", |value: Value| matches!(value.kind(), ValueKind::Seq | ValueKind::String | ValueKind::Map));
    environment.add_test("callable", |value: Value| value.kind() == ValueKind::Plain);
}

fn method(state: &mut State, value: &Value, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    let text_argument = |index: usize| arguments.get(index).and_then(Value::as_str);
    if let Some(text) = value.as_str() {
        match (name, arguments.len()) {
            ("removeprefix", 1) => {
                let prefix = text_argument(0).ok_or_else(|| not_a_string(name))?;
                return Ok(text.strip_prefix(prefix).unwrap_or(text).into());
            }
            ("removesuffix", 1) => {
                let suffix = text_argument(0).ok_or_else(|| not_a_string(name))?;
                return Ok(text.strip_suffix(suffix).unwrap_or(text).into());
            }
            ("rsplit" | "partition" | "rpartition", 1 | 2) => {
                let separator = text_argument(0).filter(|s| !s.is_empty()).ok_or_else(|| not_a_string(name))?;
                return Ok(split_from(text, separator, name, arguments.get(1)));
            }
            _ => {}
        }
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, name, arguments)
}

fn not_a_string(method: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("{method} needs a string that is not empty"))
}

fn split_from(text: &str, separator: &str, method: &str, splits_max: Option<&Value>) -> Value {
    let texts = |parts: &[&str]| Value::from(parts.iter().map(|&part| Value::from(part)).collect::<Vec<Value>>());
    match method {
        "partition" => text.split_once(separator).map_or(texts(&[text, "", ""]), |(a, b)| texts(&[a, separator, b])),
        "rpartition" => text.rsplit_once(separator).map_or(texts(&["", "", text]), |(a, b)| texts(&[a, separator, b])),
        _ => {
            let splits = splits_max.and_then(|n| usize::try_from(n.clone()).ok()).unwrap_or(usize::MAX - 1);
            let mut parts: Vec<&str> = text.rsplitn(splits + 1, separator).collect();
            parts.reverse();
            texts(&parts)
        }
    }
}

/// As Jinja2's: the default, 0, for what is no number.
fn int(value: Value, arguments: Rest<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let default = kwargs.get::<Option<Value>>("default")?.or(arguments.first().cloned()).unwrap_or(Value::from(0));
    kwargs.assert_all_used()?;
    let text = value.as_str().map(str::trim);
    let parsed = match text {
        Some(text) => text.parse::<i64>().ok().or_else(|| text.parse::<f64>().ok().map(|x| x as i64)),
        None if value.kind() == ValueKind::Bool => Some(i64::from(value.is_true())),
        None if value.is_integer() => return Ok(value),
        None => f64::try_from(value).ok().map(|x| x as i64),
    };
    Ok(parsed.map_or(default, Value::from))
}

/// As Jinja2's: the default, 0.0, for what is no number.
fn float(value: Value, arguments: Rest<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let default = kwargs.get::<Option<Value>>("default")?.or(arguments.first().cloned()).unwrap_or(Value::from(0.0));
    kwargs.assert_all_used()?;
    let parsed = match value.as_str() {
        Some(text) => text.trim().parse::<f64>().ok(),
        None => f64::try_from(value).ok(),
    };
    Ok(parsed.map_or(default, Value::from))
}
