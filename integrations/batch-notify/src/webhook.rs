//! Webhooks.

use std::error::Error;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use batch_runtime::notify::{Notification, NotificationChannel};
use ureq::Agent;
use ureq::http::Uri;
use ureq::tls::{RootCerts, TlsConfig};

use crate::signature::{Key, KeyError};

/// The time for a request, with its response.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Sends notifications as POST requests, with a [CloudEvent](Notification::to_cloud_event) as the body.
///
/// A status from 200 to 299 within 10 seconds means that it has arrived. Redirections are not followed. The header `webhook-id` is the
/// notification's, which a repetition has too; `webhook-timestamp` is the time of the request, in seconds since 1970. With a
/// [key](Self::signed), `webhook-signature` follows [Standard Webhooks](https://www.standardwebhooks.com); most languages have
/// libraries for it.
// Spec: NOTIFY-05
#[derive(Clone)]
pub struct Webhook {
    agent: Agent,
    url: Uri,
    key: Option<Key>,
}

/// A URL that is not one of a webhook. It is not displayed, because it may contain a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// It is not a URL.
    #[error("the URL of the webhook is not valid; special characters have to be percent-encoded")]
    Invalid,
    /// Its scheme is another one.
    #[error("the URL of the webhook does not begin with `https://` or `http://`")]
    Scheme,
    /// It has a user name or a password.
    #[error(
        "the URL of the webhook has a user name or a password, which are not supported; sign with a key instead"
    )]
    Credentials,
}

impl Webhook {
    /// Creates a webhook without signatures.
    ///
    /// # Errors
    /// When the URL is not one of `https` or `http`.
    pub fn new(url: &str) -> Result<Self, UrlError> {
        let url = url.trim();
        if !["https://", "http://"]
            .iter()
            .any(|scheme| url.starts_with(scheme))
        {
            return Err(UrlError::Scheme);
        }
        let url: Uri = url.parse().map_err(|_| UrlError::Invalid)?;
        let authority = url.authority().ok_or(UrlError::Invalid)?;
        if authority.as_str().contains('@') {
            return Err(UrlError::Credentials);
        }
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::PlatformVerifier)
            .build();
        let agent = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            // The URL may contain a token, and the signature is for its host only.
            .max_redirects(0)
            .user_agent(concat!("batch-notify/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls)
            .build()
            .new_agent();
        Ok(Self {
            agent,
            url,
            key: None,
        })
    }

    /// Signs each request with a key: `whsec_` and at least 16 bytes in base64, else the bytes of the text.
    ///
    /// # Errors
    /// When the key cannot sign.
    pub fn signed(self, key: &str) -> Result<Self, KeyError> {
        Ok(Self {
            key: Some(Key::new(key)?),
            ..self
        })
    }

    /// Returns scheme and host. The rest of the URL may contain a token.
    fn host(&self) -> String {
        let (scheme, authority) = (self.url.scheme_str(), self.url.authority());
        format!(
            "{}://{}",
            scheme.unwrap_or_default(),
            authority.map_or("", |at| at.as_str())
        )
    }
}

/// Writes scheme and host.
impl fmt::Display for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host())
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook")
            .field("host", &self.host())
            .field("is_signed", &self.key.is_some())
            .finish_non_exhaustive()
    }
}

impl NotificationChannel for Webhook {
    fn send(&self, notification: &Notification) -> Result<(), Box<dyn Error + Send + Sync>> {
        let body = notification.to_cloud_event();
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let mut request = self
            .agent
            .post(&self.url)
            .header("content-type", "application/cloudevents+json")
            .header("webhook-id", &notification.id)
            .header("webhook-timestamp", seconds.to_string());
        if let Some(key) = &self.key {
            request = request.header("webhook-signature", key.sign(&notification.id, seconds, &body));
        }
        let response = request
            .send(&body)
            .map_err(|error| format!("{}: {error}", self.host()))?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("{} responds {status}", self.host()).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: NOTIFY-06
    #[test]
    fn other_urls_are_rejected_without_showing_them() {
        for (url, expected) in [
            ("", UrlError::Scheme),
            ("ftp://token@example.com", UrlError::Scheme),
            ("alerts.example.com/token", UrlError::Scheme),
            ("https://me:token@example.com", UrlError::Credentials),
            ("https://exa mple.com/token", UrlError::Invalid),
        ] {
            let error = Webhook::new(url).unwrap_err();
            assert_eq!(error, expected, "{url}");
            assert!(!error.to_string().contains("token"), "{error}");
        }
        let webhook = Webhook::new("https://example.com/services/token?key=token").unwrap();
        let shown = format!("{webhook} {webhook:?}");
        assert!(
            shown.starts_with("https://example.com ") && !shown.contains("token"),
            "{shown}"
        );
    }
}
