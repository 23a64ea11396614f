//! Suggestions in messages.

/// Returns `; did you mean `x`?` for the candidate that is most like `wanted`, or nothing.
pub(crate) fn did_you_mean<'c>(wanted: &str, candidates: impl Iterator<Item = &'c str>) -> String {
    let wanted = wanted.to_lowercase();
    let likeness = |candidate: &str| strsim::damerau_levenshtein(&wanted, &candidate.to_lowercase());
    let nearest = candidates.min_by_key(|candidate| likeness(candidate));
    match nearest {
        Some(nearest) if likeness(nearest) <= wanted.chars().count().div_ceil(3) => {
            format!("; did you mean `{nearest}`?")
        }
        _ => String::new(),
    }
}
