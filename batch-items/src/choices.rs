//! Properties with a few valid texts.

/// Implements `FromStr` for enums, with an error that lists the valid texts.
macro_rules! choices {
    ($($name:ident { $($text:literal => $variant:ident),* })*) => {$(
        impl ::std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($text => Ok(Self::$variant),)*
                    _ => Err($crate::choices::expected(&[$($text),*])),
                }
            }
        }
    )*};
}

pub(crate) use choices;

/// Returns ``expected `a`, `b` or `c` ``.
pub(crate) fn expected(texts: &[&str]) -> String {
    let texts: Vec<_> = texts.iter().map(|text| format!("`{text}`")).collect();
    match texts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("expected {} or {last}", rest.join(", ")),
        _ => format!("expected {}", texts.join("")),
    }
}
