//! An artifact attribute on a type alias: registers a concrete type, which an impl block gives the role, under a name.
//! The compiler checks that the type has the role.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::ItemType;

use crate::diagnostics::Errors;
use crate::expand::registration;
use crate::parse::{Argument, cfgs};
use crate::role::Role;
use crate::settings::{Target, settings};
use crate::tokens::spanned;
use crate::types::ends_in;

/// Expands to the alias and its registration, or to the alias and the errors.
pub(crate) fn alias(role: &Role, arguments: &[Argument], item: &ItemType, mut errors: Errors) -> TokenStream {
    let settings = settings(role, Target::Alias, arguments, &mut errors);
    let ident = &item.ident;
    if !item.generics.params.is_empty() {
        errors.error(
            &item.generics,
            "a generic alias cannot be registered: an artifact is one concrete type",
            &[&format!(
                "write `#[{}(\"Name\")] type Name = Type<Concrete>;`",
                role.attribute
            )],
        );
    }
    let mut attributes = item.attrs.iter();
    if let Some(again) = attributes.find(|attribute| ends_in(attribute.path(), role.attribute)) {
        errors.error(
            again,
            format!("`#[{}]` is given twice for `{ident}`", role.attribute),
            &[&"an alias registers one name; write a second alias for a second name"],
        );
    }
    if !errors.is_empty() {
        return quote!(#item #errors);
    }
    let cfgs = cfgs(&item.attrs);
    // The alias, so that a private one is not reported as unused; at the place of the type that may lack the role.
    let alias = spanned(&item.ty, |open, _| {
        let alias = Ident::new(&ident.to_string(), Span::call_site().located_at(open));
        quote!(#alias)
    });
    let registration = registration(role, &settings.registration(ident), &alias);
    quote! {
        #item

        #(#cfgs)*
        const _: () = {
            #registration
        };
    }
}
