//! Signatures of webhooks, by the rules of Standard Webhooks: HMAC-SHA256 of the id, the time and the body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The prefix of a key in base64.
const PREFIX: &str = "whsec_";
const SHORTEST: usize = 16;

/// A key that cannot sign. It is not displayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// It begins with `whsec_`, but the rest is not base64.
    #[error("the key begins with `whsec_`, but the rest is not base64")]
    NotBase64,
    /// It has fewer than 16 bytes.
    #[error(
        "the key has fewer than {SHORTEST} bytes; create one by `openssl rand -base64 24`, and write `whsec_` before it"
    )]
    TooShort,
}

/// The key of a signature.
#[derive(Clone)]
pub(crate) struct Key(Vec<u8>);

impl Key {
    pub(crate) fn new(text: &str) -> Result<Self, KeyError> {
        let bytes = match text.trim().strip_prefix(PREFIX) {
            Some(encoded) => STANDARD.decode(encoded).map_err(|_| KeyError::NotBase64)?,
            None => text.trim().as_bytes().to_vec(),
        };
        match bytes.len() {
            0..SHORTEST => Err(KeyError::TooShort),
            _ => Ok(Self(bytes)),
        }
    }

    /// Returns the header `webhook-signature` of a message that is sent at `seconds` since 1970.
    pub(crate) fn sign(&self, id: &str, seconds: u64, body: &str) -> String {
        let signed = format!("{id}.{seconds}.{body}");
        // A key of any length is valid.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else {
            return String::new();
        };
        mac.update(signed.as_bytes());
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification of Standard Webhooks.
    // Spec: NOTIFY-05
    #[test]
    fn a_signature_is_that_of_standard_webhooks() {
        let key = Key::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = key.sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    // Spec: NOTIFY-06
    #[test]
    fn a_key_that_cannot_sign_is_rejected() {
        let error = |text: &str| Key::new(text).err();
        assert_eq!(error("whsec_?"), Some(KeyError::NotBase64));
        assert_eq!(error("whsec_AAAA"), Some(KeyError::TooShort));
        assert_eq!(error("short"), Some(KeyError::TooShort));
        assert_eq!(error("sixteen bytes or"), None);
    }
}
