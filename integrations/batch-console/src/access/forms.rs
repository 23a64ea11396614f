//! The tokens of forms: a page of another site cannot know them, so it cannot send a form in the name of a user.

use crate::digest::{Digest, Key};

use super::Identity;

/// Signs and checks the tokens.
pub(crate) struct FormKeys(Key);

impl FormKeys {
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        Ok(Self(Key::random()?))
    }

    /// Returns the token of the forms that a user gets.
    pub(crate) fn token(&self, identity: &Identity) -> String {
        let session = identity.session.as_deref().unwrap_or_default();
        self.0.sign(&["form", identity.user.name(), session])
    }

    /// Returns whether a token is the one that the user has got.
    pub(crate) fn is_valid(&self, identity: &Identity, token: &str) -> bool {
        Digest::of(token) == Digest::of(&self.token(identity))
    }
}
