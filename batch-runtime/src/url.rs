//! URLs in properties and settings, which may contain secrets.

use crate::connection_string::ConnectionString;

/// Returns a path or URL without user, password and query, for messages and logs; a connection string without attributes that may be secret.
///
/// ```
/// use batch_runtime::url::redact;
///
/// assert_eq!(redact("https://me:secret@host/in.csv?token=1"), "https://host/in.csv");
/// assert_eq!(redact("in/a.csv"), "in/a.csv");
/// ```
pub fn redact(text: &str) -> String {
    if let Ok(attributes) = text.parse::<ConnectionString>() {
        return attributes.to_string();
    }
    match split(text) {
        Some(("file", _)) | None => text.to_owned(),
        Some((scheme, rest)) => {
            let authority = rest.split('/').next().unwrap_or_default();
            let host = match authority.rfind('@') {
                Some(at) => at + 1,
                None if is_host(authority) => 0,
                // A password with a `/`, which should have been encoded.
                None => rest.rfind('@').map_or(0, |at| at + 1),
            };
            let shown = rest[host..].split('?').next().unwrap_or_default();
            format!("{scheme}://{shown}")
        }
    }
}

/// Returns whether the text before the first `/` may be a host with a port, so that no password begins in it.
fn is_host(authority: &str) -> bool {
    let end = authority.split('?').next().unwrap_or_default();
    match end.rsplit_once(':') {
        Some((_, port)) => end.ends_with(']') || port.bytes().all(|byte| byte.is_ascii_digit()),
        None => true,
    }
}

/// Returns the scheme of a URL and what follows it; `None` for a path.
#[doc(hidden)]
pub fn split(text: &str) -> Option<(&str, &str)> {
    text.split_once("://").filter(|(scheme, _)| is_scheme(scheme))
}

/// `C:` is a drive, not a scheme.
fn is_scheme(text: &str) -> bool {
    text.len() > 1
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: OTEL-09, LIN-09
    #[test]
    fn secrets_are_not_shown() {
        for (text, shown) in [
            ("in/a?b@c.csv", "in/a?b@c.csv"),
            ("file:///in/a@b.csv", "file:///in/a@b.csv"),
            (
                "https://me:pass@host:8080/a@b.csv?token=1#x",
                "https://host:8080/a@b.csv",
            ),
            ("https://me:p@ss@host", "https://host"),
            ("https://me:p?#s@host/a", "https://host/a"),
            ("https://host?token=a/b", "https://host"),
            ("https://me:p/s?s@host/a", "https://host/a"),
            ("https://[::1]:80/a@b", "https://[::1]:80/a@b"),
            ("https://[::1]/a@b", "https://[::1]/a@b"),
            ("s3://bucket/key", "s3://bucket/key"),
            ("ftp://me:pass@host/a", "ftp://host/a"),
            ("nats://token@host?prefix=a", "nats://host"),
            ("https://me:pass@host:4318/v1?token=1", "https://host:4318/v1"),
        ] {
            assert_eq!(redact(text), shown);
        }
    }
}
