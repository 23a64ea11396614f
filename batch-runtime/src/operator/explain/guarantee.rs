//! The delivery guarantee of a step.
// Spec: MARK-14

use serde::Serialize;

use super::ArtifactExplanation;
use crate::artifact::ArtifactRegistration;
use crate::repository::RepositoryUrl;
use crate::role::Factory;

/// The delivery guarantee of a step: how often its items are written when a process dies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Guarantee {
    /// `exactly-once` or `at-least-once`; `as-its-parts` if the writer is made of writers that may differ.
    pub word: &'static str,
    /// Why.
    pub why: String,
}

const EXACTLY_ONCE: &str = "exactly-once";
const AT_LEAST_ONCE: &str = "at-least-once";
const AS_ITS_PARTS: &str = "as-its-parts";

/// Returns a name or a URL without a password.
fn shown(database: &str) -> String {
    if !database.contains(':') {
        return database.to_owned();
    }
    let url = database.parse::<RepositoryUrl>();
    url.map_or_else(|_| "***".to_owned(), |url| url.to_string())
}

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

    pub(super) fn in_memory() -> Self {
        Self::at_least_once(
            "the repository `memory:` keeps nothing, so a job that dies starts again from the beginning",
        )
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
        // A writer of several others has only properties with a prefix, and one of files or messages has no such property.
        let is_composed = writer.is_some_and(ArtifactRegistration::is_composed);
        if is_composed && output.may_have_destination && !output.has_destination && database.is_none() {
            return Some(Self {
                word: AS_ITS_PARTS,
                why: "the writer is made of others: files and tables are written exactly once, messages at least once".to_owned(),
            });
        }
        let has_property = database.is_some();
        let database = database.and_then(|property| property.value.as_deref());
        Some(match database.filter(|name| !name.is_empty()) {
            _ if output.has_destination => {
                Self::exactly_once("the writer commits its items with a marker in their destination")
            }
            Some(name) if output.may_have_destination => Self::exactly_once(format!(
                "the writer commits its items with a marker in the database `{}`",
                shown(name)
            )),
            _ if !has_property && output.may_have_destination && output.transactional => Self::exactly_once(
                "the writer commits its items with a marker in its destination, if it has one, and with the checkpoint otherwise",
            ),
            _ if output.transactional => Self::exactly_once(
                "what the writer writes through the transaction is committed with the checkpoint",
            ),
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
