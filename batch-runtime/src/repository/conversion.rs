//! The plan of a conversion of the tables to another layout.

use std::io;

use super::RepositoryLayout;

/// Receives all instances as lines of JSON, and is flushed before the tables are changed.
pub(crate) type Backup<'a> = &'a mut dyn io::Write;

/// The number of obstacles that are reported.
const MAX_OBSTACLES: usize = 20;

/// A conversion to another layout: its effects, and its obstacles.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayoutConversion {
    /// The layout of the tables.
    pub from: RepositoryLayout,
    /// The layout after the conversion.
    pub to: RepositoryLayout,
    /// The number of job instances.
    pub instances: u64,
    /// The number of instances whose keys are replaced by keys of the new layout.
    pub replaced_keys: u64,
    /// The number of instances whose keys are kept, because Spring Batch did not compute them or the new key cannot be determined. A launch
    /// with the same parameters does not find these instances.
    pub kept_keys: u64,
    /// The number of parameters of all executions.
    pub parameters: u64,
    /// The number of parameters that are null, which Spring Batch 5 and 6 cannot read.
    pub null_parameters: u64,
    /// The obstacles: open executions, running workers, values that the new layout cannot store, and objects that the program added to
    /// replaced tables; at most 20.
    pub obstacles: Vec<String>,
}

impl LayoutConversion {
    pub(super) fn new(from: RepositoryLayout, to: RepositoryLayout) -> Self {
        Self {
            from,
            to,
            instances: 0,
            replaced_keys: 0,
            kept_keys: 0,
            parameters: 0,
            null_parameters: 0,
            obstacles: Vec::new(),
        }
    }

    pub(super) fn add_obstacle(&mut self, obstacle: String) {
        if self.obstacles.len() < MAX_OBSTACLES {
            self.obstacles.push(obstacle);
        }
    }
}
