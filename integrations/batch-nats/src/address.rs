//! The address of a server, as a URL with options.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::ConnectOptions;
use url::Url;

use crate::error::NatsError;

/// The names of the options, for messages.
const OPTIONS: &str = "credentials, nkey, ca, certificate, key, prefix, ack-wait, replicas";

/// The time until a ticket is delivered to another worker, if the first one has not reported that it still runs.
const ACK_WAIT: Duration = Duration::from_secs(30);
/// The least of it. Workers report every 5 s, and a report may be late.
const MIN_ACK_WAIT: u32 = 15;
/// The most servers that JetStream stores a stream on.
const MAX_REPLICAS: u32 = 5;

/// The parts of a URL.
pub(crate) struct Address {
    /// The server, without user, path and options.
    pub(crate) server: String,
    /// Whether only processes of this host reach the server.
    pub(crate) is_loopback: bool,
    user: Option<(String, String)>,
    token: Option<String>,
    credentials: Option<PathBuf>,
    nkey: Option<PathBuf>,
    root_certificates: Option<PathBuf>,
    client_certificate: Option<PathBuf>,
    client_key: Option<PathBuf>,
    /// The first part of all names on the server.
    pub(crate) prefix: String,
    pub(crate) ack_wait: Duration,
    pub(crate) replicas: usize,
}

impl Address {
    /// Reads `nats://USER:PASSWORD@HOST:PORT?option=value`.
    pub(crate) fn parse(text: &str) -> Result<Self, NatsError> {
        let wrong = |problem: String| NatsError::Address { problem };
        let url = Url::parse(text).ok().filter(|_| text.contains("://"));
        let url = url.ok_or_else(|| wrong("it is not a URL".into()))?;
        if !["nats", "tls"].contains(&url.scheme()) {
            return Err(wrong(format!("`{}` is not `nats` or `tls`", url.scheme())));
        }
        let Some(host) = url.host_str().filter(|host| !host.is_empty()) else {
            return Err(wrong("it names no host".into()));
        };
        let port = url.port().unwrap_or(4222);
        let mut address = Self {
            server: format!("{}://{host}:{port}", url.scheme()),
            is_loopback: is_loopback(host),
            user: url
                .password()
                .map(|password| (decoded(url.username()), decoded(password))),
            token: (url.password().is_none() && !url.username().is_empty()).then(|| decoded(url.username())),
            credentials: None,
            nkey: None,
            root_certificates: None,
            client_certificate: None,
            client_key: None,
            prefix: "batch".into(),
            ack_wait: ACK_WAIT,
            replicas: 1,
        };
        for (name, value) in url.query_pairs() {
            address.set(&name, &value).map_err(wrong)?;
        }
        match (&address.client_certificate, &address.client_key) {
            (Some(_), Some(_)) | (None, None) => Ok(address),
            _ => Err(wrong(
                "`certificate` and `key` are given together or not at all".into(),
            )),
        }
    }

    /// Sets an option. The error is a problem of its name or value.
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number = |valid: RangeInclusive<u32>, expected: &str| {
            let number = value.parse().ok().filter(|number| valid.contains(number));
            number.ok_or_else(|| format!("`{name}` is `{value}`; expected {expected}"))
        };
        match name {
            "credentials" => self.credentials = Some(value.into()),
            "nkey" => self.nkey = Some(value.into()),
            "ca" => self.root_certificates = Some(value.into()),
            "certificate" => self.client_certificate = Some(value.into()),
            "key" => self.client_key = Some(value.into()),
            "prefix" => {
                self.prefix = prefix(value).ok_or_else(|| {
                    format!("the prefix `{value}` has other characters than a to z, digits, `-` and `_`")
                })?;
            }
            "ack-wait" => {
                let seconds = number(MIN_ACK_WAIT..=u32::MAX, "seconds, at least 15")?;
                self.ack_wait = Duration::from_secs(seconds.into());
            }
            "replicas" => self.replicas = number(1..=MAX_REPLICAS, "a number from 1 to 5")? as usize,
            _ if is_word(name) => return Err(format!("unknown option `{name}`; the options are {OPTIONS}")),
            // A password with `?` ends up here.
            _ => return Err(format!("unknown option; the options are {OPTIONS}")),
        }
        Ok(())
    }

    /// Returns the options of a connection. Reads the files that the address names.
    pub(crate) fn options(&self) -> Result<ConnectOptions, NatsError> {
        let mut options = ConnectOptions::new().name("batch-nats");
        if let Some((user, password)) = &self.user {
            options = options.user_and_password(user.clone(), password.clone());
        }
        if let Some(token) = &self.token {
            options = options.token(token.clone());
        }
        if let Some(path) = &self.nkey {
            options = options.nkey(read(path)?.trim().to_owned());
        }
        if let Some(path) = &self.credentials {
            let wrong = |source| NatsError::File {
                path: path.clone(),
                source,
            };
            options = options.credentials(&read(path)?).map_err(wrong)?;
        }
        if let Some(path) = &self.root_certificates {
            options = options.add_root_certificates(path.clone());
        }
        if let (Some(certificate), Some(key)) = (&self.client_certificate, &self.client_key) {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        Ok(options.require_tls(self.server.starts_with("tls:")))
    }
}

fn read(path: &PathBuf) -> Result<String, NatsError> {
    std::fs::read_to_string(path).map_err(|source| NatsError::File {
        path: path.clone(),
        source,
    })
}

/// Returns a valid prefix. The names of streams have it in upper case, so it has none: two prefixes must not share a stream.
fn prefix(text: &str) -> Option<String> {
    let is_plain = |character: char| matches!(character, 'a'..='z' | '0'..='9' | '-' | '_');
    (!text.is_empty() && text.chars().all(is_plain)).then(|| text.to_owned())
}

fn is_word(text: &str) -> bool {
    text.chars()
        .all(|character| character.is_ascii_alphabetic() || "-_".contains(character))
}

fn decoded(text: &str) -> String {
    url::form_urlencoded::parse(format!("x={}", text.replace('+', "%2B")).as_bytes())
        .next()
        .map_or_else(String::new, |(_, value)| value.into_owned())
}

fn is_loopback(host: &str) -> bool {
    let ip = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read() {
        let address =
            Address::parse("nats://ann:p%40ss@broker?prefix=payroll&ack-wait=15&replicas=3").unwrap();
        assert_eq!(address.server, "nats://broker:4222");
        assert_eq!(address.user, Some(("ann".into(), "p@ss".into())));
        assert_eq!(
            (address.prefix.as_str(), address.ack_wait),
            ("payroll", Duration::from_secs(15))
        );
        assert_eq!(address.replicas, 3);
        let address = Address::parse("tls://s3cret@[::1]:99").unwrap();
        assert_eq!(address.token.as_deref(), Some("s3cret"));
        assert_eq!(address.server, "tls://[::1]:99");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, problem) in [
            (
                "broker",
                "invalid address of the NATS server: it is not a URL; expected nats://[USER:PASSWORD@]HOST[:PORT][?OPTION=VALUE]",
            ),
            ("secret@broker", "it is not a URL"),
            ("ann:secret@broker:4222", "it is not a URL"),
            ("nats://ann:secret@broker:port", "it is not a URL"),
            ("http://broker", "`http` is not `nats` or `tls`"),
            ("nats://ann:12?secret@broker", "unknown option; the options are"),
            (
                "nats://broker?prefix=a.b",
                "the prefix `a.b` has other characters than a to z",
            ),
            (
                "nats://broker?prefix=Batch",
                "the prefix `Batch` has other characters than a to z",
            ),
            (
                "nats://broker?ack-wait=14",
                "`ack-wait` is `14`; expected seconds, at least 15",
            ),
            (
                "nats://broker?replicas=0",
                "`replicas` is `0`; expected a number from 1 to 5",
            ),
            (
                "nats://broker?replicas=6",
                "`replicas` is `6`; expected a number from 1 to 5",
            ),
            (
                "nats://broker?key=a.pem",
                "`certificate` and `key` are given together",
            ),
            (
                "nats://broker?credential=a",
                "unknown option `credential`; the options are credentials",
            ),
        ] {
            let error = Address::parse(text).err().unwrap().to_string();
            assert!(error.contains(problem), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    /// The password is not in any message.
    #[test]
    fn files_that_cannot_be_read_are_named() {
        let address = Address::parse("nats://ann:secret@broker?credentials=/nowhere/a.creds").unwrap();
        let error = address.options().err().unwrap().to_string();
        assert!(error.contains("/nowhere/a.creds"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn servers_of_this_host_are_recognized() {
        for (host, expected) in [
            ("127.0.0.1", true),
            ("localhost", true),
            ("[::1]", true),
            ("broker", false),
            ("10.0.0.1", false),
        ] {
            let address = Address::parse(&format!("nats://{host}:4222")).unwrap();
            assert_eq!(address.is_loopback, expected, "{host}");
        }
    }
}
