//! Warnings about legal code that is probably a mistake. Macros cannot warn on stable, so generated code uses deprecated
//! items.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::{Ident, ImplItem, ItemImpl};

use crate::diagnostics::one_of;
use crate::role::{Method, Role};
use crate::tokens::spanned;
use crate::validate::Artifact;

/// Returns the warnings of an artifact: about methods that have an attribute's usual name and no attribute, and about an artifact
/// without method attributes.
pub(crate) fn of(role: &Role, artifact: &Artifact, item: &ItemImpl) -> TokenStream {
    let unmarked = item.items.iter().filter_map(|member| {
        let ImplItem::Fn(function) = member else {
            return None;
        };
        let ident = &function.sig.ident;
        let name = ident.unraw().to_string();
        let is_usual = |row: &&Method| row.usual_names.contains(&name.as_str());
        let row = role
            .method(&name)
            .or_else(|| role.methods.iter().find(is_usual))?;
        let used = artifact
            .methods
            .iter()
            .any(|method| method.ident == *ident || method.row.attribute == row.attribute);
        (!used).then_some((ident, row))
    });
    let mut warnings: Vec<_> = unmarked
        .map(|(ident, row)| {
            let note = format!(
                "`fn {ident}` has no `#[{}]` attribute, so the runtime never calls it; add the attribute, or rename the method",
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
        let note = format!(
            "this {} has no method that the runtime calls; mark one with {}",
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
