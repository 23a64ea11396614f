//! References to secrets in job parameters, and the secrets of a running job. Only injected fields and contexts
//! receive the values; all other code sees a placeholder, so it cannot leak them.
// Spec: D-91

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

/// The prefix of a reference as text, in the repository and in the JOB_KEY.
const PREFIX: &str = "secret:";
/// Shorter values are not hidden in messages: they would match too much else.
const SHORTEST_HIDDEN: usize = 4;
/// The largest file of a secret, in bytes.
const MAX_SECRET: u64 = 64 * 1024;

/// A reference to a secret: an environment variable (`env:DB_PASSWORD`) or a file (`file:/run/secrets/db`) of the
/// process that runs the job.
///
/// ```
/// use batch_runtime::parameters::SecretReference;
/// let reference: SecretReference = "env:DB_PASSWORD".parse()?;
/// assert_eq!(reference, SecretReference::Env("DB_PASSWORD".into()));
/// # Ok::<(), batch_runtime::parameters::SecretReferenceError>(())
/// ```
// Spec: D-91
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SecretReference {
    /// The environment variable of this name.
    Env(String),
    /// The UTF-8 file at this path, without its final line break: a regular file or a pipe of at most 64 KiB. A relative path
    /// depends on the current directory of the process, which may differ at a restart.
    File(String),
}

/// A text that is not a valid reference to a secret. It is not displayed, because it may be the secret itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a reference to the secret, env:VARIABLE or file:PATH")]
pub struct SecretReferenceError;

impl FromStr for SecretReference {
    type Err = SecretReferenceError;

    fn from_str(text: &str) -> Result<Self, SecretReferenceError> {
        match text.split_once(':') {
            Some(("env", name)) if !name.is_empty() && !name.contains(['=', '\0']) => {
                Ok(Self::Env(name.into()))
            }
            Some(("file", path)) if !path.is_empty() && !path.contains('\0') => Ok(Self::File(path.into())),
            _ => Err(SecretReferenceError),
        }
    }
}

impl TryFrom<String> for SecretReference {
    type Error = SecretReferenceError;

    fn try_from(text: String) -> Result<Self, SecretReferenceError> {
        text.parse()
    }
}

impl From<SecretReference> for String {
    fn from(reference: SecretReference) -> Self {
        reference.to_string()
    }
}

impl fmt::Display for SecretReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{path}"),
        }
    }
}

impl SecretReference {
    /// Returns the reference as stored text, with a prefix.
    pub(crate) fn to_stored(&self) -> String {
        format!("{PREFIX}{self}")
    }

    /// Parses a stored reference.
    pub(crate) fn of_stored(text: &str) -> Option<Self> {
        text.strip_prefix(PREFIX)?.parse().ok()
    }

    /// Returns the placeholder for the value in properties and `${...}`.
    pub(crate) fn mark(&self) -> String {
        format!("{{{}}}", self.to_stored())
    }

    /// Returns the secret.
    ///
    /// # Errors
    /// When the variable is not set, the file cannot be read, or the secret is not UTF-8. The error does not contain it.
    pub fn read(&self) -> Result<String, Box<dyn Error + Send + Sync>> {
        match self {
            Self::Env(name) => std::env::var(name).map_err(|error| match error {
                std::env::VarError::NotPresent => "the environment variable is not set".into(),
                // The error itself contains the value.
                std::env::VarError::NotUnicode(_) => "the environment variable is not UTF-8".into(),
            }),
            Self::File(path) => {
                let bytes = read_file(path)?;
                // The error itself contains the value.
                let text = String::from_utf8(bytes).map_err(|_| "the file is not UTF-8")?;
                // The byte-order mark of an editor is no content.
                let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
                let line = text.strip_suffix('\n').unwrap_or(text);
                Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
            }
        }
    }
}

/// Reads a file of limited size. A device, such as /dev/zero, might never end.
fn read_file(path: &str) -> io::Result<Vec<u8>> {
    if !is_finite(&std::fs::metadata(path)?.file_type()) {
        return Err(io::Error::other("it is neither a regular file nor a pipe"));
    }
    let mut bytes = Vec::new();
    // One byte more, which shows that there is more.
    File::open(path)?.take(MAX_SECRET + 1).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= MAX_SECRET => Ok(bytes),
        _ => Err(io::Error::other(format!(
            "the file has more than {MAX_SECRET} bytes"
        ))),
    }
}

#[cfg(unix)]
fn is_finite(kind: &std::fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_file() || kind.is_fifo()
}

#[cfg(not(unix))]
fn is_finite(kind: &std::fs::FileType) -> bool {
    kind.is_file()
}

/// Returns a value in every encoding that an error, a log line or a report may contain.
fn encodings(value: &str) -> Vec<String> {
    let debug = format!("{value:?}");
    let json = serde_json::Value::from(value).to_string();
    let html = |apostrophe| {
        let escaped = value
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        escaped.replace('"', "&quot;").replace('\'', apostrophe)
    };
    let percent = utf8_percent_encode(value, NON_ALPHANUMERIC).to_string();
    let unreserved = [("%2D", "-"), ("%2E", "."), ("%5F", "_"), ("%7E", "~")];
    let url = unreserved.iter().fold(percent.clone(), |url, (code, character)| {
        url.replace(code, character)
    });
    let mut all = vec![
        value.to_owned(),
        debug[1..debug.len() - 1].to_owned(),
        value.escape_debug().to_string(),
        value.escape_default().to_string(),
        json[1..json.len() - 1].to_owned(),
        html("&#39;"),
        html("&#x27;"),
        html("'"),
        url.replace("%20", "+"),
        lower_case_codes(&url),
        lower_case_codes(&percent),
        url,
        percent,
    ];
    // Within a longer text, such as `user:password`, the value begins at one of three positions of a group. The characters that
    // it shares with its neighbours are not part of the result.
    for before in 0..3 {
        let padded = [&[0; 2][..before], value.as_bytes()].concat();
        let shared = [0, 2, 3][before];
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let text = engine.encode(&padded);
            all.push(text[shared..padded.len() * 8 / 6].to_owned());
        }
    }
    all.retain(|text| text.chars().count() >= SHORTEST_HIDDEN);
    all
}

/// Returns a percent-encoded text with its codes in lower case: `%2F` becomes `%2f`.
fn lower_case_codes(url: &str) -> String {
    let mut parts = url.split('%');
    let plain = parts.next().unwrap_or_default().to_owned();
    parts.fold(plain, |lower, part| {
        let (code, rest) = part.split_at(part.len().min(2));
        lower + "%" + &code.to_ascii_lowercase() + rest
    })
}

/// A secret that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the secret {reference} of job parameter `{}`: {problem}", .parameter.escape_debug())]
pub struct SecretError {
    /// The job parameter.
    pub parameter: String,
    /// The reference to its value.
    pub reference: SecretReference,
    /// The reason.
    #[source]
    pub problem: Box<dyn Error + Send + Sync>,
}

/// The secrets of a job: the mark of each, and its value if it has been read.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Vec<(String, Option<String>)>>);

/// Omits the values.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(mark, _)| mark))
            .finish()
    }
}

impl Secrets {
    /// Reads the secrets of `references`.
    ///
    /// # Errors
    /// The first secret that cannot be read.
    pub(crate) fn read<'p>(
        references: impl Iterator<Item = (&'p str, &'p SecretReference)>,
    ) -> Result<Self, SecretError> {
        Self::read_if(references, |_| true)
    }

    /// As `read`, for a check before the secrets are read for use: what is read from a pipe is not there any more.
    pub(crate) fn read_but_pipes<'p>(
        references: impl Iterator<Item = (&'p str, &'p SecretReference)>,
    ) -> Result<Self, SecretError> {
        Self::read_if(references, |reference| match reference {
            SecretReference::Env(_) => true,
            SecretReference::File(path) => {
                std::fs::metadata(path).map_or(true, |metadata| metadata.is_file())
            }
        })
    }

    fn read_if<'p>(
        references: impl Iterator<Item = (&'p str, &'p SecretReference)>,
        is_read: impl Fn(&SecretReference) -> bool,
    ) -> Result<Self, SecretError> {
        let read = |(parameter, reference): (&str, &SecretReference)| match reference.read() {
            Ok(value) => Ok((reference.mark(), Some(value))),
            Err(problem) => Err(SecretError {
                parameter: parameter.to_owned(),
                reference: reference.clone(),
                problem,
            }),
        };
        references
            .map(|(parameter, reference)| match is_read(reference) {
                true => read((parameter, reference)),
                false => Ok((reference.mark(), None)),
            })
            .collect::<Result<_, _>>()
            .map(Self::of)
    }

    /// Returns the secrets without reading them, for checks and displays.
    pub(crate) fn unread<'p>(references: impl Iterator<Item = (&'p str, &'p SecretReference)>) -> Self {
        Self::of(
            references
                .map(|(_, reference)| (reference.mark(), None))
                .collect(),
        )
    }

    fn of(mut all: Vec<(String, Option<String>)>) -> Self {
        // A mark may be the prefix of another one.
        all.sort_by_key(|(mark, _)| std::cmp::Reverse(mark.len()));
        Self(Arc::new(all))
    }

    /// Returns whether the text contains a secret.
    pub(crate) fn are_in(&self, text: &str) -> bool {
        self.0.iter().any(|(mark, _)| text.contains(mark.as_str()))
    }

    /// Returns whether the text contains a secret that has not been read.
    pub(crate) fn are_unread_in(&self, text: &str) -> bool {
        let mut unread = self.0.iter().filter(|(_, value)| value.is_none());
        unread.any(|(mark, _)| text.contains(mark.as_str()))
    }

    /// Replaces the marks in the text by the values. Values are not searched for marks.
    pub(crate) fn revealed<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !self.are_in(text) {
            return Cow::Borrowed(text);
        }
        let (mut revealed, mut rest) = (String::new(), text);
        while let Some(next) = rest.chars().next() {
            let found = self.0.iter().find_map(|(mark, value)| {
                let behind = rest.strip_prefix(mark.as_str())?;
                Some((value.as_ref()?, behind))
            });
            match found {
                Some((value, behind)) => {
                    revealed += value;
                    rest = behind;
                }
                None => {
                    revealed.push(next);
                    rest = &rest[next.len_utf8()..];
                }
            }
        }
        Cow::Owned(revealed)
    }

    /// Replaces the values in a message by their marks, in every encoding: plain, `{:?}`, JSON, URL, HTML, base64.
    pub(crate) fn hidden(&self, message: String) -> String {
        let long = |value: &&String| value.chars().count() >= SHORTEST_HIDDEN;
        let mut hidden: Vec<(String, &str)> = Vec::new();
        for (mark, value) in self.0.iter() {
            if let Some(value) = value.as_ref().filter(long) {
                hidden.extend(encodings(value).into_iter().map(|text| (text, mark.as_str())));
            }
        }
        // One value may contain another one.
        hidden.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        if !hidden.iter().any(|(value, _)| message.contains(value)) {
            return message;
        }
        let (mut rest, mut shown) = (message.as_str(), String::new());
        while let Some(character) = rest.chars().next() {
            match hidden.iter().find(|(value, _)| rest.starts_with(value)) {
                Some((value, mark)) => {
                    shown.push_str(mark);
                    rest = &rest[value.len()..];
                }
                None => {
                    shown.push(character);
                    rest = &rest[character.len_utf8()..];
                }
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_within_another_is_hidden_with_it() {
        let value = |mark: &str, value: &str| (mark.to_owned(), Some(value.to_owned()));
        let all = vec![
            value("{long mark}", "admin"),
            value("{pw}", "admin-2024\n"),
            value("{c}", "abc"),
        ];
        let secrets = Secrets(all.into());
        let check = |message: &str, expected: &str| assert_eq!(secrets.hidden(message.to_owned()), expected);
        check("admin/admin-2024\n: abc", "{long mark}/{pw}: abc");
        check(&format!("{:?}", "admin-2024\n"), "\"{pw}\"");
        check("nothing", "nothing");
    }

    // Spec: D-91
    #[test]
    #[cfg(unix)]
    fn files_of_secrets_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let large = folder.path().join("large");
        let read = |path: &std::path::Path| {
            let read = SecretReference::File(path.display().to_string()).read();
            read.map_err(|error| error.to_string())
        };
        std::fs::write(&large, vec![b'x'; 64 * 1024]).unwrap();
        assert_eq!(read(&large).unwrap().len(), 64 * 1024);
        std::fs::write(&large, vec![b'x'; 64 * 1024 + 1]).unwrap();
        assert_eq!(read(&large).unwrap_err(), "the file has more than 65536 bytes");
        for other in [std::path::Path::new("/dev/zero"), folder.path()] {
            assert_eq!(
                read(other).unwrap_err(),
                "it is neither a regular file nor a pipe"
            );
        }
    }

    // Spec: D-91
    #[test]
    fn a_value_is_hidden_in_every_encoding() {
        let value = "it's \"<&é\u{1b}\u{202e}/?~_-. %+\n\\";
        let secrets = Secrets(vec![("{pw}".to_owned(), Some(value.to_owned()))].into());
        let json = serde_json::Value::from(value).to_string();
        let url = utf8_percent_encode(value, NON_ALPHANUMERIC).to_string();
        let html = value
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('"', "&quot;")
            .replace('\'', "&#39;");
        let hidden = [
            (format!("is {value}!"), "is {pw}!"),
            (format!("{value:?}"), "\"{pw}\""),
            (value.escape_debug().to_string(), "{pw}"),
            (json, "\"{pw}\""),
            (format!("p={url}&q"), "p={pw}&q"),
            (html, "{pw}"),
        ];
        for (message, expected) in hidden {
            assert_eq!(secrets.hidden(message), expected);
        }
        let codes = lower_case_codes(&url);
        assert!(codes.contains("%3f"), "{codes}");
        assert_eq!(secrets.hidden(codes), "{pw}");
    }

    /// In `user:password` and the like, regardless of the text before and after the value.
    // Spec: D-91
    #[test]
    fn a_value_is_hidden_within_base64() {
        for value in ["abcd", "hunter2", "a longer pass phrase?>"] {
            let secrets = Secrets(vec![("{pw}".to_owned(), Some(value.to_owned()))].into());
            for (before, after) in ["", "u", "me", "you"]
                .iter()
                .flat_map(|b| ["", "@", "!!"].map(|a| (b, a)))
            {
                let text = format!("{before}{value}{after}");
                for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                    let hidden = secrets.hidden(engine.encode(&text));
                    assert!(hidden.contains("{pw}"), "{text}: {hidden}");
                    // Not even its first character is shown.
                    assert!(
                        !before.is_empty() || hidden.starts_with("{pw}"),
                        "{text}: {hidden}"
                    );
                }
            }
        }
    }

    #[test]
    fn references_are_explicit() {
        for text in ["env:A", "file:/a b", "file:a:b"] {
            let reference: SecretReference = text.parse().unwrap();
            assert_eq!(reference.to_string(), text);
            assert_eq!(
                SecretReference::of_stored(&reference.to_stored()),
                Some(reference)
            );
        }
        for text in [
            "", "env:", "file:", "hunter2", "env", "ENV:A", "env:A=B", "vault:a",
        ] {
            let error = text.parse::<SecretReference>().unwrap_err();
            assert!(text.is_empty() || !error.to_string().contains("hunter2"));
        }
        // Such texts may be in tables that other programs have written.
        for text in ["env:A", "file:/a", "secret:", "secret:a"] {
            assert_eq!(SecretReference::of_stored(text), None, "{text}");
        }
    }

    #[test]
    fn marks_are_replaced_once_and_the_longest_first() {
        let mark = |path: &str| SecretReference::File(path.into()).mark();
        let (short, long) = (mark("a"), mark("a}b"));
        let secrets = Secrets::of(vec![
            (short.clone(), Some(format!("<{long}>"))),
            (long.clone(), Some("LONG".into())),
        ]);
        assert_eq!(
            secrets.revealed(&format!("é{short} {long}!")),
            format!("é<{long}> LONG!")
        );
        assert_eq!(secrets.revealed("nothing"), "nothing");
        assert_eq!(secrets.hidden("it is LONG".into()), format!("it is {long}"));
        assert!(!format!("{secrets:?}").contains("LONG"));
    }
}
