//! `httpCall`: calls a service by HTTP.

mod request;
mod retry;

use std::io::{self, Read, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time;

use batch_runtime::prelude::*;
use jiff::Timestamp;
use ureq::Agent;
use ureq::config::RedirectAuthHeaders;
use ureq::http::{Response, StatusCode};
use ureq::tls::{RootCerts, TlsConfig};

use self::request::{AllowedMethod, Body, Request, Url};
use self::retry::{Failure, Limits, Retry, random};
use super::cancel::Cancel;
use super::exit::{COMPLETED, STOPPED, completed};
use super::publish::publish;
use batch_items::ResourceError;
use batch_items::duration::Duration;

/// The longest time to resolve a name and to connect, which a stop does not interrupt.
const CONNECT: time::Duration = time::Duration::from_secs(10);
/// The characters of an unexpected response that an error shows, and the bytes that are read for that.
const EXCERPT: usize = 400;
const EXCERPT_BYTES: u64 = 4096;

/// Calls a service by HTTP. In Job XML: `httpCall`. Requires the feature `http` of this crate.
///
/// ```xml
/// <step id="notify">
///   <batchlet ref="httpCall">
///     <properties>
///       <property name="url" value="https://billing.internal/runs"/>
///       <property name="method" value="POST"/>
///       <property name="headers" value="Authorization: Bearer ${token}&#10;Content-Type: application/json"/>
///       <property name="body" value='{"month": "${month}"}'/>
///       <property name="idempotency.key" value="billing"/>
///     </properties>
///   </batchlet>
/// </step>
/// ```
///
/// | property | default | meaning |
/// |---|---|---|
/// | `url` | required | the address; `http://user:password@..` sends `Authorization: Basic` |
/// | `method` | `GET` | `GET`, `HEAD`, `POST`, `PUT`, `PATCH`, `DELETE` or `OPTIONS` |
/// | `headers` | none | lines `Name: value`, separated by `&#10;` |
/// | `body` | none | the body of a `POST`, `PUT` or `PATCH` request |
/// | `body.file` | none | the file with that body |
/// | `timeout` | `5m` | the time for one attempt, from the connection to the end of the response |
/// | `expected.status` | `200..299` | the status codes of success, separated by commas; `404=NOT FOUND` gives the step another exit status than COMPLETED |
/// | `output` | none | the file for the body of the response; replaced when it is complete |
/// | `output.limit` | `1G` | the maximum size of that file: bytes, or with `K`, `M`, `G` (powers of 1024) |
/// | `retry.limit` | `3` | the number of retries |
/// | `retry.delay` | `1s` | the pause before the first retry, doubled for each further one |
/// | `retry.delay.limit` | `1m` | the longest pause |
/// | `idempotency.key` | none | a name for this use of the service, see below |
///
/// The exit description is the status of the response, such as `HTTP 204`. Redirects are followed; the header `Authorization` is only sent to
/// the same host. Certificates are checked by the roots of the system. Proxies come from the environment variables `HTTPS_PROXY`,
/// `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`.
///
/// # Retries
///
/// Errors of the connection, timeouts, and the status codes 429, 502, 503 and 504 are retried. Pauses vary at random, by up
/// to a half. If the service sends `Retry-After`, the pause is at least that long; more than `retry.delay.limit` fails the step.
///
/// A `POST` or `PATCH` request is only retried with an `idempotency.key`. Its value begins the header `Idempotency-Key`, followed by
/// the job, the instance and the step: `billing-invoices-17-notify`. The header is the same in each attempt and after a restart, so a
/// service that supports it executes the request once. Choose a value that distinguishes this repository from others that
/// use the service; for a partition, include a property of the partition.
///
/// A request that was sent before the process was killed is sent again by the restart.
///
/// # Secrets
///
/// Errors and the log show the address without user, password and query, and neither headers nor the body of the request.
/// The error of the step shows the beginning of an unexpected response, without the credentials that were sent.
///
/// # Stop
///
/// A stop closes the connection, with the exit status `STOPPED`. While a name is resolved or a connection is established, that can
/// take up to 10 seconds.
#[derive(BatchArtifact)]
pub struct HttpCall {
    #[batch_property(name = "url")]
    url: Url,
    #[batch_property(name = "method", value = "GET")]
    method: AllowedMethod,
    #[batch_property(name = "headers")]
    headers: String,
    #[batch_property(name = "body")]
    body: Option<String>,
    #[batch_property(name = "body.file")]
    body_file: Option<PathBuf>,
    #[batch_property(name = "timeout", value = "5m")]
    timeout: Duration,
    #[batch_property(name = "expected.status", value = "200..299")]
    expected_status: Vec<StatusRange>,
    #[batch_property(name = "output")]
    output: Option<PathBuf>,
    #[batch_property(name = "output.limit", value = "1G")]
    output_limit: Size,
    #[batch_property(name = "retry.limit", value = "3")]
    retry_limit: u32,
    #[batch_property(name = "retry.delay", value = "1s")]
    retry_delay: Duration,
    #[batch_property(name = "retry.delay.limit", value = "1m")]
    retry_delay_limit: Duration,
    #[batch_property(name = "idempotency.key")]
    idempotency_key: Option<String>,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
    cancel: Cancel,
}

#[batchlet("httpCall")]
impl HttpCall {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let request = self.request().map_err(BatchError::msg)?;
        let agent = self.agent();
        let interrupted = agent.clone();
        self.cancel
            .interruptible(move || interrupted.shutdown(), || self.call(&agent, &request))
    }

    #[cancel]
    fn cancel(&self) {
        self.cancel.request();
    }
}

impl HttpCall {
    fn request(&self) -> Result<Request, String> {
        let body = match (&self.body, &self.body_file) {
            (None, None) => Body::Empty,
            (Some(text), None) => Body::Text(text.clone()),
            (None, Some(path)) => Body::File(path.clone()),
            (Some(_), Some(_)) => return Err("set either `body` or `body.file`".into()),
        };
        let mut request = Request::new(&self.url, &self.method.0, &self.headers, body)?;
        if let Some(name) = &self.idempotency_key {
            let (job, instance, step) = (self.job.id(), self.job.instance_id(), self.step.id());
            request.set_idempotency_key(&format!("{name}-{job}-{instance}-{step}"))?;
        }
        Ok(request)
    }

    fn agent(&self) -> Agent {
        let timeout = self.timeout.get();
        let config = Agent::config_builder()
            .timeout_global(Some(timeout))
            .timeout_resolve(Some(CONNECT.min(timeout)))
            .timeout_connect(Some(CONNECT.min(timeout)))
            .http_status_as_error(false)
            .redirect_auth_headers(RedirectAuthHeaders::SameHost)
            .user_agent(concat!("batch-batchlets/", env!("CARGO_PKG_VERSION")))
            .tls_config(
                TlsConfig::builder()
                    .root_certs(RootCerts::PlatformVerifier)
                    .build(),
            );
        config.build().new_agent()
    }

    /// Sends the request until it succeeds, at most `retry.limit` times more.
    fn call(&self, agent: &Agent, request: &Request) -> Result<String, BatchError> {
        let limits = Limits {
            retries: if request.is_repeatable() {
                self.retry_limit
            } else {
                0
            },
            delay: self.retry_delay.get(),
            longest_delay: self.retry_delay_limit.get(),
        };
        let mut retries = 0;
        loop {
            self.step.heartbeat();
            let failure = match self.attempt(agent, request) {
                Ok(status) => return Ok(self.exit_status(status)),
                Err(_) if self.cancel.is_requested() => return Ok(STOPPED.into()),
                Err(failure) => failure,
            };
            let Some(pause) = limits.pause(retries, failure.retry, random()) else {
                return Err(self.error(request, &failure, retries).into());
            };
            let (url, error) = (
                &request.address.name,
                request.without_credentials(&failure.message),
            );
            tracing::warn!(target: "batch.http", %url, error, pause = pause.as_secs_f64(), "the call failed and is retried");
            if self.cancel.pause(pause) {
                return Ok(STOPPED.into());
            }
            retries += 1;
        }
    }

    /// Returns the exit status for a status code of success: that of the first entry that contains it.
    fn exit_status(&self, status: StatusCode) -> String {
        let done = completed(&self.step, format!("HTTP {}", status.as_u16()));
        let entry = self
            .expected_status
            .iter()
            .find(|entry| entry.codes.contains(&status.as_u16()));
        entry.map_or(done, |entry| entry.exit_status.clone())
    }

    fn error(&self, request: &Request, failure: &Failure, retries: u32) -> ResourceError {
        let mut cause = failure.message.clone();
        if !failure.excerpt.is_empty() {
            cause += &format!(": {}", failure.excerpt);
        }
        // In this order: half of a token would not be recognised.
        let mut cause = shortened(request.without_credentials(&cause));
        match failure.retry {
            Retry::After(time) if time > self.retry_delay_limit.get() => {
                let seconds = time.as_secs();
                cause += &format!("; its `Retry-After` of {seconds} s is longer than `retry.delay.limit`");
            }
            Retry::Never => {}
            _ if !request.is_repeatable() => {
                cause += "; a request with this method is only retried if `idempotency.key` is set";
            }
            _ if retries == 0 => {}
            _ => cause += &format!("; {} attempts have failed", retries + 1),
        }
        let action = format!("call {} {}", request.method, request.address.name);
        ResourceError::new(action, cause)
    }

    /// Sends the request once and stores the response.
    fn attempt(&self, agent: &Agent, request: &Request) -> Result<StatusCode, Failure> {
        if let Body::File(path) = &request.body {
            let opened = std::fs::File::open(path);
            opened.map_err(|error| {
                let message = format!("cannot read the `body.file` {}: {error}", path.display());
                Failure::new(message, Retry::Never)
            })?;
        }
        let response = request.send(agent).map_err(|error| Failure::of(&error))?;
        let status = response.status();
        let mut expected = self.expected_status.iter();
        if !expected.any(|range| range.codes.contains(&status.as_u16())) {
            return Err(unexpected(response));
        }
        match &self.output {
            Some(output) => self.store(response, output)?,
            None => drop(response),
        }
        Ok(status)
    }

    /// Writes the body of the response to the file.
    fn store(&self, response: Response<ureq::Body>, output: &Path) -> Result<(), Failure> {
        let mut body = response.into_body().into_reader();
        let mut failure = None;
        let stored = publish(output, self.job.instance_id(), |file| {
            let (mut buffer, mut written) = (vec![0; 64 * 1024], 0);
            loop {
                let length = body.read(&mut buffer).map_err(|error| {
                    let message = format!("cannot read the response: {error}");
                    failure = Some(Failure::new(message, Retry::Yes));
                    error
                })?;
                self.step.heartbeat();
                written += length as u64;
                if length == 0 {
                    return Ok(());
                }
                if written > self.output_limit.0 {
                    return Err(io::Error::other("the response is larger than `output.limit`"));
                }
                file.write_all(&buffer[..length])?;
            }
        });
        stored.map_err(|error| {
            let message = || format!("cannot write the `output` {}: {error}", output.display());
            failure.unwrap_or_else(|| Failure::new(message(), Retry::Never))
        })
    }
}

/// Describes a response that is not expected, with the beginning of its body.
fn unexpected(response: Response<ureq::Body>) -> Failure {
    let status = response.status();
    let retry_after = response
        .headers()
        .get("retry-after")
        .and_then(|value| value.to_str().ok());
    let retry = Retry::of_status(status.as_u16(), retry_after, Timestamp::now());
    let mut excerpt = Vec::new();
    // Without an excerpt if the body cannot be read.
    let _ = response
        .into_body()
        .into_reader()
        .take(EXCERPT_BYTES)
        .read_to_end(&mut excerpt);
    let excerpt = String::from_utf8_lossy(&excerpt);
    let words = excerpt.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    Failure {
        excerpt: words.join(" "),
        ..Failure::new(format!("the service answered {status}"), retry)
    }
}

fn shortened(message: String) -> String {
    match message.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    }
}

/// Status codes of success, and the exit status that they give the step.
struct StatusRange {
    codes: RangeInclusive<u16>,
    exit_status: String,
}

impl FromStr for StatusRange {
    type Err = &'static str;

    /// Parses `200..299`, `204` or `404=NOT FOUND`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (codes, exit_status) = text.split_once('=').unwrap_or((text, COMPLETED));
        let (first, last) = codes.split_once("..").unwrap_or((codes, codes));
        let code = |text: &str| {
            text.trim()
                .parse::<u16>()
                .ok()
                .filter(|code| (100..=599).contains(code))
        };
        match (code(first), code(last), exit_status.trim()) {
            (Some(first), Some(last), exit_status) if first <= last && !exit_status.is_empty() => Ok(Self {
                codes: first..=last,
                exit_status: exit_status.to_owned(),
            }),
            _ => Err(
                "expected a status code such as `204`, a range such as `200..299`, or with an exit status `404=NOT FOUND`",
            ),
        }
    }
}

/// A number of bytes, such as `10M`.
#[derive(Debug, PartialEq, Eq)]
struct Size(u64);

impl FromStr for Size {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let (number, factor) = match text.char_indices().next_back() {
            Some((end, 'K')) => (&text[..end], 1 << 10),
            Some((end, 'M')) => (&text[..end], 1 << 20),
            Some((end, 'G')) => (&text[..end], 1 << 30),
            _ => (text, 1),
        };
        let number: Option<u64> = number.trim().parse().ok();
        number
            .and_then(|number| number.checked_mul(factor))
            .map(Self)
            .ok_or("expected a number of bytes, such as `5000`, `10K`, `10M` or `1G`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_1024() {
        for (text, bytes) in [
            ("0", 0),
            ("5000", 5000),
            ("10K", 10_240),
            ("1 M", 1 << 20),
            ("2G", 2 << 30),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "K", "1.5M", "-1", "1T", "99999999999999G", "10KB"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn statuses_are_codes_or_ranges() {
        let contains = |text: &str, code: u16| text.parse::<StatusRange>().unwrap().codes.contains(&code);
        assert!(contains("200..299", 200) && contains("200 .. 299", 299) && contains("404", 404));
        assert!(!contains("200..299", 300) && !contains("404", 405));
        for text in ["", "2xx", "99", "600", "299..200", "200-299"] {
            assert!(text.parse::<StatusRange>().is_err(), "{text}");
        }
    }
}
