//! The brokers, and how to connect to them.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time;

use batch_items::duration::Duration;
use batch_items::queue::DatasetName;
use batch_runtime::BatchArtifact;

use super::sasl::{Login, Mechanism};
use super::tls;

/// The connection of a reader or writer to Kafka.
///
/// | property | default | |
/// |---|---|---|
/// | `servers` | required | some brokers of the cluster, `host:port`, separated by commas |
/// | `user`, `password` | none | for SASL; set a [secret](batch_runtime::parameters::SecretReference) by a job parameter |
/// | `mechanism` | `scram-sha-512` | `plain`, `scram-sha-256` or `scram-sha-512`, if there is a user |
/// | `tls` | `false` | whether connections are encrypted |
/// | `tls.ca` | the system | a file with certificates in PEM that the brokers are trusted by |
/// | `tls.certificate`, `tls.key` | none | files in PEM with the certificate and the key of this client |
/// | `timeout` | `30s` | the time for which a request is tried again when a broker cannot be reached |
///
/// A message shows neither the password nor the key. `plain` without `tls` sends the password as it is.
#[derive(BatchArtifact)]
pub struct KafkaConnection {
    #[batch_property(name = "servers")]
    servers: Servers,
    #[batch_property(name = "user")]
    user: Option<String>,
    #[batch_property(name = "password")]
    password: Option<String>,
    #[batch_property(name = "mechanism", value = "scram-sha-512")]
    mechanism: Mechanism,
    #[batch_property(name = "tls", value = "false")]
    tls: bool,
    #[batch_property(name = "tls.ca")]
    ca: Option<PathBuf>,
    #[batch_property(name = "tls.certificate")]
    certificate: Option<PathBuf>,
    #[batch_property(name = "tls.key")]
    key: Option<PathBuf>,
    #[batch_property(name = "timeout", value = "30s")]
    timeout: Duration,
}

batch_items::choices! {
    Mechanism { "plain" => Plain, "scram-sha-256" => ScramSha256, "scram-sha-512" => ScramSha512 }
}

/// A broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// The property `servers`.
#[derive(Clone)]
pub(super) struct Servers(Vec<Address>);

impl FromStr for Servers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The text is not shown: it may have a password, where a URL was expected.
        let expected = || "expected `host:port`, or several of them separated by commas".to_owned();
        let servers = text.split(',').map(|server| {
            let (host, port) = server.trim().rsplit_once(':').ok_or_else(expected)?;
            let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
            let is_bad =
                host.is_empty() || host.contains(['/', '@']) || (bare.is_none() && host.contains(':'));
            match port.parse() {
                Ok(port) if !is_bad => Ok(Address {
                    host: bare.unwrap_or(host).to_owned(),
                    port,
                }),
                _ => Err(expected()),
            }
        });
        Ok(Self(servers.collect::<Result<_, _>>()?))
    }
}

impl Servers {
    /// Returns the namespace of the topics. The first server stands for the cluster.
    fn namespace(&self) -> String {
        let server = self.0.first().map(Address::to_string);
        format!("kafka://{}", server.unwrap_or_default())
    }
}

/// What every connection to a cluster needs.
pub(super) struct Access {
    pub(super) servers: Vec<Address>,
    pub(super) login: Option<Login>,
    pub(super) tls: Option<tls::Config>,
    pub(super) timeout: time::Duration,
}

impl KafkaConnection {
    /// Reads the files. The error is a problem of the properties.
    pub(super) fn access(&self) -> Result<Access, String> {
        let login = match (&self.user, &self.password) {
            (Some(user), Some(password)) => Some(Login {
                user: user.clone(),
                password: password.clone(),
                mechanism: self.mechanism,
            }),
            (None, None) => None,
            _ => return Err("`user` and `password` are set together, or not at all".to_owned()),
        };
        let files = (&self.ca, &self.certificate, &self.key);
        let tls = match (self.tls, files) {
            (true, (ca, certificate, key)) => {
                Some(tls::config(ca.as_ref(), certificate.as_ref(), key.as_ref())?)
            }
            (false, (None, None, None)) => None,
            (false, _) => return Err("the properties `tls.*` need `tls` = `true`".to_owned()),
        };
        Ok(Access {
            servers: self.servers.0.clone(),
            login,
            tls,
            timeout: self.timeout.get(),
        })
    }

    /// Returns the dataset that a topic is.
    pub(super) fn dataset(&self, topic: &str) -> DatasetName {
        (self.servers.namespace(), topic.to_owned())
    }

    /// Returns the servers, for messages.
    pub(super) fn shown(&self) -> String {
        let servers: Vec<_> = self.servers.0.iter().map(Address::to_string).collect();
        servers.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: LIN-02
    #[test]
    fn the_first_server_is_the_namespace() {
        let servers: Servers = "a:9092,b:9092".parse().unwrap();
        assert_eq!(servers.namespace(), "kafka://a:9092");
    }

    #[test]
    fn servers_have_hosts_and_ports() {
        let servers: Servers = "a:9092, [::1]:1,b.c:65535".parse().unwrap();
        let shown: Vec<_> = servers.0.iter().map(Address::to_string).collect();
        assert_eq!(shown, ["a:9092", "[::1]:1", "b.c:65535"]);
        for text in [
            "",
            "a",
            "a:",
            ":1",
            "a:65536",
            "::1:9092",
            "kafka://ann:secret@a:9092",
            "a:1,",
        ] {
            let error = text.parse::<Servers>().err().unwrap();
            assert!(error.starts_with("expected `host:port`"), "{text}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
