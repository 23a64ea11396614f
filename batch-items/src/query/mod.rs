//! Queries as the input of steps.

mod cursor;
mod database;
mod decode;
mod error;
mod order;
mod page;
mod parameters;
mod position;
mod reader;
mod row;
mod selects;

pub use self::error::QueryError;
pub use self::position::{Key, QueryOrder, QueryPosition};
pub use self::reader::QueryItemReader;
pub use self::row::FromRow;

pub use self::parameters::Query;

pub(crate) use self::parameters::Parameters;
pub(crate) use self::reader::load_records;
