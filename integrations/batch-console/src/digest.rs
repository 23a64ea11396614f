//! Secrets, as digests that can be compared.

use std::fmt::{self, Write as _};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};

/// The digest of a secret. Comparing two reveals nothing about the secrets to someone who measures the time.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    /// Returns the digest of a secret.
    pub(crate) fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret).into())
    }
}

/// Without the digest, which would reveal a weak secret.
impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest")
    }
}

/// A key of this process, which signs what it gives to browsers.
pub(crate) struct Key(String);

impl Key {
    /// Creates a random key.
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        Ok(Self(random_text()?))
    }

    /// Returns the signature of texts, as hexadecimal digits.
    pub(crate) fn sign(&self, texts: &[&str]) -> String {
        // HMAC accepts keys of every length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.0.as_bytes()) else {
            return String::new();
        };
        for text in texts {
            mac.update(&(text.len() as u64).to_le_bytes());
            mac.update(text.as_bytes());
        }
        hexadecimal(&mac.finalize().into_bytes())
    }
}

/// Returns 256 random bits, as hexadecimal digits.
pub(crate) fn random_text() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(hexadecimal(&bytes))
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// Returns the SHA-256 of a text, as hexadecimal digits.
pub(crate) fn fingerprint(text: &str) -> String {
    hexadecimal(&Sha256::digest(text))
}
