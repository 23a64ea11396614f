//! The programs of the guide compile.

/// The page of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/console.md")]
pub struct Console;
