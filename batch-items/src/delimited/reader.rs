//! The reader of delimited files.

use super::rows::Delimited;
use crate::file::FileItemReader;

/// Reads the rows of delimited files, such as CSV, as items of type `T`.
///
/// The properties are those of [`FileInput`](crate::file::FileInput) and [`DelimitedFormat`](crate::DelimitedFormat). The first line is the header, by which the fields of a
/// struct are found; a tuple gets the fields in their order. A row that is not an item is a
/// [`RecordError`](crate::RecordError); a missing column is a [`ResourceError`](crate::ResourceError), as is a column with nearly the name of an
/// `Option` that has none. If the items are records, a file that has no column of the first file is one too: its first row may be no header.
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
