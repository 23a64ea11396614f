//! URLs in properties. They may contain secrets, so messages, logs and checkpoints show them without user and query.

pub(crate) use batch_runtime::url::{redact, split};

/// Returns the path in `text`, which is a path or a `file://` URL.
pub(crate) fn local_path(text: &str) -> &str {
    text.strip_prefix("file://").unwrap_or(text)
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

#[cfg(all(test, feature = "object-store"))]
mod tests {
    use super::*;

    #[test]
    fn messages_have_no_secrets() {
        assert_eq!(
            redact_all("GET http://h/b/k?sig=1 in 1s: (https://me:pass@h/?a=b) failed? \"http://h/?c\""),
            "GET http://h/b/k in 1s: (https://h/) failed? \"http://h/\""
        );
        assert_eq!(redact_all("url=http://me:pass@h/?a, none"), "url=http://h/ none");
    }
}
