//! What is legal and surely a mistake. Macros cannot warn on stable; the compiler does when something deprecated is used.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::{Ident, ImplItem, ItemImpl};

use crate::diagnostics::one_of;
use crate::expand::spanned;
use crate::role::Role;
use crate::validate::Artifact;

/// The warnings of an artifact: a method that is named like an attribute and not marked, and an artifact that no method
/// is marked in.
pub(crate) fn of(role: &Role, artifact: &Artifact, item: &ItemImpl) -> TokenStream {
    let unmarked = item.items.iter().filter_map(|member| {
        let ImplItem::Fn(function) = member else {
            return None;
        };
        let ident = &function.sig.ident;
        let row = role.method(&ident.unraw().to_string())?;
        let used = artifact
            .methods
            .iter()
            .any(|method| method.ident == *ident || method.row.attribute == row.attribute);
        (!used).then_some((ident, row))
    });
    let mut warnings: Vec<_> = unmarked
        .map(|(ident, row)| {
            let note = format!(
                "`fn {ident}` is not called as the `#[{}]` method; mark it, or give it another name",
                row.attribute
            );
            warning("NOT_MARKED", &note, ident)
        })
        .collect();
    if artifact.methods.is_empty() && warnings.is_empty() {
        let attributes: Vec<_> = role
            .methods
            .iter()
            .map(|row| format!("`#[{}]`", row.attribute))
            .collect();
        let verb = if role.attribute.ends_with("listener") {
            "listens to"
        } else {
            "does"
        };
        let note = format!(
            "this {} {verb} nothing; mark a method with {}",
            role.title(),
            one_of(&attributes)
        );
        warnings.push(warning("NO_METHOD", &note, &item.self_ty));
    }
    quote!(#(const _: () = #warnings;)*)
}

fn warning(name: &str, note: &str, place: impl ToTokens) -> TokenStream {
    spanned(place, |_, place| {
        let used = Ident::new(name, place);
        let name = Ident::new(name, Span::call_site());
        quote! {
            {
                #[deprecated(note = #note)]
                const #name: () = ();
                #used
            }
        }
    })
}
