//! Processors made of processors, and of the items' own rules.

use std::fmt;
use std::marker::PhantomData;

use batch_runtime::prelude::*;

use super::traits::ProcessItem;

/// Processes items by two processors, one after the other. An item that the first one filters does not reach the second. Chains
/// can be chained.
///
/// The properties of the processors have the prefixes `1.` and `2.`.
///
/// ```
/// use batch_items::compose::{ProcessItem, ProcessorChain};
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Parse;
///
/// impl ProcessItem for Parse {
///     type Input = String;
///     type Output = i64;
///     fn process(&mut self, text: &String) -> Result<Option<i64>, BatchError> {
///         Ok(Some(text.parse()?))
///     }
/// }
///
/// #[derive(BatchArtifact)]
/// struct AtLeast {
///     #[batch_property(name = "least", value = "0")]
///     least: i64,
/// }
///
/// impl ProcessItem for AtLeast {
///     type Input = i64;
///     type Output = i64;
///     fn process(&mut self, number: &i64) -> Result<Option<i64>, BatchError> {
///         Ok((*number >= self.least).then_some(*number))
///     }
/// }
///
/// /// Its property is `2.least`.
/// #[item_processor("ParseAtLeast")]
/// type ParseAtLeast = ProcessorChain<Parse, AtLeast>;
/// ```
#[derive(BatchArtifact)]
pub struct ProcessorChain<A, B> {
    #[batch_artifact(prefix = "1.")]
    first: A,
    #[batch_artifact(prefix = "2.")]
    second: B,
}

#[item_processor]
impl<A, B> ProcessorChain<A, B>
where
    A: ProcessItem,
    B: ProcessItem<Input = A::Output>,
{
    /// Processes an item by both processors.
    #[process_item]
    pub fn process(&mut self, item: &A::Input) -> Result<Option<B::Output>, BatchError> {
        match self.first.process(item)? {
            Some(item) => self.second.process(&item),
            None => Ok(None),
        }
    }
}

impl<A, B> ProcessItem for ProcessorChain<A, B>
where
    A: ProcessItem,
    B: ProcessItem<Input = A::Output>,
{
    type Input = A::Input;
    type Output = B::Output;

    fn process(&mut self, item: &A::Input) -> Result<Option<B::Output>, BatchError> {
        self.process(item)
    }
}

/// An item that knows whether it is valid.
pub trait Validate {
    /// Returns the reason why the item is not valid.
    ///
    /// # Errors
    /// The reason.
    fn validate(&self) -> Result<(), String>;
}

/// Rejects items that are not valid, and passes on all others.
///
/// | property | default | |
/// |---|---|---|
/// | `if.invalid` | `fail` | `fail`: a [`ValidationError`], which the job may skip; `filter`: the item is filtered |
///
/// ```
/// use batch_items::compose::{Validate, ValidatingProcessor};
/// use batch_runtime::prelude::*;
///
/// #[derive(Clone)]
/// struct Payment {
///     cents: i64,
/// }
///
/// impl Validate for Payment {
///     fn validate(&self) -> Result<(), String> {
///         if self.cents > 0 { Ok(()) } else { Err(format!("the amount is {}", self.cents)) }
///     }
/// }
///
/// #[item_processor("CheckPayment")]
/// type CheckPayment = ValidatingProcessor<Payment>;
/// ```
#[derive(BatchArtifact)]
pub struct ValidatingProcessor<T> {
    #[batch_property(name = "if.invalid", value = "fail")]
    if_invalid: IfInvalid,
    item: PhantomData<fn(T)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IfInvalid {
    Fail,
    Filter,
}

crate::choices! {
    IfInvalid { "fail" => Fail, "filter" => Filter }
}

/// An item that is not valid.
#[derive(Debug, BatchException)]
#[batch_exception(class = "org.springframework.batch.item.validator.ValidationException")]
pub struct ValidationError(String);

impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the item is not valid: {}", self.0)
    }
}

impl std::error::Error for ValidationError {}

#[item_processor]
impl<T: Validate + Clone + Send + 'static> ValidatingProcessor<T> {
    /// Checks an item.
    #[process_item]
    pub fn process(&mut self, item: T) -> Result<Option<T>, ValidationError> {
        match item.validate() {
            Ok(()) => Ok(Some(item)),
            Err(_) if self.if_invalid == IfInvalid::Filter => Ok(None),
            Err(reason) => Err(ValidationError(reason)),
        }
    }
}
