//! The tokens of checkpoints: `#[open]` decodes them, `#[get_checkpoint_info]` encodes them.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Type;

use crate::call::converted;
use crate::parameters::Parameters;
use crate::tokens::{runtime, spanned};
use crate::validate::{Artifact, ArtifactMethod};

pub(crate) fn open(method: &ArtifactMethod) -> TokenStream {
    let Parameters::Checkpoint(checkpoint) = &method.parameters else {
        let call = converted(method, quote!(UnitReturn), "into_unit", quote!(self));
        return quote!(let _ = checkpoint; #call);
    };
    let codec = codec(checkpoint);
    let call = converted(method, quote!(UnitReturn), "into_unit", quote!(self, checkpoint));
    quote! {
        let checkpoint = #codec.decode(checkpoint)?;
        #call
    }
}

/// The checkpoint has the type of `#[open]`, so that the error for a method that returns another type names both.
pub(crate) fn checkpoint_info(method: &ArtifactMethod, artifact: &Artifact) -> TokenStream {
    let encoded = artifact.methods.iter().filter_map(|open| match &open.parameters {
        Parameters::Checkpoint(checkpoint) => {
            let cfgs = &open.cfgs;
            let codec = codec(checkpoint);
            let call = converted(
                method,
                quote!(CheckpointReturn<#checkpoint>),
                "into_checkpoint",
                quote!(self),
            );
            Some(quote!(#(#cfgs)* let info = #codec.encode(&#call?)?;))
        }
        _ => None,
    });
    quote! {
        #(#encoded)*
        ::core::result::Result::Ok(info)
    }
}

/// Both bodies that require serde of the checkpoint's type do so by the same tokens, so that rustc, which drops repeated
/// errors, reports one.
fn codec(checkpoint: &Type) -> TokenStream {
    spanned(checkpoint, |open, close| {
        let open = quote_spanned!(open=> ::batch_runtime);
        let close = quote_spanned!(close=> >::new());
        quote!(#open::__private::CheckpointCodec::<#checkpoint #close)
    })
}

/// Returns whether the reader or writer has a checkpoint: its type is not `()`.
pub(crate) fn keeps_position(artifact: &Artifact) -> TokenStream {
    let runtime = runtime();
    let of_open = artifact.methods.iter().filter_map(|open| match &open.parameters {
        Parameters::Checkpoint(checkpoint) => {
            let cfgs = &open.cfgs;
            Some(quote!(#(#cfgs)* {
                keeps |= #runtime::ItemType::of::<#checkpoint>() != #runtime::ItemType::of::<()>();
            }))
        }
        _ => None,
    });
    quote!({
        let mut keeps = false;
        #(#of_open)*
        keeps
    })
}
