//! The sessions of users who have logged in.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::User;
use crate::digest::{self, Digest};

/// The time until a user has to log in again.
const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// The number of sessions that are kept; the oldest ends for a new one.
const MAX_SESSIONS: usize = 1_000;

struct Session {
    user: User,
    begin: Instant,
}

/// The sessions, by the digest of what the browser holds. They end with the process.
pub(crate) struct Sessions {
    /// The name of the cookie that holds the session. Browsers send a cookie to every port of a host, so each console has its own.
    cookie: String,
    sessions: Mutex<HashMap<Digest, Session>>,
}

impl Sessions {
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        Ok(Self {
            cookie: format!("batch-console-{}", &digest::random_text()?[..8]),
            sessions: Mutex::default(),
        })
    }

    pub(crate) fn cookie(&self) -> &str {
        &self.cookie
    }

    /// Begins a session, and returns the value of its cookie.
    pub(crate) fn begin(&self, user: User) -> Result<String, getrandom::Error> {
        let cookie = digest::random_text()?;
        let begin = Instant::now();
        let mut sessions = self.current();
        if sessions.len() >= MAX_SESSIONS
            && let Some(oldest) = sessions.iter().min_by_key(|(_, session)| session.begin)
        {
            let oldest = *oldest.0;
            sessions.remove(&oldest);
        }
        sessions.insert(Digest::of(&cookie), Session { user, begin });
        Ok(cookie)
    }

    /// Returns the user of a session.
    pub(crate) fn user(&self, cookie: &str) -> Option<User> {
        let sessions = self.current();
        sessions
            .get(&Digest::of(cookie))
            .map(|session| session.user.clone())
    }

    pub(crate) fn end(&self, cookie: &str) {
        self.current().remove(&Digest::of(cookie));
    }

    /// Locks the sessions, without those that have expired.
    fn current(&self) -> MutexGuard<'_, HashMap<Digest, Session>> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, session| session.begin.elapsed() < LIFETIME);
        sessions
    }
}
