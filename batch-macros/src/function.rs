//! An artifact attribute on a function: the one required method of a role, for an artifact without state. Parameters with
//! `#[batch_property]`, `#[batch_context]` or `#[batch_artifact]` are injected, the others are the method's.
// Spec: ART-15

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, FnArg, Ident, ItemFn, Pat, PatType, Type, parse_quote};

use crate::diagnostics::{Errors, with_article};
use crate::parameters::parameter_counts;
use crate::parse::cfgs;
use crate::role::{Method, Receiver, Role, Shape};
use crate::types::ends_in;

/// The attributes of an injected parameter, the same as a field's.
const INJECTED: [&str; 3] = ["batch_property", "batch_context", "batch_artifact"];

/// Returns the only required method of a role, which a function can implement. Returns `None` for readers, which need a checkpoint, and for
/// functions with `self`.
pub(crate) fn method_of(role: &Role, item: &ItemFn) -> Option<&'static Method> {
    if item.sig.receiver().is_some() {
        return None;
    }
    let mut required = role.methods.iter().filter(|method| method.required);
    match (required.next(), required.next()) {
        (Some(method), None) if !matches!(method.shape, Shape::Read) => Some(method),
        _ => None,
    }
}

/// Expands to the function and an artifact that calls it. `arguments` are the attribute's.
pub(crate) fn function(
    role: &Role,
    method: &Method,
    arguments: &TokenStream,
    mut item: ItemFn,
    mut errors: Errors,
) -> TokenStream {
    if item.sig.generics.type_params().next().is_some() || item.sig.generics.const_params().next().is_some() {
        errors.error(
            &item.sig.generics,
            "a generic function cannot be an artifact, which is one concrete type",
            &[&"write the types that the job has"],
        );
    } else if !item.sig.generics.params.is_empty() {
        errors.error(
            &item.sig.generics,
            "a function with lifetime parameters cannot be an artifact",
            &[&"leave the lifetimes out"],
        );
    }
    let parameters = split_parameters(&mut item, &mut errors);
    let (_, most) = parameter_counts(method);
    // A parameter that cannot be injected is reported already.
    if errors.is_empty()
        && let Some((_, extra)) = parameters.of_method.get(most)
    {
        let takes = match most {
            0 => "only injected parameters".to_owned(),
            1 => "one parameter that is not injected".to_owned(),
            most => format!("{most} parameters that are not injected"),
        };
        errors.error(
            extra,
            format!("{} function takes {takes}", with_article(role.attribute)),
            &[&"mark a job parameter or property with `#[batch_property]`, and a context with `#[batch_context]`"],
        );
    }
    if !errors.is_empty() {
        return quote!(#item #errors);
    }
    let artifact = artifact(role, method, arguments, &item, &parameters);
    let cfgs = cfgs(&item.attrs);
    quote! {
        #item

        #(#cfgs)*
        #[allow(non_camel_case_types)]
        const _: () = { #artifact };
    }
}

/// The parameters of a function.
#[derive(Default)]
struct Parameters {
    fields: Vec<TokenStream>,
    /// The method's parameters, which are not injected.
    of_method: Vec<(Ident, Type)>,
    /// The arguments of the function.
    arguments: Vec<TokenStream>,
}

/// Returns the parameters, and takes the attributes of the injected ones away.
fn split_parameters(item: &mut ItemFn, errors: &mut Errors) -> Parameters {
    let mut parameters = Parameters::default();
    for (position, parameter) in item.sig.inputs.iter_mut().enumerate() {
        // A free function has no `self`.
        let FnArg::Typed(parameter) = parameter else {
            continue;
        };
        if let Some((field, argument)) = injected(parameter, errors) {
            parameters.fields.push(field);
            parameters.arguments.push(argument);
        } else {
            let name = format_ident!("parameter_{position}");
            parameters.arguments.push(quote!(#name));
            parameters.of_method.push((name, (*parameter.ty).clone()));
        }
    }
    parameters
}

/// Returns a struct whose method calls the function. It is named like the function: types and functions have separate namespaces.
fn artifact(
    role: &Role,
    method: &Method,
    arguments: &TokenStream,
    item: &ItemFn,
    parameters: &Parameters,
) -> TokenStream {
    let Parameters {
        fields,
        of_method,
        arguments: passed,
    } = parameters;
    let (name, output, asyncness) = (&item.sig.ident, &item.sig.output, &item.sig.asyncness);
    let of_method = of_method.iter().map(|(name, ty)| quote!(#name: #ty));
    let awaited = asyncness.map(|_| quote!(.await));
    let role = format_ident!("{}", role.attribute);
    let attribute = format_ident!("{}", method.attribute);
    let receiver = match method.receiver {
        Receiver::Shared => quote!(&self),
        Receiver::Any => quote!(&mut self),
    };
    quote! {
        #[derive(::batch_runtime::BatchArtifact)]
        struct #name {
            #(#fields,)*
        }

        #[::batch_runtime::#role(#arguments)]
        impl #name {
            #[::batch_runtime::#attribute]
            #asyncness fn #name(#receiver #(, #of_method)*) #output {
                #name(#(#passed),*) #awaited
            }
        }
    }
}

/// Returns the field of an injected parameter, and the argument that is made of it. `None` for a parameter of the method.
fn injected(parameter: &mut PatType, errors: &mut Errors) -> Option<(TokenStream, TokenStream)> {
    let is_injected = |attribute: &Attribute| INJECTED.iter().any(|name| ends_in(attribute.path(), name));
    let (attributes, others) = std::mem::take(&mut parameter.attrs)
        .into_iter()
        .partition(is_injected);
    parameter.attrs = others;
    let attributes: Vec<Attribute> = attributes;
    if attributes.is_empty() {
        return None;
    }
    let Pat::Ident(name) = &*parameter.pat else {
        errors.error(
            &parameter.pat,
            "an injected parameter needs a name",
            &[&"write `name: Type`"],
        );
        return None;
    };
    let name = name.ident.clone();
    let (ty, argument) = match &*parameter.ty {
        Type::Reference(reference) if reference.mutability.is_some() => {
            errors.error(
                &parameter.ty,
                "an injected parameter cannot be a `&mut` reference",
                &[&"take it by value or by `&`; to keep state between calls, write a struct"],
            );
            return None;
        }
        Type::Reference(reference) => (owned(&reference.elem), quote!(&self.#name)),
        ty => (
            ty.clone(),
            quote_spanned!(ty.span()=> ::core::clone::Clone::clone(&self.#name)),
        ),
    };
    Some((quote!(#(#attributes)* #name: #ty), argument))
}

/// Returns the type of a field that is passed as a reference to this type.
fn owned(ty: &Type) -> Type {
    match ty {
        Type::Slice(slice) => {
            let element = &slice.elem;
            parse_quote!(::std::vec::Vec<#element>)
        }
        Type::Path(path) if ends_in(&path.path, "str") => parse_quote!(::std::string::String),
        Type::Path(path) if ends_in(&path.path, "Path") => parse_quote!(::std::path::PathBuf),
        other => other.clone(),
    }
}
