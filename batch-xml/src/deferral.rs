//! Symbols that have a value only in a partition.

use std::collections::{BTreeSet, HashSet};

/// A partitioned element, seen from outside of its partitions: values that only they have are deferred.
// Spec: SUBST-09, D-39
#[derive(Debug, Default)]
pub(crate) struct Deferral {
    /// The names that the partitions define; `None`: an algorithm decides, so any name is possible.
    pub(crate) names: Option<HashSet<String>>,
    /// The deferred symbols.
    pub(crate) used: BTreeSet<String>,
    /// The deferred symbols that have no default.
    pub(crate) required: BTreeSet<String>,
}

impl Deferral {
    pub(crate) fn may_supply(&self, name: &str) -> bool {
        self.names.as_ref().is_none_or(|names| names.contains(name))
    }
}
