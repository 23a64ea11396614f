//! A destination of any type, for the engine and for writers that are made of others.

use std::any::Any;

use super::{Advance, Destination, Marker};
use crate::error::{BatchError, ConfigurationError};

/// A destination of any type.
pub struct AnyDestination(Box<dyn ErasedDestination>);

impl<D: Destination> From<D> for AnyDestination {
    fn from(destination: D) -> Self {
        Self(Box::new(destination))
    }
}

impl AnyDestination {
    /// Returns the destination of a writer that is made of others. Its parts have one destination, or several of the same place.
    ///
    /// # Errors
    /// If they are of several places: after a crash between their commits, each would have other items.
    // Spec: MARK-12
    pub fn of_parts(
        parts: impl IntoIterator<Item = Option<Self>>,
    ) -> Result<Option<Self>, ConfigurationError> {
        let mut found: Option<Self> = None;
        for part in parts.into_iter().flatten() {
            match &found {
                None => found = Some(part),
                Some(first) if first.0.place() == part.0.place() && !part.0.place().is_empty() => {}
                Some(first) => {
                    return Err(ConfigurationError::new(format!(
                        "the parts of the writer have two destinations, `{}` and `{}`: a crash between their commits could lose or double items; \
                         write to one of them in another step",
                        first.0.place(),
                        part.0.place()
                    )));
                }
            }
        }
        Ok(found)
    }

    pub(crate) fn get(&mut self) -> &mut dyn ErasedDestination {
        &mut *self.0
    }
}

/// [`Destination`] without the type of its transaction.
pub(crate) trait ErasedDestination: Send {
    fn has_savepoints(&self) -> bool;
    fn place(&self) -> String;
    fn claim(&mut self, key: &str) -> Result<Marker, BatchError>;
    fn transaction(&mut self) -> Result<&mut dyn Any, BatchError>;
    fn commit(&mut self, advance: &Advance<'_>) -> Result<bool, BatchError>;
    fn commit_unmarked(&mut self) -> Result<(), BatchError>;
    fn roll_back(&mut self);
    fn set_savepoint(&mut self) -> Result<(), BatchError>;
    fn release_savepoint(&mut self) -> Result<(), BatchError>;
    fn undo_to_savepoint(&mut self) -> Result<(), BatchError>;
    fn is_lost(&mut self) -> bool;
    fn remove(&mut self, key: &str, fence: i64) -> Result<(), BatchError>;
}

impl<D: Destination> ErasedDestination for D {
    fn has_savepoints(&self) -> bool {
        D::HAS_SAVEPOINTS
    }
    fn place(&self) -> String {
        Destination::place(self)
    }
    fn claim(&mut self, key: &str) -> Result<Marker, BatchError> {
        Destination::claim(self, key)
    }
    fn transaction(&mut self) -> Result<&mut dyn Any, BatchError> {
        Ok(Destination::transaction(self)?)
    }
    fn commit(&mut self, advance: &Advance<'_>) -> Result<bool, BatchError> {
        Destination::commit(self, advance)
    }
    fn commit_unmarked(&mut self) -> Result<(), BatchError> {
        Destination::commit_unmarked(self)
    }
    fn roll_back(&mut self) {
        Destination::roll_back(self);
    }
    fn set_savepoint(&mut self) -> Result<(), BatchError> {
        Destination::set_savepoint(self)
    }
    fn release_savepoint(&mut self) -> Result<(), BatchError> {
        Destination::release_savepoint(self)
    }
    fn undo_to_savepoint(&mut self) -> Result<(), BatchError> {
        Destination::undo_to_savepoint(self)
    }
    fn is_lost(&mut self) -> bool {
        Destination::is_lost(self)
    }
    fn remove(&mut self, key: &str, fence: i64) -> Result<(), BatchError> {
        Destination::remove(self, key, fence)
    }
}

/// The return type of a `#[destination]` method, whose `#[write_items]` takes the transaction `T`.
#[diagnostic::on_unimplemented(
    message = "a `#[destination]` method cannot return `{Self}` beside a `#[write_items]` that takes `{T}`",
    label = "expected a `Destination` whose transaction is `{T}`, or a `Result` of one"
)]
pub trait DestinationReturn<T> {
    /// Returns the destination, if the writer has one.
    ///
    /// # Errors
    /// The error of the method.
    fn into_destination(self) -> Result<Option<AnyDestination>, BatchError>;
}

#[diagnostic::do_not_recommend]
impl<D: Destination> DestinationReturn<D::Transaction> for D {
    fn into_destination(self) -> Result<Option<AnyDestination>, BatchError> {
        Ok(Some(self.into()))
    }
}

#[diagnostic::do_not_recommend]
impl<D: Destination, E: Into<BatchError>> DestinationReturn<D::Transaction> for Result<D, E> {
    fn into_destination(self) -> Result<Option<AnyDestination>, BatchError> {
        Ok(Some(self.map_err(Into::into)?.into()))
    }
}
