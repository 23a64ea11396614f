//! The tokens of a valid artifact: the impl of its role trait, which adapts the user's methods, and its registration.
//! Checks nothing: the compiler reports what the types cannot do, at the user's own tokens, whose spans the calls carry.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Attribute, ItemImpl, Meta, Type};

use crate::call::{associated, converted, result_type};
use crate::checkpoints::{checkpoint_info, keeps_position, open};
use crate::parameters::{Param, ParamBinding, Parameters};
use crate::parse::cfgs;
use crate::role::{Method, ParamKind, Receiver, Role, Shape, Side};
use crate::settings::Registration;
use crate::tokens::{or_none, runtime, spanned};
use crate::validate::{Artifact, ArtifactMethod};
use crate::warnings;

/// Returns the user's impl block, and the code that makes it an artifact.
pub(crate) fn role(role: &Role, artifact: &Artifact, item: &ItemImpl) -> TokenStream {
    let trait_name = format_ident!("{}", role.trait_name);
    let self_ty = &item.self_ty;
    let block_cfgs = cfgs(&item.attrs);
    let methods = role.methods.iter().map(|row| trait_methods(row, artifact));
    let items = role.names_items().then(|| listener_items(artifact));
    let warnings = warnings::of(role, artifact, item);
    let (impl_generics, _, where_clause) = item.generics.split_for_impl();
    let registration = match &artifact.registration {
        Some(names) => registration(role, names, self_ty),
        // A generic block has no registration to require the derive, so it requires it by itself.
        None => quote! {
            #[allow(dead_code)]
            trait HasDerive: ::batch_runtime::__private::BatchArtifact {}
            #[automatically_derived]
            impl #impl_generics HasDerive for #self_ty #where_clause {}
        },
    };
    quote! {
        #item

        #(#block_cfgs)*
        const _: () = {
            #[automatically_derived]
            impl #impl_generics ::batch_runtime::__private::#trait_name for #self_ty #where_clause {
                #(#methods)*
                #items
            }
            #registration
            #warnings
        };
    }
}

/// Returns the submission to the registry. The bound of its constructor joins the two halves of the artifact, and fails at
/// the type.
pub(crate) fn registration(role: &Role, names: &Registration, self_ty: impl ToTokens) -> TokenStream {
    let constructor = format_ident!("{}", role.attribute);
    let Registration { name, type_name, .. } = names;
    let pipelined = (!names.pipelined).then(|| quote!(.never_pipelined()));
    let class = or_none(names.class.as_ref());
    quote! {
        ::batch_runtime::__private::inventory::submit! {
            ::batch_runtime::__private::ArtifactRegistration::#constructor::<#self_ty>(
                #name,
                ::core::concat!(::core::module_path!(), "::", #type_name),
                #class,
                ::core::file!(),
                ::core::line!(),
            ) #pipelined
        }
    }
}

/// Returns the trait's methods for one row: one per marked method, because each may have another `#[cfg]`, and the
/// default if no `#[cfg]` holds.
fn trait_methods(row: &'static Method, artifact: &Artifact) -> TokenStream {
    let found: Vec<_> = artifact
        .methods
        .iter()
        .filter(|method| method.row.attribute == row.attribute)
        .collect();
    let mut tokens = TokenStream::new();
    for &method in &found {
        let cfgs = &method.cfgs;
        for function in adapters(method, artifact) {
            tokens.extend(quote!(#(#cfgs)* #function));
        }
    }
    if !found.iter().any(|method| method.cfgs.is_empty()) {
        let conditions: Vec<_> = found.iter().map(|method| all(&method.cfgs)).collect();
        let otherwise = if conditions.is_empty() {
            quote!()
        } else {
            quote!(#[cfg(not(any(#(#conditions),*)))])
        };
        let place = found
            .first()
            .map_or_else(Span::call_site, |method| method.ident.span());
        for (signature, body) in defaults(row, place, !found.is_empty()) {
            tokens.extend(quote!(#otherwise #signature { #body }));
        }
    }
    tokens
}

/// Returns the condition of several `#[cfg]` attributes.
fn all(cfgs: &[Attribute]) -> TokenStream {
    let conditions = cfgs.iter().filter_map(|attribute| match &attribute.meta {
        Meta::List(list) => Some(&list.tokens),
        _ => None,
    });
    quote!(all(#(#conditions),*))
}

/// Returns the signatures of the trait's functions for a row: the method, and the function that the loader inspects it
/// with.
fn signatures(row: &Method) -> Vec<TokenStream> {
    let runtime = runtime();
    let fact = match row.shape {
        Shape::Compensation => quote!(fn compensates() -> bool),
        Shape::Collect => quote!(fn payload_type() -> #runtime::ItemType),
        Shape::Analyze => quote!(fn payload_type() -> ::core::option::Option<#runtime::ItemType>),
        Shape::Read => quote!(fn info() -> #runtime::ReaderInfo),
        Shape::Process => quote!(fn info() -> #runtime::ProcessorInfo),
        Shape::Write => quote!(fn info() -> #runtime::WriterInfo),
        _ => return vec![method_signature(row)],
    };
    vec![method_signature(row), fact]
}

fn method_signature(row: &Method) -> TokenStream {
    let runtime = runtime();
    let name = match row.shape {
        Shape::Read => {
            return quote! {
                fn fill(
                    &mut self,
                    fill: &mut #runtime::Fill<'_>,
                ) -> ::core::result::Result<#runtime::FillEnd, #runtime::FillError>
            };
        }
        Shape::Process => {
            return quote!(fn into_sink(self: ::std::boxed::Box<Self>) -> #runtime::ItemSink);
        }
        Shape::Checkpoint => "checkpoint_info",
        Shape::Write => "write",
        _ => row.attribute,
    };
    let receiver = match row.receiver {
        Receiver::Any => quote!(&mut self),
        Receiver::Shared => quote!(&self),
    };
    let params = match row.shape {
        Shape::Open => quote!(, checkpoint: ::core::option::Option<&#runtime::CheckpointInfo>),
        Shape::Timeout => quote!(, timeout: i32),
        Shape::Judge => quote!(, failed: &#runtime::FailedItem<'_>),
        Shape::Decide => quote!(, steps: &#runtime::StepsBefore<'_>),
        Shape::AnalyzeStatus => quote!(, batch_status: #runtime::BatchStatus, status: &str),
        Shape::Analyze => quote!(, data: #runtime::CollectorData),
        Shape::Write => quote!(, items: &#runtime::ChunkItems<'_>, tx: &mut #runtime::ChunkTransaction),
        Shape::Notice(kinds) => {
            let params = kinds.iter().map(|kind| {
                let (name, ty) = declaration(*kind);
                quote!(#name: #ty)
            });
            quote!(#(, #params)*)
        }
        _ => quote!(),
    };
    let value = result(row);
    let name = format_ident!("{name}");
    quote!(fn #name(#receiver #params) -> ::core::result::Result<#value, #runtime::BatchError>)
}

/// Returns the type of the value that the trait's method returns.
fn result(row: &Method) -> TokenStream {
    let runtime = runtime();
    match row.shape {
        Shape::Checkpoint => quote!(#runtime::CheckpointInfo),
        Shape::Text | Shape::Decide => quote!(::std::string::String),
        Shape::Flag | Shape::Judge => quote!(bool),
        Shape::Count => quote!(::core::option::Option<u64>),
        Shape::Origin => quote!(::core::option::Option<::std::string::String>),
        Shape::Timeout => quote!(i32),
        Shape::Plan => quote!(#runtime::PartitionPlan),
        Shape::Collect => quote!(::core::option::Option<#runtime::CollectorData>),
        Shape::Destination => quote!(::core::option::Option<#runtime::AnyDestination>),
        _ => quote!(()),
    }
}

/// Returns the name and the type of a parameter in the trait.
fn declaration(kind: ParamKind) -> (Ident, TokenStream) {
    let runtime = runtime();
    let (name, ty) = match kind {
        ParamKind::Error => ("error", quote!(&#runtime::BatchError)),
        ParamKind::Item(_) => ("item", quote!(&dyn ::core::any::Any)),
        ParamKind::Result => ("result", quote!(::core::option::Option<&dyn ::core::any::Any>)),
        ParamKind::List | ParamKind::Each => ("items", quote!(&#runtime::ChunkItems<'_>)),
        ParamKind::Status => ("status", quote!(&str)),
        ParamKind::BatchStatus => ("batch_status", quote!(#runtime::BatchStatus)),
        ParamKind::Seconds => ("timeout", quote!(i32)),
        ParamKind::Steps => ("steps", quote!(&[#runtime::StepExecution])),
        ParamKind::Failed => ("failed", quote!(&#runtime::FailedItem<'_>)),
    };
    (format_ident!("{name}"), ty)
}

/// Returns the trait's methods of an artifact that has none for the row.
fn defaults(row: &Method, place: Span, is_disabled: bool) -> Vec<(TokenStream, TokenStream)> {
    let runtime = runtime();
    let nothing = || quote!(::core::result::Result::Ok(()));
    let bodies = match row.shape {
        // A checkpoint must not be lost by a `#[cfg]`.
        Shape::Open | Shape::Checkpoint if !is_disabled => match row.shape {
            Shape::Open => vec![quote!({
                let _ = checkpoint;
                ::core::result::Result::Ok(())
            })],
            _ => {
                vec![quote!(::core::result::Result::Ok(#runtime::CheckpointCodec::<()>::new().encode(&())?))]
            }
        },
        _ if row.required || matches!(row.shape, Shape::Open | Shape::Checkpoint) => {
            // Only reached when every marked method is disabled by its `#[cfg]`.
            let message = format!(
                "every `#[{}]` method of this artifact is disabled by its `#[cfg]`",
                row.attribute
            );
            let error = quote_spanned!(place=> ::core::compile_error!(#message));
            vec![error, quote!(::core::unreachable!())]
        }
        Shape::Timeout => vec![quote!(::core::result::Result::Ok(timeout))],
        Shape::Count | Shape::Origin | Shape::Destination => {
            vec![quote!(::core::result::Result::Ok(::core::option::Option::None))]
        }
        Shape::Compensation => vec![nothing(), quote!(false)],
        Shape::Analyze => vec![nothing(), quote!(::core::option::Option::None)],
        _ => vec![nothing()],
    };
    signatures(row).into_iter().zip(bodies).collect()
}

/// Returns the trait's methods that call one method of the user.
fn adapters(method: &ArtifactMethod, artifact: &Artifact) -> Vec<TokenStream> {
    let bodies = match method.row.shape {
        Shape::Open => vec![open(method)],
        Shape::Checkpoint => vec![checkpoint_info(method, artifact)],
        Shape::Notice(_) | Shape::AnalyzeStatus => vec![notice(method)],
        Shape::Compensation => vec![notice(method), quote!(true)],
        Shape::Text => vec![converted(
            method,
            quote!(StatusReturn),
            "into_status",
            quote!(self),
        )],
        Shape::Flag | Shape::Count | Shape::Origin | Shape::Plan => vec![value(method, quote!(self))],
        Shape::Timeout | Shape::Judge => {
            let bound = bind_params(method);
            let names = params_of(method).iter().map(|param| declaration(param.kind).0);
            let call = value(method, quote!(self #(, #names)*));
            vec![quote!(#bound #call)]
        }
        Shape::Decide => vec![decide(method)],
        Shape::Collect => collect(method),
        Shape::Analyze => analyze(method),
        Shape::Read => read(method, artifact),
        Shape::Process => process(method),
        Shape::Write => write(method, artifact),
        Shape::Destination => vec![destination(method, artifact)],
    };
    signatures(method.row)
        .into_iter()
        .zip(bodies)
        .map(|(signature, body)| quote!(#signature { #body }))
        .collect()
}

/// Calls the user's method with the parameters of the trait's method, or once for each item of a list.
fn notice(method: &ArtifactMethod) -> TokenStream {
    let bound = bind_params(method);
    let names = params_of(method).iter().map(|param| declaration(param.kind).0);
    let call = converted(method, quote!(UnitReturn), "into_unit", quote!(self #(, #names)*));
    let is_each = |param: &Param| matches!(param.binding, ParamBinding::EachItem(_) | ParamBinding::EachAny);
    if params_of(method).iter().any(is_each) {
        return quote! {
            #bound
            for items in items {
                #call?;
            }
            ::core::result::Result::Ok(())
        };
    }
    quote!(#bound #call)
}

/// Calls the user's method. A plain result is wrapped in `Result`, and not converted otherwise.
fn value(method: &ArtifactMethod, arguments: TokenStream) -> TokenStream {
    let ty = result(method.row);
    converted(method, quote!(ValueReturn<#ty>), "into_value", arguments)
}

/// Calls the user's decider, and reads the step executions only if it takes them.
fn decide(method: &ArtifactMethod) -> TokenStream {
    let exit_status = |arguments| converted(method, quote!(DecideReturn), "into_exit_status", arguments);
    if params_of(method).is_empty() {
        return exit_status(quote!(self));
    }
    let bound = bind_params(method);
    let call = exit_status(quote!(self, steps));
    quote! {
        let steps = steps.read()?;
        let steps = &steps[..];
        #bound
        #call
    }
}

fn params_of(method: &ArtifactMethod) -> &[Param] {
    match &method.parameters {
        Parameters::Event(params) => params,
        _ => &[],
    }
}

/// Converts the parameters of the trait's method to the types that the user's method names.
fn bind_params(method: &ArtifactMethod) -> TokenStream {
    let bound = params_of(method).iter().map(|Param { kind, binding }| {
        let (name, _) = declaration(*kind);
        let here = |place: &Type| {
            // Spanned as the written type, where rustc reports a type that differs.
            spanned(place, |open, _| {
                let name = Ident::new(&name.to_string(), Span::call_site().located_at(open));
                quote!(#name)
            })
        };
        match (binding, kind) {
            (ParamBinding::Item(ty), ParamKind::List | ParamKind::Each) | (ParamBinding::EachItem(ty), _) => {
                typed(&name, ty, "ChunkItems", quote!((#name)))
            }
            (ParamBinding::Item(ty), ParamKind::Result) => typed(&name, ty, "typed_result", quote!((#name))),
            (ParamBinding::Item(ty), _) => typed(&name, ty, "typed_item", quote!((#name))),
            (ParamBinding::AnyItem(ty), ParamKind::List | ParamKind::Each) => {
                let here = here(ty);
                quote!(let #name: #ty = ::core::clone::Clone::clone(#here);)
            }
            (ParamBinding::EachAny, _) => quote!(let #name = #name.iter();),
            (ParamBinding::AnyItem(ty) | ParamBinding::AsWritten(ty), _) => {
                let here = here(ty);
                quote!(let #name: #ty = #here;)
            }
        }
    });
    quote!(#(#bound)*)
}

/// Returns `let name = function::<T>(arguments)?;`, spanned as the type, which rustc underlines if it cannot be an item.
fn typed(name: &Ident, ty: &Type, function: &str, arguments: TokenStream) -> TokenStream {
    let function = format_ident!("{function}");
    let method = (function == "ChunkItems").then(|| quote!(typed::));
    spanned(ty, |open, close| {
        let open = quote_spanned!(open=> ::batch_runtime);
        let close = quote_spanned!(close=> >#arguments);
        quote!(let #name = #open::__private::#function::#method<#ty #close?;)
    })
}

/// Returns the item types that a listener's methods name. All methods name one type for each side of the processor.
fn listener_items(artifact: &Artifact) -> TokenStream {
    let runtime = runtime();
    let mut first_of: Vec<(Side, &Type)> = Vec::new();
    let mut statements = TokenStream::new();
    for method in &artifact.methods {
        let cfgs = &method.cfgs;
        for Param { kind, binding } in params_of(method) {
            let (ParamBinding::Item(ty) | ParamBinding::EachItem(ty)) = binding else {
                continue;
            };
            let (side, field) = match kind {
                ParamKind::Item(Side::Input) => (Side::Input, quote!(input)),
                _ => (Side::Output, quote!(output)),
            };
            let same = match first_of.iter().find(|(earlier, _)| *earlier == side) {
                Some((_, first)) => Some(spanned(ty, |open, close| {
                    let open = quote_spanned!(open=> ::batch_runtime);
                    let close = quote_spanned!(close=> >());
                    quote!(#open::__private::require_same_item::<#first, #ty #close;)
                })),
                None => {
                    first_of.push((side, ty));
                    None
                }
            };
            statements.extend(quote! {
                #(#cfgs)*
                {
                    #same
                    items.#field = ::core::option::Option::Some(#runtime::ItemType::of::<#ty>());
                }
            });
        }
    }
    let body = if statements.is_empty() {
        quote!(<#runtime::ListenerItems as ::core::default::Default>::default())
    } else {
        quote! {
            #[allow(unused_mut)]
            let mut items = <#runtime::ListenerItems as ::core::default::Default>::default();
            #statements
            items
        }
    };
    quote!(fn items() -> #runtime::ListenerItems { #body })
}

fn collect(method: &ArtifactMethod) -> Vec<TokenStream> {
    let call = converted(method, quote!(CollectReturn), "into_collected", quote!(self));
    let payload = associated(method, quote!(CollectReturn), "payload_type");
    vec![call, quote!(#payload())]
}

fn analyze(method: &ArtifactMethod) -> Vec<TokenStream> {
    let Parameters::Payload(payload) = &method.parameters else {
        return Vec::new();
    };
    let runtime = runtime();
    // Not with the span of the payload: it may come from a user's macro, where the parameter has another hygiene.
    let parameter = quote!(data);
    let data = spanned(payload, |open, close| {
        let open = quote_spanned!(open=> ::batch_runtime);
        let close = quote_spanned!(close=> >(#parameter)?);
        quote!(let data = #open::__private::CollectorData::take::<#payload #close;)
    });
    let call = converted(method, quote!(UnitReturn), "into_unit", quote!(self, data));
    vec![
        quote!(#data #call),
        quote!(::core::option::Option::Some(#runtime::ItemType::of::<#payload>())),
    ]
}

fn read(method: &ArtifactMethod, artifact: &Artifact) -> Vec<TokenStream> {
    let runtime = runtime();
    let call = converted(method, quote!(ReadReturn), "into_read", quote!(self));
    let item = associated(method, quote!(ReadReturn), "Item");
    let (keeps_position, rewindable) = (keeps_position(artifact), artifact.rewindable);
    let has_end_methods = has_any(artifact, &["finish", "close"]);
    let has_origin = has_any(artifact, &["get_item_origin"]);
    // rustc reports items that are not `Send` at the result type as well.
    let fill = spanned(result_type(method), |open, _| {
        let closure = quote_spanned!(open=> || #call);
        quote_spanned!(open=> run(#closure))
    });
    let error_type = associated(method, quote!(ReadReturn), "error_type");
    vec![
        quote!(fill.#fill),
        quote! {
            #runtime::ReaderInfo {
                items: #runtime::ItemType::of_reader::<#item>(),
                keeps_position: #keeps_position,
                rewindable: #rewindable,
                has_end_methods: #has_end_methods,
                has_origin: #has_origin,
                error_type: #error_type(),
            }
        },
    ]
}

fn process(method: &ArtifactMethod) -> Vec<TokenStream> {
    let Parameters::Item { item, borrowed } = &method.parameters else {
        return Vec::new();
    };
    let runtime = runtime();
    let (owned, kept) = if *borrowed {
        (quote!(&item), quote!(item))
    } else {
        (quote!(item), quote!(item_clone(item)))
    };
    let call = |argument| {
        converted(
            method,
            quote!(ProcessReturn),
            "into_processed",
            quote!(processor, #argument),
        )
    };
    let (process, process_kept) = (call(owned), call(kept));
    let item_clone = (!borrowed).then(|| {
        spanned(item, |open, close| {
            let open = quote_spanned!(open=> ::batch_runtime);
            let close = quote_spanned!(close=> >());
            quote!(let item_clone = #open::__private::item_clone::<#item #close;)
        })
    });
    let output = associated(method, quote!(ProcessReturn), "Item");
    let error_type = associated(method, quote!(ProcessReturn), "error_type");
    vec![
        quote! {
            #item_clone
            #runtime::processor_sink::<_, #item, #output, _, _>(
                self,
                |processor: &mut Self, item: #item| #process,
                move |processor: &mut Self, item: &#item| #process_kept,
            )
        },
        quote! {
            #runtime::ProcessorInfo {
                input: #runtime::ItemType::of::<#item>(),
                output: #runtime::ItemType::of::<#output>(),
                error_type: #error_type(),
            }
        },
    ]
}

fn write(method: &ArtifactMethod, artifact: &Artifact) -> Vec<TokenStream> {
    let Parameters::Items { item, transaction } = &method.parameters else {
        return Vec::new();
    };
    let runtime = runtime();
    let (buffered, transactional) = (artifact.buffered, transaction.is_some());
    let (keeps_position, rewindable) = (keeps_position(artifact), artifact.rewindable);
    let has_end_methods = has_any(artifact, &["finish", "close"]);
    let has_destination = artifact.method(Shape::Destination).is_some();
    let is_of_destination = match transaction_of(artifact).filter(|_| has_destination) {
        Some(ty) => quote!(#runtime::ChunkTransaction::is_other_than::<#ty>()),
        None => quote!(false),
    };
    let (tx, arguments) = match transaction {
        Some(ty) if has_destination => (quote!(let tx: #ty = tx.part()?;), quote!(self, items, tx)),
        // Spanned as the written type, where rustc reports a type that differs.
        Some(ty) => {
            let here = spanned(ty, |open, _| {
                Ident::new("tx", Span::call_site().located_at(open)).into_token_stream()
            });
            (quote!(let tx: #ty = #here;), quote!(self, items, tx))
        }
        None => (quote!(let _ = tx;), quote!(self, items)),
    };
    let call = converted(method, quote!(UnitReturn), "into_unit", arguments);
    vec![
        quote! {
            let items = #runtime::ChunkItems::typed::<#item>(items)?;
            #tx
            #call
        },
        quote! {
            #runtime::WriterInfo {
                items: #runtime::ItemType::of::<#item>(),
                buffered: #buffered,
                transactional: #transactional,
                has_destination: #is_of_destination,
                may_have_destination: #has_destination,
                keeps_position: #keeps_position,
                rewindable: #rewindable,
                has_end_methods: #has_end_methods,
            }
        },
    ]
}

/// Calls the user's method, whose destination must have the transaction that `#[write_items]` takes.
fn destination(method: &ArtifactMethod, artifact: &Artifact) -> TokenStream {
    // Without one there is an error already.
    let transaction = or_unit(transaction_of(artifact));
    converted(
        method,
        quote!(DestinationReturn<#transaction>),
        "into_destination",
        quote!(self),
    )
}

/// Returns the type of the transaction that `#[write_items]` takes.
fn transaction_of(artifact: &Artifact) -> Option<&Type> {
    match &artifact.method(Shape::Write)?.parameters {
        Parameters::Items {
            transaction: Some(ty),
            ..
        } => match &**ty {
            Type::Reference(reference) => Some(&reference.elem),
            _ => None,
        },
        _ => None,
    }
}

fn or_unit(ty: Option<&Type>) -> TokenStream {
    ty.map_or_else(|| quote!(()), ToTokens::to_token_stream)
}

/// Returns whether the artifact has one of these methods. Elements of an array may have the conditions of the methods.
fn has_any(artifact: &Artifact, attributes: &[&str]) -> TokenStream {
    let is_one = |method: &&ArtifactMethod| attributes.contains(&method.row.attribute);
    let methods = artifact.methods.iter().filter(is_one).map(|method| {
        let cfgs = &method.cfgs;
        quote!(#(#cfgs)* true)
    });
    quote!([false, #(#methods),*].contains(&true))
}
