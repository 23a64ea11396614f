//! The rows of one query, as they arrive.

use std::num::NonZeroU32;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use batch_runtime::repository::RepositoryConnection;

use super::database::stream;
use super::page::Statement;
use super::reader::{QueryError, failed_query};
use super::row::FromRow;

/// A query that runs on a thread of its own, because its rows borrow the connection. It is at most two blocks of rows ahead.
pub(super) struct Cursor<T> {
    /// Closed after the last row. The thread notices that at its next block.
    blocks: Option<Receiver<Block<T>>>,
    rows: std::vec::IntoIter<T>,
}

enum Block<T> {
    Rows(Vec<T>),
    Failed(QueryError),
    End,
}

impl<T: FromRow> Cursor<T> {
    /// Runs the query, and passes over the first `skip` rows.
    pub(super) fn new(
        mut connection: RepositoryConnection,
        query: Statement,
        size: NonZeroU32,
        mut skip: u64,
    ) -> Self {
        let (sender, blocks) = sync_channel(1);
        let size = size.get() as usize;
        thread::spawn(move || {
            let (mut block, mut failed) = (Vec::with_capacity(size), None);
            let streamed = stream(&mut connection, query, |row| {
                match row {
                    Ok(_) if skip > 0 => skip -= 1,
                    Ok(row) => block.push(row),
                    Err(error) => {
                        failed = Some(error);
                        return false;
                    }
                }
                if block.len() < size {
                    return true;
                }
                let full = std::mem::replace(&mut block, Vec::with_capacity(size));
                sender.send(Block::Rows(full)).is_ok()
            });
            let end = match streamed.err().or(failed) {
                Some(error) => Block::Failed(failed_query(&mut connection, error)),
                None => Block::End,
            };
            // A reader that was closed receives nothing.
            let _ = sender.send(Block::Rows(block)).and_then(|()| sender.send(end));
        });
        Self {
            blocks: Some(blocks),
            rows: Vec::new().into_iter(),
        }
    }

    /// Returns the next row.
    pub(super) fn next(&mut self) -> Result<Option<T>, QueryError> {
        loop {
            if let Some(row) = self.rows.next() {
                return Ok(Some(row));
            }
            let Some(blocks) = &self.blocks else {
                return Ok(None);
            };
            let fail = |cause| Err(QueryError::new("run the query", cause));
            match blocks.recv() {
                Ok(Block::Rows(rows)) => self.rows = rows.into_iter(),
                Ok(Block::End) => self.blocks = None,
                Ok(Block::Failed(error)) => return Err(error),
                // An error that is skipped is not the end of the rows.
                Err(_) => return fail("an earlier error or a panic has ended it"),
            }
        }
    }
}
