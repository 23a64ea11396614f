//! The listener roles of a step: around reads, processor calls, writes, checkpoints, skips and retries.
//!
//! Items reach a listener as `&dyn Any`, lists as [`Items`]; the attribute's generated code takes them back to the type
//! that the method names, or hands them on as they are to a method that takes every type.

use std::any::Any;

use crate::error::BatchError;

use super::item::{ItemType, Items};

/// The item types that a listener's methods name; `None` where it takes every type or has no such method.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListenerItems {
    /// What the reader gives.
    pub input: Option<ItemType>,
    /// What the processor gives.
    pub output: Option<ItemType>,
}

/// Requires that the methods of a listener name one item type. Called by generated code.
pub fn require_same_item<First, Other: SameItem<First>>() {}

/// The type that is `T`.
#[diagnostic::on_unimplemented(
    message = "the methods of this listener name different item types, `{T}` and `{Self}`",
    label = "another method takes `{T}`",
    note = "a listener hears the items of one step; take `&dyn Any` (or `Items<'_>` for lists) to accept every type"
)]
pub trait SameItem<T: ?Sized> {}

#[diagnostic::do_not_recommend]
impl<T: ?Sized> SameItem<T> for T {}

/// The item as the type that a listener's method names. Called by generated code.
///
/// # Errors
/// When it is of another type, which the loader excludes before a job starts.
///
/// Spec: CHUNK-LOOP-17
pub fn heard_item<T: 'static>(item: &dyn Any) -> Result<&T, BatchError> {
    item.downcast_ref().ok_or_else(|| {
        BatchError::msg(format!(
            "the listener takes items of type `{}`, and this is of another one",
            std::any::type_name::<T>()
        ))
    })
}

/// As [`heard_item`], for the processor's result, `None` for a filtered item. Called by generated code.
///
/// # Errors
/// When it is of another type.
pub fn heard_result<T: 'static>(result: Option<&dyn Any>) -> Result<Option<&T>, BatchError> {
    result.map(heard_item).transpose()
}

/// `#[step_listener]`. Spec: LISTEN-STEP-01
pub trait StepListener: Send {
    /// `#[before_step]`. Spec: LISTEN-STEP-02
    ///
    /// # Errors
    /// The artifact's error; the step then ends FAILED without running.
    fn before_step(&mut self) -> Result<(), BatchError>;

    /// `#[after_step]`. Spec: LISTEN-STEP-03
    ///
    /// # Errors
    /// The artifact's error; the step then ends FAILED.
    fn after_step(&mut self) -> Result<(), BatchError>;
}

/// `#[checkpoint_listener]`. Spec: LISTEN-CKPT-01
pub trait CheckpointListener: Send {
    /// `#[before_checkpoint]`. Spec: LISTEN-CKPT-02
    ///
    /// # Errors
    /// The artifact's error; the interval is rolled back and the step ends FAILED.
    fn before_checkpoint(&mut self) -> Result<(), BatchError>;

    /// `#[after_checkpoint]`. Spec: LISTEN-CKPT-03
    ///
    /// # Errors
    /// The artifact's error; the step ends FAILED, the commit stands.
    fn after_checkpoint(&mut self) -> Result<(), BatchError>;
}

/// `#[item_read_listener]`. Spec: LISTEN-READ-01
pub trait ItemReadListener: Send {
    /// `#[before_read]`. Spec: LISTEN-READ-02
    ///
    /// # Errors
    /// The artifact's error.
    fn before_read(&mut self) -> Result<(), BatchError>;

    /// `#[after_read]`. Spec: LISTEN-READ-03
    ///
    /// # Errors
    /// The artifact's error.
    fn after_read(&mut self, item: &dyn Any) -> Result<(), BatchError>;

    /// `#[on_read_error]`. Spec: LISTEN-READ-04
    ///
    /// # Errors
    /// The artifact's error.
    fn on_read_error(&mut self, error: &BatchError) -> Result<(), BatchError>;

    /// The item types that the methods name.
    fn items() -> ListenerItems
    where
        Self: Sized;
}

/// `#[item_process_listener]`. Spec: LISTEN-PROC-01
pub trait ItemProcessListener: Send {
    /// `#[before_process]`. Spec: LISTEN-PROC-02
    ///
    /// # Errors
    /// The artifact's error.
    fn before_process(&mut self, item: &dyn Any) -> Result<(), BatchError>;

    /// `#[after_process]`; no result for a filtered item. Spec: LISTEN-PROC-03, LISTEN-PROC-04
    ///
    /// # Errors
    /// The artifact's error.
    fn after_process(&mut self, item: &dyn Any, result: Option<&dyn Any>) -> Result<(), BatchError>;

    /// `#[on_process_error]`. Spec: LISTEN-PROC-05
    ///
    /// # Errors
    /// The artifact's error.
    fn on_process_error(&mut self, error: &BatchError, item: &dyn Any) -> Result<(), BatchError>;

    /// The item types that the methods name.
    fn items() -> ListenerItems
    where
        Self: Sized;
}

/// `#[item_write_listener]`. Spec: LISTEN-WRITE-01
pub trait ItemWriteListener: Send {
    /// `#[before_write]`. Spec: LISTEN-WRITE-02
    ///
    /// # Errors
    /// The artifact's error.
    fn before_write(&mut self, items: &Items<'_>) -> Result<(), BatchError>;

    /// `#[after_write]`. Spec: LISTEN-WRITE-03
    ///
    /// # Errors
    /// The artifact's error.
    fn after_write(&mut self, items: &Items<'_>) -> Result<(), BatchError>;

    /// `#[on_write_error]`. Spec: LISTEN-WRITE-04
    ///
    /// # Errors
    /// The artifact's error.
    fn on_write_error(&mut self, error: &BatchError, items: &Items<'_>) -> Result<(), BatchError>;

    /// The item types that the methods name.
    fn items() -> ListenerItems
    where
        Self: Sized;
}

/// `#[skip_listener]`. Spec: LISTEN-SKIP-01
pub trait SkipListener: Send {
    /// `#[on_skip_in_read]`. Spec: LISTEN-SKIP-02
    ///
    /// # Errors
    /// The artifact's error; the step then ends FAILED.
    fn on_skip_in_read(&mut self, error: &BatchError) -> Result<(), BatchError>;

    /// `#[on_skip_in_process]`. Spec: LISTEN-SKIP-03
    ///
    /// # Errors
    /// The artifact's error; the step then ends FAILED.
    fn on_skip_in_process(&mut self, error: &BatchError, item: &dyn Any) -> Result<(), BatchError>;

    /// `#[on_skip_in_write]`. Spec: LISTEN-SKIP-04, D-13
    ///
    /// # Errors
    /// The artifact's error; the step then ends FAILED.
    fn on_skip_in_write(&mut self, error: &BatchError, item: &dyn Any) -> Result<(), BatchError>;

    /// The item types that the methods name.
    fn items() -> ListenerItems
    where
        Self: Sized;
}

/// `#[retry_listener]`. Spec: LISTEN-RETRY-01
pub trait RetryListener: Send {
    /// `#[on_retry_exception]`. Spec: LISTEN-RETRY-02
    ///
    /// # Errors
    /// The artifact's error; the whole chunk is then retried. Spec: LISTEN-RETRY-04
    fn on_retry_exception(&mut self, error: &BatchError, item: &dyn Any) -> Result<(), BatchError>;

    /// `#[on_retry_item]`. Spec: LISTEN-RETRY-06
    ///
    /// # Errors
    /// The artifact's error, to which the skip rules apply. Spec: LISTEN-RETRY-09
    fn on_retry_item(&mut self, error: &BatchError, item: &dyn Any) -> Result<(), BatchError>;

    /// The item types that the methods name.
    fn items() -> ListenerItems
    where
        Self: Sized;
}
