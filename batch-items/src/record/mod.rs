//! Items without Rust types, and the artifacts that are registered for them.

mod aggregate;
mod constants;
mod decider;
#[doc(hidden)]
pub mod decimal;
mod deserialize;
mod expression;
mod field;
mod group_processor;
mod lists;
mod nested;
mod processor;
mod value;

pub use self::aggregate::RecordAggregateProcessor;
pub use self::decider::ExpressionDecider;
pub use self::field::MappingError;
pub use self::group_processor::RecordGroupProcessor;
pub use self::processor::RecordProcessor;
pub use self::value::{Record, Value};

#[doc(hidden)]
pub use self::deserialize::from_record;

pub(crate) use self::constants::{constants, literal};
pub(crate) use self::deserialize::{key_of, value_of};
#[doc(hidden)]
pub use self::expression::StoredTotal;
pub(crate) use self::expression::{Condition, Expectation, Expression, Totals, expressions};
pub(crate) use self::lists::with_lists;
pub(crate) use self::nested::{BLANKS_FOLLOW, asks_for_text};
pub(crate) use self::processor::{Distinct, Renamed};
pub(crate) use self::value::{ExtendedNames, NUMBER, SCHEMA_INSTANCE};
