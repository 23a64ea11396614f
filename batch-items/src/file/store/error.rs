//! Errors of requests, with what to do, and without secrets.

use std::error::Error as _;
use std::io;

use object_store::Error;

use super::super::url::redact_all;
use super::service::{Kind, Service};

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

/// Returns the error of a request.
pub(super) fn of_request(service: &Service, error: &Error) -> io::Error {
    let (bucket, code) = (&service.bucket, code(error));
    match error {
        Error::NotFound { .. } if service.kind == Kind::Http => {
            io::Error::new(io::ErrorKind::NotFound, "the server does not have it")
        }
        _ if code.as_deref() == Some("NoSuchBucket") => io::Error::new(
            io::ErrorKind::NotFound,
            format!("the bucket `{bucket}` does not exist; create it, or correct the URL"),
        ),
        Error::NotFound { .. } => io::Error::new(
            io::ErrorKind::NotFound,
            format!("it does not exist, or there is no bucket `{bucket}`"),
        ),
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            let code = code.map(|code| format!(" ({code})")).unwrap_or_default();
            let hint = hint(service).unwrap_or("check the credentials and their permissions");
            io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("access to `{bucket}` is denied{code}; {hint}"),
            )
        }
        _ => {
            let hint = match hint(service) {
                Some(hint) if !service.has_credentials => hint,
                _ if service.kind == Kind::Http => "check the URL",
                _ => "check the endpoint, the region and the bucket",
            };
            io::Error::other(format!("{}; {hint}", chain(error)))
        }
    }
}

/// Returns which credentials to set, unless some are set.
fn hint(service: &Service) -> Option<&'static str> {
    match service.kind {
        Kind::Http => Some("check the user, the password and the query of the URL"),
        _ if service.has_credentials => None,
        Kind::S3 => Some(
            "no credentials are set: set `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` in the environment, or \
             `skip_signature=true` in `store.options` for public objects",
        ),
        Kind::Google => Some(
            "no credentials are set: set `GOOGLE_APPLICATION_CREDENTIALS` in the environment, or `skip_signature=true` in \
             `store.options` for public objects",
        ),
        Kind::Azure => Some(
            "no credentials are set: set `AZURE_STORAGE_ACCOUNT_NAME` and `AZURE_STORAGE_ACCOUNT_KEY` in the environment, \
             or `skip_signature=true` in `store.options` for public objects",
        ),
    }
}

/// Returns the error code in the body of the answer.
fn code(error: &Error) -> Option<String> {
    let text = error.to_string();
    let (_, rest) = text.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    Some(code.to_owned())
}

/// Returns the messages of an error and of its causes.
fn chain(error: &Error) -> String {
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
