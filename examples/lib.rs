//! The examples of batch-runtime; each directory is one, with its job XML.
