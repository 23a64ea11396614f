//! Properties with a few valid texts.

use batch_runtime::xml::suggest::one_of;

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
    format!("expected {}", one_of(texts))
}
