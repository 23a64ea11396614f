//! The rows of results, as they are fetched.

use std::mem::size_of;

use batch_items::record::Value;
use odbc_api::buffers::{BufferDesc, ColumnarDynBuffer};
use odbc_api::handles::StatementConnection;
use odbc_api::{BlockCursor, Cursor, CursorImpl, SharedConnection};

use crate::columns::Column;
use crate::dialect::Texts;
use crate::error::OdbcError;

type OwnedCursor = CursorImpl<StatementConnection<SharedConnection<'static>>>;

/// The rows of a result.
pub(crate) struct ResultRows {
    columns: Vec<Column>,
    texts: Texts,
    fetched: Fetched,
}

enum Fetched {
    /// In blocks.
    Blocks(BlockCursor<OwnedCursor, ColumnarDynBuffer>),
    /// One by one, with values of any length.
    Each(OwnedCursor),
}

/// What was fetched.
pub(crate) enum Block {
    /// Rows; none at the end.
    Rows(Vec<Vec<Value>>),
    /// Rows with a value that did not fit, which are lost.
    Cut,
}

/// The size of a block, in bytes: with the longest values, a page of many rows could need more memory than there is.
const BLOCK: usize = 8 << 20;

impl ResultRows {
    /// Prepares to fetch the rows of a result in blocks of at most `size`, if all values have a limit; otherwise, or if `one_by_one`, in lists of
    /// this size.
    pub(crate) fn new(
        cursor: OwnedCursor,
        columns: Vec<Column>,
        size: usize,
        texts: Texts,
        one_by_one: bool,
    ) -> Result<Self, OdbcError> {
        let places: Option<Vec<_>> = columns.iter().map(|column| column.in_block(texts)).collect();
        let fetched = match places {
            Some(places) if !one_by_one => {
                let bytes: usize = places.iter().map(bytes_of).sum();
                let rows = (BLOCK / bytes.max(1)).clamp(1, size);
                Fetched::Blocks(cursor.bind_buffer(ColumnarDynBuffer::from_descs(rows, places))?)
            }
            _ => Fetched::Each(cursor),
        };
        Ok(Self {
            columns,
            texts,
            fetched,
        })
    }

    /// Fetches up to `size` rows.
    pub(crate) fn fetch(&mut self, size: usize) -> Result<Block, OdbcError> {
        let columns = &self.columns;
        let mut rows: Vec<Vec<Value>> = Vec::new();
        match &mut self.fetched {
            Fetched::Blocks(cursor) => {
                let Some(block) = cursor.fetch()? else {
                    return Ok(Block::Rows(rows));
                };
                rows.resize_with(block.num_rows(), || Vec::with_capacity(columns.len()));
                for (index, column) in columns.iter().enumerate() {
                    if !column.append(block.column(index), &mut rows)? {
                        return Ok(Block::Cut);
                    }
                }
            }
            Fetched::Each(cursor) => {
                while rows.len() < size
                    && let Some(mut row) = cursor.next_row()?
                {
                    let numbered = (1..).zip(columns);
                    let values =
                        numbered.map(|(number, column)| column.value_in(&mut row, number, self.texts));
                    rows.push(values.collect::<Result<_, _>>()?);
                }
            }
        }
        Ok(Block::Rows(rows))
    }
}

/// Returns the size of a value in a block.
fn bytes_of(place: &BufferDesc) -> usize {
    let length = match place {
        BufferDesc::Text { max_str_len } => *max_str_len,
        BufferDesc::WText { max_str_len } => 2 * max_str_len,
        BufferDesc::Binary { max_bytes } => *max_bytes,
        _ => 0,
    };
    length + 2 * size_of::<u64>()
}
