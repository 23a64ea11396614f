//! Authentication and roles.

mod forms;
mod request;
mod sessions;

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use thiserror::Error;

pub(crate) use forms::FormKeys;
pub(crate) use request::{Denied, Identity, is_cross_site};
pub(crate) use sessions::Sessions;

use crate::digest::Digest;

/// The least length of a token, in bytes.
const SHORTEST_TOKEN: usize = 16;

/// The permissions of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Sees all pages.
    Read,
    /// Also launches, stops, restarts, abandons, recovers and purges.
    Operate,
}

impl Role {
    /// Returns its name in settings: `read` or `operate`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Operate => "operate",
        }
    }
}

/// A user of the console. A program that authenticates its users adds this to the extensions of each
/// request; the console then asks for nothing else.
///
/// ```
/// use axum::Extension;
/// use batch_console::{Role, User};
/// use batch_runtime::BatchRuntime;
///
/// let runtime = BatchRuntime::builder().repository("memory:").build()?;
/// let alice = User::new("alice", Role::Operate);
/// let router: axum::Router = batch_console::router(&runtime).layer(Extension(alice));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: String,
    role: Role,
}

impl User {
    /// Creates a user. The name appears in the audit log.
    pub fn new(name: impl Into<String>, role: Role) -> Self {
        Self {
            name: name.into(),
            role,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn may_operate(&self) -> bool {
        self.role == Role::Operate
    }
}

/// The users of the console. The default: every user of this computer, as an operator.
///
/// ```
/// use batch_console::{Access, Role};
///
/// let access = Access::new()
///     .token("alice", Role::Operate, "correct horse battery staple")?
///     .token("wallboard", Role::Read, "only looks at what is running")?
///     .host("batch.example.com");
/// # Ok::<(), batch_console::AccessError>(())
/// ```
#[derive(Clone, Default)]
pub struct Access {
    tokens: Vec<(Digest, User)>,
    proxy: Option<Proxy>,
    hosts: BTreeSet<String>,
    is_read_only: bool,
}

/// A reverse proxy that authenticates users.
#[derive(Clone, Debug)]
struct Proxy {
    header: String,
    addresses: Vec<IpAddr>,
    operators: BTreeSet<String>,
}

impl Access {
    /// Allows the users of this computer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes all users readers, who change nothing.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.is_read_only = true;
        self
    }

    /// Adds a user with a token, who enters it on the login page or, for the API, sends it in the header `Authorization: Bearer TOKEN`. With a token, users
    /// from this computer need one too.
    ///
    /// # Errors
    /// When the token has fewer than 16 bytes, or the name is empty or used before.
    pub fn token(mut self, name: &str, role: Role, token: &str) -> Result<Self, AccessError> {
        if name.is_empty() {
            return Err(AccessError::NoName);
        }
        if token.len() < SHORTEST_TOKEN {
            return Err(AccessError::ShortToken { user: name.into() });
        }
        if self.tokens.iter().any(|(_, user)| user.name == name) {
            return Err(AccessError::TwoTokens { user: name.into() });
        }
        self.tokens.push((Digest::of(token), User::new(name, role)));
        Ok(self)
    }

    /// Trusts a reverse proxy at `addresses`, which puts the name of the user into a header, such as `X-Forwarded-User`, and removes that
    /// header from the requests that it receives. The users named in `operators` operate, or all if it contains `*`; others only read.
    ///
    /// # Errors
    /// When the name of the header is not valid, or there is no address.
    pub fn proxy(
        mut self,
        header: &str,
        addresses: impl IntoIterator<Item = IpAddr>,
        operators: impl IntoIterator<Item = String>,
    ) -> Result<Self, AccessError> {
        if axum::http::HeaderName::from_bytes(header.as_bytes()).is_err() {
            return Err(AccessError::Header(header.into()));
        }
        let addresses: Vec<IpAddr> = addresses
            .into_iter()
            .map(|address| address.to_canonical())
            .collect();
        if addresses.is_empty() {
            return Err(AccessError::NoProxy);
        }
        self.proxy = Some(Proxy {
            header: header.to_ascii_lowercase(),
            addresses,
            operators: operators.into_iter().collect(),
        });
        Ok(self)
    }

    /// Adds a host name that browsers use for the console, without the port. Requests for other names are rejected, as they are for every
    /// name but `localhost` and loopback addresses if no user has to log in: a page of another site could otherwise give its own name the
    /// address of this computer.
    #[must_use]
    pub fn host(mut self, name: impl Into<String>) -> Self {
        self.hosts.insert(name.into().to_ascii_lowercase());
        self
    }

    /// Returns whether users have to show who they are. Without that, a console must be reachable from this computer only.
    pub fn requires_authentication(&self) -> bool {
        !self.tokens.is_empty() || self.proxy.is_some()
    }

    /// Returns whether there is a login page.
    pub(crate) fn has_tokens(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// Returns the user with a token.
    pub(crate) fn with_token(&self, token: &str) -> Option<User> {
        let digest = Digest::of(token);
        let found = self.tokens.iter().find(|(known, _)| *known == digest);
        found.map(|(_, user)| self.limited(user.clone()))
    }

    fn limited(&self, user: User) -> User {
        match self.is_read_only {
            true => User::new(user.name, Role::Read),
            false => user,
        }
    }
}

/// Without tokens.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let users: Vec<&User> = self.tokens.iter().map(|(_, user)| user).collect();
        f.debug_struct("Access")
            .field("users", &users)
            .field("proxy", &self.proxy)
            .field("hosts", &self.hosts)
            .field("is_read_only", &self.is_read_only)
            .finish()
    }
}

/// An error of [`Access`].
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessError {
    /// A user has no name.
    #[error("the name of a user is empty; the audit log shows it, so give each user one")]
    NoName,
    /// A token could be guessed.
    #[error(
        "the token of user `{}` is too short; use at least {SHORTEST_TOKEN} bytes, such as from `openssl rand -hex 32`",
        .user.escape_debug()
    )]
    ShortToken {
        /// The user.
        user: String,
    },
    /// A user has two tokens.
    #[error("user `{}` has two tokens; give each user one", .user.escape_debug())]
    TwoTokens {
        /// The user.
        user: String,
    },
    /// The name of a header is not valid.
    #[error("invalid name `{}` of a header; expected a name such as `X-Forwarded-User`", .0.escape_debug())]
    Header(String),
    /// The address of the proxy is missing.
    #[error("no address of the reverse proxy; without one, every client could send its header")]
    NoProxy,
}
