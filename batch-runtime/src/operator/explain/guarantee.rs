//! What a crash does to the items of a step.
// Spec: MARK-14

use serde::Serialize;

use super::ArtifactExplanation;
use crate::artifact::ArtifactRegistration;
use crate::role::Factory;

/// What a step guarantees about its items, whenever its process dies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Guarantee {
    /// `exactly-once` or `at-least-once`.
    pub word: &'static str,
    /// Why.
    pub why: String,
}

const EXACTLY_ONCE: &str = "exactly-once";
const AT_LEAST_ONCE: &str = "at-least-once";

impl Guarantee {
    fn exactly_once(why: impl Into<String>) -> Self {
        Self {
            word: EXACTLY_ONCE,
            why: why.into(),
        }
    }

    fn at_least_once(why: impl Into<String>) -> Self {
        Self {
            word: AT_LEAST_ONCE,
            why: why.into(),
        }
    }

    pub(super) fn of_batchlet() -> Self {
        Self::at_least_once("a restart runs the batchlet again")
    }

    /// Returns the guarantee of a chunk; `None` if its reader or writer is not known.
    pub(super) fn of_chunk(
        reader: Option<&'static ArtifactRegistration>,
        writer: Option<&'static ArtifactRegistration>,
        written: &ArtifactExplanation,
    ) -> Option<Self> {
        let (Factory::ItemReader(_, input), Factory::ItemWriter(_, output)) =
            (reader?.factory, writer?.factory)
        else {
            return None;
        };
        let output = output();
        if !input().keeps_position {
            return Some(Self::at_least_once(
                "the reader has no checkpoint, so a restart reads the input again",
            ));
        }
        // The property of the ready-made writers of tables.
        let database = written
            .properties
            .iter()
            .find(|property| property.name == "database" && property.field.is_some());
        let database = database.and_then(|property| property.value.as_deref());
        Some(match database.filter(|name| !name.is_empty()) {
            _ if output.has_destination => {
                Self::exactly_once("the writer commits its items with a marker in their destination")
            }
            Some(name) if output.transactional => Self::exactly_once(format!(
                "the writer commits its items with a marker in the database `{}`",
                crate::url::redact(name)
            )),
            _ if output.transactional => {
                Self::exactly_once("the writer commits its items with the checkpoint")
            }
            _ if output.rewindable => {
                Self::exactly_once("the writer removes what it has written after the checkpoint")
            }
            _ if output.keeps_position => Self::at_least_once(
                "the writer has a position, but does not declare, by `rewindable = true`, that it removes what it has written after it",
            ),
            _ => Self::at_least_once("the writer cannot know where its output ended"),
        })
    }
}
