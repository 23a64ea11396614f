//! The rows of one query, as they arrive.

use std::num::NonZeroU32;
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::thread;

use batch_runtime::repository::RepositoryConnection;
use diesel::result::QueryResult;

use super::database::{blocks_commits, stream};
use super::error::{QueryError, failed_query};
use super::page::Statement;
use super::position::{Passing, QueryPosition};
use super::row::{FromRow, Marked};

/// A query on another thread, because its rows borrow the connection. It is at most two blocks of rows ahead, unless commits would
/// wait for its end.
pub(super) struct Cursor<T> {
    /// Closed after the last row. The thread notices that at its next block.
    blocks: Option<Receiver<Block<T>>>,
    rows: std::vec::IntoIter<Marked<T>>,
}

enum Block<T> {
    Rows(Vec<Marked<T>>),
    Failed(QueryError),
    End,
}

impl<T: FromRow> Cursor<T> {
    /// Runs the query and passes over the rows that were read before.
    pub(super) fn new(
        mut connection: RepositoryConnection,
        query: Statement,
        size: NonZeroU32,
        read: &QueryPosition,
    ) -> Result<Self, QueryError> {
        let blocks_commits = blocks_commits(&mut connection);
        let blocks_commits = blocks_commits.map_err(|error| failed_query(&mut connection, error))?;
        let (send, blocks) = channel_of_blocks(blocks_commits);
        let size = size.get() as usize;
        let mut passing = Passing::to(read);
        thread::spawn(move || {
            let (mut block, mut failed, mut other) = (Vec::with_capacity(size), None, None);
            let streamed = stream(&mut connection, query, |row: QueryResult<Marked<T>>| {
                match row {
                    Ok(row) if passing.is_left() => other = passing.pass(row.mark).err(),
                    Ok(row) => block.push(row),
                    Err(error) => failed = Some(error),
                }
                if failed.is_some() || other.is_some() {
                    return false;
                }
                if block.len() < size {
                    return true;
                }
                let full = std::mem::replace(&mut block, Vec::with_capacity(size));
                send(Block::Rows(full))
            });
            let failed = streamed.err().or(failed);
            let end = match failed.map(|error| failed_query(&mut connection, error)).or(other) {
                Some(error) => Err(error),
                None => passing.end(),
            };
            // A reader that was closed receives nothing.
            let _ = send(Block::Rows(block)) && send(end.map_or_else(Block::Failed, |()| Block::End));
        });
        Ok(Self {
            blocks: Some(blocks),
            rows: Vec::new().into_iter(),
        })
    }

    /// Returns the next row.
    pub(super) fn next(&mut self) -> Result<Option<Marked<T>>, QueryError> {
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

/// Sends a block, and returns whether the reader is still open.
type SendBlock<T> = Box<dyn Fn(Block<T>) -> bool + Send>;

/// Returns a channel that takes one block before the last one is received, or any number.
fn channel_of_blocks<T: Send + 'static>(any_number: bool) -> (SendBlock<T>, Receiver<Block<T>>) {
    if any_number {
        let (sender, blocks) = channel();
        (Box::new(move |block| sender.send(block).is_ok()), blocks)
    } else {
        let (sender, blocks) = sync_channel(1);
        (Box::new(move |block| sender.send(block).is_ok()), blocks)
    }
}
