//! Queries as the input of steps.

mod cursor;
mod database;
mod decode;
mod error;
mod keyed;
mod order;
mod page;
mod parameters;
mod position;
mod reader;
mod row;
mod selects;

pub use self::error::QueryError;
#[doc(hidden)]
pub use self::order::warn_without_order;
#[doc(hidden)]
pub use self::parameters::Parameters;
pub use self::position::{Key, QueryOrder, QueryPosition};
#[doc(hidden)]
pub use self::position::{Passing, mark_of, not_unique, without_key};
pub use self::reader::QueryItemReader;
pub use self::row::FromRow;

pub use self::parameters::Query;

pub(crate) use self::keyed::KeyedQuery;
pub(crate) use self::reader::load_records;
