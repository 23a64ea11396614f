//! The attribute macros of `batch-runtime`, which re-exports them: the annotations of the batch artifacts.
//! Each entry is one line; `role/table.rs` is the table of all roles.
//!
//! `parse` -> `validate` -> `expand`, or `fallback` when a check found an error.
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `tokio` | `async` methods, as of `batch-runtime` |
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod alias;
mod artifact;
mod call;
mod checkpoints;
mod describe;
mod diagnostics;
mod embed;
mod exception;
mod expand;
mod fallback;
mod function;
mod loader;
mod parameters;
mod parse;
mod role;
mod settings;
#[cfg(test)]
mod snapshots;
mod strings;
mod tokens;
mod types;
mod validate;
mod warnings;

use proc_macro::TokenStream;
use quote::quote;

use diagnostics::{Errors, stray};
use role::role_table;

/// Implements the trait of the same name for a struct.
#[proc_macro_derive(
    BatchArtifact,
    attributes(batch_property, batch_context, batch_artifact, default)
)]
pub fn derive_batch_artifact(input: TokenStream) -> TokenStream {
    artifact::derive(input.into()).into()
}

/// Registers a preferred artifact loader.
#[proc_macro_attribute]
pub fn artifact_loader(attr: TokenStream, item: TokenStream) -> TokenStream {
    loader::attribute(attr.into(), item.into()).into()
}

/// Gives an error type a class name.
#[proc_macro_derive(BatchException, attributes(batch_exception))]
pub fn derive_batch_exception(input: TokenStream) -> TokenStream {
    exception::derive(input.into()).into()
}

#[allow(
    missing_docs,
    reason = "batch-runtime exports it with its documentation, whose example compiles there"
)]
#[proc_macro]
pub fn embed_jobs(directory: TokenStream) -> TokenStream {
    embed::jobs(directory.into()).into()
}

/// Calls a macro with the table of roles. For `batch-runtime` only; may change with every release.
#[doc(hidden)]
#[proc_macro]
pub fn __for_each_role(callback: TokenStream) -> TokenStream {
    role::for_each_role(&callback.into()).into()
}

/// Returns the index of all roles in Markdown. For `batch-runtime` only; may change with every release.
#[doc(hidden)]
#[proc_macro]
pub fn __role_index(_: TokenStream) -> TokenStream {
    let index = role::index();
    quote!(#index).into()
}

/// Returns the methods of a role in Markdown. For `batch-runtime` only; may change with every release.
#[doc(hidden)]
#[proc_macro]
pub fn __role_methods(attribute: TokenStream) -> TokenStream {
    let methods = role::role(&attribute.to_string()).map(role::methods);
    quote!(#methods).into()
}

/// Parses, validates, then expands or falls back: the whole of an artifact attribute.
fn artifact_attribute(
    role: &'static str,
    attr: proc_macro2::TokenStream,
    item: proc_macro2::TokenStream,
) -> proc_macro2::TokenStream {
    let Some(role) = role::role(role) else { return item };
    let mut errors = Errors::default();
    let arguments = parse::arguments(attr.clone()).unwrap_or_else(|error| {
        errors.syntax(error);
        Vec::new()
    });
    let item = match syn::parse2::<syn::Item>(item.clone()) {
        Ok(syn::Item::Impl(item)) => item,
        Ok(syn::Item::Type(item)) => return alias::alias(role, &arguments, &item, errors),
        Ok(other) => {
            if let syn::Item::Fn(item) = &other
                && let Some(method) = function::method_of(role, item)
            {
                return function::function(role, method, &attr, item.clone(), errors);
            }
            validate::not_an_impl_block(role, &other, &mut errors);
            return quote!(#other #errors);
        }
        Err(error) => {
            errors.syntax(error);
            return quote!(#item #errors);
        }
    };
    let block = parse::block(role, item);
    match validate::artifact(role, &arguments, &block, &mut errors) {
        Some(artifact) => expand::role(role, &artifact, &block.item),
        None => {
            // The role trait needs no stub, because only the registration names it, which is left out as well.
            let item = &block.item;
            quote!(#item #errors)
        }
    }
}

// An attribute per role and per method of the table. `#[batch_property]`, `#[batch_context]` and `#[batch_artifact]` are not
// among them: they are helpers of the derive, and a macro of the same name in scope would make each use of a helper
// ambiguous (E0659).
macro_rules! entry_points {
    ($(
        $(#[doc = $summary:literal])+
        $role:ident $trait_name:ident { $($role_fields:tt)* } [$(
            $(#[doc = $doc:literal])*
            $method:ident $(| $alias:ident)? ($signature:literal $(or $alternative:literal)?) { $($fields:tt)* }
        )*]
    )*) => {$(
        #[allow(missing_docs, reason = "batch-runtime exports it with its documentation, whose example compiles there")]
        #[proc_macro_attribute]
        pub fn $role(attr: TokenStream, item: TokenStream) -> TokenStream {
            artifact_attribute(stringify!($role), attr.into(), item.into()).into()
        }

        $(method_attribute! { $role [$($doc)*] $method $($alias)? ($signature $($alternative)?) })*
    )*};
}

macro_rules! method_attribute {
    // An earlier role has documented it.
    ($role:ident [] $($method:tt)*) => {};
    ($role:ident [$($doc:literal)+] $method:ident $alias:ident $signature:tt) => {
        method_attribute! { $role [$($doc)+] $method $signature }

        #[doc = concat!("Marks the same method as [`macro@", stringify!($method), "`], by another name that the draft uses.")]
        #[proc_macro_attribute]
        pub fn $alias(_: TokenStream, item: TokenStream) -> TokenStream {
            stray(stringify!($alias), item.into()).into()
        }
    };
    ($role:ident [$($doc:literal)+] $method:ident ($signature:literal $($alternative:literal)?)) => {
        #[doc = concat!(
            $($doc, "\n",)+
            "\n```text\n#[", stringify!($method), "]\n", $signature,
            $("\n// or\n", $alternative,)?
            "\n```\n\nFor an example see [`macro@", stringify!($role), "`]."
        )]
        #[proc_macro_attribute]
        pub fn $method(_: TokenStream, item: TokenStream) -> TokenStream {
            stray(stringify!($method), item.into()).into()
        }
    };
}

role_table!(entry_points);
