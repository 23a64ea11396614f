//! The table as `batch-runtime` gets it, since a crate of macros can export nothing else: a call of a macro of the
//! caller, and the index of the documentation.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};

use super::{ROLES, Role, Shape};

/// Expands to a call of `callback!` with the roles:
///
/// ```text
/// callback! {
///     artifacts { Trait, attribute, function: Type; .. }
///     listeners { Trait, attribute, [Place, ..], function: Type; .. }
///     methods { attribute, .. }
/// }
/// ```
///
/// `function: Type` is missing where the loader inspects nothing. The methods are those that are exported: each name once.
pub(crate) fn for_each_role(callback: &TokenStream) -> TokenStream {
    let (listeners, artifacts): (Vec<&Role>, Vec<&Role>) =
        ROLES.iter().partition(|role| role.places.is_some());
    let (listeners, artifacts) = (listeners.into_iter().map(row), artifacts.into_iter().map(row));
    let mut methods: Vec<&str> = Vec::new();
    for method in ROLES.iter().flat_map(|role| role.methods) {
        let names = [Some(method.attribute), method.alias].into_iter().flatten();
        methods.extend(names.filter(|name| !methods.contains(name)).collect::<Vec<_>>());
    }
    let methods = methods.into_iter().map(ident);
    quote! {
        #callback! {
            artifacts { #(#artifacts)* }
            listeners { #(#listeners)* }
            methods { #(#methods),* }
        }
    }
}

fn row(role: &Role) -> TokenStream {
    let (trait_name, attribute) = (ident(role.trait_name), ident(role.attribute));
    let places = role.places.map(|places| {
        let places = places.iter().map(|place| format_ident!("{place:?}"));
        quote!(, [#(#places),*])
    });
    let fact = role.fact.map(|(function, ty)| {
        let (function, ty): (Ident, TokenStream) = (ident(function), ty.parse().unwrap_or_default());
        quote!(, #function: #ty)
    });
    quote!(#trait_name, #attribute #places #fact;)
}

fn ident(name: &str) -> Ident {
    Ident::new(name, Span::call_site())
}

/// Returns the table of the methods of a role in Markdown.
pub(crate) fn methods(role: &Role) -> String {
    let mut text = "| method | required | |\n|---|---|---|\n".to_owned();
    for method in role.methods {
        let same = ROLES.iter().flat_map(|role| role.methods);
        let doc = same
            .filter(|same| same.attribute == method.attribute && !same.doc.is_empty())
            .map(|same| same.doc)
            .next()
            .unwrap_or_default();
        let required = match (method.required, method.shape) {
            (true, _) => "yes",
            (false, Shape::Checkpoint) => "if `#[open]` takes a checkpoint",
            (false, _) => "no",
        };
        let names = [Some(method.attribute), method.alias].into_iter().flatten();
        let names: Vec<_> = names
            .map(|name| format!("[`{name}`](macro@crate::{name})"))
            .collect();
        let purpose = purpose(doc);
        text.push_str(&format!("| {} | {required} | {purpose} |\n", names.join(" or ")));
    }
    text
}

/// Returns the first paragraph of a documentation, without the period and what the column before says.
fn purpose(doc: &str) -> String {
    let paragraph = doc.split("\n\n").next().unwrap_or_default();
    let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentences = words.trim_end_matches('.').split(". ").filter_map(|sentence| {
        let is_of_column = ["Required", "Optional", "Also in"]
            .iter()
            .any(|start| sentence.starts_with(start));
        match (is_of_column, sentence.split_once("; an extension")) {
            (false, _) => Some(sentence),
            (true, Some(_)) => Some("An extension of the draft"),
            (true, None) => None,
        }
    });
    sentences.collect::<Vec<_>>().join(". ")
}

/// Returns the table of all roles in Markdown.
pub(crate) fn index() -> String {
    let mut text = "| attribute | the artifact | required methods |\n|---|---|---|\n".to_owned();
    for role in ROLES {
        let required = role.methods.iter().filter(|method| method.required);
        let required: Vec<_> = required.map(|method| format!("`{}`", method.attribute)).collect();
        let required = match required.as_slice() {
            [] => "none".to_owned(),
            some => some.join(", "),
        };
        let summary = role.summary.trim().trim_end_matches('.');
        let summary = summary
            .chars()
            .take(1)
            .flat_map(char::to_lowercase)
            .chain(summary.chars().skip(1));
        let summary: String = summary.collect();
        text.push_str(&format!("| `{}` | {summary} | {required} |\n", role.attribute));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::role;

    #[test]
    fn the_methods_of_a_role_say_what_is_required() {
        let text = methods(role("item_writer").unwrap());
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(rows.len(), 6, "{text}");
        assert!(
            rows[1].starts_with("| [`open`](macro@crate::open) | no | Positions the reader or writer at")
        );
        assert!(
            rows[2].ends_with(
                "transaction that commits the checkpoint, or in the destination's transaction, exactly once |"
            ),
            "{text}"
        );
        assert!(
            rows[4].ends_with("its final name. An extension of the draft |"),
            "{text}"
        );
        assert!(
            rows[3].contains("| if `#[open]` takes a checkpoint | Returns the position"),
            "{text}"
        );
        let retried = methods(role("retry_listener").unwrap());
        assert!(
            retried.contains("on_retry_exception) or [`on_retry_write_exception`]"),
            "{retried}"
        );
    }
}
