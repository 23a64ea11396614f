//! Modules named like those of the engine, for its files.

pub(crate) mod call;
pub(crate) mod threads;
