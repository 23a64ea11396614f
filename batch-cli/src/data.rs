//! The data of an execution, as far as it can be read.

use batch_runtime::context::PersistentData;
use batch_runtime::repository::RepositoryError;
use batch_runtime::{JobExecutionId, JobOperator, JobOperatorError};

/// Returns the data of an execution, and why it cannot be read: another program may have written its context, and the rest can be shown.
pub(crate) fn data_of(
    operator: &JobOperator,
    id: JobExecutionId,
) -> Result<(PersistentData, Option<String>), JobOperatorError> {
    match operator.persistent_data(id) {
        Ok(data) => Ok((data, None)),
        Err(JobOperatorError::Repository(error @ RepositoryError::Corrupt { .. })) => {
            Ok((PersistentData::default(), Some(error.to_string())))
        }
        Err(error) => Err(error),
    }
}
