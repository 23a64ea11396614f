//! Writers made of writers.

use std::marker::PhantomData;

use batch_runtime::destination::AnyDestination;
use batch_runtime::prelude::*;
use serde::{Deserialize, Serialize};

use super::traits::{BulkLookup, Classified, NoWriter, WriteItems};

/// Declares a writer of up to four writers, whose properties have the prefixes `1.` to `4.`.
macro_rules! several {
    ($(#[$about:meta])* $name:ident, $($bound:path)?, $write:ident) => {
        $(#[$about])*
        #[derive(BatchArtifact)]
        pub struct $name<T, A, B, C = NoWriter, D = NoWriter> {
            #[batch_artifact(prefix = "1.")]
            first: A,
            #[batch_artifact(prefix = "2.")]
            second: B,
            #[batch_artifact(prefix = "3.")]
            third: C,
            #[batch_artifact(prefix = "4.")]
            fourth: D,
            item: PhantomData<fn(T)>,
        }

        #[item_writer]
        impl<T, A, B, C, D> $name<T, A, B, C, D>
        where
            T: Send + 'static $(+ $bound)?,
            A: WriteItems<T>,
            B: WriteItems<T>,
            C: WriteItems<T>,
            D: WriteItems<T>,
        {
            /// Returns the destination of the writers, if one of them has one.
            #[destination]
            pub fn destination(&self) -> Result<Option<AnyDestination>, BatchError> {
                Ok(AnyDestination::of_parts([
                    self.first.destination()?,
                    self.second.destination()?,
                    self.third.destination()?,
                    self.fourth.destination()?,
                ])?)
            }

            /// Opens the writers, at the checkpoint.
            #[open]
            pub fn open(
                &mut self,
                checkpoint: Option<(A::Position, B::Position, C::Position, D::Position)>,
            ) -> Result<(), BatchError> {
                let (first, second, third, fourth) = match checkpoint {
                    Some((first, second, third, fourth)) => (Some(first), Some(second), Some(third), Some(fourth)),
                    None => (None, None, None, None),
                };
                self.first.open(first).map_err(in_writer(1))?;
                self.second.open(second).map_err(in_writer(2))?;
                self.third.open(third).map_err(in_writer(3))?;
                self.fourth.open(fourth).map_err(in_writer(4))
            }

            /// Writes items. If one of the writers fails, the others write nothing, so an item that its error names is not known.
            #[write_items]
            pub fn write(&mut self, items: &[T], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
                self.first.mark();
                self.second.mark();
                self.third.mark();
                self.fourth.mark();
                self.$write(items, tx).map_err(|error| {
                    let undone = [self.first.undo(), self.second.undo(), self.third.undo(), self.fourth.undo()];
                    let error = error.without_item_index();
                    match undone.contains(&false) {
                        true => BatchError::with_rollback(error),
                        false => error,
                    }
                })
            }

            /// Writes the list of each writer.
            fn write_lists(&mut self, lists: [&[&T]; 4], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
                let [first, second, third, fourth] = lists;
                write_part(&mut self.first, first, tx).map_err(in_writer(1))?;
                write_part(&mut self.second, second, tx).map_err(in_writer(2))?;
                write_part(&mut self.third, third, tx).map_err(in_writer(3))?;
                write_part(&mut self.fourth, fourth, tx).map_err(in_writer(4))
            }

            /// Returns the positions of the writers.
            #[get_checkpoint_info]
            pub fn checkpoint(
                &mut self,
            ) -> Result<(A::Position, B::Position, C::Position, D::Position), BatchError> {
                Ok((
                    self.first.position().map_err(in_writer(1))?,
                    self.second.position().map_err(in_writer(2))?,
                    self.third.position().map_err(in_writer(3))?,
                    self.fourth.position().map_err(in_writer(4))?,
                ))
            }

            /// Completes the outputs.
            #[finish]
            pub fn finish(&mut self) -> Result<(), BatchError> {
                self.first.finish().map_err(in_writer(1))?;
                self.second.finish().map_err(in_writer(2))?;
                self.third.finish().map_err(in_writer(3))?;
                self.fourth.finish().map_err(in_writer(4))
            }

            /// Closes the writers.
            #[close]
            pub fn close(&mut self) {
                self.first.close();
                self.second.close();
                self.third.close();
                self.fourth.close();
            }
        }
    };
}

/// Names the writer in an error, by the prefix of its properties.
fn in_writer(number: u8) -> impl Fn(BatchError) -> BatchError {
    move |error| error.with_context(format_args!("writer `{number}.`"))
}

/// Writes items, unless the destination of the writer has them already.
pub(super) fn write_part<T, W: WriteItems<T>>(
    writer: &mut W,
    items: &[&T],
    tx: &mut ChunkTransaction,
) -> Result<(), BatchError> {
    let are_there = tx.destination_has_items() && writer.destination()?.is_some();
    match items.is_empty() || are_there {
        true => Ok(()),
        false => writer.write(items, tx),
    }
}

several! {
    /// Writes all items by several writers, one after the other.
    ///
    /// The properties of the writers have the prefixes `1.`, `2.`, `3.` and `4.`. If one of them fails, no item of the list is
    /// in any output, so retries and skips are as exact as with one writer.
    ///
    /// ```
    /// use batch_items::{CompositeItemWriter, DelimitedItemWriter, TableItemWriter};
    /// use batch_runtime::prelude::*;
    ///
    /// #[derive(serde::Serialize)]
    /// struct Payment {
    ///     number: String,
    ///     cents: i64,
    /// }
    ///
    /// #[item_writer("PaymentWriter")]
    /// type PaymentWriter = CompositeItemWriter<Payment, TableItemWriter<Payment>, DelimitedItemWriter<Payment>>;
    /// ```
    ///
    /// ```xml
    /// <property name="1.table" value="payment"/>
    /// <property name="2.output" value="out/payments.csv"/>
    /// ```
    CompositeItemWriter, , write_all
}

several! {
    /// Writes each item by the writer of its class, which [`Classified`] returns: `1` for the first writer.
    ///
    /// The properties of the writers have the prefixes `1.`, `2.`, `3.` and `4.`.
    ///
    /// ```
    /// use batch_items::compose::Classified;
    /// use batch_items::{ClassifierItemWriter, DelimitedItemWriter};
    /// use batch_runtime::prelude::*;
    ///
    /// #[derive(serde::Serialize)]
    /// struct Payment {
    ///     country: String,
    ///     cents: i64,
    /// }
    ///
    /// impl Classified for Payment {
    ///     fn class(&self) -> usize {
    ///         if self.country == "DE" { 1 } else { 2 }
    ///     }
    /// }
    ///
    /// #[item_writer("ByCountry")]
    /// type ByCountry = ClassifierItemWriter<Payment, DelimitedItemWriter<Payment>, DelimitedItemWriter<Payment>>;
    /// ```
    ClassifierItemWriter, Classified, write_classes
}

impl<T, A, B, C, D> CompositeItemWriter<T, A, B, C, D>
where
    T: Send + 'static,
    A: WriteItems<T>,
    B: WriteItems<T>,
    C: WriteItems<T>,
    D: WriteItems<T>,
{
    fn write_all(&mut self, items: &[T], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let items: Vec<&T> = items.iter().collect();
        self.write_lists([&items; 4], tx)
    }
}

/// An item whose class has no writer.
#[derive(Debug, BatchException)]
struct ClassError {
    class: usize,
    writers: usize,
}

impl std::fmt::Display for ClassError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { class, writers } = self;
        write!(f, "an item has class {class}, but there are {writers} writers")
    }
}

impl std::error::Error for ClassError {}

impl<T, A, B, C, D> ClassifierItemWriter<T, A, B, C, D>
where
    T: Classified + Send + 'static,
    A: WriteItems<T>,
    B: WriteItems<T>,
    C: WriteItems<T>,
    D: WriteItems<T>,
{
    fn write_classes(&mut self, items: &[T], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let writers = [A::WRITES, B::WRITES, C::WRITES, D::WRITES];
        let mut classes: [Vec<&T>; 4] = Default::default();
        for item in items {
            let class = item.class();
            let index = class
                .checked_sub(1)
                .filter(|index| writers.get(*index) == Some(&true));
            let index = index.ok_or(ClassError {
                class,
                writers: writers.iter().filter(|writes| **writes).count(),
            })?;
            classes[index].push(item);
        }
        self.write_lists(classes.each_ref().map(Vec::as_slice), tx)
    }
}

/// Writes the elements of items that are lists: a processor returns a `Vec` to make several results of one item.
///
/// The counters of the step count lists; its exit description counts elements. An empty list writes nothing.
///
/// ```
/// use batch_items::{DelimitedItemWriter, FlatteningItemWriter};
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Serialize)]
/// struct OrderLine {
///     order: u64,
///     article: String,
/// }
///
/// // Its processor returns a `Vec<OrderLine>` for each order.
/// #[item_writer("OrderLineWriter")]
/// type OrderLineWriter = FlatteningItemWriter<OrderLine, DelimitedItemWriter<OrderLine>>;
/// ```
#[derive(BatchArtifact)]
pub struct FlatteningItemWriter<T, W> {
    #[batch_artifact]
    writer: W,
    /// `None` outside of a step.
    #[batch_context]
    step: Option<StepContext>,
    /// The number of elements that the step has written in its job instance.
    written: u64,
    item: PhantomData<fn(T)>,
}

/// The checkpoint of a [`FlatteningItemWriter`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlatteningPosition<P> {
    /// The position of the inner writer.
    pub inner: P,
    /// The number of elements that were written.
    pub written: u64,
}

#[item_writer]
impl<T: Send + 'static, W: WriteItems<T>> FlatteningItemWriter<T, W> {
    /// Returns the destination of the writer, if it has one.
    #[destination]
    pub fn destination(&self) -> Result<Option<AnyDestination>, BatchError> {
        self.writer.destination()
    }

    /// Opens the writer, at the checkpoint.
    #[open]
    pub fn open(&mut self, checkpoint: Option<FlatteningPosition<W::Position>>) -> Result<(), BatchError> {
        self.written = checkpoint.as_ref().map_or(0, |position| position.written);
        self.writer.open(checkpoint.map(|position| position.inner))
    }

    /// Writes the elements of the lists.
    #[write_items]
    pub fn write(&mut self, items: &[Vec<T>], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let items: Vec<&T> = items.iter().flatten().collect();
        if !items.is_empty() {
            // An index counts elements, and the runtime would take it for the index of a list.
            write_part(&mut self.writer, &items, tx).map_err(BatchError::without_item_index)?;
        }
        self.written += items.len() as u64;
        Ok(())
    }

    /// Returns the position of the inner writer and the number of elements.
    #[get_checkpoint_info]
    pub fn checkpoint(&mut self) -> Result<FlatteningPosition<W::Position>, BatchError> {
        if let Some(step) = &self.step {
            step.set_records_written(self.written);
        }
        Ok(FlatteningPosition {
            inner: self.writer.position()?,
            written: self.written,
        })
    }

    /// Completes the output.
    #[finish]
    pub fn finish(&mut self) -> Result<(), BatchError> {
        self.writer.finish()
    }

    /// Closes the writer.
    #[close]
    pub fn close(&mut self) {
        self.writer.close();
    }
}

/// Adds data to the items of a list by one look-up, such as a query, and writes the results.
///
/// One query for each chunk is much faster than one for each item in a processor. The look-up runs in the chunk's transaction.
/// The properties of the look-up and of the writer have no prefix.
///
/// ```
/// use batch_items::compose::BulkLookup;
/// use batch_items::{DelimitedItemWriter, EnrichingItemWriter};
/// use batch_runtime::prelude::*;
///
/// struct Flight {
///     origin: String,
/// }
///
/// #[derive(serde::Serialize)]
/// struct NamedFlight {
///     origin: String,
///     city: String,
/// }
///
/// #[derive(BatchArtifact)]
/// struct Cities;
///
/// impl BulkLookup<Flight> for Cities {
///     type Output = NamedFlight;
///
///     fn look_up(&mut self, flights: &[&Flight], _tx: &mut ChunkTransaction) -> Result<Vec<NamedFlight>, BatchError> {
///         // One query for all origins, such as `SELECT iata, city FROM airport WHERE iata IN (..)`.
///         let named = |flight: &&Flight| NamedFlight { origin: flight.origin.clone(), city: String::new() };
///         Ok(flights.iter().map(named).collect())
///     }
/// }
///
/// #[item_writer("FlightWriter")]
/// type FlightWriter = EnrichingItemWriter<Flight, Cities, DelimitedItemWriter<NamedFlight>>;
/// ```
#[derive(BatchArtifact)]
pub struct EnrichingItemWriter<T, L, W> {
    #[batch_artifact]
    look_up: L,
    #[batch_artifact]
    writer: W,
    item: PhantomData<fn(T)>,
}

#[item_writer]
impl<T: Send + 'static, L: BulkLookup<T>, W: WriteItems<L::Output>> EnrichingItemWriter<T, L, W> {
    /// Returns the destination of the writer, if it has one.
    #[destination]
    pub fn destination(&self) -> Result<Option<AnyDestination>, BatchError> {
        self.writer.destination()
    }

    /// Opens the writer, at the checkpoint.
    #[open]
    pub fn open(&mut self, checkpoint: Option<W::Position>) -> Result<(), BatchError> {
        self.writer.open(checkpoint)
    }

    /// Looks up the items and writes the results.
    #[write_items]
    pub fn write(&mut self, items: &[T], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let items: Vec<&T> = items.iter().collect();
        // Nothing is written yet, where the index of an item means that the items before it are.
        let found = self
            .look_up
            .look_up(&items, tx)
            .map_err(BatchError::without_written_items)?;
        if found.len() != items.len() {
            return Err(BatchError::msg(format!(
                "the look-up returned {} results for {} items",
                found.len(),
                items.len()
            )));
        }
        let found: Vec<&L::Output> = found.iter().collect();
        write_part(&mut self.writer, &found, tx)
    }

    /// Returns the position of the writer.
    #[get_checkpoint_info]
    pub fn checkpoint(&mut self) -> Result<W::Position, BatchError> {
        self.writer.position()
    }

    /// Completes the output.
    #[finish]
    pub fn finish(&mut self) -> Result<(), BatchError> {
        self.writer.finish()
    }

    /// Closes the writer.
    #[close]
    pub fn close(&mut self) {
        self.writer.close();
    }
}
