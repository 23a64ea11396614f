//! Errors of requests, with what to do, and without secrets.

use std::error::Error as _;
use std::io;

use object_store::Error;

use super::super::url::redact_all;

/// Returns the error of a URL or option that cannot be used.
pub(super) fn invalid(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message.into())
}

/// Returns the error of settings that the service does not accept.
pub(super) fn of_configuration(error: Error) -> io::Error {
    invalid(format!(
        "{}; set it in the environment or in `store.options`",
        chain(&error)
    ))
}

/// Returns the error code in the body of the answer.
pub(super) fn code(error: &Error) -> Option<String> {
    let text = error.to_string();
    let (_, rest) = text.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    Some(code.to_owned())
}

/// Returns the messages of an error and of its causes.
pub(super) fn chain(error: &Error) -> String {
    const MOST: usize = 400;
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let message = cause.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        source = cause.source();
    }
    // Of an answer in XML, the code says enough.
    if let (Some(code), Some(start)) = (code(error), text.find("<?xml").or_else(|| text.find("<Error>"))) {
        text.replace_range(start.., &code);
    }
    let text = redact_all(&text);
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
