//! A reader whose next item can be looked at.

use batch_runtime::prelude::*;

use super::traits::ReadItems;
use crate::error::Origin;

/// Reads items, and shows the next one without consuming it: for readers of programs whose items depend on what follows.
///
/// It is a field with `#[batch_artifact]` of such a reader. It has the properties of the inner reader, without a prefix. The position is
/// before the item that `read` returns next, so a checkpoint neither loses nor repeats an item that was only looked at.
///
/// ```
/// use batch_items::compose::ReadItems;
/// use batch_items::file::ReadPosition;
/// use batch_items::{LineItemReader, PeekableItemReader};
/// use batch_runtime::prelude::*;
///
/// /// Joins lines that end with a backslash with the lines after them.
/// #[derive(BatchArtifact)]
/// struct JoinedLines {
///     #[batch_artifact]
///     lines: PeekableItemReader<LineItemReader<String>>,
/// }
///
/// #[item_reader("JoinedLines", rewindable = true)]
/// impl JoinedLines {
///     #[open]
///     fn open(&mut self, checkpoint: Option<ReadPosition>) -> Result<(), BatchError> {
///         self.lines.open(checkpoint)
///     }
///
///     #[read_item]
///     fn read(&mut self) -> Result<Option<String>, BatchError> {
///         let Some(mut line) = self.lines.read()? else { return Ok(None) };
///         // A line that cannot be read ends the item too: the next `read` returns its error.
///         while line.ends_with('\\') && matches!(self.lines.peek(), Ok(Some(_))) {
///             line.pop();
///             line += &self.lines.read()?.unwrap_or_default();
///         }
///         Ok(Some(line))
///     }
///
///     #[get_checkpoint_info]
///     fn checkpoint(&mut self) -> Result<ReadPosition, BatchError> {
///         self.lines.position()
///     }
///
///     #[close]
///     fn close(&mut self) {
///         self.lines.close();
///     }
/// }
/// ```
#[derive(BatchArtifact)]
pub struct PeekableItemReader<R>
where
    R: ReadItems,
{
    #[batch_artifact]
    reader: R,
    /// What the next `read` returns, if it was looked at.
    ahead: Option<Result<Option<R::Item>, BatchError>>,
    /// The position of `ahead`. It is kept after that, because updating it is faster than creating it.
    position: Option<R::Position>,
}

impl<R: ReadItems> PeekableItemReader<R> {
    #[cfg(test)]
    pub(super) fn around(reader: R) -> Self {
        Self {
            reader,
            ahead: None,
            position: None,
        }
    }

    /// Positions at a checkpoint; at the beginning for `None`.
    ///
    /// # Errors
    /// The errors of the inner reader.
    pub fn open(&mut self, checkpoint: Option<R::Position>) -> Result<(), BatchError> {
        self.ahead = None;
        self.position = None;
        self.reader.open(checkpoint)
    }

    /// Returns the next item without consuming it; `None` at the end.
    ///
    /// # Errors
    /// If the next item cannot be read. The error is not consumed either: the next [`read`](Self::read) returns it.
    pub fn peek(&mut self) -> Result<Option<&R::Item>, &BatchError> {
        if self.ahead.is_none() {
            self.ahead = Some(self.read_ahead());
        }
        match &self.ahead {
            Some(Ok(item)) => Ok(item.as_ref()),
            Some(Err(error)) => Err(error),
            None => Ok(None),
        }
    }

    /// Reads the next item; `None` at the end.
    ///
    /// # Errors
    /// The errors of the inner reader.
    pub fn read(&mut self) -> Result<Option<R::Item>, BatchError> {
        let next = match self.ahead.take() {
            Some(ahead) => ahead,
            None => self.read_ahead(),
        };
        if matches!(next, Ok(None)) {
            // The inner reader is not called again, and the position remains that before the end: the input may grow until a restart.
            self.ahead = Some(Ok(None));
        }
        next
    }

    /// Returns the position of the item that [`read`](Self::read) returns next.
    ///
    /// # Errors
    /// The errors of the inner reader.
    pub fn position(&mut self) -> Result<R::Position, BatchError> {
        match (&self.ahead, &self.position) {
            (Some(_), Some(position)) => Ok(position.clone()),
            _ => self.reader.position(),
        }
    }

    /// Returns the place of the next item if it was looked at, else the place of the last one, if the inner reader knows it.
    pub fn place(&self) -> Option<String> {
        self.reader.place()
    }

    /// Returns the origin of the next item if it was looked at, else the origin of the last item, if the inner reader knows it.
    pub fn origin(&self) -> Option<Origin<'_>> {
        self.reader.origin()
    }

    /// Closes the inner reader.
    pub fn close(&mut self) {
        self.ahead = None;
        self.reader.close();
    }

    fn read_ahead(&mut self) -> Result<Option<R::Item>, BatchError> {
        // After an error of the reader, an old position would repeat items.
        self.position = Some(match self.position.take() {
            Some(mut position) => {
                self.reader.update_position(&mut position)?;
                position
            }
            None => self.reader.position()?,
        });
        self.reader.read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads numbers; 3 cannot be read, and nothing can be read after the end.
    #[derive(BatchArtifact)]
    struct Numbers {
        next: u64,
    }

    impl ReadItems for Numbers {
        type Item = u64;
        type Position = u64;

        fn open(&mut self, checkpoint: Option<u64>) -> Result<(), BatchError> {
            self.next = checkpoint.unwrap_or(1);
            Ok(())
        }

        fn read(&mut self) -> Result<Option<u64>, BatchError> {
            self.next += 1;
            match self.next - 1 {
                3 => Err(BatchError::msg("3 is bad")),
                6 => Ok(None),
                7.. => Err(BatchError::msg("read after the end")),
                number => Ok(Some(number)),
            }
        }

        fn position(&mut self) -> Result<u64, BatchError> {
            match self.next {
                5 => Err(BatchError::msg("no position")),
                next => Ok(next),
            }
        }
    }

    fn opened(checkpoint: Option<u64>) -> PeekableItemReader<Numbers> {
        let mut reader = PeekableItemReader::around(Numbers { next: 0 });
        reader.open(checkpoint).unwrap();
        reader
    }

    #[test]
    fn peek_consumes_neither_items_nor_errors_nor_the_end() {
        let mut reader = opened(None);
        for _ in 0..2 {
            assert_eq!(reader.peek().unwrap(), Some(&1));
            assert_eq!(reader.position().unwrap(), 1);
        }
        assert_eq!(reader.read().unwrap(), Some(1));
        assert_eq!(reader.position().unwrap(), 2);
        assert_eq!(reader.read().unwrap(), Some(2), "without `peek`");
        for _ in 0..2 {
            assert_eq!(reader.peek().unwrap_err().to_string(), "3 is bad");
            assert_eq!(reader.position().unwrap(), 3);
        }
        assert_eq!(reader.read().unwrap_err().to_string(), "3 is bad");
        assert_eq!(reader.position().unwrap(), 4);

        let mut reader = opened(Some(6));
        for _ in 0..2 {
            assert_eq!(reader.peek().unwrap(), None);
            assert_eq!(reader.read().unwrap(), None);
            assert_eq!(reader.position().unwrap(), 6);
        }
    }

    #[test]
    fn a_rollback_forgets_what_was_looked_at() {
        let mut reader = opened(Some(1));
        assert_eq!(reader.peek().unwrap(), Some(&1));
        reader.open(Some(2)).unwrap();
        assert_eq!(reader.position().unwrap(), 2);
        assert_eq!(reader.read().unwrap(), Some(2));
    }

    /// An old position would repeat items.
    #[test]
    fn without_a_position_nothing_is_read_ahead() {
        let mut reader = opened(Some(4));
        assert_eq!(reader.peek().unwrap(), Some(&4));
        assert_eq!(reader.read().unwrap(), Some(4));
        assert_eq!(reader.peek().unwrap_err().to_string(), "no position");
        assert_eq!(reader.position().unwrap_err().to_string(), "no position");
    }
}
