//! Chat templates by `minijinja`, set up as Hugging Face sets up Jinja2.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, Value};
use minijinja::{context, Environment, Error, ErrorKind, UndefinedBehavior};

use crate::bridge::RenderArguments;
use crate::failure::{corrupt, guarded, invalid, utf8, Failure, FailureKind, Outcome};
use crate::generation_blocks::without_generation_blocks;
use crate::python_compat::add_python_compat;
use crate::python_json::tojson;
use crate::strftime::strftime;

/// Steps of one rendering; bytes that it builds count too. 2,000 messages of 1,000 bytes stay below it.
const FUEL: u64 = 10_000_000;
const RECURSION_MAX: usize = 200;
const NAME: &str = "chat_template";

pub struct CompiledTemplate {
    environment: Environment<'static>,
}

pub fn compile_chat_template(source: &[u8]) -> Outcome<Box<CompiledTemplate>> {
    guarded(|| {
        let source = without_generation_blocks(utf8(source, "the chat template")?);
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(|e| corrupt(e.to_string()))?;
        environment.set_syntax(syntax);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(RECURSION_MAX);
        add_python_compat(&mut environment);
        environment.add_filter("tojson", tojson);
        environment.add_function("raise_exception", raise_exception);
        environment
            .add_template_owned(NAME, source)
            .map_err(|e| corrupt(format!("chat template{}: {}", line(&e), reason(&e))))?;
        Ok(Box::new(CompiledTemplate { environment }))
    })
}

/// The text after this mark is the template's own, and all that a client is told.
const RAISED: &str = "\u{1}raised:";

fn raise_exception(message: Value) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, format!("{RAISED}{message}")))
}

fn line(error: &Error) -> String {
    error.line().map_or(String::new(), |line| format!(", line {line}"))
}

fn reason(error: &Error) -> String {
    error.detail().map_or_else(|| error.kind().to_string(), |detail| format!("{}: {detail}", error.kind()))
}

fn failure(error: &Error) -> Failure {
    // An error inside a macro or an include is the source of the one reported.
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        let detail = current.downcast_ref::<Error>().and_then(Error::detail);
        if let Some(words) = detail.and_then(|d| d.strip_prefix(RAISED)) {
            return invalid(words);
        }
        cause = current.source();
    }
    if error.kind() == ErrorKind::OutOfFuel {
        return Failure { kind: FailureKind::TooLarge, message: format!("the chat template takes more than {FUEL} steps") };
    }
    invalid(format!("chat template{}: {}", line(error), reason(error)))
}

fn json(bytes: &[u8], what: &str) -> Outcome<Value> {
    if bytes.is_empty() {
        return Ok(Value::from(()));
    }
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|e| invalid(format!("{what}: {e}")))?;
    Ok(Value::from(Serde(&value)))
}

/// Stops at a number of bytes.
struct Bounded {
    text: Vec<u8>,
    bytes_max: usize,
    full: bool,
}

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.text.len() + bytes.len() > self.bytes_max {
            self.full = true;
            return Err(std::io::Error::other("the output is too long"));
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl CompiledTemplate {
    pub fn render(&self, arguments: &RenderArguments) -> Outcome<String> {
        guarded(|| {
            let template = self.environment.get_template(NAME).map_err(|e| failure(&e))?;
            let variables = variables(arguments)?;
            let mut output = Bounded { text: Vec::new(), bytes_max: arguments.output_bytes_max, full: false };
            let rendered = template.render_captured_to(variables, &mut output).map(|_| ());
            if output.full {
                let message = format!("the chat template writes more than {} bytes", arguments.output_bytes_max);
                return Err(Failure { kind: FailureKind::TooLarge, message });
            }
            rendered.map_err(|e| failure(&e))?;
            String::from_utf8(output.text).map_err(|e| invalid(e.to_string()))
        })
    }
}

fn variables(arguments: &RenderArguments) -> Outcome<Value> {
    let unix_time = arguments.unix_time;
    let now = move |format: String, _: Kwargs| strftime(unix_time, &format);
    let messages = json(arguments.messages_json, "messages")?;
    let tools = json(arguments.tools_json, "tools")?;
    let extra = json(arguments.extra_json, "template arguments")?;
    let base = context! {
        messages => messages,
        tools => tools,
        documents => Value::from(()),
        bos_token => utf8(arguments.bos_token, "bos_token")?,
        eos_token => utf8(arguments.eos_token, "eos_token")?,
        add_generation_prompt => arguments.add_generation_prompt,
        strftime_now => Value::from_function(now),
    };
    if extra.is_none() {
        return Ok(base);
    }
    if extra.kind() != minijinja::value::ValueKind::Map {
        return Err(invalid("template arguments are not an object"));
    }
    Ok(context! { ..extra, ..base })
}
