//! Properties with a few valid texts.

use batch_runtime::xml::suggest::one_of;

/// Implements `FromStr` for enums, so that they can be properties. Its error lists the valid texts.
///
/// ```
/// #[derive(Clone, Copy)]
/// enum Order {
///     Name,
///     Age,
/// }
///
/// batch_items::choices! {
///     Order { "name" => Name, "age" => Age }
/// }
/// assert!("size".parse::<Order>().is_err());
/// ```
#[macro_export]
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

/// Returns ``expected `a`, `b` or `c` ``.
#[must_use]
pub fn expected(texts: &[&str]) -> String {
    format!("expected {}", one_of(texts))
}
