//! The console in the settings file: the table `[console]`.

use std::net::IpAddr;

use batch_runtime::xml::suggest::nearest;
use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::Origin;
use super::file::{CONSOLE, File};
use crate::metrics::Address;

const KEYS: [&str; 7] = [
    "address",
    "hosts",
    "base-path",
    "audit-file",
    "read-only",
    "users",
    "proxy",
];
const USER_KEYS: [&str; 2] = ["token", "role"];
const PROXY_KEYS: [&str; 3] = ["header", "addresses", "operators"];

/// The console, as it is configured.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConsoleSettings {
    pub(crate) address: Option<Address>,
    pub(crate) hosts: Vec<String>,
    pub(crate) base_path: Option<String>,
    pub(crate) audit_file: Option<String>,
    pub(crate) is_read_only: bool,
    pub(crate) users: Vec<UserSettings>,
    pub(crate) proxy: Option<ProxySettings>,
    /// The place of the table.
    pub(crate) origin: Option<Origin>,
}

/// A user with a token.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "console"),
    expect(dead_code, reason = "without the console it is only checked and shown")
)]
pub(crate) struct UserSettings {
    pub(crate) name: String,
    pub(crate) origin: Origin,
    /// A reference to the token.
    pub(crate) token: String,
    pub(crate) operates: bool,
}

/// A reverse proxy that authenticates users.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "console"),
    expect(dead_code, reason = "without the console it is only checked and shown")
)]
pub(crate) struct ProxySettings {
    pub(crate) origin: Origin,
    pub(crate) header: String,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) operators: Vec<String>,
}

/// The entries of a table, by their names.
type Entries<'v, 't> = Vec<(&'v str, &'v Spanned<DeValue<'t>>)>;

impl File<'_> {
    /// Reads `[console]`.
    pub(super) fn console(
        &self,
        value: &Spanned<DeValue<'_>>,
        problems: &mut Vec<String>,
    ) -> ConsoleSettings {
        let mut found = ConsoleSettings {
            origin: Some(self.origin(value)),
            ..ConsoleSettings::default()
        };
        for (name, value) in self.entries_of(CONSOLE, value, &KEYS, problems) {
            let read = match name {
                "address" => self
                    .parsed(name, value, "a port, or an IP address with a port")
                    .map(|address| found.address = Some(address)),
                "hosts" => self.hosts(name, value).map(|hosts| found.hosts = hosts),
                "base-path" => self
                    .base_path(name, value)
                    .map(|path| found.base_path = Some(path)),
                "audit-file" => self
                    .text_of(name, value)
                    .map(|file| found.audit_file = Some(file)),
                "read-only" => self
                    .parsed(name, value, "true or false")
                    .map(|is_so| found.is_read_only = is_so),
                "users" => {
                    found.users = self.users(value, problems);
                    Ok(())
                }
                _ => {
                    found.proxy = self.proxy(value, problems);
                    Ok(())
                }
            };
            problems.extend(read.err());
        }
        found
    }

    fn users(&self, tables: &Spanned<DeValue<'_>>, problems: &mut Vec<String>) -> Vec<UserSettings> {
        let DeValue::Table(users) = tables.get_ref() else {
            let place = self.place(tables.span().start);
            problems.push(format!(
                "{place}: `{CONSOLE}.users` is not a table; expected tables such as `[{CONSOLE}.users.alice]`"
            ));
            return Vec::new();
        };
        users
            .iter()
            .filter_map(|(name, value)| self.user(name, value, problems))
            .collect()
    }

    fn user(
        &self,
        name: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        problems: &mut Vec<String>,
    ) -> Option<UserSettings> {
        let (user, origin) = (name.get_ref().to_string(), self.origin(name));
        let (mut token, mut operates) = (None, None);
        let before = problems.len();
        for (name, value) in self.entries_of(&format!("{CONSOLE}.users.{user}"), value, &USER_KEYS, problems)
        {
            let read = match name {
                "token" => self.text_of(name, value).map(|text| token = Some(text)),
                _ => self.role(name, value).map(|role| operates = Some(role)),
            };
            problems.extend(read.err());
        }
        if problems.len() == before && (token.is_none() || operates.is_none()) {
            problems.push(format!(
                "{origin}: user `{user}` of the console needs a `token`, such as \"env:ALICE_TOKEN\", and a `role`, `read` or `operate`"
            ));
        }
        Some(UserSettings {
            name: user,
            origin,
            token: token?,
            operates: operates?,
        })
    }

    /// Returns whether a role operates.
    fn role(&self, name: &str, value: &Spanned<DeValue<'_>>) -> Result<bool, String> {
        match self.text_of(name, value)?.as_str() {
            "read" => Ok(false),
            "operate" => Ok(true),
            other => {
                let place = self.place(value.span().start);
                Err(format!(
                    "{place}: invalid value `{other}` for `{name}`: expected `read` or `operate`"
                ))
            }
        }
    }

    fn proxy(&self, value: &Spanned<DeValue<'_>>, problems: &mut Vec<String>) -> Option<ProxySettings> {
        let origin = self.origin(value);
        let (mut header, mut addresses, mut operators) = (None, Vec::new(), Vec::new());
        let before = problems.len();
        for (name, value) in self.entries_of(&format!("{CONSOLE}.proxy"), value, &PROXY_KEYS, problems) {
            let read = match name {
                "header" => self.text_of(name, value).map(|text| header = Some(text)),
                "operators" => self.texts_of(name, value).map(|names| operators = names),
                _ => self.ip_addresses(name, value).map(|found| addresses = found),
            };
            problems.extend(read.err());
        }
        let is_missing = header.is_none() || addresses.is_empty();
        if problems.len() == before && is_missing {
            problems.push(format!(
                "{origin}: the proxy of the console needs a `header`, such as \"X-Forwarded-User\", and its `addresses`"
            ));
        }
        let header = header.filter(|_| !is_missing)?;
        Some(ProxySettings {
            origin,
            header,
            addresses,
            operators,
        })
    }

    fn ip_addresses(&self, name: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<IpAddr>, String> {
        let texts = self.texts_of(name, value)?;
        let parsed: Result<Vec<IpAddr>, _> = texts.iter().map(|text| text.parse()).collect();
        parsed.map_err(|_| {
            let place = self.place(value.span().start);
            format!("{place}: invalid value for `{name}`: expected IP addresses, such as [\"127.0.0.1\"]")
        })
    }

    /// Returns names of hosts, without the scheme and the port.
    fn hosts(&self, name: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, String> {
        let hosts = self.texts_of(name, value)?;
        match hosts
            .iter()
            .find(|host| host.is_empty() || host.contains(['/', ':', ' ', '*']))
        {
            Some(wrong) => {
                let place = self.place(value.span().start);
                Err(format!(
                    "{place}: invalid value `{wrong}` for `{name}`: expected names without scheme and port, such as [\"batch.example.com\"]"
                ))
            }
            None => Ok(hosts),
        }
    }

    /// Returns the path of the console in URLs.
    fn base_path(&self, name: &str, value: &Spanned<DeValue<'_>>) -> Result<String, String> {
        let path = self.text_of(name, value)?;
        let is_path = path.starts_with('/')
            && !path.starts_with("//")
            && !path.contains(|c: char| c.is_whitespace() || c.is_control() || "?#\"<>\\".contains(c));
        match is_path {
            true => Ok(path),
            false => {
                let place = self.place(value.span().start);
                Err(format!(
                    "{place}: invalid value `{path}` for `{name}`: expected a path such as `/batch`"
                ))
            }
        }
    }

    /// Returns the entries of a table whose names are known, and reports the others.
    fn entries_of<'v, 't>(
        &self,
        table: &str,
        value: &'v Spanned<DeValue<'t>>,
        known: &[&str],
        problems: &mut Vec<String>,
    ) -> Entries<'v, 't> {
        let DeValue::Table(entries) = value.get_ref() else {
            let place = self.place(value.span().start);
            problems.push(format!("{place}: `{table}` is not a table; expected `[{table}]`"));
            return Vec::new();
        };
        let mut found = Vec::new();
        for (key, value) in entries {
            let name = key.get_ref().as_ref();
            if known.contains(&name) {
                found.push((name, value));
                continue;
            }
            let place = self.place(key.span().start);
            let help = match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("expected one of {}", known.join(", ")),
            };
            problems.push(format!("{place}: unknown setting `{name}` of `{table}`; {help}"));
        }
        found
    }

    fn parsed<T: std::str::FromStr>(
        &self,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        expected: &str,
    ) -> Result<T, String> {
        let text = self.text_of(name, value)?;
        text.parse().map_err(|_| {
            let place = self.place(value.span().start);
            format!("{place}: invalid value `{text}` for `{name}`: expected {expected}")
        })
    }
}

impl ConsoleSettings {
    /// Returns key, value and origin of what is configured, without tokens.
    pub(super) fn describe(&self) -> Vec<[String; 3]> {
        let Some(origin) = &self.origin else {
            return Vec::new();
        };
        let mut rows = Vec::new();
        let mut row = |key: &str, value: String, origin: &Origin| {
            rows.push([format!("{CONSOLE}.{key}"), value, origin.to_string()]);
        };
        if let Some(address) = self.address {
            row("address", address.to_string(), origin);
        }
        if !self.hosts.is_empty() {
            row("hosts", self.hosts.join(", "), origin);
        }
        for (key, value) in [("base-path", &self.base_path), ("audit-file", &self.audit_file)] {
            if let Some(value) = value {
                row(key, value.clone(), origin);
            }
        }
        if self.is_read_only {
            row("read-only", "true".into(), origin);
        }
        for user in &self.users {
            let role = if user.operates { "operate" } else { "read" };
            row(&format!("users.{}", user.name), role.into(), &user.origin);
        }
        if let Some(proxy) = &self.proxy {
            row(
                "proxy",
                format!("users in the header {}", proxy.header),
                &proxy.origin,
            );
        }
        rows
    }
}
