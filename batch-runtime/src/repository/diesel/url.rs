//! Selects the database of a URL, and masks its password for display.

use super::table_prefix::TablePrefix;
use crate::connection_string::ConnectionString;
use crate::repository::database_kind::MEMORY_URL;
use crate::repository::{DatabaseKind, MAX_VARCHAR, RepositoryError, RepositoryLayout, Result};

/// Returns the database of a URL, after checking that this build supports it and that the rest of the URL is valid.
pub(super) fn database_of(url: &str) -> Result<DatabaseKind> {
    let reject = |problem: String| RepositoryError::Url {
        url: shown(url),
        problem,
    };
    let Some(database) = DatabaseKind::named_in(url) else {
        return Err(reject(
            "expected `sqlite://PATH`, `sqlite://:memory:`, `postgres://USER@HOST/DATABASE`, `mysql://USER@HOST/DATABASE` or \
             `memory:`"
                .into(),
        ));
    };
    let (is_supported, name, feature) = match database {
        DatabaseKind::Sqlite => (cfg!(feature = "sqlite"), "SQLite", "sqlite"),
        DatabaseKind::Postgresql => (cfg!(feature = "postgres"), "PostgreSQL", "postgres"),
        DatabaseKind::Mysql => (cfg!(feature = "mysql"), "MySQL and MariaDB", "mysql"),
        DatabaseKind::Memory if url == MEMORY_URL => return Ok(database),
        DatabaseKind::Memory => {
            return Err(reject(format!(
                "expected `{MEMORY_URL}`, without a path or options"
            )));
        }
    };
    if !is_supported {
        return Err(reject(format!(
            "this program was built without {name}: enable the feature `{feature}` of `batch-runtime`"
        )));
    }
    match problem_with_server(url).filter(|_| database != DatabaseKind::Sqlite) {
        None => Ok(database),
        Some(problem) => Err(reject(problem.into())),
    }
}

/// Finds mistakes that the database libraries would report with the password.
fn problem_with_server(url: &str) -> Option<&'static str> {
    const ENCODE: &str = "cannot parse the part before `@`; in a password write % as %25, / as %2F, @ as %40, ? as %3F \
                          and # as %23";
    let Some((_, rest)) = url.split_once("://") else {
        return Some("expected `postgres://USER@HOST/DATABASE` or `mysql://USER@HOST/DATABASE`");
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, after) = rest.split_at(end);
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let digits_follow = |token: &str| {
        let digits = token.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let is_encoded = user.split('%').skip(1).all(digits_follow);
    let port = match host.rsplit_once(']') {
        Some((_, port)) => port.strip_prefix(':'),
        None => host.rsplit_once(':').map(|(_, port)| port),
    };
    let has_port = port.is_none_or(|port| port.bytes().all(|digit| digit.is_ascii_digit()));
    let path = after.split('?').next().unwrap_or_default();
    let is_cut = path.contains('@') || (!has_port && after.contains('@'));
    if !is_encoded || is_cut || user.contains('@') {
        return Some(ENCODE);
    }
    let options = after.split_once('?').map_or("", |(_, options)| options);
    if !options.split('%').skip(1).all(digits_follow) {
        return Some("cannot parse the options after `?`; write % as %25, & as %26 and # as %23");
    }
    (!has_port).then_some("the port after the host is not a number")
}

/// The runtime's own options in a URL.
#[derive(Default)]
pub(super) struct OwnOptions {
    pub(super) prefix: TablePrefix,
    pub(super) max_varchar: Option<usize>,
    pub(super) layout: Option<RepositoryLayout>,
}

/// Splits a URL into the URL for the database and the runtime's own options.
pub(super) fn own_options(url: &str) -> Result<(String, OwnOptions)> {
    let mut own = OwnOptions::default();
    let Some((place, options)) = url.split_once('?') else {
        return Ok((url.to_owned(), own));
    };
    let reject = |problem| RepositoryError::Url {
        url: shown(url),
        problem,
    };
    let mut others = Vec::new();
    for option in options.split('&') {
        match option.split_once('=') {
            Some((TABLE_PREFIX, name)) => {
                let prefix = TablePrefix::new(name).map_err(reject)?;
                own.prefix = match DatabaseKind::named_in(url) {
                    Some(database) => prefix.on(database).map_err(reject)?,
                    None => prefix,
                };
            }
            Some((MAX_VARCHAR_LENGTH, length)) => {
                own.max_varchar = Some(max_varchar(length).map_err(reject)?);
            }
            Some((LAYOUT, layout)) => own.layout = Some(layout.parse().map_err(reject)?),
            _ => others.push(option),
        }
    }
    let mut url = place.to_owned();
    if !others.is_empty() {
        url.push('?');
        url.push_str(&others.join("&"));
    }
    Ok((url, own))
}

const TABLE_PREFIX: &str = "table_prefix";
const MAX_VARCHAR_LENGTH: &str = "max_varchar_length";
const LAYOUT: &str = "layout";

// Spec: REPO-76
fn max_varchar(text: &str) -> Result<usize, String> {
    const LEAST: usize = 100;
    match text.parse() {
        Ok(length @ LEAST..=MAX_VARCHAR) => Ok(length),
        _ => Err(format!(
            "invalid value `{text}` of `{MAX_VARCHAR_LENGTH}`: expected a number from {LEAST} to {MAX_VARCHAR}"
        )),
    }
}

/// Masks passwords by `***`, before the host and among the options.
pub(crate) fn shown(url: &str) -> String {
    // One where a URL is expected.
    if let Ok(other) = url.parse::<ConnectionString>() {
        return other.to_string();
    }
    if url.starts_with("sqlite:") {
        return shown_of_sqlite(url);
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        return match url.split_once(':') {
            Some((scheme, _)) if url.contains('@') => format!("{scheme}:***"),
            _ if url.to_ascii_lowercase().contains("password") => "***".to_owned(),
            _ => url.to_owned(),
        };
    };
    // An unencoded password may contain any character, so it extends to the last `@`.
    let rest = match rest.rsplit_once('@') {
        Some((user, place)) => match user.split_once(':') {
            Some((user, _)) => format!("{user}:***@{place}"),
            None => format!("{user}@{place}"),
        },
        None => rest.to_owned(),
    };
    let (place, options) = rest
        .split_once('?')
        .map_or((rest.as_str(), None), |(p, o)| (p, Some(o)));
    let mut shown = format!("{scheme}://{place}");
    for (number, option) in options.into_iter().flat_map(|all| all.split('&')).enumerate() {
        shown.push(if number == 0 { '?' } else { '&' });
        match option.split_once('=') {
            Some((name, _)) if is_secret(name) => shown.push_str(&format!("{name}=***")),
            _ => shown.push_str(option),
        }
    }
    shown
}

/// Shows the values of known options only: another one may be a key of an encrypted database.
fn shown_of_sqlite(url: &str) -> String {
    const KNOWN: [&str; 5] = [
        "synchronous",
        "file_mode",
        TABLE_PREFIX,
        LAYOUT,
        MAX_VARCHAR_LENGTH,
    ];
    let Some((place, options)) = url.split_once('?') else {
        return url.to_owned();
    };
    let shown = options.split('&').map(|option| match option.split_once('=') {
        Some((name, _)) if !KNOWN.contains(&name) => format!("{name}=***"),
        _ => option.to_owned(),
    });
    format!("{place}?{}", shown.collect::<Vec<_>>().join("&"))
}

/// Matches `password`, `sslpassword` and the like, also with encoded letters.
fn is_secret(name: &str) -> bool {
    const WORDS: [&str; 6] = ["password", "passwd", "pwd", "secret", "token", "key"];
    let name = name.to_ascii_lowercase();
    name.contains('%') || WORDS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let check = |url: &str, expected: &str| assert_eq!(shown(url), expected);
        check("postgres://me:secret@host/db", "postgres://me:***@host/db");
        check("mysql://me:se:c@r/et@host:3306/db", "mysql://me:***@host:3306/db");
        check("postgres://me@host/db", "postgres://me@host/db");
        check("postgres:///db?host=/tmp", "postgres:///db?host=/tmp");
        check(
            "postgres:///db?user=me&password=secret&sslpassword=s",
            "postgres:///db?user=me&password=***&sslpassword=***",
        );
        check(
            "postgres:///db?p%61ssword=secret",
            "postgres:///db?p%61ssword=***",
        );
        check("oracle:me:secret@host", "oracle:***");
        check("host=h password=secret", "***");
        check("sqlite://a@b:c.db", "sqlite://a@b:c.db");
        check("sqlite://a.db?layout=6&key=s3", "sqlite://a.db?layout=6&key=***");
        check("sqlite:a.db?pass=s3", "sqlite:a.db?pass=***");
    }

    /// The library's own message would contain the password.
    #[cfg(all(feature = "postgres", feature = "mysql"))]
    #[test]
    fn a_password_that_is_not_encoded_is_rejected_without_it() {
        for url in [
            "postgres:/me:geheim@127.0.0.1/batch",
            "postgres://me:ge%zzheim@127.0.0.1/batch",
            "postgres://me:ge/heim@127.0.0.1/batch",
            "postgres://a/b@127.0.0.1/batch",
            "postgres://me:ge@heim@127.0.0.1/batch",
            "mysql://me:ge?heim@127.0.0.1/batch",
            "postgres://me:geheim@127.0.0.1:x/batch",
            "postgres://me@127.0.0.1/batch?password=ge%zzheim",
            "postgres://me@127.0.0.1/batch?sslmode=disable&sslpassword=ge%heim",
        ] {
            let error = database_of(url).unwrap_err().to_string();
            assert!(!error.contains("heim") && !error.contains("ge%"), "{error}");
        }
        for url in [
            "mysql://me:ge:heim@127.0.0.1/batch",
            "postgres://me:ge%40heim@[::1]:5432/batch?user=a@b",
            "postgres:///batch?host=/tmp&user=me",
            "postgres://h1:1,h2:2/batch",
            "mysql://me@localhost/batch?unix_socket=/tmp/s",
        ] {
            database_of(url).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    #[test]
    fn an_unknown_scheme_is_rejected_with_the_known_ones() {
        for url in [
            "oracle://me:secret@host",
            "batch.db",
            "",
            "host=h password=secret",
        ] {
            let error = database_of(url).unwrap_err().to_string();
            assert!(error.contains("expected `sqlite://PATH`"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
