//! The variables `OPENLINEAGE_*`.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use ureq::http::{HeaderValue, Uri};

use crate::parent::Parents;

/// The time limit of a request, as the clients of OpenLineage have it.
const TIMEOUT: Duration = Duration::from_secs(5);

const ENDPOINT: &str = "api/v1/lineage";

/// Where events go.
#[derive(Clone)]
pub(crate) enum Target {
    /// A server.
    Http(Server),
    /// A file that each event is appended to, as a line.
    File(PathBuf),
}

/// A server that receives events.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) url: Uri,
    /// The header `Authorization`.
    pub(crate) authorization: Option<HeaderValue>,
    /// The time limit of a request.
    pub(crate) timeout: Duration,
}

/// The configuration of the environment.
#[derive(Default)]
pub(crate) struct Config {
    /// `None` if nothing is sent.
    pub(crate) target: Option<Target>,
    /// The namespace of the jobs.
    pub(crate) namespace: String,
    pub(crate) parents: Parents,
    /// What is ignored, and why.
    pub(crate) problems: Vec<String>,
}

type Variable<'v> = &'v dyn Fn(&str) -> Option<String>;

impl Config {
    /// Reads the variables by `variable`, which returns `None` for one that is not set.
    pub(crate) fn read(variable: Variable<'_>) -> Self {
        // An empty variable is one that is not set.
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let mut config = Self::default();
        match variable("OPENLINEAGE_DISABLED")
            .map(|value| value.trim().to_ascii_lowercase())
            .as_deref()
        {
            Some("true") => return config,
            None | Some("false") => {}
            Some(_) => config
                .problems
                .push("ignoring OPENLINEAGE_DISABLED: expected `true` or `false`".to_owned()),
        }
        config.target = config.read_target(&variable);
        if config.target.is_some() {
            config.namespace = variable("OPENLINEAGE_NAMESPACE").unwrap_or_else(|| "default".to_owned());
            config.parents = Parents::read(&variable, &mut config.problems);
        }
        config
    }

    fn read_target(&mut self, variable: Variable<'_>) -> Option<Target> {
        const TYPE: &str = "OPENLINEAGE__TRANSPORT__TYPE";
        const URL: &str = "OPENLINEAGE_URL";
        let of_type = variable(TYPE);
        let has_url = variable(URL).is_some();
        let has_file = variable("OPENLINEAGE_CONFIG").is_some();
        if has_file && (of_type.is_some() || has_url) {
            let counts = if of_type.is_some() { TYPE } else { URL };
            self.problems.push(format!(
                "ignoring OPENLINEAGE_CONFIG: files of configuration are not supported; {counts} counts"
            ));
        }
        match of_type.as_deref().map(str::trim) {
            Some("file") => self.read_file(variable),
            Some("noop") => None,
            Some("http") => self.read_server(variable),
            None if has_url => self.read_server(variable),
            None => {
                if has_file {
                    self.problems.push(
                        "no lineage is sent: OPENLINEAGE_CONFIG is not supported; set OPENLINEAGE_URL, or OPENLINEAGE__TRANSPORT__TYPE"
                            .to_owned(),
                    );
                }
                None
            }
            Some(other) => {
                self.problems.push(format!(
                    "no lineage is sent: OPENLINEAGE__TRANSPORT__TYPE is `{}`, and this program has only `http`, `file` and `noop`",
                    other.escape_debug()
                ));
                None
            }
        }
    }

    fn read_file(&mut self, variable: Variable<'_>) -> Option<Target> {
        let path = variable("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH")
            .or_else(|| variable("OPENLINEAGE__TRANSPORT__LOCATION"));
        if path.is_none() {
            self.problems.push(
                "no lineage is written: OPENLINEAGE__TRANSPORT__TYPE is `file`; set OPENLINEAGE__TRANSPORT__LOG_FILE_PATH to its path"
                    .to_owned(),
            );
        }
        let path = path?;
        let path = path.strip_prefix("file://").unwrap_or(&path);
        if path.contains("://") {
            self.problems.push(
                "no lineage is written: OPENLINEAGE__TRANSPORT__LOG_FILE_PATH is a URL; set it to the path of a local file".to_owned(),
            );
            return None;
        }
        Some(Target::File(path.into()))
    }

    fn read_server(&mut self, variable: Variable<'_>) -> Option<Target> {
        let first =
            |names: [&'static str; 2]| names.into_iter().find_map(|name| Some((name, variable(name)?)));
        let found = first(["OPENLINEAGE__TRANSPORT__URL", "OPENLINEAGE_URL"]);
        let Some((name, base)) = found else {
            self.problems.push(
                "no lineage is sent: OPENLINEAGE__TRANSPORT__TYPE is `http`; set OPENLINEAGE_URL to the server, such as \
                 `http://localhost:5000`"
                    .to_owned(),
            );
            return None;
        };
        let endpoint = first(["OPENLINEAGE__TRANSPORT__ENDPOINT", "OPENLINEAGE_ENDPOINT"]);
        let endpoint = endpoint.map_or_else(|| ENDPOINT.to_owned(), |(_, endpoint)| endpoint);
        let (base, endpoint) = (base.trim(), endpoint.trim());
        let url = format!(
            "{}/{}",
            base.trim_end_matches('/'),
            endpoint.trim_start_matches('/')
        );
        let is_http = |url: &Uri| matches!(url.scheme_str(), Some("http" | "https")) && url.host().is_some();
        let Some(url) = url.parse().ok().filter(is_http) else {
            // It is not shown: it may contain a password.
            self.problems.push(format!(
                "no lineage is sent: {name} is not a valid URL; expected the URL of a server, such as `http://localhost:5000`"
            ));
            return None;
        };
        Some(Target::Http(Server {
            url,
            authorization: self.read_key(variable),
            timeout: self.read_timeout(variable),
        }))
    }

    fn read_key(&mut self, variable: Variable<'_>) -> Option<HeaderValue> {
        let (name, key) = match variable("OPENLINEAGE__TRANSPORT__AUTH") {
            Some(auth) => {
                let auth: Value = serde_json::from_str(&auth).unwrap_or_default();
                let key = auth["apiKey"].as_str().or(auth["api_key"].as_str());
                let is_key = auth["type"].as_str() == Some("api_key");
                let key = key.filter(|_| is_key).map(str::to_owned);
                ("OPENLINEAGE__TRANSPORT__AUTH", key.unwrap_or_default())
            }
            None => ("OPENLINEAGE_API_KEY", variable("OPENLINEAGE_API_KEY")?),
        };
        let header = HeaderValue::from_str(&format!("Bearer {}", key.trim()));
        let header = header.ok().filter(|_| !key.trim().is_empty());
        if header.is_none() {
            self.problems.push(match name {
                "OPENLINEAGE_API_KEY" => format!("ignoring {name}: it contains control characters"),
                _ => format!("ignoring {name}: expected `{{\"type\": \"api_key\", \"apiKey\": KEY}}`"),
            });
        }
        header.map(|mut header| {
            header.set_sensitive(true);
            header
        })
    }

    fn read_timeout(&mut self, variable: Variable<'_>) -> Duration {
        const NAME: &str = "OPENLINEAGE__TRANSPORT__TIMEOUT";
        let Some(value) = variable(NAME) else {
            return TIMEOUT;
        };
        let seconds = value.trim().parse().ok().filter(|seconds| *seconds > 0.0);
        match seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
            Some(timeout) => timeout,
            None => {
                self.problems.push(format!(
                    "ignoring {NAME}=`{}`: expected a number of seconds, more than 0",
                    value.escape_debug()
                ));
                TIMEOUT
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Config {
        Config::read(&|name| {
            let found = variables.iter().find(|(of, _)| *of == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn check(variables: &[(&str, &str)], target: &str, problems: &[&str]) {
        let config = read(variables);
        let shown = match &config.target {
            None => String::new(),
            Some(Target::File(path)) => path.display().to_string(),
            Some(Target::Http(server)) => {
                let key = server.authorization.as_ref().map(|key| key.to_str().unwrap());
                format!(
                    "{} {} {}",
                    server.url,
                    key.unwrap_or("-"),
                    server.timeout.as_millis()
                )
            }
        };
        assert_eq!(shown, target, "{variables:?}");
        assert_eq!(config.problems, problems, "{variables:?}");
    }

    // Spec: LIN-01
    #[test]
    fn a_url_configures_it() {
        let url = ("OPENLINEAGE_URL", "http://marquez:5000/");
        check(&[], "", &[]);
        check(&[("OPENLINEAGE_URL", " ")], "", &[]);
        check(&[url], "http://marquez:5000/api/v1/lineage - 5000", &[]);
        check(
            &[
                url,
                ("OPENLINEAGE_ENDPOINT", "/events?x=1"),
                ("OPENLINEAGE_API_KEY", "abc"),
                ("OPENLINEAGE__TRANSPORT__TIMEOUT", "0.5"),
            ],
            "http://marquez:5000/events?x=1 Bearer abc 500",
            &[],
        );
        check(&[url, ("OPENLINEAGE_DISABLED", "True")], "", &[]);
        check(
            &[url, ("OPENLINEAGE_DISABLED", "yes")],
            "http://marquez:5000/api/v1/lineage - 5000",
            &["ignoring OPENLINEAGE_DISABLED: expected `true` or `false`"],
        );
        check(&[url, ("OPENLINEAGE__TRANSPORT__TYPE", "noop")], "", &[]);
        check(
            &[
                ("OPENLINEAGE__TRANSPORT__TYPE", "http"),
                ("OPENLINEAGE__TRANSPORT__URL", "https://host/base"),
                ("OPENLINEAGE__TRANSPORT__ENDPOINT", "v2"),
                (
                    "OPENLINEAGE__TRANSPORT__AUTH",
                    r#"{"type": "api_key", "apiKey": "k"}"#,
                ),
            ],
            "https://host/base/v2 Bearer k 5000",
            &[],
        );
        let file = ("OPENLINEAGE__TRANSPORT__TYPE", "file");
        check(
            &[
                file,
                ("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", "/log/lineage.json"),
            ],
            "/log/lineage.json",
            &[],
        );
        check(
            &[file, ("OPENLINEAGE__TRANSPORT__LOCATION", "file:///log/l.json")],
            "/log/l.json",
            &[],
        );
        assert_eq!(read(&[url]).namespace, "default");
        assert_eq!(
            read(&[url, ("OPENLINEAGE_NAMESPACE", "nightly")]).namespace,
            "nightly"
        );
    }

    // Spec: LIN-01
    #[test]
    fn invalid_values_are_problems_without_secrets() {
        let invalid = "no lineage is sent: OPENLINEAGE_URL is not a valid URL; expected the URL of a server, such as `http://localhost:5000`";
        for url in ["marquez:5000", "http://me:pa ss@host", "ftp://host", "http://"] {
            check(&[("OPENLINEAGE_URL", url)], "", &[invalid]);
        }
        let url = ("OPENLINEAGE_URL", "http://m");
        let sent = "http://m/api/v1/lineage - 5000";
        check(
            &[url, ("OPENLINEAGE_API_KEY", "a\nb")],
            sent,
            &["ignoring OPENLINEAGE_API_KEY: it contains control characters"],
        );
        check(
            &[url, ("OPENLINEAGE__TRANSPORT__AUTH", "secret")],
            sent,
            &[r#"ignoring OPENLINEAGE__TRANSPORT__AUTH: expected `{"type": "api_key", "apiKey": KEY}`"#],
        );
        check(
            &[url, ("OPENLINEAGE__TRANSPORT__TIMEOUT", "-1")],
            sent,
            &["ignoring OPENLINEAGE__TRANSPORT__TIMEOUT=`-1`: expected a number of seconds, more than 0"],
        );
        check(
            &[("OPENLINEAGE__TRANSPORT__TYPE", "kafka")],
            "",
            &[
                "no lineage is sent: OPENLINEAGE__TRANSPORT__TYPE is `kafka`, and this program has only `http`, `file` and `noop`",
            ],
        );
        check(
            &[("OPENLINEAGE_CONFIG", "openlineage.yml")],
            "",
            &[
                "no lineage is sent: OPENLINEAGE_CONFIG is not supported; set OPENLINEAGE_URL, or OPENLINEAGE__TRANSPORT__TYPE",
            ],
        );
        let config = ("OPENLINEAGE_CONFIG", "openlineage.yml");
        for (target, counts) in [
            (url, "OPENLINEAGE_URL"),
            (
                ("OPENLINEAGE__TRANSPORT__TYPE", "noop"),
                "OPENLINEAGE__TRANSPORT__TYPE",
            ),
        ] {
            let sent = if target == url { sent } else { "" };
            let ignored = format!(
                "ignoring OPENLINEAGE_CONFIG: files of configuration are not supported; {counts} counts"
            );
            check(&[config, target], sent, &[&ignored]);
        }
        check(
            &[("OPENLINEAGE__TRANSPORT__TYPE", "file")],
            "",
            &[
                "no lineage is written: OPENLINEAGE__TRANSPORT__TYPE is `file`; set OPENLINEAGE__TRANSPORT__LOG_FILE_PATH to its path",
            ],
        );
        check(
            &[
                ("OPENLINEAGE__TRANSPORT__TYPE", "file"),
                ("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", "s3://b/x"),
            ],
            "",
            &[
                "no lineage is written: OPENLINEAGE__TRANSPORT__LOG_FILE_PATH is a URL; set it to the path of a local file",
            ],
        );
    }
}
