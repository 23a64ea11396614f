//! The end of a step or job execution: its exit status and message.
// Spec: STATUS-03, STATUS-18, STATUS-20, STATUS-27

use super::call::Failure;
use crate::repository::Ending;
use crate::status::BatchStatus;

/// Maximum length of an exit status in the repository.
// Spec: D-69
const MAX_EXIT_STATUS: usize = 2_500;

/// Returns the ending of `element`, such as ``step `load` ``, and its failure. An exit status that cannot be stored
/// is a failure too, unless there is an earlier one.
pub(crate) fn settle(
    element: &str,
    chosen: Option<String>,
    status: BatchStatus,
    failure: Option<Failure>,
) -> (Ending, Option<Failure>) {
    match exit_status(chosen, status) {
        Ok(exit_status) => {
            let message = failure.as_ref().map(|failure| failure.message.clone());
            (
                Ending::new(status, exit_status, message.unwrap_or_default()),
                failure,
            )
        }
        Err(problem) => {
            let problem = format!("{element} set {problem}");
            let message = match &failure {
                Some(first) => format!("{}\n{problem}", first.message),
                None => problem.clone(),
            };
            let failure = failure.unwrap_or_else(|| Failure::new(problem));
            (Ending::of(BatchStatus::Failed, message), Some(failure))
        }
    }
}

/// Returns the exit status that was set, else the batch status.
///
/// # Errors
/// The reason why the exit status is invalid.
fn exit_status(chosen: Option<String>, status: BatchStatus) -> Result<String, String> {
    let Some(chosen) = chosen else {
        return Ok(status.to_string());
    };
    let length = chosen.chars().count();
    if chosen.is_empty() {
        return Err("an empty exit status".into());
    }
    // Not truncated: a restart takes the transitions by the stored exit status.
    if length > MAX_EXIT_STATUS {
        return Err(format!(
            "an exit status of {length} characters; the repository stores at most {MAX_EXIT_STATUS}"
        ));
    }
    if chosen.contains('\0') {
        return Err("an exit status with a NUL character, which not every database can store".into());
    }
    Ok(chosen)
}
