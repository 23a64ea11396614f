//! Rows: of text, for items that are read, and of typed cells, for items that are written.

mod cells;
mod fields;
mod kind;
mod limit;
mod names;
mod serialize;
mod temporal;
mod text;

#[cfg(feature = "parquet")]
pub(crate) use self::cells::parse_bool;
pub(crate) use self::cells::{Cell, Rows, bytes_of};
pub(crate) use self::fields::{fields_of, is_same_name, lacking};
pub(crate) use self::kind::Kind;
pub(crate) use self::limit::Limit;
pub(crate) use self::names::Names;
pub(crate) use self::serialize::{FieldSink, FieldValue};
pub(crate) use self::temporal::{Dialect, Temporal};
pub(crate) use self::text::{RowError, from_row};
