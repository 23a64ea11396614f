//! Queries as the input of steps.

mod cursor;
mod database;
mod decode;
mod order;
mod page;
mod parameters;
mod reader;
mod row;
mod selects;

pub use self::reader::{QueryError, QueryItemReader, QueryOrder, QueryPosition};
pub use self::row::{FromRow, Key};

pub(crate) use self::parameters::{Parameters, Query};
pub(crate) use self::reader::load_records;
