//! Messages of errors.

/// Returns the message of an error of parquet or arrow without the prefix that names its kind.
pub(super) fn message(error: &impl ToString) -> String {
    let text = error.to_string();
    text.split_once(": ")
        .map_or_else(|| text.clone(), |(_, message)| message.to_owned())
}
