//! The operations of purge, export and import.

use crate::ids::JobInstanceId;
use crate::repository::{ArchivedInstance, InstanceState, Result};

/// The operations of purge, export and import on whole instances.
pub(crate) trait ArchiveStore: Send + Sync {
    /// Returns the states of at most `count` instances after one, in the order of their ids.
    fn instance_states(
        &self,
        job: Option<&str>,
        after: JobInstanceId,
        count: u32,
    ) -> Result<Vec<InstanceState>>;

    /// Deletes instances with everything that belongs to them, if they still are as `seen`: the same last execution, ended
    /// and not held. A crash leaves all of them or none. Returns the number deleted.
    fn delete_instances(&self, seen: &[InstanceState]) -> Result<u64>;

    /// Returns an instance with everything that belongs to it.
    fn export_instance(&self, instance: JobInstanceId) -> Result<Option<ArchivedInstance>>;

    /// Inserts an instance, with new ids. Returns `None` if its job has an instance with the same key.
    fn import_instance(&self, archived: &ArchivedInstance) -> Result<Option<JobInstanceId>>;
}
