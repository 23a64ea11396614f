//! The request: its address, headers and body, and the credentials that messages omit.

use std::fs::File;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use ureq::http::uri::Scheme;
use ureq::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};

/// Shorter values are not hidden: they would match too much else.
const SHORTEST_HIDDEN: usize = 4;
/// The characters that are percent-encoded in an idempotency key.
const IN_KEY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b':');

/// The address in the property `url`.
pub(super) struct Url(String);

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let url = Self(text.trim().to_owned());
        // The error of the property would show the value with its password, so that one is checked when the step starts.
        if !text.contains('@') {
            Address::of(&url)?;
        }
        Ok(url)
    }
}

/// An address without its credentials.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) uri: Uri,
    /// Scheme, host, port and path, for messages. The query may contain a token.
    pub(super) name: String,
    credentials: Option<Credentials>,
}

#[derive(Debug, PartialEq, Eq)]
struct Credentials {
    user: String,
    password: String,
}

impl Address {
    /// Parses an address. The error does not show it.
    pub(super) fn of(url: &Url) -> Result<Self, String> {
        let uri: Uri = url.0.parse().map_err(|error| {
            format!("not a valid URL: {error}; other characters than ASCII have to be percent-encoded")
        })?;
        let mut parts = uri.into_parts();
        let scheme = parts
            .scheme
            .as_ref()
            .filter(|one| **one == Scheme::HTTP || **one == Scheme::HTTPS);
        let (Some(scheme), Some(authority)) = (scheme, &parts.authority) else {
            return Err("expected a URL that begins with http:// or https://".into());
        };
        let (credentials, host) = match authority.as_str().rsplit_once('@') {
            Some((user_info, host)) => (Some(Credentials::of(user_info)), host.to_owned()),
            None => (None, authority.to_string()),
        };
        let path = parts.path_and_query.as_ref().map_or("/", |path| path.path());
        let name = format!("{scheme}://{host}{path}");
        parts.authority = Some(host.parse().map_err(|_| "not a valid host in the URL")?);
        let uri = Uri::from_parts(parts).map_err(|error| format!("not a valid URL: {error}"))?;
        Ok(Self {
            uri,
            name,
            credentials,
        })
    }
}

impl Credentials {
    fn of(user_info: &str) -> Self {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
        Self {
            user: decoded(user),
            password: decoded(password),
        }
    }
}

/// A method of HTTP.
pub(super) struct AllowedMethod(pub(super) Method);

impl FromStr for AllowedMethod {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let method = match text.trim().to_ascii_uppercase().as_str() {
            "GET" => Method::GET,
            "HEAD" => Method::HEAD,
            "POST" => Method::POST,
            "PUT" => Method::PUT,
            "PATCH" => Method::PATCH,
            "DELETE" => Method::DELETE,
            "OPTIONS" => Method::OPTIONS,
            _ => return Err("expected GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS"),
        };
        Ok(Self(method))
    }
}

/// The body of a request.
pub(super) enum Body {
    Empty,
    Text(String),
    File(std::path::PathBuf),
}

/// A request that can be sent several times.
pub(super) struct Request {
    pub(super) address: Address,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
    hidden: Vec<String>,
}

impl Request {
    /// Creates a request with headers in lines `Name: value`. No error shows a value.
    pub(super) fn new(url: &Url, method: &Method, headers: &str, body: Body) -> Result<Self, String> {
        let address = Address::of(url)?;
        let accepts_body = matches!(*method, Method::POST | Method::PUT | Method::PATCH);
        if !accepts_body && !matches!(body, Body::Empty) {
            return Err(format!(
                "a {method} request has no body; set `method` to POST, PUT or PATCH"
            ));
        }
        let mut request = Self {
            headers: parse_headers(headers)?,
            method: method.clone(),
            body,
            hidden: Vec::new(),
            address,
        };
        if let Some(credentials) = &request.address.credentials {
            let text = STANDARD.encode(format!("{}:{}", credentials.user, credentials.password));
            let value = HeaderValue::try_from(format!("Basic {text}")).map_err(|error| error.to_string())?;
            request.hidden.push(credentials.password.clone());
            request.headers.entry(header::AUTHORIZATION).or_insert(value);
        }
        request.hide_headers();
        Ok(request)
    }

    /// Adds the header `Idempotency-Key`: a service recognises by it a request that it has received before.
    pub(super) fn set_idempotency_key(&mut self, key: &str) -> Result<(), String> {
        let key = utf8_percent_encode(key, IN_KEY);
        let value = HeaderValue::try_from(key.to_string()).map_err(|error| error.to_string())?;
        self.headers
            .insert(HeaderName::from_static("idempotency-key"), value);
        Ok(())
    }

    /// Returns whether the request may be sent again: the service cannot execute it twice.
    pub(super) fn is_repeatable(&self) -> bool {
        let is_idempotent = !matches!(self.method, Method::POST | Method::PATCH);
        is_idempotent || self.headers.contains_key("idempotency-key")
    }

    /// Sends the request.
    pub(super) fn send(&self, agent: &ureq::Agent) -> Result<ureq::http::Response<ureq::Body>, ureq::Error> {
        let mut builder = ureq::http::Request::builder()
            .method(self.method.clone())
            .uri(self.address.uri.clone());
        if let Some(headers) = builder.headers_mut() {
            headers.extend(self.headers.clone());
        }
        match &self.body {
            Body::Empty => agent.run(builder.body(())?),
            Body::Text(text) => agent.run(builder.body(text)?),
            Body::File(path) => agent.run(builder.body(File::open(path)?)?),
        }
    }

    fn hide_headers(&mut self) {
        for (name, value) in &self.headers {
            let is_secret = ["auth", "cookie", "key", "token", "secret", "password"]
                .iter()
                .any(|part| name.as_str().contains(part));
            let Some(text) = value.to_str().ok().filter(|_| is_secret) else {
                continue;
            };
            self.hidden.push(text.to_owned());
            // Without the scheme, such as `Bearer`.
            self.hidden
                .extend(text.split_once(' ').map(|(_, token)| token.trim().to_owned()));
        }
        self.hidden.retain(|text| text.len() >= SHORTEST_HIDDEN);
        // A value that contains another one is hidden as a whole.
        self.hidden.sort_by_key(|text| std::cmp::Reverse(text.len()));
    }

    /// Returns a text without the credentials of the request.
    pub(super) fn without_credentials(&self, text: &str) -> String {
        let hide = |text: String, hidden: &String| text.replace(hidden.as_str(), "***");
        self.hidden.iter().fold(text.to_owned(), hide)
    }
}

fn parse_headers(text: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (index, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let header = line.split_once(':').and_then(|(name, value)| {
            let name = HeaderName::try_from(name.trim()).ok()?;
            Some((name, HeaderValue::try_from(value.trim()).ok()?))
        });
        let (name, value) =
            header.ok_or_else(|| format!("line {} of `headers` is not `Name: value`", index + 1))?;
        headers.append(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url(text.into())
    }

    #[test]
    fn an_address_is_shown_without_credentials_and_query() {
        let address = Address::of(&url("https://me:p%40ss@example.org:8443/a/b?token=1")).unwrap();
        assert_eq!(address.uri.to_string(), "https://example.org:8443/a/b?token=1");
        assert_eq!(address.name, "https://example.org:8443/a/b");
        let credentials = address.credentials.unwrap();
        assert_eq!(
            (credentials.user.as_str(), credentials.password.as_str()),
            ("me", "p@ss")
        );
        let plain = Address::of(&url("http://example.org")).unwrap();
        assert_eq!(plain.name, "http://example.org/");
    }

    #[test]
    fn mistakes_in_addresses_are_reported() {
        for text in [
            "",
            "example.org",
            "ftp://example.org/",
            "/path",
            "http://",
            "http://a b/",
        ] {
            assert!(text.parse::<Url>().is_err(), "{text}");
        }
        // The message of the property would show the password.
        let url: Url = "ftp://me:s3cret@example.org/".parse().unwrap();
        assert!(!Address::of(&url).unwrap_err().contains("s3cret"));
    }

    #[test]
    fn credentials_are_hidden() {
        let headers = "Authorization: Bearer abcdef\nX-Api-Key: 12345\nAccept: text/csv\nCookie: a=1\n";
        let with_headers = Request::new(&url("http://h/"), &Method::GET, headers, Body::Empty).unwrap();
        assert_eq!(
            with_headers.without_credentials("Bearer abcdef, abcdef, 12345, text/csv, a=1"),
            "***, ***, ***, text/csv, a=1"
        );
        let in_url = Request::new(&url("http://me:s3cret@h/"), &Method::GET, "", Body::Empty).unwrap();
        assert_eq!(in_url.headers["authorization"], "Basic bWU6czNjcmV0");
        assert_eq!(in_url.without_credentials("me s3cret bWU6czNjcmV0"), "me *** ***");
    }

    #[test]
    fn headers_are_lines() {
        let headers = parse_headers("Accept: text/csv\n\nX-Time: 10:30\r\n").unwrap();
        assert_eq!(headers.len(), 2);
        assert_eq!(headers["x-time"], "10:30");
        for text in ["Accept: a\nAuthorization s3cret", "Accept: a\ns3 cret: b"] {
            assert_eq!(
                parse_headers(text).unwrap_err(),
                "line 2 of `headers` is not `Name: value`"
            );
        }
    }

    #[test]
    fn only_what_cannot_be_executed_twice_is_repeated() {
        let request = |method| Request::new(&url("http://h/"), &method, "", Body::Empty).unwrap();
        for method in [
            Method::GET,
            Method::HEAD,
            Method::PUT,
            Method::DELETE,
            Method::OPTIONS,
        ] {
            assert!(request(method).is_repeatable());
        }
        for method in [Method::POST, Method::PATCH] {
            let mut request = request(method);
            assert!(!request.is_repeatable());
            request.set_idempotency_key("shop-17-send é").unwrap();
            assert!(request.is_repeatable());
            assert_eq!(request.headers["idempotency-key"], "shop-17-send%20%C3%A9");
        }
    }
}
