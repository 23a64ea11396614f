//! Entries of lists in properties, such as `NOTHING TO DO=5`.

/// Splits an entry at its last equals sign. The name is not empty.
///
/// # Errors
/// With `expected`, which describes an entry.
pub(crate) fn name_and_value<'a>(entry: &'a str, expected: &str) -> Result<(&'a str, &'a str), String> {
    entry
        .rsplit_once('=')
        .map(|(name, value)| (name.trim(), value.trim()))
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| format!("invalid entry {:?}: expected `{expected}`", entry.trim()))
}
