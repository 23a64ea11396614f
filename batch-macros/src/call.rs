//! Calls of an artifact's methods, whose results become the results of the erased traits.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::{Ident, ReturnType};

use crate::tokens::spanned;
use crate::validate::ArtifactMethod;

/// Returns `<Result as Trait>::convert(Self::method(arguments))`, its ends spanned as the result type, which rustc underlines if it is
/// wrong. `Self::method`, not `self.method()`, because a path finds the user's method before the trait's method of the same name, with any
/// receiver. The future of an `async` method is completed on the calling thread.
pub(crate) fn converted(
    method: &ArtifactMethod,
    trait_name: TokenStream,
    function: &str,
    arguments: TokenStream,
) -> TokenStream {
    let ident = &method.ident;
    let result = result_type(method);
    spanned(&result, |open, close| {
        let open_bracket = quote_spanned!(open=> <);
        let function = Ident::new(function, close);
        let mut call = quote!(Self::#ident(#arguments));
        if method.is_async {
            call = quote!(::batch_runtime::__private::block_on(#call));
        }
        let call = quote_spanned!(close=> (#call));
        let close_bracket = quote_spanned!(close=> >);
        quote!(#open_bracket #result as ::batch_runtime::__private::#trait_name #close_bracket::#function #call)
    })
}

/// Returns `<Result as Trait>::name`, spanned as by `converted`.
pub(crate) fn associated(method: &ArtifactMethod, trait_name: TokenStream, name: &str) -> TokenStream {
    let result = result_type(method);
    spanned(&result, |open, close| {
        let open_bracket = quote_spanned!(open=> <);
        let name = Ident::new(name, close);
        let close = quote_spanned!(close=> >::#name);
        quote!(#open_bracket #result as ::batch_runtime::__private::#trait_name #close)
    })
}

/// Returns the method's result type; `()` at the method's name if there is none.
pub(crate) fn result_type(method: &ArtifactMethod) -> TokenStream {
    match &method.result {
        ReturnType::Default => quote_spanned!(method.ident.span()=> ()),
        ReturnType::Type(_, ty) => ty.to_token_stream(),
    }
}
