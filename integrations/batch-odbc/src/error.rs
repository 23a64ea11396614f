//! Errors of drivers.

use std::error::Error;
use std::fmt;

use batch_items::database::StatementError;
use batch_runtime::ConnectionLost;
use batch_runtime::prelude::*;
use odbc_api::handles::Record;

/// An error of a driver, or of the driver manager.
#[derive(Debug, BatchException)]
#[batch_exception(class = "batch_odbc::OdbcError")]
pub struct OdbcError {
    message: String,
    /// Empty if it is not known.
    state: String,
    native: i32,
}

impl OdbcError {
    /// Creates an error that is not the driver's.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            state: String::new(),
            native: 0,
        }
    }

    /// Returns the SQLSTATE, such as `23505`; empty if the driver has returned none.
    pub fn sqlstate(&self) -> &str {
        &self.state
    }

    /// Returns whether the database cannot be reached any more, or not yet.
    pub(crate) fn is_of_connection(&self) -> bool {
        // PostgreSQL has no SQLSTATE for a login that it rejects.
        let is_rejected = ["authentication", "does not exist"];
        let is_rejected = is_rejected.iter().any(|text| self.message.contains(text));
        // Errors of the client library of MySQL.
        let is_of_client = self.state == "HY000" && (2002..=2013).contains(&self.native);
        !is_rejected && (self.state.starts_with("08") || self.state == "57P01" || is_of_client)
    }

    /// Returns whether a constraint of a table is the cause.
    fn is_violation(&self) -> bool {
        // The driver of SQLite has no SQLSTATE for it.
        self.state.starts_with("23") || (self.state == "HY000" && self.native == 19)
    }

    /// Returns whether a table does not exist.
    pub(crate) fn is_of_missing_table(&self) -> bool {
        // The driver of SQLite has one code for all errors of a statement.
        ["42S02", "42P01"].contains(&self.state.as_str()) || self.message.contains("no such table")
    }

    /// Returns this error; as a lost connection, if it is one.
    pub(crate) fn or_lost(self) -> Box<dyn Error + Send + Sync> {
        match self.is_of_connection() {
            true => Box::new(ConnectionLost::new(self)),
            false => Box::new(self),
        }
    }
}

impl From<odbc_api::Error> for OdbcError {
    fn from(error: odbc_api::Error) -> Self {
        match error {
            odbc_api::Error::Diagnostics { record, .. } => Self::from(record),
            other => Self::new(other.to_string()),
        }
    }
}

impl From<Record> for OdbcError {
    fn from(record: Record) -> Self {
        let text = String::from_utf8_lossy(&record.message).into_owned();
        // The names of the driver manager, the driver and the data source come first.
        let mut message = text.as_str();
        while let Some((_, rest)) = message.strip_prefix('[').and_then(|name| name.split_once(']')) {
            message = rest;
        }
        Self {
            message: message.trim().to_owned(),
            state: record.state.as_str().to_owned(),
            native: record.native_error,
        }
    }
}

impl From<OdbcError> for StatementError {
    fn from(error: OdbcError) -> Self {
        Self {
            is_violation: error.is_violation(),
            may_be_of_table: error.state.starts_with("42") || error.message.contains("no such"),
            key: None,
            cause: error.into(),
        }
    }
}

impl fmt::Display for OdbcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match (self.state.as_str(), self.native) {
            ("", _) => Ok(()),
            (state, 0) => write!(f, " (SQLSTATE {state})"),
            (state, native) => write!(f, " (SQLSTATE {state}, error {native})"),
        }
    }
}

impl Error for OdbcError {}
