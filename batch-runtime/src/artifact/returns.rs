//! The return types of artifact methods: plain or `Result`. Generated code calls these traits, so that a wrong type is
//! a compile error at the return type that names the right ones. Their errors are the artifacts' errors.
// Spec: ART-06, ART-07

use super::item::ItemType;
use super::payload::CollectorData;
use crate::checkpoint::Externalizable;
use crate::error::BatchError;
use crate::status::BatchStatus;

/// The return type of a `#[read_item]` method.
#[diagnostic::on_unimplemented(
    message = "a `#[read_item]` method cannot return `{Self}`",
    label = "expected `Option<Item>` or `Result<Option<Item>, E>`",
    note = "`E` is any `std::error::Error + Send + Sync + 'static`, text, or `BatchError`"
)]
pub trait ReadReturn {
    /// The item type.
    type Item;
    /// Returns the next item, `None` at the end.
    fn into_read(self) -> Result<Option<Self::Item>, BatchError>;
    /// Returns the path of the error type, empty if there is none.
    fn error_type() -> &'static str {
        ""
    }
}

impl<I> ReadReturn for Option<I> {
    type Item = I;
    #[inline]
    fn into_read(self) -> Result<Option<I>, BatchError> {
        Ok(self)
    }
}

#[diagnostic::do_not_recommend]
impl<I, E: Into<BatchError>> ReadReturn for Result<Option<I>, E> {
    type Item = I;
    #[inline]
    fn into_read(self) -> Result<Option<I>, BatchError> {
        self.map_err(Into::into)
    }
    fn error_type() -> &'static str {
        std::any::type_name::<E>()
    }
}

/// The return type of a `#[process_item]` method.
#[diagnostic::on_unimplemented(
    message = "a `#[process_item]` method cannot return `{Self}`",
    label = "expected `Option<Out>` or `Result<Option<Out>, E>`",
    note = "`E` is any `std::error::Error + Send + Sync + 'static`, text, or `BatchError`"
)]
pub trait ProcessReturn {
    /// The type of the result.
    type Item;
    /// Returns the result, `None` for a filtered item.
    fn into_processed(self) -> Result<Option<Self::Item>, BatchError>;
    /// Returns the path of the error type, empty if there is none.
    fn error_type() -> &'static str {
        ""
    }
}

impl<O> ProcessReturn for Option<O> {
    type Item = O;
    #[inline]
    fn into_processed(self) -> Result<Option<O>, BatchError> {
        Ok(self)
    }
}

#[diagnostic::do_not_recommend]
impl<O, E: Into<BatchError>> ProcessReturn for Result<Option<O>, E> {
    type Item = O;
    #[inline]
    fn into_processed(self) -> Result<Option<O>, BatchError> {
        self.map_err(Into::into)
    }
    fn error_type() -> &'static str {
        std::any::type_name::<E>()
    }
}

/// The return type of a method without a result (the draft's `void`).
#[diagnostic::on_unimplemented(
    message = "this artifact method cannot return `{Self}`",
    label = "expected no return value or `Result<(), E>`",
    note = "`E` is any `std::error::Error + Send + Sync + 'static`, text, or `BatchError`"
)]
pub trait UnitReturn {
    /// Returns the error, if there is one.
    fn into_unit(self) -> Result<(), BatchError>;
}

impl UnitReturn for () {
    fn into_unit(self) -> Result<(), BatchError> {
        Ok(())
    }
}

#[diagnostic::do_not_recommend]
impl<E: Into<BatchError>> UnitReturn for Result<(), E> {
    fn into_unit(self) -> Result<(), BatchError> {
        self.map_err(Into::into)
    }
}

/// The return type of the `#[process]` method of a batchlet.
#[diagnostic::on_unimplemented(
    message = "a `#[process]` method cannot return `{Self}`",
    label = "expected `String`, `&'static str`, nothing, or a `Result<_, E>` of one of them",
    note = "`E` is any `std::error::Error + Send + Sync + 'static`, text, or `BatchError`"
)]
pub trait StatusReturn {
    /// Returns the exit status of the step.
    fn into_status(self) -> Result<String, BatchError>;
}

#[diagnostic::do_not_recommend]
impl StatusReturn for String {
    fn into_status(self) -> Result<String, BatchError> {
        Ok(self)
    }
}

#[diagnostic::do_not_recommend]
impl StatusReturn for &'static str {
    fn into_status(self) -> Result<String, BatchError> {
        Ok(self.to_owned())
    }
}

// Spec: BLET-13
#[diagnostic::do_not_recommend]
impl StatusReturn for () {
    fn into_status(self) -> Result<String, BatchError> {
        Ok(BatchStatus::Completed.as_str().to_owned())
    }
}

#[diagnostic::do_not_recommend]
impl<S: StatusReturn, E: Into<BatchError>> StatusReturn for Result<S, E> {
    fn into_status(self) -> Result<String, BatchError> {
        self.map_err(Into::into)?.into_status()
    }
}

/// The return type of a `#[decide]` method.
#[diagnostic::on_unimplemented(
    message = "a `#[decide]` method cannot return `{Self}`",
    label = "expected `String`, `&'static str`, or a `Result<_, E>` of one of them",
    note = "`E` is any `std::error::Error + Send + Sync + 'static`, text, or `BatchError`"
)]
pub trait DecideReturn {
    /// Returns the exit status of the decision.
    fn into_exit_status(self) -> Result<String, BatchError>;
}

#[diagnostic::do_not_recommend]
impl DecideReturn for String {
    fn into_exit_status(self) -> Result<String, BatchError> {
        Ok(self)
    }
}

#[diagnostic::do_not_recommend]
impl DecideReturn for &'static str {
    fn into_exit_status(self) -> Result<String, BatchError> {
        Ok(self.to_owned())
    }
}

#[diagnostic::do_not_recommend]
impl<S: DecideReturn, E: Into<BatchError>> DecideReturn for Result<S, E> {
    fn into_exit_status(self) -> Result<String, BatchError> {
        self.map_err(Into::into)?.into_exit_status()
    }
}

/// The return type of a method whose result needs no conversion: a `bool`, seconds, a plan.
#[diagnostic::on_unimplemented(
    message = "this artifact method cannot return `{Self}`",
    label = "expected `{T}` or `Result<{T}, E>`",
    note = "`E` is any `std::error::Error + Send + Sync + 'static`, text, or `BatchError`"
)]
pub trait ValueReturn<T> {
    /// Returns the value.
    fn into_value(self) -> Result<T, BatchError>;
}

impl<T> ValueReturn<T> for T {
    fn into_value(self) -> Result<T, BatchError> {
        Ok(self)
    }
}

#[diagnostic::do_not_recommend]
impl<T, E: Into<BatchError>> ValueReturn<T> for Result<T, E> {
    fn into_value(self) -> Result<T, BatchError> {
        self.map_err(Into::into)
    }
}

/// The return type of a `#[collect_sub_job_data]` method.
#[diagnostic::on_unimplemented(
    message = "a `#[collect_sub_job_data]` method cannot return `{Self}`",
    label = "expected `Option<P>` or `Result<Option<P>, E>`",
    note = "`E` is any `std::error::Error + Send + Sync + 'static`, text, or `BatchError`"
)]
pub trait CollectReturn {
    /// Returns the payload; `None` sends nothing.
    fn into_collected(self) -> Result<Option<CollectorData>, BatchError>;

    /// Returns the payload's type.
    fn payload_type() -> ItemType;
}

impl<P: Externalizable> CollectReturn for Option<P> {
    fn into_collected(self) -> Result<Option<CollectorData>, BatchError> {
        self.as_ref().map(CollectorData::new).transpose()
    }
    fn payload_type() -> ItemType {
        ItemType::of::<P>()
    }
}

#[diagnostic::do_not_recommend]
impl<P: Externalizable, E: Into<BatchError>> CollectReturn for Result<Option<P>, E> {
    fn into_collected(self) -> Result<Option<CollectorData>, BatchError> {
        let payload = self.map_err(Into::into)?;
        payload.as_ref().map(CollectorData::new).transpose()
    }
    fn payload_type() -> ItemType {
        ItemType::of::<P>()
    }
}

/// The return type of a `#[get_checkpoint_info]` method, given the checkpoint type `C` of `#[open]`.
#[diagnostic::on_unimplemented(
    message = "`#[get_checkpoint_info]` returns `{Self}`, but `#[open]` takes `Option<{C}>`",
    label = "expected `{C}` or `Result<{C}, E>`",
    note = "`E` is any `std::error::Error + Send + Sync + 'static`, text, or `BatchError`"
)]
pub trait CheckpointReturn<C> {
    /// Returns the checkpoint.
    fn into_checkpoint(self) -> Result<C, BatchError>;
}

impl<C> CheckpointReturn<C> for C {
    fn into_checkpoint(self) -> Result<C, BatchError> {
        Ok(self)
    }
}

#[diagnostic::do_not_recommend]
impl<C, E: Into<BatchError>> CheckpointReturn<C> for Result<C, E> {
    fn into_checkpoint(self) -> Result<C, BatchError> {
        self.map_err(Into::into)
    }
}
