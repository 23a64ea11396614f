//! Which database a URL means, and how it is shown: never with its password.

use super::prefix::TablePrefix;
use crate::repository::RepositoryError;

/// The databases that this build knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    #[cfg(feature = "sqlite")]
    Sqlite,
    #[cfg(feature = "postgres")]
    Postgres,
    #[cfg(feature = "mysql")]
    Mysql,
}

impl Scheme {
    /// Reads the part before the colon.
    pub(super) fn of(url: &str) -> Result<Self, RepositoryError> {
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        let problem = match scheme {
            "sqlite" => {
                #[cfg(feature = "sqlite")]
                return Ok(Self::Sqlite);
                #[cfg(not(feature = "sqlite"))]
                without_feature("SQLite", "sqlite")
            }
            "postgres" | "postgresql" => {
                #[cfg(feature = "postgres")]
                return Ok(Self::Postgres);
                #[cfg(not(feature = "postgres"))]
                without_feature("PostgreSQL", "postgres")
            }
            "mysql" | "mariadb" => {
                #[cfg(feature = "mysql")]
                return Ok(Self::Mysql);
                #[cfg(not(feature = "mysql"))]
                without_feature("MySQL and MariaDB", "mysql")
            }
            _ => "expected `sqlite://PATH`, `sqlite://:memory:`, `postgres://USER@HOST/DATABASE` or \
                  `mysql://USER@HOST/DATABASE`"
                .to_owned(),
        };
        Err(RepositoryError::Url {
            url: shown(url),
            problem,
        })
    }

    /// Whether its TIMESTAMP columns hold the wall-clock time of some zone.
    pub(super) fn is_zoned(self) -> bool {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite => false,
            #[cfg(feature = "postgres")]
            Self::Postgres => true,
            #[cfg(feature = "mysql")]
            Self::Mysql => true,
        }
    }
}

#[cfg(not(all(feature = "sqlite", feature = "postgres", feature = "mysql")))]
fn without_feature(database: &str, feature: &str) -> String {
    format!("this program was built without {database}: enable the feature `{feature}` of `batch-runtime`")
}

/// The URL as the database knows it, and what the tables in it are called: `table_prefix` among the options is ours.
pub(super) fn table_prefix(url: &str) -> Result<(String, TablePrefix), RepositoryError> {
    let Some((place, options)) = url.split_once('?') else {
        return Ok((url.to_owned(), TablePrefix::default()));
    };
    let mut prefix = TablePrefix::default();
    let mut others = Vec::new();
    for option in options.split('&') {
        match option.strip_prefix(TABLE_PREFIX) {
            Some(name) => {
                prefix = TablePrefix::new(name).map_err(|problem| RepositoryError::Url {
                    url: shown(url),
                    problem,
                })?;
            }
            None => others.push(option),
        }
    }
    let mut url = place.to_owned();
    if !others.is_empty() {
        url.push('?');
        url.push_str(&others.join("&"));
    }
    Ok((url, prefix))
}

const TABLE_PREFIX: &str = "table_prefix=";

/// A URL as it may be printed: `***` stands for a password, before the host as well as among the options.
pub(crate) fn shown(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return match url.split_once(':') {
            Some((scheme, _)) if scheme != "sqlite" && url.contains('@') => format!("{scheme}:***"),
            _ if url.to_ascii_lowercase().contains("password") => "***".to_owned(),
            _ => url.to_owned(),
        };
    };
    if scheme == "sqlite" {
        return url.to_owned();
    }
    // A password that was not encoded may hold any character: all up to the last `@` belongs to it.
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

/// `password` and `sslpassword`, also with encoded letters.
fn is_secret(name: &str) -> bool {
    name.contains('%') || name.to_ascii_lowercase().contains("password")
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
    }

    #[test]
    fn an_unknown_scheme_is_refused_with_what_is_known() {
        for url in [
            "oracle://me:secret@host",
            "batch.db",
            "",
            "host=h password=secret",
        ] {
            let error = Scheme::of(url).unwrap_err().to_string();
            assert!(error.contains("expected `sqlite://PATH`"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
