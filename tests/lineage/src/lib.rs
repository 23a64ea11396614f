//! The programs of the guide compile.

/// The page of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/lineage.md")]
pub struct Lineage;
