//! URLs in properties. They may contain secrets, so messages, logs and checkpoints show them without user and query.

/// Returns the scheme of a URL and what follows it; `None` for a path.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    text.split_once("://").filter(|(scheme, _)| is_scheme(scheme))
}

/// `C:` is a drive, not a scheme.
fn is_scheme(text: &str) -> bool {
    text.len() > 1
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// Returns the path in `text`, which is a path or a `file://` URL.
pub(crate) fn local_path(text: &str) -> &str {
    text.strip_prefix("file://").unwrap_or(text)
}

/// Returns a path or URL without secrets.
pub fn redact(text: &str) -> String {
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

/// Returns a message whose URLs are without secrets.
#[cfg(feature = "object-store")]
pub(crate) fn redact_all(message: &str) -> String {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ')' | '>' | '<');
    let words = message.split_inclusive(is_end).map(|word| {
        let end = word.trim_end_matches(is_end).len();
        let (text, end) = word.split_at(end);
        let start = text.find("://").map_or(0, |colon| {
            text[..colon]
                .rfind(|c: char| !c.is_ascii_alphanumeric())
                .map_or(0, |before| before + 1)
        });
        format!("{}{}{end}", &text[..start], redact(&text[start..]))
    });
    words.collect()
}

/// Returns the error for a scheme that cannot be used.
pub(crate) fn unsupported(scheme: &str) -> String {
    if cfg!(feature = "object-store") {
        return format!(
            "the URL scheme `{scheme}` is not supported; use a path, `file://`, `s3://`, `gs://`, `az://`, `http://` or \
             `https://`"
        );
    }
    match scheme {
        "s3" | "gs" | "az" | "http" | "https" => format!(
            "the URL scheme `{scheme}` is not supported by this program; enable the feature `object-store` of \
             batch-items in its Cargo.toml"
        ),
        _ => format!("the URL scheme `{scheme}` is not supported; use a path or `file://`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert_eq!(redact(text), shown);
        }
    }

    #[cfg(feature = "object-store")]
    #[test]
    fn messages_have_no_secrets() {
        assert_eq!(
            redact_all("GET http://h/b/k?sig=1 in 1s: (https://me:pass@h/?a=b) failed? \"http://h/?c\""),
            "GET http://h/b/k in 1s: (https://h/) failed? \"http://h/\""
        );
        assert_eq!(redact_all("url=http://me:pass@h/?a, none"), "url=http://h/ none");
    }
}
