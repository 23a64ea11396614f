//! The artifacts of the job `reminders`, and the loader that gives them the pool of connections.

mod artifacts;
mod clients;

pub use clients::Clients;

/// The programs of the guide compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/async.md")]
pub struct Guide;
