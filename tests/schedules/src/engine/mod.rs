//! Modules named like the engine's, for its files.

pub(crate) mod call;
pub(crate) mod threads;
