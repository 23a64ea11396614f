//! The parameters of a marked method, checked against its row of the table.

use quote::ToTokens;
use syn::{FnArg, Signature, Type, TypeParamBound};

use crate::diagnostics::{Errors, USE_OWNED, with_article};
use crate::role::{Method, ParamKind, Shape};
use crate::types::{borrow_in, ends_in, is_named, item_type, items_type, option_of, reference_to, type_text};

/// The parameters after the receiver, by the method's shape.
pub(crate) enum Parameters {
    None,
    /// `Option<C>`: the type `C`.
    Checkpoint(Type),
    /// `&In` or `In`.
    Item {
        item: Type,
        borrowed: bool,
    },
    /// `&[Out]`, and the type of the second parameter as it is written.
    Items {
        item: Type,
        transaction: Option<Box<Type>>,
    },
    /// The parameters of an event.
    Event(Vec<Param>),
    /// The payload of a collector.
    Payload(Type),
}

/// A parameter of an event.
pub(crate) struct Param {
    pub(crate) kind: ParamKind,
    pub(crate) binding: ParamBinding,
}

/// The parameter's type in the method.
pub(crate) enum ParamBinding {
    /// The item type that the method names.
    Item(Type),
    /// Any item type: the parameter's type as it is written.
    AnyItem(Type),
    /// One item after the other, of the type that the method names.
    EachItem(Type),
    /// One item after the other, of any type.
    EachAny,
    /// The one type that the parameter has, as it is written.
    AsWritten(Type),
}

/// Returns the least and the highest number of parameters.
pub(crate) fn parameter_counts(row: &Method) -> (usize, usize) {
    match row.shape {
        Shape::Notice(kinds) => (kinds.len(), kinds.len()),
        Shape::Process | Shape::Timeout | Shape::Judge | Shape::Analyze => (1, 1),
        Shape::Write | Shape::AnalyzeStatus => (1, 2),
        Shape::Open | Shape::Decide => (0, 1),
        _ => (0, 0),
    }
}

/// Checks the parameters. Returns `None` if there are errors.
pub(crate) fn parameters(row: &Method, signature: &Signature, errors: &mut Errors) -> Option<Parameters> {
    let types: Vec<&Type> = signature
        .inputs
        .iter()
        .filter_map(|input| match input {
            FnArg::Typed(typed) => Some(typed.ty.as_ref()),
            FnArg::Receiver(_) => None,
        })
        .collect();
    let (least, most) = parameter_counts(row);
    if let Some(extra) = types.get(most) {
        let what = match most {
            0 => "no parameter besides `self`",
            _ => "no further parameter",
        };
        let message = format!("{} method takes {what}", with_article(row.attribute));
        errors.error(extra, message, &[&row.expected()]);
        return None;
    }
    if types.len() < least {
        let message = format!("this `#[{}]` method lacks a parameter", row.attribute);
        errors.error(&signature.ident, message, &[&row.expected()]);
        return None;
    }
    match by_shape(row, &types) {
        Ok(found) => {
            let owned = found.item_types().into_iter().all(|item| owns(row, item, errors));
            owned.then_some(found)
        }
        Err(place) => {
            let message = format!(
                "{} method cannot take `{}`",
                with_article(row.attribute),
                type_text(place)
            );
            errors.error(place, message, &[&row.expected()]);
            None
        }
    }
}

/// Returns the parameters, whose number is right; or the first wrong type.
fn by_shape<'a>(row: &Method, types: &[&'a Type]) -> Result<Parameters, &'a Type> {
    let Some(&first) = types.first() else {
        return Ok(Parameters::None);
    };
    match row.shape {
        Shape::Open => option_of(first)
            .map(|ty| Parameters::Checkpoint(ty.clone()))
            .ok_or(first),
        Shape::Process => {
            let (item, borrowed) = item_type(first).ok_or(first)?;
            Ok(Parameters::Item {
                item: item.clone(),
                borrowed,
            })
        }
        Shape::Write => {
            let item = items_type(first).ok_or(first)?;
            let transaction = match types.get(1) {
                Some(ty @ Type::Reference(reference)) if reference.mutability.is_some() => {
                    Some(Box::new((*ty).clone()))
                }
                Some(other) => return Err(other),
                None => None,
            };
            Ok(Parameters::Items { item, transaction })
        }
        Shape::Analyze => match reference_to(first) {
            Some(_) => Err(first),
            None => Ok(Parameters::Payload(first.clone())),
        },
        Shape::AnalyzeStatus if types.len() == 1 => event(&[ParamKind::Status], types),
        Shape::AnalyzeStatus => event(&[ParamKind::BatchStatus, ParamKind::Status], types),
        Shape::Decide => event(&[ParamKind::Steps], types),
        Shape::Timeout => event(&[ParamKind::Seconds], types),
        Shape::Judge => event(&[ParamKind::Failed], types),
        Shape::Notice(kinds) => event(kinds, types),
        _ => Ok(Parameters::None),
    }
}

fn event<'a>(kinds: &[ParamKind], types: &[&'a Type]) -> Result<Parameters, &'a Type> {
    let params = kinds.iter().zip(types).map(|(&kind, &ty)| {
        let binding = binding(kind, ty).ok_or(ty)?;
        Ok(Param { kind, binding })
    });
    Ok(Parameters::Event(params.collect::<Result<_, &Type>>()?))
}

fn binding(kind: ParamKind, ty: &Type) -> Option<ParamBinding> {
    let as_written = |matches: bool| matches.then(|| ParamBinding::AsWritten(ty.clone()));
    match kind {
        ParamKind::Error => as_written(reference_to(ty).is_some_and(|ty| is_named(ty, "BatchError"))),
        ParamKind::Status => as_written(reference_to(ty).is_some_and(|ty| is_named(ty, "str"))),
        ParamKind::BatchStatus => as_written(is_named(ty, "BatchStatus")),
        ParamKind::Seconds => as_written(is_named(ty, "i32")),
        ParamKind::Steps => as_written(items_type(ty).is_some_and(|step| is_named(&step, "StepExecution"))),
        ParamKind::Failed => as_written(reference_to(ty).is_some_and(|ty| is_named(ty, "FailedItem"))),
        ParamKind::Item(_) => item(ty, ty),
        ParamKind::Result => item(option_of(ty)?, ty),
        ParamKind::List => list(ty),
        ParamKind::Each => list(ty).or_else(|| match item(ty, ty)? {
            ParamBinding::AnyItem(_) => Some(ParamBinding::EachAny),
            ParamBinding::Item(item) => Some(ParamBinding::EachItem(item)),
            other => Some(other),
        }),
    }
}

/// `&[Out]`, or `ChunkItems<'_>`.
fn list(ty: &Type) -> Option<ParamBinding> {
    match items_type(ty) {
        Some(item) => Some(ParamBinding::Item(item)),
        None => is_named(ty, "ChunkItems").then(|| ParamBinding::AnyItem(ty.clone())),
    }
}

/// `&In`, or `&dyn Any`.
fn item(ty: &Type, written: &Type) -> Option<ParamBinding> {
    let item = reference_to(ty)?;
    if let Type::TraitObject(object) = item {
        let is_any = |bound: &TypeParamBound| match bound {
            TypeParamBound::Trait(bound) => ends_in(&bound.path, "Any"),
            _ => false,
        };
        let any = object.bounds.len() == 1 && object.bounds.iter().all(is_any);
        return any.then(|| ParamBinding::AnyItem(written.clone()));
    }
    // The exception comes first: this one is in the wrong place.
    let (item, _) = item_type(ty).filter(|(item, _)| !is_named(item, "BatchError"))?;
    Some(ParamBinding::Item(item.clone()))
}

/// Reports a type that borrows: items and checkpoints outlive the call.
pub(crate) fn owns(row: &Method, ty: &Type, errors: &mut Errors) -> bool {
    let Some(place) = borrow_in(ty.to_token_stream()) else {
        return true;
    };
    errors.error(
        place,
        format!(
            "{} method cannot take or return a type that borrows: the values outlive the call",
            with_article(row.attribute)
        ),
        &[&USE_OWNED],
    );
    false
}

impl Parameters {
    /// Returns the types of items, checkpoints and payloads.
    fn item_types(&self) -> Vec<&Type> {
        match self {
            Self::Checkpoint(ty)
            | Self::Payload(ty)
            | Self::Item { item: ty, .. }
            | Self::Items { item: ty, .. } => vec![ty],
            Self::Event(params) => params
                .iter()
                .filter_map(|param| match &param.binding {
                    ParamBinding::Item(ty) | ParamBinding::EachItem(ty) => Some(ty),
                    _ => None,
                })
                .collect(),
            Self::None => Vec::new(),
        }
    }
}
