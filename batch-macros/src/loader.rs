//! `#[artifact_loader]` on `impl BatchArtifactLoader for T`: the registration of a preferred loader.
//! The compiler checks that the trait is the right one and that the type is `Default`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Item, ItemImpl, LitStr, PathSegment};

use crate::diagnostics::Errors;
use crate::parse::cfgs;
use crate::strings::Strings;
use crate::tokens::or_none;
use crate::types::type_name;

/// Expands the attribute.
pub(crate) fn attribute(attr: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let mut strings = Strings::new("artifact_loader", ["class"]);
    strings.read(attr, &mut errors);
    let [class] = strings.into_values();
    let block = match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Impl(block)) => block,
        Ok(_) => {
            errors.error(
                TokenStream::new(),
                "`#[artifact_loader]` belongs on the impl of a trait",
                &[&ON_THE_TRAIT],
            );
            return quote!(#item #errors);
        }
        Err(error) => {
            errors.syntax(error);
            return quote!(#item #errors);
        }
    };
    let segment = loader_type(&block, class.is_some(), &mut errors);
    match segment.filter(|_| errors.is_empty()) {
        Some(segment) => expand(&block, &segment, class.as_ref()),
        None => {
            quote!(#block #errors)
        }
    }
}

const ON_THE_TRAIT: &str = "put it on `impl BatchArtifactLoader for Type { .. }`";

/// Returns the last segment of the type's path, the last part of its class.
fn loader_type(block: &ItemImpl, has_class: bool, errors: &mut Errors) -> Option<PathSegment> {
    if block.trait_.is_none() {
        errors.error(
            &block.self_ty,
            "an artifact loader implements a trait, which this impl block does not",
            &[&ON_THE_TRAIT],
        );
        return None;
    }
    if !block.generics.params.is_empty() {
        errors.error(
            &block.generics,
            "a generic impl block is not supported: a loader is one concrete type",
            &[],
        );
        return None;
    }
    let segment = type_name(&block.self_ty).cloned();
    match &segment {
        None => errors.error(
            &block.self_ty,
            "this type cannot be an artifact loader",
            &[&"a loader is a struct or an enum of this crate"],
        ),
        Some(segment) if !segment.arguments.is_none() && !has_class => errors.error(
            segment,
            "a loader of a generic type needs a class",
            &[&"write `#[artifact_loader(class = \"..\")]`"],
        ),
        Some(_) => {}
    }
    segment
}

/// Returns the impl as it is, and the submission to the registry.
fn expand(block: &ItemImpl, segment: &PathSegment, class: Option<&LitStr>) -> TokenStream {
    let self_ty = &block.self_ty;
    let type_name = segment.ident.unraw().to_string();
    let cfgs = cfgs(&block.attrs);
    let class = or_none(class);
    quote! {
        #block

        #(#cfgs)*
        const _: () = {
            ::batch_runtime::__private::inventory::submit! {
                ::batch_runtime::__private::LoaderRegistration::new::<#self_ty>(
                    ::core::concat!(::core::module_path!(), "::", #type_name),
                    #class,
                    ::core::file!(),
                    ::core::line!(),
                )
            }
        };
    }
}
