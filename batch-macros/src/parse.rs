//! The artifact attribute and its impl block, as written. Checks nothing.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Expr, ExprGroup, ExprLit, Ident, ImplItem, ItemImpl, Lit, LitStr, Meta, Path, Signature, Token,
};

use crate::diagnostics::nearest;
use crate::role::{Role, roles_with};

/// An argument of an attribute: `"text"` or `key = value`.
pub(crate) enum Argument {
    Text(LitStr),
    Named { key: Ident, value: Expr },
}

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.peek(LitStr) {
            return input.parse().map(Self::Text);
        }
        if !input.peek(Ident) {
            return Err(input.error("expected the artifact's name in quotes, or `argument = value`"));
        }
        let key: Ident = input.parse()?;
        if !input.peek(Token![=]) {
            let message = format!("expected `=` after `{key}`; a name is written in quotes: `\"{key}\"`");
            return Err(syn::Error::new_spanned(key, message));
        }
        input.parse::<Token![=]>()?;
        Ok(Self::Named {
            key,
            value: input.parse()?,
        })
    }
}

/// Parses the arguments in an attribute's parentheses.
///
/// # Errors
/// If they are not a list of arguments.
pub(crate) fn arguments(tokens: TokenStream) -> syn::Result<Vec<Argument>> {
    let list = Punctuated::<Argument, Token![,]>::parse_terminated.parse2(tokens)?;
    Ok(list.into_iter().collect())
}

/// Returns the value of an argument if it is a literal, without the invisible group that `macro_rules!` puts around `$value`.
pub(crate) fn literal(mut value: &Expr) -> Option<&Lit> {
    while let Expr::Group(ExprGroup { expr, .. }) = value {
        value = expr;
    }
    match value {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        _ => None,
    }
}

/// Returns the value of an argument if it is a string.
pub(crate) fn string(value: &Expr) -> Option<&LitStr> {
    match literal(value)? {
        Lit::Str(text) => Some(text),
        _ => None,
    }
}

/// An impl block, its method attributes removed.
pub(crate) struct Block {
    /// The block without them: the user's code.
    pub(crate) item: ItemImpl,
    /// The removed attributes, in the order of the source.
    pub(crate) marks: Vec<Mark>,
}

/// A method attribute on a method.
pub(crate) struct Mark {
    /// The attribute's path, the place of errors.
    pub(crate) path: Path,
    /// The last segment of the path.
    pub(crate) name: String,
    /// The attribute that the unknown `name` is probably a misspelling of.
    pub(crate) meant: Option<&'static str>,
    /// The attribute's arguments, an error if there are any.
    pub(crate) arguments: Option<TokenStream>,
    pub(crate) method: Signature,
    /// The `#[cfg]` attributes of the method.
    pub(crate) cfgs: Vec<Attribute>,
}

impl Mark {
    /// Returns the name of the attribute, its spelling corrected.
    pub(crate) fn attribute(&self) -> &str {
        self.meant.unwrap_or(&self.name)
    }
}

/// Removes the method attributes from the block.
pub(crate) fn block(role: &Role, mut item: ItemImpl) -> Block {
    let mut marks = Vec::new();
    for member in &mut item.items {
        let ImplItem::Fn(function) = member else { continue };
        let (taken, kept) = std::mem::take(&mut function.attrs)
            .into_iter()
            .partition::<Vec<_>, _>(|attribute| is_method_attribute(role, attribute));
        function.attrs = kept;
        for attribute in taken {
            let Some(segment) = attribute.path().segments.last() else {
                continue;
            };
            let name = segment.ident.to_string();
            marks.push(Mark {
                meant: misspelt(role, &name),
                name,
                arguments: match &attribute.meta {
                    Meta::Path(_) => None,
                    Meta::List(list) => Some(list.tokens.clone()),
                    Meta::NameValue(pair) => Some(quote::quote!(#pair)),
                },
                path: attribute.path().clone(),
                method: function.sig.clone(),
                cfgs: cfgs(&function.attrs),
            });
        }
    }
    Block { item, marks }
}

/// Returns the tokens in an attribute's parentheses, or those after its `=`, as an argument without a name.
pub(crate) fn list(attribute: &Attribute) -> TokenStream {
    match &attribute.meta {
        Meta::List(list) => list.tokens.clone(),
        Meta::NameValue(pair) => pair.value.to_token_stream(),
        Meta::Path(_) => TokenStream::new(),
    }
}

/// Returns the `#[cfg]` attributes among `attributes`.
pub(crate) fn cfgs(attributes: &[Attribute]) -> Vec<Attribute> {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("cfg"))
        .cloned()
        .collect()
}

fn is_method_attribute(role: &Role, attribute: &Attribute) -> bool {
    let path = attribute.path();
    let Some(segment) = path.segments.last() else {
        return false;
    };
    let name = segment.ident.to_string();
    // A path such as `#[tracing::instrument]` names another crate's attribute, not a misspelt one of this crate.
    !roles_with(&name).is_empty() || (path.get_ident().is_some() && misspelt(role, &name).is_some())
}

/// Returns the method attribute of this role that `name` nearly matches, unless `name` is a known attribute.
fn misspelt(role: &Role, name: &str) -> Option<&'static str> {
    // Attributes of the language that methods may have.
    let is_built_in = matches!(
        name,
        "allow"
            | "cfg"
            | "cfg_attr"
            | "cold"
            | "deny"
            | "deprecated"
            | "doc"
            | "expect"
            | "forbid"
            | "inline"
            | "must_use"
            | "target_feature"
            | "track_caller"
            | "warn"
    );
    if !roles_with(name).is_empty() || is_built_in {
        return None;
    }
    nearest(name, role.methods.iter().map(|method| method.attribute))
}
