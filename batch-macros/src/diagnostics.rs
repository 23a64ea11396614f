//! Errors: collected, so that all mistakes of an item are reported at once; with remedies as `= help:` lines, because
//! stable Rust gives macros no sub-diagnostics. Also the attributes that are only valid inside a block.

use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::Generics;

use crate::role::roles_with;

/// The remedy for a type that borrows.
pub(crate) const USE_OWNED: &str = "use an owned type, such as `String` for `&str`";

/// The errors found so far.
#[derive(Default)]
pub(crate) struct Errors(Vec<syn::Error>);

impl Errors {
    /// Adds an error at `place`, the smallest thing that the user has to change, and the remedies.
    pub(crate) fn error(&mut self, place: impl ToTokens, message: impl Display, remedies: &[&dyn Display]) {
        let mut text = message.to_string();
        for remedy in remedies {
            // Code in the remedy is aligned with the remedy's first word.
            text.push_str("\n= help: ");
            text.push_str(&remedy.to_string().replace('\n', "\n        "));
        }
        self.0.push(syn::Error::new_spanned(place, text));
    }

    /// Adds an error if an artifact has lifetime parameters. Returns whether it has.
    pub(crate) fn lifetimes(&mut self, generics: &Generics) -> bool {
        let lifetime = generics.lifetimes().next();
        if let Some(lifetime) = lifetime {
            self.error(
                lifetime,
                "a batch artifact cannot have lifetime parameters: it borrows from nothing",
                &[&USE_OWNED],
            );
        }
        lifetime.is_some()
    }

    /// Adds an error of the parser.
    pub(crate) fn syntax(&mut self, error: syn::Error) {
        self.0.push(error);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One `compile_error!` per error.
impl ToTokens for Errors {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(self.0.iter().map(syn::Error::to_compile_error));
    }
}

/// Reports a method attribute that no artifact attribute has removed, and returns the item as it is.
// Spec: ART-03
pub(crate) fn stray(attribute: &str, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let blocks: Vec<_> = roles_with(attribute)
        .iter()
        .map(|role| format!("`#[{}]`", role.attribute))
        .collect();
    errors.error(
        // Without tokens, the place is the attribute.
        TokenStream::new(),
        format!("`#[{attribute}]` is only valid on a method inside an impl block marked with an artifact attribute"),
        &[&format!("the impl block needs {}", one_of(&blocks))],
    );
    quote!(#errors #item)
}

/// Returns `a`, `a or b`, `a, b or c`.
pub(crate) fn one_of(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [word] => word.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Returns "a `#[read_item]`" or "an `#[open]`".
pub(crate) fn with_article(attribute: &str) -> String {
    let article = if attribute.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    format!("{article} `#[{attribute}]`")
}

/// Returns the candidate that `word` is probably a misspelling of.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, candidate) = candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(word, candidate), candidate))
        .min()?;
    (distance <= candidate.len() / 3).then_some(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_is_near() {
        let attributes = ["open", "close", "read_item", "get_checkpoint_info"];
        assert_eq!(nearest("read_items", attributes), Some("read_item"));
        assert_eq!(nearest("get_checkpoint", attributes), Some("get_checkpoint_info"));
        assert_eq!(nearest("opne", attributes), Some("open"));
        assert_eq!(nearest("cold", attributes), None);
        assert_eq!(nearest("clone", attributes), Some("close"));
        assert_eq!(nearest("inline", attributes), None);
    }
}
