//! Checkpoints and other data that outlives an execution.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Data that the runtime stores and restores: checkpoints, persistent user data, collector payloads. Implemented for
/// every serde type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored",
    label = "expected a type with serde's `Serialize` and `Deserialize` that borrows nothing and is `Send`",
    note = "add `#[derive(serde::Serialize, serde::Deserialize)]` to `{Self}`"
)]
pub trait Externalizable: Serialize + DeserializeOwned + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Send + 'static> Externalizable for T {}

/// An artifact's checkpoint in its stored form, JSON text.
// Spec: REPO-69
#[derive(Debug, PartialEq, Eq)]
pub struct CheckpointInfo(String);

impl Clone for CheckpointInfo {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }

    /// Keeps the memory: a checkpoint replaces one of nearly the same length.
    fn clone_from(&mut self, source: &Self) {
        self.0.clone_from(&source.0);
    }
}

impl CheckpointInfo {
    /// Encodes `value`.
    ///
    /// # Errors
    /// When serde cannot serialise it as JSON.
    pub fn encode<C: Externalizable>(value: &C) -> Result<Self, CheckpointError> {
        serde_json::to_string(value)
            .map(Self)
            .map_err(|source| CheckpointError {
                action: "stored",
                type_name: std::any::type_name::<C>(),
                source,
            })
    }

    /// Decodes a stored checkpoint as the artifact's type.
    ///
    /// # Errors
    /// When the stored text is of another type. The step then ends FAILED; it never restarts from the beginning.
    // Spec: READ-10
    pub fn decode<C: Externalizable>(&self) -> Result<C, CheckpointError> {
        serde_json::from_str(&self.0).map_err(|source| CheckpointError {
            action: "read",
            type_name: std::any::type_name::<C>(),
            source,
        })
    }

    /// Returns the problem if the text is longer than `limit`.
    pub(crate) fn too_large(&self, limit: usize) -> Option<String> {
        let bytes = self.0.len();
        (bytes > limit).then(|| {
            format!(
                "has {bytes} bytes, more than the {limit} of `batch.checkpoint.limit`; store a position instead of data, or set \
                 this property of the step to a larger number of bytes"
            )
        })
    }

    pub(crate) fn from_json(text: String) -> Self {
        Self(text)
    }

    /// Returns the JSON text.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

/// User data of another type than the requested one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the user data is {stored}, not the requested `{asked}`")]
pub struct UserDataError {
    stored: String,
    asked: &'static str,
}

impl UserDataError {
    /// Creates the error for data that is not a `P`.
    pub(crate) fn new<P>(stored: impl Into<String>) -> Self {
        Self {
            stored: stored.into(),
            asked: std::any::type_name::<P>(),
        }
    }

    /// Creates the error for JSON that cannot be read as a `P`.
    pub(crate) fn of_json<P>(stored: &str) -> Self {
        Self::new::<P>(format!("`{stored}`"))
    }
}

/// Stores and restores the checkpoints of type `C` of a reader or writer. Called by generated code; only `new`
/// requires `C: Externalizable`, so that a wrong type causes one error instead of two.
pub struct CheckpointCodec<C> {
    encode: fn(&C) -> Result<CheckpointInfo, CheckpointError>,
    decode: fn(&CheckpointInfo) -> Result<C, CheckpointError>,
}

impl<C> CheckpointCodec<C> {
    /// Creates the codec of `C`.
    #[expect(clippy::new_without_default, reason = "generated code calls it by this name")]
    pub fn new() -> Self
    where
        C: Externalizable,
    {
        Self {
            encode: CheckpointInfo::encode::<C>,
            decode: CheckpointInfo::decode::<C>,
        }
    }

    /// Encodes the result of `#[get_checkpoint_info]`.
    ///
    /// # Errors
    /// When serde cannot serialise it as JSON.
    pub fn encode(&self, checkpoint: &C) -> Result<CheckpointInfo, CheckpointError> {
        (self.encode)(checkpoint)
    }

    /// Decodes the argument of `#[open]`.
    ///
    /// # Errors
    /// When the stored text is of another type.
    // Spec: READ-03, READ-10
    pub fn decode(&self, checkpoint: Option<&CheckpointInfo>) -> Result<Option<C>, CheckpointError> {
        checkpoint.map(self.decode).transpose()
    }
}

/// A checkpoint that cannot be encoded or decoded.
#[derive(Debug, thiserror::Error)]
#[error("the checkpoint cannot be {action} as `{type_name}`")]
pub struct CheckpointError {
    action: &'static str,
    type_name: &'static str,
    source: serde_json::Error,
}
