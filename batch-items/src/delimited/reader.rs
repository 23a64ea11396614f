//! The reader of delimited files.

use super::rows::Delimited;
use crate::file::FileItemReader;

/// Reads the rows of delimited files, such as CSV, as items of type `T`.
///
/// It has the properties of [`FileInput`](crate::file::FileInput) and [`DelimitedFormat`](crate::DelimitedFormat). The first line is the header, whose names give the fields of a
/// struct are found; a tuple gets the fields in their order. A row that is not an item is a
/// [`RecordError`](crate::RecordError); a missing column is a [`ResourceError`](crate::ResourceError), as is a column whose name
/// nearly matches an `Option` field without a column. If the items are records, a file that shares no column with the first file is a
/// `ResourceError` too: its first row may be a record instead of a header.
///
/// ```
/// use batch_items::DelimitedItemReader;
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Deserialize)]
/// struct Airport {
///     iata: String,
///     /// Empty fields are `None`.
///     elevation: Option<i32>,
/// }
///
/// #[item_reader("AirportReader")]
/// type AirportReader = DelimitedItemReader<Airport>;
/// ```
///
/// ```xml
/// <chunk reader="AirportReader" processor="Heights" writer="HeightWriter">
///   <properties>
///     <property name="resource" value="in/airports-*.csv.gz" target="reader"/>
///     <property name="delimiter" value=";" target="reader"/>
///   </properties>
/// </chunk>
/// ```
pub type DelimitedItemReader<T> = FileItemReader<Delimited, T>;
