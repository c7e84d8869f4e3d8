//! Errors of the bridge. Only a text crosses it, so the kind travels as its first byte; rust_call.h takes it off again.

use std::fmt;
use std::panic::{catch_unwind, AssertUnwindSafe};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    Invalid,     // the caller's input
    Corrupt,     // a file
    Unsupported, // understood, not offered
    TooLarge,
    Fault, // ours: a panic
}

#[derive(Debug)]
pub struct Failure {
    pub kind: FailureKind,
    pub message: String,
}

pub type Outcome<T> = Result<T, Failure>;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tag = match self.kind {
            FailureKind::Invalid => 'i',
            FailureKind::Corrupt => 'c',
            FailureKind::Unsupported => 'u',
            FailureKind::TooLarge => 't',
            FailureKind::Fault => 'f',
        };
        write!(f, "{tag}{}", self.message)
    }
}

pub fn invalid(message: impl Into<String>) -> Failure {
    Failure { kind: FailureKind::Invalid, message: message.into() }
}

pub fn corrupt(message: impl Into<String>) -> Failure {
    Failure { kind: FailureKind::Corrupt, message: message.into() }
}

/// Every entry of the bridge runs in here, so that no panic reaches C++.
pub fn guarded<T>(body: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        let reason = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("no reason given");
        Err(Failure { kind: FailureKind::Fault, message: format!("the text library failed: {reason}") })
    })
}

/// `bytes` as text; `what` names them in the error.
pub fn utf8<'a>(bytes: &'a [u8], what: &str) -> Outcome<&'a str> {
    std::str::from_utf8(bytes).map_err(|e| invalid(format!("{what} is not UTF-8: broken at byte {}", e.valid_up_to())))
}
