//! Connection strings of databases that a crate beside this one opens.
// Spec: MARK-13, ODBC-07

use std::fmt;
use std::str::FromStr;

/// The connection string of a database beside the repository that has no URL: `odbc:` and what the driver manager takes, such as
/// `odbc:DSN=erp;UID=batch;PWD=secret`. `batch-odbc` opens it.
///
/// `Display` and `Debug` show the attributes that name the database, and no other: a password may have any name.
///
/// ```
/// use batch_runtime::destination::ConnectionString;
///
/// let erp: ConnectionString = "odbc:DSN=erp;UID=batch;PWD={a;b}".parse()?;
/// assert_eq!(erp.as_str(), "DSN=erp;UID=batch;PWD={a;b}");
/// assert_eq!(erp.to_string(), "odbc:DSN=erp;UID=batch");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectionString(String);

/// The scheme.
const ODBC: &str = "odbc:";

/// The attributes that are shown, in lower case.
const SHOWN: &[&str] = &[
    "driver",
    "dsn",
    "server",
    "servername",
    "host",
    "hostname",
    "port",
    "database",
    "db",
    "dbq",
    "dbname",
    "uid",
    "user",
];

impl ConnectionString {
    /// Returns the attributes as they were given, with the password.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ConnectionString {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let attributes = text
            .split_at_checked(ODBC.len())
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(ODBC));
        match attributes {
            Some((_, attributes)) => Ok(Self(attributes.to_owned())),
            None => Err("expected a connection string such as `odbc:DSN=erp`".to_owned()),
        }
    }
}

impl fmt::Display for ConnectionString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ODBC)?;
        let mut separator = "";
        for attribute in attributes(&self.0) {
            let name = attribute.split('=').next().unwrap_or_default().trim();
            if SHOWN.iter().any(|shown| name.eq_ignore_ascii_case(shown)) {
                write!(f, "{separator}{attribute}")?;
                separator = ";";
            }
        }
        Ok(())
    }
}

impl fmt::Debug for ConnectionString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Returns the attributes; a value in braces may contain `;`, and `}}` for a `}`. Nothing after an unclosed brace is returned.
fn attributes(text: &str) -> Vec<&str> {
    let (mut attributes, mut start, mut at) = (Vec::new(), 0, 0);
    while at < text.len() {
        let rest = &text[at..];
        at += match rest.chars().next().unwrap_or_default() {
            '{' => match end_of_braces(rest) {
                Some(length) => length,
                None => return attributes,
            },
            ';' => {
                attributes.push(&text[start..at]);
                start = at + 1;
                1
            }
            other => other.len_utf8(),
        };
    }
    attributes.push(&text[start..]);
    attributes
}

/// Returns the length of a value in braces.
fn end_of_braces(text: &str) -> Option<usize> {
    let mut at = 1;
    loop {
        at += text[at..].find('}')?;
        match text[at..].starts_with("}}") {
            true => at += 2,
            false => return Some(at + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: MARK-13
    #[test]
    fn what_may_be_a_secret_is_not_shown() {
        for (text, shown) in [
            ("odbc:DSN=erp", "odbc:DSN=erp"),
            (
                "odbc:Driver={A;B};Server=db;Pwd=a;b=c",
                "odbc:Driver={A;B};Server=db",
            ),
            ("odbc:PWD={x;DSN=y};dsn=z;Password=p;Token=t", "odbc:dsn=z"),
            ("odbc:PWD={a}}b;UID=c};Port=1", "odbc:Port=1"),
            ("odbc:PWD={a;Server=s", "odbc:"),
            ("ODBC:PWD={a}};Server=b}", "odbc:"),
            ("odbc:DSN=z;Driver={open;PWD=a", "odbc:DSN=z"),
        ] {
            let parsed: ConnectionString = text.parse().unwrap();
            assert_eq!(
                (parsed.to_string(), format!("{parsed:?}")),
                (shown.to_owned(), shown.to_owned())
            );
        }
        assert!("DSN=erp".parse::<ConnectionString>().is_err());
        let error = "odbc:DSN=erp;PWD=secret"
            .parse::<crate::repository::RepositoryUrl>()
            .unwrap_err();
        assert!(error.to_string().contains("`odbc:DSN=erp`:"), "{error}");
    }
}
