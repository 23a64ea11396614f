//! Why a request to a broker failed.

use batch_runtime::prelude::*;

use crate::error::ResourceError;

/// An error of a request.
#[derive(Debug)]
pub enum Fault {
    /// The step has to stop.
    Stopped,
    /// It may succeed at another attempt.
    Transient(String),
    /// It would fail again.
    Permanent(String),
}

impl Fault {
    /// Returns the message.
    pub fn into_text(self) -> String {
        match self {
            Self::Stopped => "the step was stopped".to_owned(),
            Self::Transient(text) | Self::Permanent(text) => text,
        }
    }
}

/// Why a reader cannot be opened.
pub enum OpenError {
    /// A request has failed.
    Fault(Fault),
    /// Something else, such as a query of the reader.
    Other(BatchError),
}

impl From<Fault> for OpenError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl OpenError {
    /// Returns the error of `open`; success if the step has to stop, which then ends at the first read.
    pub fn unless_stopped(self, fail: impl FnOnce(String) -> ResourceError) -> Result<(), BatchError> {
        match self {
            Self::Fault(Fault::Stopped) => Ok(()),
            Self::Fault(fault) => Err(fail(fault.into_text()).into()),
            Self::Other(error) => Err(error),
        }
    }
}

/// Why messages cannot be written.
pub enum WriteError {
    /// A request has failed.
    Fault(Fault),
    /// The broker does not accept the message at this place of the list.
    TooLarge(usize),
}

impl From<Fault> for WriteError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}
