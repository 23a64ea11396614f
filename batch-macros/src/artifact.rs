//! `#[derive(BatchArtifact)]`: makes the struct and fills its fields.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{
    Attribute, Data, DataStruct, DeriveInput, Expr, Field, Fields, Generics, Ident, LitStr, Member, Meta,
    Type, parse_quote,
};

use crate::describe::{self, Described};
use crate::diagnostics::Errors;
use crate::fallback;
use crate::parse::list;
use crate::strings::Strings;
use crate::tokens::{or_none, runtime, spanned};
use crate::types::{list_of, mentions, option_of};

/// Expands the derive.
pub(crate) fn derive(input: TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(input) {
        Ok(input) => input,
        Err(error) => return error.into_compile_error(),
    };
    let mut errors = Errors::default();
    let slots = slots(&input, &mut errors);
    if errors.is_empty() {
        expand(&input, &slots)
    } else {
        fallback::artifact(&input, &errors)
    }
}

/// A field and its source.
struct Slot<'a> {
    member: Member,
    /// The field's name in messages.
    name: String,
    ty: &'a Type,
    source: Source,
    /// The documentation of the field.
    described: Option<Described>,
}

enum Source {
    Property {
        name: LitStr,
        default: Option<LitStr>,
        /// The separator of a list.
        separator: char,
    },
    Context,
    Artifact {
        prefix: Option<LitStr>,
    },
    /// `Default`, or the expression of `#[default(..)]`.
    Default(Option<Expr>),
}

fn slots<'a>(input: &'a DeriveInput, errors: &mut Errors) -> Vec<Slot<'a>> {
    let (place, what) = match &input.data {
        Data::Struct(data) => return fields(input, data, errors),
        Data::Enum(data) => (data.enum_token.to_token_stream(), "an enum"),
        Data::Union(data) => (data.union_token.to_token_stream(), "a union"),
    };
    errors.error(
        place,
        format!("{what} cannot be a batch artifact"),
        &[&"an artifact is a struct: its fields are the properties and contexts"],
    );
    Vec::new()
}

fn fields<'a>(input: &'a DeriveInput, data: &'a DataStruct, errors: &mut Errors) -> Vec<Slot<'a>> {
    errors.lifetimes(&input.generics);
    let fields = match &data.fields {
        Fields::Named(fields) => &fields.named,
        Fields::Unnamed(fields) => &fields.unnamed,
        Fields::Unit => return Vec::new(),
    };
    fields
        .iter()
        .zip(data.fields.members())
        .map(|(field, member)| slot(field, member, errors))
        .collect()
}

fn slot<'a>(field: &'a Field, member: Member, errors: &mut Errors) -> Slot<'a> {
    let name = match &member {
        Member::Named(ident) => ident.unraw().to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    };
    let mut source: Option<(&Ident, Source)> = None;
    for attribute in &field.attrs {
        let Some(segment) = attribute.path().segments.last() else {
            continue;
        };
        let found = match segment.ident.to_string().as_str() {
            "batch_property" => property(attribute, field, &name, errors),
            "batch_context" => context(attribute, errors),
            "batch_artifact" => nested(attribute, errors),
            "default" => default_value(attribute, errors),
            _ => continue,
        };
        match &source {
            None => source = Some((&segment.ident, found)),
            Some((earlier, _)) if **earlier == segment.ident => {
                let message = format!("`#[{}]` is given twice for field `{name}`", segment.ident);
                errors.error(attribute.path(), message, &[]);
            }
            Some((earlier, _)) => errors.error(
                attribute.path(),
                format!(
                    "field `{name}` cannot be both a `#[{earlier}]` and a `#[{}]`",
                    segment.ident
                ),
                &[&"remove one of the two attributes"],
            ),
        }
    }
    let source = source.map_or(Source::Default(None), |(_, source)| source);
    Slot {
        member,
        name,
        ty: &field.ty,
        source,
        described: describe::field(&field.attrs),
    }
}

fn property(attribute: &Attribute, field: &Field, field_name: &str, errors: &mut Errors) -> Source {
    let mut strings = Strings::new("batch_property", ["name", "value", "separator"]);
    if strings.read(list(attribute), errors).is_none() {
        return Source::Default(None);
    }
    let [name, default, separator] = strings.into_values();
    let separator = list_separator(separator.as_ref(), &field.ty, errors);
    let name = name.or_else(|| {
        let named = field.ident.as_ref();
        named.map(|ident| LitStr::new(field_name, ident.span()))
    });
    match name {
        Some(name) => Source::Property {
            name,
            default,
            separator,
        },
        None => {
            let remedy = "write `#[batch_property(name = \"..\")]`".to_owned();
            errors.error(
                attribute.path(),
                "the property of a field without a name needs a `name`",
                &[&remedy],
            );
            Source::Default(None)
        }
    }
}

fn context(attribute: &Attribute, errors: &mut Errors) -> Source {
    if !matches!(attribute.meta, Meta::Path(_)) {
        errors.error(
            &attribute.meta,
            "`#[batch_context]` takes no arguments",
            &[&"the field's type says which context it is"],
        );
    }
    Source::Context
}

// Spec: ART-13
fn default_value(attribute: &Attribute, errors: &mut Errors) -> Source {
    match attribute.parse_args::<Expr>() {
        Ok(value) => Source::Default(Some(value)),
        Err(_) => {
            let remedy = "write `#[default(Instant::now())]`".to_owned();
            errors.error(&attribute.meta, "`#[default]` takes one expression", &[&remedy]);
            Source::Default(None)
        }
    }
}

// Spec: D-97
fn nested(attribute: &Attribute, errors: &mut Errors) -> Source {
    let mut strings = Strings::new("batch_artifact", ["prefix"]);
    strings.read(list(attribute), errors);
    let [prefix] = strings.into_values();
    Source::Artifact { prefix }
}

/// Returns the separator of a list: a comma, unless another character is given.
fn list_separator(given: Option<&LitStr>, ty: &Type, errors: &mut Errors) -> char {
    let Some(text) = given else { return ',' };
    if list_of(option_of(ty).unwrap_or(ty)).is_none() {
        let remedy = "make the field a `Vec<..>`, or leave the argument out".to_owned();
        errors.error(text, "only a list can have a `separator`", &[&remedy]);
    }
    let value = text.value();
    let mut characters = value.chars();
    match (characters.next(), characters.next()) {
        (Some(separator), None) => separator,
        _ => {
            let remedy = "write `separator = \"\\n\"` for lines, `separator = \" \"` for words".to_owned();
            errors.error(text, "a `separator` must be a single character", &[&remedy]);
            ','
        }
    }
}

/// The parts of the impl, one of each for a field, in the order of the source.
#[derive(Default)]
struct Parts {
    helpers: Vec<TokenStream>,
    fields: Vec<TokenStream>,
    properties: Vec<TokenStream>,
    contexts: Vec<TokenStream>,
    nested: Vec<TokenStream>,
    set_properties: Vec<TokenStream>,
    bind_contexts: Vec<TokenStream>,
}

fn expand(input: &DeriveInput, slots: &[Slot<'_>]) -> TokenStream {
    let ident = &input.ident;
    let runtime = runtime();
    let generics = generics(input, slots);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let Parts {
        helpers,
        fields,
        properties,
        contexts,
        nested,
        set_properties,
        bind_contexts,
    } = parts(input, slots, &generics);
    // rustc would report an unused parameter to the user.
    let named = |name: TokenStream, used: bool| if used { name } else { quote!(_) };
    let inject_scope = named(
        quote!(scope),
        !(set_properties.is_empty() && bind_contexts.is_empty()),
    );
    let property_scope = named(quote!(scope), !set_properties.is_empty());
    let context_scope = named(quote!(contexts), !bind_contexts.is_empty());
    let nested_properties = and_nested(&nested, quote!(properties));
    let nested_contexts = and_nested(&nested, quote!(contexts));
    quote! {
        const _: () = {
            #(#helpers)*

            #[automatically_derived]
            impl #impl_generics #runtime::BatchArtifact for #ident #type_generics #where_clause {
                fn inject(
                    #inject_scope: &#runtime::InjectionScope<'_>,
                ) -> ::core::result::Result<Self, #runtime::InjectError> {
                    ::core::result::Result::Ok(Self { #(#fields),* })
                }
                fn set_properties(
                    &mut self,
                    #property_scope: &#runtime::InjectionScope<'_>,
                ) -> ::core::result::Result<(), #runtime::InjectError> {
                    #(#set_properties)*
                    ::core::result::Result::Ok(())
                }
                fn bind_contexts(
                    &mut self,
                    #context_scope: &#runtime::ContextScope,
                ) -> ::core::result::Result<(), #runtime::InjectError> {
                    #(#bind_contexts)*
                    ::core::result::Result::Ok(())
                }
                fn properties() -> ::std::vec::Vec<#runtime::PropertyInfo> {
                    ::std::vec![#(#properties),*]#nested_properties
                }
                fn contexts() -> ::std::vec::Vec<#runtime::ContextInfo> {
                    ::std::vec![#(#contexts),*]#nested_contexts
                }
            }
        };
    }
}

/// Returns the rest of an expression that appends the lists of the nested artifacts to the struct's own.
fn and_nested(nested: &[TokenStream], list: TokenStream) -> TokenStream {
    if nested.is_empty() {
        return TokenStream::new();
    }
    quote!(.into_iter()#(.chain(#nested.#list()))*.collect())
}

/// Returns the struct's generics, with the bound that fills each field whose type depends on them. A bound on the
/// field's type requires less than one on the parameter: `Vec<T>` is `Default` for every `T`.
fn generics(input: &DeriveInput, slots: &[Slot<'_>]) -> Generics {
    let mut generics = input.generics.clone();
    let types: Vec<Ident> = generics.type_params().map(|one| one.ident.clone()).collect();
    let mut parameters: Vec<Ident> = generics.const_params().map(|one| one.ident.clone()).collect();
    parameters.extend_from_slice(&types);
    if parameters.is_empty() {
        return generics;
    }
    let runtime = runtime();
    let predicates = &mut generics.make_where_clause().predicates;
    for ty in &types {
        predicates.push(parse_quote!(#ty: 'static));
    }
    let depends = |slot: &&Slot<'_>| mentions(slot.ty.to_token_stream(), &parameters);
    for slot in slots.iter().filter(depends) {
        let ty = slot.ty;
        predicates.push(match &slot.source {
            Source::Property { .. } => {
                let value = option_of(ty).unwrap_or(ty);
                let value = list_of(value).unwrap_or(value);
                parse_quote!(#value: #runtime::PropertyValue)
            }
            Source::Context => parse_quote!(#ty: #runtime::ContextField),
            Source::Artifact { .. } => parse_quote!(#ty: #runtime::BatchArtifact),
            Source::Default(None) => parse_quote!(#ty: ::core::default::Default),
            Source::Default(Some(_)) => continue,
        });
    }
    generics
}

fn parts(input: &DeriveInput, slots: &[Slot<'_>], generics: &Generics) -> Parts {
    let (_, type_generics, _) = generics.split_for_impl();
    let turbofish = type_generics.as_turbofish();
    let declared_by = input.ident.unraw().to_string();
    let mut table = describe::table(&input.attrs);
    let mut parts = Parts::default();
    for (index, slot) in slots.iter().enumerate() {
        let Slot { member, ty, .. } = slot;
        match &slot.source {
            Source::Property {
                name,
                default,
                separator,
            } => {
                let helper = format_ident!("property_{index}");
                let function = property_helper(&helper, slot, name, default.as_ref(), *separator, generics);
                parts.helpers.push(function);
                let value = quote!((#helper #turbofish().1)(scope)?);
                parts.fields.push(quote!(#member: #value));
                let described = table.remove(&name.value()).or_else(|| slot.described.clone());
                let Described {
                    text,
                    default: if_absent,
                } = described.unwrap_or_default();
                parts
                    .properties
                    .push(quote!(#helper #turbofish().0.documented(#declared_by, #text, #if_absent)));
                parts.set_properties.push(quote!(self.#member = #value;));
            }
            Source::Context => {
                let helper = format_ident!("context_{index}");
                parts.helpers.push(context_helper(&helper, slot, generics));
                let get = quote!((#helper #turbofish().1));
                parts.fields.push(quote!(#member: #get(scope.contexts())?));
                parts.contexts.push(quote!(#helper #turbofish().0));
                parts.bind_contexts.push(quote!(self.#member = #get(contexts)?;));
            }
            Source::Artifact { prefix } => {
                let helper = format_ident!("artifact_{index}");
                let prefix = prefix.as_ref().map_or_else(String::new, LitStr::value);
                parts
                    .helpers
                    .push(nested_helper(&helper, slot, &prefix, generics));
                let nested = quote!(#helper #turbofish());
                parts.fields.push(quote!(#member: #nested.inject(scope)?));
                parts
                    .set_properties
                    .push(quote!(#nested.set_properties(&mut self.#member, scope)?;));
                parts
                    .bind_contexts
                    .push(quote!(#nested.bind_contexts(&mut self.#member, contexts)?;));
                parts.nested.push(nested);
            }
            Source::Default(value) => parts.fields.push(default_field(member, ty, value.as_ref())),
        }
    }
    parts
}

/// Returns the initializer of a field that nothing is injected into.
fn default_field(member: &Member, ty: &Type, value: Option<&Expr>) -> TokenStream {
    let value = match value {
        // With the type, so that a wrong value is reported at it.
        Some(value) => quote!({ let value: #ty = #value; value }),
        None => spanned(ty, |open, close| {
            let (open, close) = (
                quote_spanned!(open=> <),
                quote_spanned!(close=> >::default_value()),
            );
            quote!(#open #ty as ::batch_runtime::__private::DefaultField #close)
        }),
    };
    quote!(#member: #value)
}

/// Returns the function with the property's description and its injection. Both are in one body, because rustc reports a type
/// that cannot be a property once per body.
fn property_helper(
    helper: &Ident,
    slot: &Slot<'_>,
    name: &LitStr,
    default: Option<&LitStr>,
    separator: char,
    generics: &Generics,
) -> TokenStream {
    let runtime = runtime();
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    let Slot { name: field, ty, .. } = slot;
    let default = or_none(default);
    let (value, optional) = match option_of(ty) {
        Some(inner) => (inner, true),
        None => (*ty, false),
    };
    let (value, list) = match list_of(value) {
        Some(value) => (quote!(#value, #separator), true),
        None => (value.to_token_stream(), false),
    };
    let (describe, inject) = match (list, optional) {
        (false, false) => (quote!(of), quote!(property)),
        (false, true) => (quote!(optional), quote!(optional_property)),
        (true, false) => (quote!(list), quote!(list)),
        (true, true) => (quote!(list), quote!(optional_list)),
    };
    quote! {
        fn #helper #impl_generics () -> (
            #runtime::PropertyInfo,
            fn(&#runtime::InjectionScope<'_>) -> ::core::result::Result<#ty, #runtime::InjectError>,
        ) #where_clause {
            (
                #runtime::PropertyInfo::#describe::<#value>(#name, #field, #default),
                |scope| scope.#inject::<#value>(#name, #field, #default),
            )
        }
    }
}

/// Returns the function with the context's description and its injection, in one body as above.
fn context_helper(helper: &Ident, slot: &Slot<'_>, generics: &Generics) -> TokenStream {
    let runtime = runtime();
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    let Slot { name: field, ty, .. } = slot;
    quote! {
        fn #helper #impl_generics () -> (
            #runtime::ContextInfo,
            fn(&#runtime::ContextScope) -> ::core::result::Result<#ty, #runtime::InjectError>,
        ) #where_clause {
            (#runtime::ContextInfo::of::<#ty>(#field, ::core::module_path!()), |scope| scope.get::<#ty>(#field))
        }
    }
}

/// Returns the function with the whole injection of a nested artifact, in one body as above.
fn nested_helper(helper: &Ident, slot: &Slot<'_>, prefix: &str, generics: &Generics) -> TokenStream {
    let runtime = runtime();
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    let Slot { name: field, ty, .. } = slot;
    quote! {
        fn #helper #impl_generics () -> #runtime::NestedArtifact<#ty> #where_clause {
            #runtime::NestedArtifact::of::<#ty>(#field, #prefix)
        }
    }
}
