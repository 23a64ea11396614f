//! The code emitted beside errors, so that one mistake is one error: the user's item, which other code may use, and a stub
//! of what other generated code requires.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, parse_quote};

use crate::diagnostics::Errors;
use crate::tokens::runtime;

/// Returns a stub of `BatchArtifact`, which the role blocks of the type require.
pub(crate) fn artifact(input: &DeriveInput, errors: &Errors) -> TokenStream {
    let ident = &input.ident;
    let mut generics = input.generics.clone();
    if !generics.params.is_empty() {
        // A missing `Send` or `'static` would be a second error of the same mistake.
        generics
            .make_where_clause()
            .predicates
            .push(parse_quote!(Self: ::core::marker::Send + 'static));
    }
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let runtime = runtime();
    quote! {
        #errors
        #[automatically_derived]
        impl #impl_generics #runtime::BatchArtifact for #ident #type_generics #where_clause {
            fn inject(_: &#runtime::InjectionScope<'_>) -> ::core::result::Result<Self, #runtime::InjectError> {
                loop {}
            }
            fn set_properties(
                &mut self,
                _: &#runtime::InjectionScope<'_>,
            ) -> ::core::result::Result<(), #runtime::InjectError> {
                loop {}
            }
            fn bind_contexts(
                &mut self,
                _: &#runtime::ContextScope,
            ) -> ::core::result::Result<(), #runtime::InjectError> {
                loop {}
            }
            fn properties() -> ::std::vec::Vec<#runtime::PropertyInfo> {
                loop {}
            }
            fn contexts() -> ::std::vec::Vec<#runtime::ContextInfo> {
                loop {}
            }
        }
    }
}
