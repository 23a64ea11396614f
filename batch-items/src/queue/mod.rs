//! Queues as the input and output of steps: what the crates of brokers share, `batch-kafka` and `batch-nats`, and the formats of messages.
//!
//! The checkpoint of a reader is a position in the queue, and it reads without acknowledging: whatever the broker delivers twice, and
//! whenever the process dies, each message is an item once. Writers wait until the broker has stored all messages of a
//! list; a chunk that is written again after a crash is there twice.

mod fault;
mod format;
mod template;
mod until;
mod waiting;

use std::fmt::Display;

pub use self::fault::{Fault, OpenError, WriteError};
pub use self::format::{
    AddedFields, BinaryMessages, DecodeMessage, EncodeMessage, JsonMessages, TextMessages,
};
pub use self::template::{Headers, Template};
pub use self::until::Until;
pub use self::waiting::{Attempts, POLL, Waiting};
pub use crate::dataset::DatasetName;
pub use crate::query::Query;
use crate::query::{Parameters, QueryError};
use crate::record::Record;

/// Where a reader starts without a checkpoint: the property `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// `earliest`: with the first message that the broker has.
    Earliest,
    /// `latest`: with messages that arrive from now on.
    Latest,
}

/// What a reader does if the broker has removed messages that it has not read: the property `if.removed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfRemoved {
    /// `fail`: the step fails.
    Fail,
    /// `continue`: it logs a warning and reads the messages that are left.
    Continue,
}

impl IfRemoved {
    /// Decides about `removed` messages that the broker does not have any more: `missing` says which. `remedy` prevents it.
    ///
    /// # Errors
    /// If the step has to fail.
    pub fn check(self, missing: &str, removed: impl Display, remedy: &str) -> Result<(), Fault> {
        let problem = format!("{missing}: {removed} messages were removed before they were read");
        match self {
            Self::Fail => Err(Fault::Permanent(format!(
                "{problem}; {remedy}, and restart with `if.removed` = `continue` to read those that are left"
            ))),
            Self::Continue => {
                tracing::warn!(target: "batch.queue", "{problem}");
                Ok(())
            }
        }
    }
}

crate::choices! {
    Start { "earliest" => Earliest, "latest" => Latest }
    IfRemoved { "fail" => Fail, "continue" => Continue }
}

/// Returns the rows of a query in the database of the repository, such as positions that another job has stored.
///
/// # Errors
/// If the query fails.
pub fn load_records(waiting: &Waiting, query: &Query) -> Result<Vec<Record>, QueryError> {
    crate::query::load_records(&waiting.job, "", query, &Parameters::default())
}
