//! The databases beside the repository in the settings file: the table `[databases]`.

use batch_runtime::destination::ConnectionString;
use batch_runtime::parameters::SecretReference;
use batch_runtime::repository::RepositoryUrl;
use toml::Spanned;
use toml::de::DeValue;

use super::Origin;
use super::file::{DATABASES, File};

/// A database, as it is configured.
#[derive(Clone, Debug)]
pub(crate) struct DatabaseSettings {
    pub(crate) name: String,
    /// The URL, or a reference to it.
    pub(crate) url: String,
    pub(crate) origin: Origin,
}

impl DatabaseSettings {
    /// Returns the value without passwords.
    pub(crate) fn shown(&self) -> String {
        match self.url.parse::<SecretReference>() {
            Ok(reference) => reference.to_string(),
            Err(_) => {
                let url = self.url.parse().map(|url: RepositoryUrl| url.to_string());
                let other = || self.url.parse().map(|other: ConnectionString| other.to_string());
                // In another text, the password may be anywhere.
                url.or_else(|_| other())
                    .unwrap_or_else(|_: String| "***".to_owned())
            }
        }
    }
}

impl File<'_> {
    /// Reads `[databases]`, a table of URLs.
    pub(super) fn databases(
        &self,
        table: &Spanned<DeValue<'_>>,
        problems: &mut Vec<String>,
    ) -> Vec<DatabaseSettings> {
        let DeValue::Table(urls) = table.get_ref() else {
            let place = self.place(table.span().start);
            problems.push(format!(
                "{place}: `{DATABASES}` is not a table; expected `[{DATABASES}]` with lines such as `ledger = \"postgres://host/ledger\"`"
            ));
            return Vec::new();
        };
        let mut found = Vec::new();
        for (key, value) in urls {
            let name = key.get_ref().to_string();
            let origin = self.origin(key);
            if name.is_empty() || name.contains(':') {
                problems.push(format!(
                    "{origin}: invalid name `{name}` of a database: expected a name without `:`"
                ));
                continue;
            }
            match self.text_of(&name, value) {
                Ok(url) => found.push(DatabaseSettings { name, url, origin }),
                Err(problem) => problems.push(problem),
            }
        }
        found
    }
}
