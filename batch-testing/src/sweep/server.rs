//! A database server, on which each run has a schema or a database of its own.

use std::hash::{BuildHasher, RandomState};

use batch_runtime::repository::DatabaseKind;

use crate::database::TestDatabase;

/// A server on which runs are created.
pub(super) struct Server {
    /// The URL that the test has set.
    url: String,
    is_postgres: bool,
    /// The beginning of the names of all runs, which no other process has.
    name: String,
}

/// A schema of PostgreSQL, or a database of MySQL, which is removed with it.
pub(super) struct Place<'s> {
    server: &'s Server,
    name: String,
}

impl Server {
    pub(super) fn new(url: String) -> Result<Self, String> {
        let is_postgres = match DatabaseKind::named_in(&url) {
            Some(DatabaseKind::Postgresql) => true,
            Some(DatabaseKind::Mysql) => false,
            _ => {
                return Err(
                    "the repository of a sweep is SQLite by default, or the URL of a server".to_owned(),
                );
            }
        };
        let random = RandomState::new().hash_one(0);
        Ok(Self {
            url,
            is_postgres,
            name: format!("sweep_{:08x}", random >> 32),
        })
    }

    pub(super) fn create(&self, number: u32) -> Result<Place<'_>, String> {
        let name = format!("{}_{number}", self.name);
        let what = self.what();
        let created = self.connect()?.try_execute(&format!("CREATE {what} {name}"));
        created.map_err(|error| format!("cannot create the {what} `{name}` of a run: {error}"))?;
        Ok(Place { server: self, name })
    }

    fn what(&self) -> &'static str {
        if self.is_postgres { "SCHEMA" } else { "DATABASE" }
    }

    fn connect(&self) -> Result<TestDatabase, String> {
        TestDatabase::open(&without_own_options(&self.url))
    }
}

impl Place<'_> {
    /// Returns the URL for a repository.
    pub(super) fn url(&self) -> String {
        if self.server.is_postgres {
            in_schema(&self.server.url, &self.name)
        } else {
            in_database(&self.server.url, &self.name)
        }
    }

    pub(super) fn open(&self) -> Result<TestDatabase, String> {
        TestDatabase::open(&without_own_options(&self.url()))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let cascade = if self.server.is_postgres { " CASCADE" } else { "" };
        if let Ok(mut database) = self.server.connect() {
            let _ = database.try_execute(&format!("DROP {} {}{cascade}", self.server.what(), self.name));
        }
    }
}

/// Returns the URL without the options of the runtime, which the database does not know.
pub(super) fn without_own_options(url: &str) -> String {
    let Some((place, options)) = url.split_once('?') else {
        return url.to_owned();
    };
    let is_own =
        |option: &&str| option.starts_with("table_prefix=") || option.starts_with("max_varchar_length=");
    let others: Vec<&str> = options.split('&').filter(|option| !is_own(option)).collect();
    match others.is_empty() {
        true => place.to_owned(),
        false => format!("{place}?{}", others.join("&")),
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

    #[test]
    fn the_database_does_not_see_options_of_the_runtime() {
        let url = "mysql://host/db?table_prefix=A_&max_varchar_length=100";
        assert_eq!(without_own_options(url), "mysql://host/db");
        assert_eq!(
            without_own_options(&format!("{url}&ssl_mode=disabled")),
            "mysql://host/db?ssl_mode=disabled"
        );
    }
}
