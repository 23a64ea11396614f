//! `#[derive(BatchException)]`: the class names of an error type and its variants in Job XML.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Attribute, Data, DeriveInput, Fields, LitStr};

use crate::diagnostics::Errors;
use crate::parse::list;
use crate::strings::Strings;
use crate::tokens::{or_none, runtime};
use crate::types::ends_in;

/// Expands the derive.
pub(crate) fn derive(input: TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(input) {
        Ok(input) => input,
        Err(error) => return error.into_compile_error(),
    };
    let mut errors = Errors::default();
    let classes = classes(&input, &mut errors);
    if errors.is_empty() {
        expand(&input, &classes)
    } else {
        errors.into_token_stream()
    }
}

/// The declarations of one `#[batch_exception(...)]`.
struct Declared {
    class: Option<LitStr>,
    extends: Option<LitStr>,
}

/// Returns the declarations of the type and of each variant.
fn classes(input: &DeriveInput, errors: &mut Errors) -> (Declared, Vec<Declared>) {
    if !input.generics.params.is_empty() {
        errors.error(
            &input.generics,
            "a generic error type cannot have a class name: generics are not supported",
            &[&"derive `BatchException` on the concrete error inside, which Job XML then finds as its source"],
        );
    }
    let variants = match &input.data {
        Data::Enum(data) => data
            .variants
            .iter()
            .map(|variant| declared(&variant.attrs, errors))
            .collect(),
        Data::Struct(_) => Vec::new(),
        Data::Union(data) => {
            errors.error(
                data.union_token,
                "a union cannot be an error type",
                &[&"derive `BatchException` on a struct or an enum"],
            );
            Vec::new()
        }
    };
    (declared(&input.attrs, errors), variants)
}

fn declared(attributes: &[Attribute], errors: &mut Errors) -> Declared {
    let mut strings = Strings::new("batch_exception", ["class", "extends"]);
    let is_class = |attribute: &&Attribute| ends_in(attribute.path(), "batch_exception");
    for attribute in attributes.iter().filter(is_class) {
        if strings.read(list(attribute), errors) == Some(0) {
            errors.error(
                attribute.path(),
                "`#[batch_exception]` declares nothing",
                &[&"write `#[batch_exception(class = \"..\")]`, `extends = \"..\"` or both"],
            );
        }
    }
    let [class, extends] = strings.into_values();
    Declared { class, extends }
}

fn expand(input: &DeriveInput, (of_type, of_variants): &(Declared, Vec<Declared>)) -> TokenStream {
    let runtime = runtime();
    let ident = &input.ident;
    let name = ident.unraw().to_string();
    let class = |path: &str, declared: &Declared| {
        let class = or_none(declared.class.as_ref());
        let extends = or_none(declared.extends.as_ref());
        quote! {
            #runtime::ExceptionClass {
                path: ::core::concat!(::core::module_path!(), "::", #path),
                declared: #class,
                extends: #extends,
            }
        }
    };
    let mut classes = vec![class(&name, of_type)];
    let mut arms = Vec::new();
    if let Data::Enum(data) = &input.data {
        for (index, (variant, declared)) in data.variants.iter().zip(of_variants).enumerate() {
            let variant_ident = &variant.ident;
            classes.push(class(&format!("{name}::{}", variant_ident.unraw()), declared));
            let fields = match variant.fields {
                Fields::Named(_) => quote!({ .. }),
                Fields::Unnamed(_) => quote!((..)),
                Fields::Unit => quote!(),
            };
            let index = index + 1;
            arms.push(quote!(#ident::#variant_ident #fields => #index,));
        }
    }
    let (parameter, body) = if arms.is_empty() {
        (quote!(_), quote!(0))
    } else {
        (quote!(error), quote!(match error { #(#arms)* }))
    };
    // rustc reports a type that is not an error at its name.
    let new = quote_spanned!(ident.span()=> new::<#ident>);
    quote! {
        #runtime::inventory::submit! {
            #runtime::ExceptionRegistration::#new(
                &[#(#classes),*],
                |error| error.downcast_ref::<#ident>().map(|#parameter| #body),
            )
        }
    }
}
