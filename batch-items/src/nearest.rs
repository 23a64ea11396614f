//! Suggestions in messages.

use batch_runtime::xml::suggest::nearest;

/// Returns `; did you mean `x`?` for the candidate that `wanted` is probably a misspelling of, or nothing.
pub(crate) fn did_you_mean<'c>(wanted: &str, candidates: impl Iterator<Item = &'c str>) -> String {
    nearest(wanted, candidates).map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"))
}
