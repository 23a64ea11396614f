//! The contexts: handles that a running job, step, flow or split shares with its artifacts.
// Spec: CTX-01, CTX-13 to CTX-36

mod element;
mod job;
mod plain;
mod records;
mod step;

pub(crate) use self::element::ShowsStop;
pub use self::job::JobContext;
pub(crate) use self::job::RuntimeRef;
pub use self::plain::{FlowContext, SplitContext};
pub use self::step::StepContext;
pub use crate::checkpoint::UserDataError;
pub use crate::job_data::PersistentData;
