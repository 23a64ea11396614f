//! Queues as the input and output of steps.
//!
//! The checkpoint of a reader is a position in the queue, and it reads without acknowledging: whatever the broker delivers twice, and
//! whenever the process dies, each message is an item once. Writers wait until the broker has stored all messages of a
//! list; a chunk that is written again after a crash is there twice.

mod fault;
mod format;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "nats")]
mod nats;
mod template;
mod until;
mod waiting;

use std::fmt::Display;

use self::fault::Fault;
pub use self::format::{
    AddedFields, BinaryMessages, DecodeMessage, EncodeMessage, JsonMessages, TextMessages,
};
#[cfg(feature = "kafka")]
pub use self::kafka::{KafkaConnection, KafkaItemReader, KafkaItemWriter, KafkaPartitions, KafkaPosition};
#[cfg(feature = "nats")]
pub use self::nats::{NatsConnection, NatsItemReader, NatsItemWriter, NatsPosition};

/// Where a reader starts without a checkpoint: the property `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// `earliest`: with the first message that the broker has.
    Earliest,
    /// `latest`: with messages that arrive from now on.
    Latest,
}

/// What a reader does if the broker has removed messages that it has not read: the property `if.removed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IfRemoved {
    /// `fail`: the step fails.
    Fail,
    /// `continue`: it logs a warning and reads the messages that are left.
    Continue,
}

impl IfRemoved {
    /// Decides about `removed` messages that the broker does not have any more: `missing` says which. `remedy` prevents it.
    fn check(self, missing: &str, removed: impl Display, remedy: &str) -> Result<(), Fault> {
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

crate::choices::choices! {
    Start { "earliest" => Earliest, "latest" => Latest }
    IfRemoved { "fail" => Fail, "continue" => Continue }
}
