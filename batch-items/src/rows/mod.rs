//! Rows: of text, for items that are read, and of typed cells, for items that are written.

mod cells;
mod fields;
mod kind;
mod limit;
mod names;
mod serialize;
mod temporal;
mod text;

pub use self::cells::{Cell, Rows, bytes_of, parse_bool};
pub use self::fields::{fields_of, lacking};
pub use self::kind::Kind;
pub use self::limit::Limit;
pub use self::names::Names;
pub use self::serialize::{FieldSink, FieldValue};
pub use self::temporal::{Dialect, Temporal};
pub use self::text::{RowError, from_row};

pub(crate) use self::fields::is_same_name;
pub(crate) use self::text::TextValue;
