//! A database server where each run has its own schema or database.

use std::hash::{BuildHasher, RandomState};

use batch_runtime::repository::{DatabaseKind, RepositoryUrl};

use crate::database::TestDatabase;

/// A server that hosts the runs.
pub(super) struct Server {
    /// The URL that the test has set.
    url: RepositoryUrl,
    is_postgres: bool,
    /// The beginning of the names of all runs, which no other process has.
    name: String,
}

/// A schema of PostgreSQL, or a database of MySQL, which is removed with it.
pub(super) struct RunDatabase<'s> {
    server: &'s Server,
    name: String,
}

impl Server {
    pub(super) fn new(url: &str) -> Result<Self, String> {
        let url: RepositoryUrl = url.parse().map_err(|error| format!("{error}"))?;
        let is_postgres = match url.database() {
            DatabaseKind::Postgresql => true,
            DatabaseKind::Mysql => false,
            _ => {
                return Err(format!(
                    "invalid repository URL `{url}` for a sweep: expected `postgres://…` or `mysql://…`; omit `repository` for SQLite"
                ));
            }
        };
        let names_schema = |option: &str| {
            option
                .strip_prefix("table_prefix=")
                .is_some_and(|prefix| prefix.contains('.'))
        };
        if url.as_str().split(['?', '&']).any(names_schema) {
            return Err(
                "each run of a sweep has a schema of its own: remove the schema from `table_prefix`".into(),
            );
        }
        let random = RandomState::new().hash_one(0);
        Ok(Self {
            url,
            is_postgres,
            name: format!("sweep_{:08x}", random >> 32),
        })
    }

    pub(super) fn create(&self, number: u32) -> Result<RunDatabase<'_>, String> {
        let name = format!("{}_{number}", self.name);
        let what = self.what();
        let mut database = TestDatabase::open(&self.url)?;
        let created = database.try_execute(&format!("CREATE {what} {name}"));
        created.map_err(|error| format!("cannot create the {what} `{name}` of a run: {error}"))?;
        Ok(RunDatabase { server: self, name })
    }

    fn what(&self) -> &'static str {
        if self.is_postgres { "SCHEMA" } else { "DATABASE" }
    }
}

impl RunDatabase<'_> {
    /// Returns the URL for a repository.
    pub(super) fn url(&self) -> Result<RepositoryUrl, String> {
        let url = self.server.url.as_str();
        let url = match self.server.is_postgres {
            true => in_schema(url, &self.name),
            false => in_database(url, &self.name),
        };
        url.parse().map_err(|error| format!("{error}"))
    }
}

impl Drop for RunDatabase<'_> {
    fn drop(&mut self) {
        let cascade = if self.server.is_postgres { " CASCADE" } else { "" };
        let drop = format!("DROP {} {}{cascade}", self.server.what(), self.name);
        let dropped = TestDatabase::open(&self.server.url)
            .and_then(|mut database| database.try_execute(&drop).map_err(|error| error.to_string()));
        if let Err(error) = dropped {
            eprintln!("the crash sweep could not remove its run, `{drop}`: {error}");
        }
    }
}

/// Returns a URL of PostgreSQL whose sessions find tables in a schema, and have its name.
fn in_schema(url: &str, schema: &str) -> String {
    let (place, options) = url.split_once('?').unwrap_or((url, ""));
    let mut search_path = format!("options=-csearch_path%3D{schema}");
    let mut others = Vec::new();
    for option in options.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("options", value)) => search_path = format!("options={value}%20-csearch_path%3D{schema}"),
            Some(("application_name", _)) => {}
            _ => others.push(option),
        }
    }
    let (name, search_path) = (format!("application_name={schema}"), search_path);
    others.extend([name.as_str(), search_path.as_str()]);
    format!("{place}?{}", others.join("&"))
}

/// Returns a URL of MySQL with another database.
fn in_database(url: &str, database: &str) -> String {
    let (place, options) = match url.split_once('?') {
        Some((place, options)) => (place, format!("?{options}")),
        None => (url, String::new()),
    };
    let host = place.find("://").map_or(0, |scheme| scheme + 3);
    let end = place[host..].find('/').map_or(place.len(), |slash| host + slash);
    format!("{}/{database}{options}", &place[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "postgres")]
    #[test]
    fn a_url_that_names_a_schema_is_rejected() {
        let problem = Server::new("postgres://me@host/db?table_prefix=batch.BATCH_")
            .err()
            .unwrap();
        assert!(
            problem.contains("remove the schema from `table_prefix`"),
            "{problem}"
        );
        assert!(Server::new("postgres://me@host/db?table_prefix=NIGHT_").is_ok());
    }

    #[test]
    fn a_run_has_its_schema_and_keeps_the_other_options() {
        let url = in_schema("postgres://me@host/db", "s1");
        assert_eq!(
            url,
            "postgres://me@host/db?application_name=s1&options=-csearch_path%3Ds1"
        );
        let url = in_schema(
            "postgres:///db?host=%2Ftmp&options=-cwork_mem%3D1MB&application_name=x",
            "s1",
        );
        assert_eq!(
            url,
            "postgres:///db?host=%2Ftmp&application_name=s1&options=-cwork_mem%3D1MB%20-csearch_path%3Ds1"
        );
    }

    #[test]
    fn a_run_has_its_database_and_keeps_the_options() {
        let url = in_database("mysql://me@host:3306/db?unix_socket=/tmp/socket", "s1");
        assert_eq!(url, "mysql://me@host:3306/s1?unix_socket=/tmp/socket");
        assert_eq!(in_database("mysql://me@host", "s1"), "mysql://me@host/s1");
    }

    /// The runtime rejects such a URL before a database library quotes it.
    #[test]
    fn no_message_has_a_part_of_a_password() {
        for url in [
            "postgres://me:ge%zzheim@localhost/db",
            "postgres://me:ge@heim@localhost/db",
            "mysql://me:ge/heim@localhost/db",
        ] {
            let error = Server::new(url).err().unwrap();
            assert!(!error.contains("heim"), "{error}");
        }
        let error = Server::new("sqlite://batch.db").err().unwrap();
        assert!(error.contains("omit `repository` for SQLite"), "{error}");
    }
}
