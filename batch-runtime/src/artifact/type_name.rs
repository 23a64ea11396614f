//! The names of types in messages.

/// Returns a type name without the paths of the standard library: `Vec<u64>` for `alloc::vec::Vec<u64>`.
pub(crate) fn short(full: &str) -> String {
    let is_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let mut text = String::new();
    let mut rest = full;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_of_path(c)).unwrap_or(rest.len());
        let (path, behind) = rest.split_at(end);
        let is_standard = ["std::", "alloc::", "core::"]
            .iter()
            .any(|library| path.starts_with(library));
        text.push_str(match path.rsplit_once("::") {
            Some((_, last)) if is_standard => last,
            _ => path,
        });
        let other = behind.find(is_of_path).unwrap_or(behind.len());
        text.push_str(&behind[..other]);
        rest = &behind[other..];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn only_the_paths_of_the_standard_library_are_left_out() {
        for (full, expect) in [
            ("u64", "u64"),
            ("alloc::vec::Vec<u64>", "Vec<u64>"),
            ("core::option::Option<alloc::string::String>", "Option<String>"),
            ("alloc::vec::Vec<my::core::Row>", "Vec<my::core::Row>"),
            (
                "(std::path::PathBuf, &[alloc::sync::Arc<dyn a::B>])",
                "(PathBuf, &[Arc<dyn a::B>])",
            ),
            ("stdx::Row", "stdx::Row"),
            ("", ""),
        ] {
            assert_eq!(short(full), expect);
        }
    }
}
