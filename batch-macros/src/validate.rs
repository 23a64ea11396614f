//! The checks: an impl block as written becomes a complete, well-formed artifact, or errors. What types can do, the
//! compiler checks, through the traits that generated code calls.

use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{
    Attribute, FnArg, Ident, ImplItem, PathSegment, ReceiverKind, ReturnType, Safety, Signature, Type,
};

use crate::diagnostics::{Errors, one_of, with_article};
use crate::parameters::{Parameters, owns, parameters};
use crate::parse::{Argument, Block, Mark};
use crate::role::{Method, Receiver, Role, Shape, roles_with};
use crate::settings::{Registration, Target, settings};
use crate::types::{type_name, type_text};

/// A checked artifact.
pub(crate) struct Artifact {
    /// `None` for a generic impl block.
    pub(crate) registration: Option<Registration>,
    pub(crate) buffered: bool,
    pub(crate) rewindable: bool,
    pub(crate) methods: Vec<ArtifactMethod>,
}

impl Artifact {
    /// Returns the first method of this shape.
    pub(crate) fn method(&self, shape: Shape) -> Option<&ArtifactMethod> {
        self.methods.iter().find(|method| method.row.shape == shape)
    }
}

/// A checked method.
pub(crate) struct ArtifactMethod {
    pub(crate) row: &'static Method,
    pub(crate) ident: Ident,
    pub(crate) parameters: Parameters,
    pub(crate) result: ReturnType,
    pub(crate) is_async: bool,
    pub(crate) cfgs: Vec<Attribute>,
}

/// Checks an impl block. Returns `None` if there are errors.
pub(crate) fn artifact(
    role: &'static Role,
    arguments: &[Argument],
    block: &Block,
    errors: &mut Errors,
) -> Option<Artifact> {
    let target = if block.item.generics.params.is_empty() {
        Target::Block
    } else {
        Target::GenericBlock
    };
    let settings = settings(role, target, arguments, errors);
    // In the wrong kind of block, missing methods are no further errors.
    let segment = artifact_type(role, block, errors)?;
    let methods = methods(role, block, errors);
    let needs_name = target == Target::Block && settings.name.is_none();
    if needs_name && !segment.arguments.is_none() {
        errors.error(
            &segment,
            "an artifact of a generic type needs a name",
            &[&format!("write `#[{}(\"Name\")]`", role.attribute)],
        );
    }
    errors.is_empty().then(|| Artifact {
        buffered: settings.buffered,
        rewindable: settings.rewindable,
        registration: (target == Target::Block).then(|| settings.registration(&segment.ident)),
        methods,
    })
}

/// Returns the last segment of the type's path, which names the artifact.
fn artifact_type(role: &Role, block: &Block, errors: &mut Errors) -> Option<PathSegment> {
    let item = &block.item;
    if let Some((path, _)) = &item.trait_ {
        errors.error(
            path,
            format!(
                "`#[{}]` belongs on an inherent impl block, not on the impl of a trait",
                role.attribute
            ),
            &[&"put it on the impl block of the type: `impl Type { .. }`"],
        );
        return None;
    }
    if errors.lifetimes(&item.generics) {
        return None;
    }
    let segment = type_name(&item.self_ty).cloned();
    if segment.is_none() {
        errors.error(
            &item.self_ty,
            "this type cannot be an artifact",
            &[&"an artifact is a struct with `#[derive(BatchArtifact)]`"],
        );
    }
    segment
}

fn methods(role: &'static Role, block: &Block, errors: &mut Errors) -> Vec<ArtifactMethod> {
    let mut checked = Vec::new();
    let mut first_of: Vec<&Mark> = Vec::new();
    let mut foreign = Vec::new();
    let is_of = |mark: &Mark, row: &Method| {
        role.method(mark.attribute())
            .is_some_and(|of_mark| of_mark.attribute == row.attribute)
    };
    for mark in &block.marks {
        let Some(row) = role.method(mark.attribute()) else {
            foreign.push(mark);
            continue;
        };
        let attribute = row.attribute;
        if mark.meant.is_some() {
            let message = format!("unknown attribute `#[{}]`", mark.name);
            errors.error(&mark.path, message, &[&format!("did you mean `#[{attribute}]`?")]);
        }
        if let Some(arguments) = &mark.arguments {
            errors.error(arguments, format!("`#[{attribute}]` takes no arguments"), &[]);
        }
        // Two methods are right if `#[cfg]` leaves one, and a macro cannot know which it leaves.
        let earlier = first_of
            .iter()
            .find(|earlier| is_of(earlier, row) && (earlier.cfgs.is_empty() || mark.cfgs.is_empty()));
        if let Some(earlier) = earlier {
            duplicate(role, earlier, mark, errors);
            continue;
        }
        first_of.push(mark);
        checked.extend(method(row, mark, errors));
    }
    let absent = |row: &&Method| !first_of.iter().any(|mark| is_of(mark, row));
    let missing: Vec<_> = role
        .methods
        .iter()
        .filter(|row| row.required)
        .filter(absent)
        .collect();
    let missing = with_checkpoint(role, missing, &checked, &first_of, errors);
    takes_transaction_of_destination(&checked, errors);
    for mark in &foreign {
        foreign_attribute(role, mark, &missing, errors);
    }
    // A wrong attribute is probably meant to be the missing one, which its error names.
    if foreign.is_empty() {
        for row in missing {
            missing_method(role, row, block, errors);
        }
    }
    checked
}

/// Adds the half of `#[open]` and `#[get_checkpoint_info]` that lacks the other: without the one the checkpoint would be lost, without the
/// other it has no type.
fn with_checkpoint(
    role: &Role,
    mut missing: Vec<&'static Method>,
    checked: &[ArtifactMethod],
    marks: &[&Mark],
    errors: &mut Errors,
) -> Vec<&'static Method> {
    let has = |attribute: &str| {
        marks.iter().any(|mark| {
            role.method(mark.attribute())
                .is_some_and(|row| row.attribute == attribute)
        })
    };
    let takes_checkpoint = checked
        .iter()
        .any(|method| matches!(method.parameters, Parameters::Checkpoint(_)));
    let returns_checkpoint = has("get_checkpoint_info");
    let lacks = match (takes_checkpoint, returns_checkpoint) {
        (true, false) => Some("get_checkpoint_info"),
        (false, true) if !has("open") => Some("open"),
        _ => None,
    };
    let open = checked.iter().find(|method| method.row.shape == Shape::Open);
    if let Some(open) = open.filter(|_| returns_checkpoint && !takes_checkpoint) {
        let message = "this `#[open]` method lacks a parameter: the checkpoint of `#[get_checkpoint_info]`";
        errors.error(&open.ident, message, &[&open.row.expected()]);
    }
    missing.extend(lacks.and_then(|attribute| role.method(attribute)));
    missing
}

/// Checks that a writer with a destination takes its transaction: what it writes elsewhere would not be exact.
fn takes_transaction_of_destination(checked: &[ArtifactMethod], errors: &mut Errors) {
    let has_destination = checked
        .iter()
        .any(|method| method.row.shape == Shape::Destination);
    for method in checked.iter().filter(|_| has_destination) {
        if matches!(
            &method.parameters,
            Parameters::Items {
                transaction: None,
                ..
            }
        ) {
            let message =
                "this `#[write_items]` method lacks a parameter: the transaction of its `#[destination]`";
            let remedy = "expected `fn write(&mut self, items: &[Out], tx: &mut T) -> Result<(), E>`, where `T` is the transaction of the \
                          destination";
            errors.error(&method.ident, message, &[&remedy]);
        }
    }
}

fn duplicate(role: &Role, earlier: &Mark, later: &Mark, errors: &mut Errors) {
    let attribute = later.attribute();
    errors.error(
        &later.path,
        format!(
            "{} has two `#[{attribute}]` methods, `fn {}` and `fn {}`",
            with_article(role.attribute),
            earlier.method.ident,
            later.method.ident
        ),
        &[&format!(
            "the first is marked {}; remove one of the two attributes",
            line_of(&earlier.path)
        )],
    );
}

/// Returns the line of `path` in words: on stable, an error has one place, so the other one goes into the text.
fn line_of(path: &syn::Path) -> String {
    match (proc_macro::is_available(), path.segments.last()) {
        (true, Some(segment)) => format!("in line {}", segment.ident.span().unwrap().line()),
        _ => "above".to_owned(),
    }
}

fn foreign_attribute(role: &Role, mark: &Mark, missing: &[&Method], errors: &mut Errors) {
    let attribute = mark.attribute();
    let owners: Vec<_> = roles_with(attribute)
        .iter()
        .map(|owner| format!("`#[{}]`", owner.attribute))
        .collect();
    let owner = format!("`#[{attribute}]` belongs to {}", one_of(&owners));
    let names: Vec<_> = missing
        .iter()
        .map(|row| format!("`#[{}]`", row.attribute))
        .collect();
    let absent = format!("missing in this block: {}", names.join(", "));
    let remedies: [&dyn Display; 2] = [&owner, &absent];
    errors.error(
        &mark.path,
        format!(
            "`#[{attribute}]` does not belong to {}",
            with_article(role.attribute)
        ),
        if missing.is_empty() {
            &remedies[..1]
        } else {
            &remedies
        },
    );
}

fn missing_method(role: &Role, row: &Method, block: &Block, errors: &mut Errors) {
    let self_ty = &block.item.self_ty;
    let message = format!(
        "{} `{}` has no `#[{}]` method",
        role.title(),
        type_text(self_ty),
        row.attribute
    );
    let unmarked = block.item.items.iter().find_map(|member| match member {
        ImplItem::Fn(function) => {
            let name = function.sig.ident.unraw().to_string();
            let usual = name == row.attribute || row.usual_names.contains(&name.as_str());
            let marked = block
                .marks
                .iter()
                .any(|mark| mark.method.ident == function.sig.ident);
            (usual && !marked).then_some(&function.sig.ident)
        }
        _ => None,
    });
    match unmarked {
        Some(ident) => {
            let remedy = format!("add `#[{}]` to `fn {ident}`", row.attribute);
            errors.error(ident, message, &[&remedy]);
        }
        None => {
            let remedy = format!("add the method:\n    #[{}]\n    {}", row.attribute, row.signature);
            errors.error(self_ty, message, &[&remedy]);
        }
    }
}

/// Checks a marked method against its row of the table.
fn method(row: &'static Method, mark: &Mark, errors: &mut Errors) -> Option<ArtifactMethod> {
    let signature = &mark.method;
    // The parts of the signature are independent, so all their errors are reported.
    let supported = supported(row, signature, errors);
    let receiver = receiver(row, signature, errors);
    if !signature.generics.params.is_empty() {
        // The types name the parameters, which would be further errors of the same mistake.
        return None;
    }
    let parameters = parameters(row, signature, errors);
    let result = result(row, signature, errors);
    if !(supported && receiver && result) {
        return None;
    }
    Some(ArtifactMethod {
        row,
        ident: signature.ident.clone(),
        parameters: parameters?,
        result: signature.output.clone(),
        is_async: signature.asyncness.is_some(),
        cfgs: mark.cfgs.clone(),
    })
}

fn supported(row: &Method, signature: &Signature, errors: &mut Errors) -> bool {
    if let Some(token) = signature.asyncness.filter(|_| row.attribute == "cancel") {
        errors.error(
            token,
            format!(
                "`#[{}]` cannot be an `async` method, because the thread that requests the stop calls it",
                row.attribute
            ),
            &[
                &"let it notify the `#[process]` method, for example by a `tokio::sync::Notify`",
                &row.expected(),
            ],
        );
        return false;
    }
    if let Some(token) = signature.asyncness.filter(|_| !cfg!(feature = "tokio")) {
        errors.error(
            token,
            format!(
                "an `async` method as `#[{}]` needs the feature `tokio` of batch-runtime",
                row.attribute
            ),
            &[
                &"enable it: `batch-runtime = { version = \"..\", features = [\"tokio\"] }`",
                &row.expected(),
            ],
        );
        return false;
    }
    let part = if let Safety::Unsafe(token) = &signature.safety {
        Some((token.to_token_stream(), "an `unsafe` method"))
    } else if let Some(abi) = &signature.abi {
        Some((abi.to_token_stream(), "an `extern` method"))
    } else if !signature.generics.params.is_empty() {
        Some((signature.generics.to_token_stream(), "a generic method"))
    } else {
        signature.inputs.iter().find_map(|input| match input {
            FnArg::Typed(typed) if matches!(*typed.ty, Type::ImplTrait(_)) => {
                Some((typed.ty.to_token_stream(), "a parameter of type `impl Trait`"))
            }
            _ => None,
        })
    };
    let Some((place, what)) = part else { return true };
    errors.error(
        place,
        format!("{what} is not supported as `#[{}]`", row.attribute),
        &[&row.expected()],
    );
    false
}

fn receiver(row: &Method, signature: &Signature, errors: &mut Errors) -> bool {
    let wanted = if row.receiver == Receiver::Shared {
        "&self"
    } else {
        "&mut self` or `&self"
    };
    let place = match signature.receiver() {
        None => signature.ident.to_token_stream(),
        Some(receiver) => match (&receiver.kind, row.receiver) {
            (ReceiverKind::Reference(_, _, Some(mutable)), Receiver::Shared) => {
                let why = "`#[cancel]` runs on another thread while `#[process]` does; keep what they share in an \
                           atomic or a `Mutex`";
                let message = format!(
                    "{} method takes &self, not &mut self",
                    with_article(row.attribute)
                );
                errors.error(mutable, message, &[&why, &row.expected()]);
                return false;
            }
            (ReceiverKind::Reference(..), _) => return true,
            _ => receiver.to_token_stream(),
        },
    };
    let message = format!("{} method takes `{wanted}`", with_article(row.attribute));
    errors.error(place, message, &[&row.expected()]);
    false
}

fn result(row: &Method, signature: &Signature, errors: &mut Errors) -> bool {
    match &signature.output {
        ReturnType::Default => true,
        ReturnType::Type(_, ty) => {
            if matches!(ty.as_ref(), Type::ImplTrait(_)) {
                let message = format!(
                    "`impl Trait` is not supported as the result of {} method",
                    with_article(row.attribute)
                );
                errors.error(ty, message, &[&row.expected()]);
                return false;
            }
            owns(row, ty, errors)
        }
    }
}

/// Reports an artifact attribute that is not on an impl block or type alias.
pub(crate) fn not_an_impl_block(role: &Role, item: &syn::Item, errors: &mut Errors) {
    let (what, remedy) = match item {
        syn::Item::Struct(item) => (
            "a struct",
            format!(
                "put it on the impl block: `#[{}] impl {} {{ .. }}`; the struct has `#[derive(BatchArtifact)]`",
                role.attribute, item.ident
            ),
        ),
        syn::Item::Fn(item) if item.sig.receiver().is_some() => (
            "a method",
            "put it on the impl block that holds the methods".to_owned(),
        ),
        syn::Item::Fn(_) => (
            "a function",
            "put it on an impl block; a function can only have a role with one required method that needs no checkpoint".to_owned(),
        ),
        syn::Item::Mod(_) => (
            "a module",
            "put it on the impl block inside the module".to_owned(),
        ),
        syn::Item::Enum(_) => (
            "an enum",
            "an artifact is a struct; put it on the impl block".to_owned(),
        ),
        syn::Item::Use(_) => (
            "an import",
            format!(
                "register the type by an alias: `#[{}(\"Name\")] type Name = path::Type;`",
                role.attribute
            ),
        ),
        _ => (
            "this item",
            "put it on the impl block of the artifact's type, or on a type alias".to_owned(),
        ),
    };
    errors.error(
        // Without tokens, the place is the attribute.
        TokenStream::new(),
        format!("`#[{}]` cannot be on {what}", role.attribute),
        &[&remedy],
    );
}
