//! Tokens that several expansions need.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};

/// Returns the path of what `batch-runtime` has for generated code.
pub(crate) fn runtime() -> TokenStream {
    quote!(::batch_runtime::__private)
}

/// Returns an `Option` with the value, if there is one.
pub(crate) fn or_none(value: Option<impl ToTokens>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}

/// Builds tokens with the spans of the first and the last token of `place`; rustc underlines what lies between. Stable
/// Rust cannot make a span of the whole.
pub(crate) fn spanned(place: impl ToTokens, build: impl FnOnce(Span, Span) -> TokenStream) -> TokenStream {
    let mut tokens = place.into_token_stream().into_iter();
    let first = tokens.next();
    let last = tokens.last().or_else(|| first.clone());
    let close = last.map_or_else(Span::call_site, |token| match token {
        TokenTree::Group(group) => group.span_close(),
        token => token.span(),
    });
    let open = first.map_or_else(Span::call_site, |token| match token {
        TokenTree::Group(group) => group.span_open(),
        token => token.span(),
    });
    build(open, close)
}
