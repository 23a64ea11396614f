//! Types as written: the few questions that spelling answers, not traits.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{GenericArgument, Path, PathArguments, PathSegment, Type};

/// Returns the first lifetime besides `'static`, or the `&` that omits it.
pub(crate) fn borrow_in(tokens: TokenStream) -> Option<TokenTree> {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match &token {
            TokenTree::Punct(punct) if punct.as_char() == '&' => {
                let has_lifetime =
                    matches!(tokens.peek(), Some(TokenTree::Punct(next)) if next.as_char() == '\'');
                if !has_lifetime {
                    return Some(token);
                }
            }
            TokenTree::Punct(punct) if punct.as_char() == '\'' => match tokens.next() {
                Some(TokenTree::Ident(name)) if name == "static" => {}
                name => return name.or(Some(token)),
            },
            // The parameters of a function pointer have their own lifetimes.
            TokenTree::Ident(name) if ["fn", "Fn", "FnMut", "FnOnce"].iter().any(|word| name == word) => {
                tokens.next_if(|next| matches!(next, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis));
            }
            TokenTree::Group(group) => {
                if let Some(found) = borrow_in(group.stream()) {
                    return Some(found);
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns whether one of the identifiers occurs.
pub(crate) fn mentions(tokens: TokenStream, names: &[Ident]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => names.contains(&ident),
        TokenTree::Group(group) => mentions(group.stream(), names),
        _ => false,
    })
}

/// Returns `T` of a type written `Option<T>`. By name, because a trait cannot distinguish the two (E0119).
pub(crate) fn option_of(ty: &Type) -> Option<&Type> {
    argument_of(ty, "Option")
}

/// Returns `T` of a type written `Vec<T>`. By name, so that a list may declare a separator.
pub(crate) fn list_of(ty: &Type) -> Option<&Type> {
    argument_of(ty, "Vec")
}

fn argument_of<'a>(ty: &'a Type, name: &str) -> Option<&'a Type> {
    let segment = last_segment(ty).filter(|segment| segment.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return None;
    };
    match (arguments.args.first()?, arguments.args.len()) {
        (GenericArgument::Type(inner), 1) => Some(inner),
        _ => None,
    }
}

/// Returns the item type of `&In` or `In`, and whether it is borrowed. `None` for unsized types and `&mut`.
pub(crate) fn item_type(ty: &Type) -> Option<(&Type, bool)> {
    match ungroup(ty) {
        Type::Reference(reference) if reference.mutability.is_some() || is_unsized(&reference.elem) => None,
        Type::Reference(reference) => Some((&reference.elem, true)),
        other => Some((other, false)),
    }
}

/// Returns `Out` of `&[Out]`.
pub(crate) fn items_type(ty: &Type) -> Option<Type> {
    match ungroup(ty) {
        Type::Reference(reference) if reference.mutability.is_none() => match ungroup(&reference.elem) {
            Type::Slice(slice) => Some(slice.elem.as_ref().clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns `T` of `&T`.
pub(crate) fn reference_to(ty: &Type) -> Option<&Type> {
    match ungroup(ty) {
        Type::Reference(reference) if reference.mutability.is_none() => Some(ungroup(&reference.elem)),
        _ => None,
    }
}

/// Returns whether the type is a path that ends in `name`.
pub(crate) fn is_named(ty: &Type, name: &str) -> bool {
    last_segment(ty).is_some_and(|segment| segment.ident == name)
}

fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ungroup(ty) {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}

/// Returns the last segment of a type's path, which names the artifact or loader.
pub(crate) fn type_name(ty: &Type) -> Option<&PathSegment> {
    let is_qualified = matches!(ungroup(ty), Type::Path(path) if path.qself.is_some());
    last_segment(ty).filter(|_| !is_qualified)
}

/// Returns whether the path ends in `name`.
pub(crate) fn ends_in(path: &Path, name: &str) -> bool {
    path.segments.last().is_some_and(|segment| segment.ident == name)
}

fn is_unsized(ty: &Type) -> bool {
    match ungroup(ty) {
        Type::Slice(_) | Type::TraitObject(_) => true,
        Type::Path(path) => path.path.is_ident("str"),
        _ => false,
    }
}

/// Returns the type without the invisible group that `macro_rules!` puts around it.
pub(crate) fn ungroup(mut ty: &Type) -> &Type {
    while let Type::Group(syn::TypeGroup { elem, .. }) | Type::Paren(syn::TypeParen { elem, .. }) = ty {
        ty = elem;
    }
    ty
}

/// Returns the type as written, without the blanks between tokens.
pub(crate) fn type_text(ty: &Type) -> String {
    let mut text = ty.to_token_stream().to_string();
    for (spaced, tight) in [
        (" < ", "<"),
        (" >", ">"),
        (" :: ", "::"),
        ("& ", "&"),
        (" ,", ","),
    ] {
        text = text.replace(spaced, tight);
    }
    text
}
