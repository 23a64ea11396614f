//! Authentication of a client: SASL, by PLAIN (RFC 4616) or SCRAM (RFC 5802, RFC 7677).

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::digest::{self, digest};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{hmac, pbkdf2};

/// A user.
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: String,
    pub(super) mechanism: Mechanism,
}

/// How a client proves who it is: the property `mechanism`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mechanism {
    Plain,
    ScramSha256,
    ScramSha512,
}

impl Mechanism {
    /// Returns the name in the protocol.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

impl Login {
    /// Returns the message of PLAIN.
    pub(super) fn plain(&self) -> Vec<u8> {
        format!("\0{}\0{}", self.user, self.password).into_bytes()
    }
}

/// The most iterations that a server may ask for: about a second of computing.
const MOST_ITERATIONS: u32 = 1_000_000;

/// The exchange of SCRAM.
pub(super) struct Scram<'l> {
    login: &'l Login,
    nonce: String,
    hash: Hash,
}

struct Hash {
    digest: &'static digest::Algorithm,
    hmac: hmac::Algorithm,
    pbkdf2: pbkdf2::Algorithm,
}

impl<'l> Scram<'l> {
    /// Begins an exchange with a random nonce.
    pub(super) fn new(login: &'l Login) -> Result<Self, String> {
        let mut random = [0; 18];
        let filled = SystemRandom::new().fill(&mut random);
        filled.map_err(|_| "the system has no random numbers".to_owned())?;
        Ok(Self::with_nonce(login, BASE64.encode(random)))
    }

    fn with_nonce(login: &'l Login, nonce: String) -> Self {
        let hash = match login.mechanism {
            Mechanism::ScramSha512 => Hash {
                digest: &digest::SHA512,
                hmac: hmac::HMAC_SHA512,
                pbkdf2: pbkdf2::PBKDF2_HMAC_SHA512,
            },
            Mechanism::ScramSha256 | Mechanism::Plain => Hash {
                digest: &digest::SHA256,
                hmac: hmac::HMAC_SHA256,
                pbkdf2: pbkdf2::PBKDF2_HMAC_SHA256,
            },
        };
        Self { login, nonce, hash }
    }

    fn first_bare(&self) -> String {
        let user = self.login.user.replace('=', "=3D").replace(',', "=2C");
        format!("n={user},r={}", self.nonce)
    }

    /// Returns the first message of the client.
    pub(super) fn first(&self) -> Vec<u8> {
        format!("n,,{}", self.first_bare()).into_bytes()
    }

    /// Returns the last message of the client, and the signature that the server must answer with.
    pub(super) fn last(&self, server_first: &[u8]) -> Result<(Vec<u8>, String), String> {
        let bad = || "the broker has sent an invalid SCRAM message".to_owned();
        let server_first = std::str::from_utf8(server_first).map_err(|_| bad())?;
        let value = |name: char| {
            let mut parts = server_first.split(',');
            parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
        };
        let (Some(nonce), Some(salt), Some(iterations)) = (value('r'), value('s'), value('i')) else {
            return Err(bad());
        };
        let salt = BASE64.decode(salt).map_err(|_| bad())?;
        let iterations = iterations.parse::<NonZeroU32>().map_err(|_| bad())?;
        // Another one may belong to an earlier exchange.
        if !nonce.starts_with(&self.nonce) || iterations.get() > MOST_ITERATIONS {
            return Err(bad());
        }
        let mut salted = vec![0; self.hash.digest.output_len()];
        let password = self.login.password.as_bytes();
        pbkdf2::derive(self.hash.pbkdf2, iterations, &salt, password, &mut salted);
        let without_proof = format!("c=biws,r={nonce}");
        let signed = format!("{},{server_first},{without_proof}", self.first_bare());
        let client_key = self.hmac(&salted, b"Client Key");
        let stored_key = digest(self.hash.digest, &client_key);
        let signature = self.hmac(stored_key.as_ref(), signed.as_bytes());
        let proof: Vec<u8> = client_key
            .iter()
            .zip(&signature)
            .map(|(key, sign)| key ^ sign)
            .collect();
        let server_key = self.hmac(&salted, b"Server Key");
        let expected = BASE64.encode(self.hmac(&server_key, signed.as_bytes()));
        let last = format!("{without_proof},p={}", BASE64.encode(proof));
        Ok((last.into_bytes(), format!("v={expected}")))
    }

    fn hmac(&self, key: &[u8], data: &[u8]) -> Vec<u8> {
        hmac::sign(&hmac::Key::new(self.hash.hmac, key), data)
            .as_ref()
            .to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(mechanism: Mechanism) -> Login {
        Login {
            user: "user".into(),
            password: "pencil".into(),
            mechanism,
        }
    }

    /// The example of RFC 7677.
    #[test]
    fn an_exchange_is_that_of_the_standard() {
        let login = login(Mechanism::ScramSha256);
        let scram = Scram::with_nonce(&login, "rOprNGfwEbeRWgbNEkqO".into());
        assert_eq!(scram.first(), b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let server =
            b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let (last, expected) = scram.last(server).unwrap();
        assert_eq!(
            String::from_utf8(last).unwrap(),
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
             p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        assert_eq!(expected, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn messages_of_a_stranger_are_rejected() {
        let login = login(Mechanism::ScramSha512);
        let scram = Scram::with_nonce(&login, "abc".into());
        for message in [
            &b"r=xbc,s=W22Z,i=4096"[..],
            b"r=abcd,s=W22Z,i=0",
            b"r=abcd,s=W22Z,i=1000001",
            b"r=abcd,s=?,i=4096",
            b"r=abcd,i=4096",
            b"",
            b"\xff",
        ] {
            assert!(scram.last(message).is_err());
        }
        assert!(scram.last(b"r=abcd,s=W22Z,i=4096").is_ok());
    }
}
