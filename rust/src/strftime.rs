//! strftime_now(): the C library's own strftime in local time, which is what Python's does.

use std::ffi::CString;

use minijinja::{Error, ErrorKind};

const OUTPUT_BYTES_MAX: usize = 4096;

pub fn strftime(unix_time: i64, format: &str) -> Result<String, Error> {
    if format.is_empty() {
        return Ok(String::new());
    }
    let refused = |reason: &str| Error::new(ErrorKind::InvalidOperation, format!("strftime_now: {reason}"));
    // A character after the format keeps apart "no output" and "no room", which strftime both calls 0.
    let c_format = CString::new(format!("{format}.")).map_err(|_| refused("the format contains a zero byte"))?;
    let time = unix_time as libc::time_t;
    let mut broken_down = std::mem::MaybeUninit::<libc::tm>::uninit();
    let mut buffer = vec![0u8; OUTPUT_BYTES_MAX];
    // SAFETY: localtime_r fills broken_down or returns null; strftime writes at most buffer.len() bytes and reads a C string.
    let length = unsafe {
        if libc::localtime_r(&time, broken_down.as_mut_ptr()).is_null() {
            return Err(refused("the time is out of range"));
        }
        libc::strftime(buffer.as_mut_ptr().cast(), buffer.len(), c_format.as_ptr(), broken_down.as_ptr())
    };
    if length == 0 {
        return Err(refused("the result is longer than 4096 bytes"));
    }
    buffer.truncate(length - 1);
    Ok(String::from_utf8_lossy(&buffer).into_owned())
}
