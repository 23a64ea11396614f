//! Generic artifacts, as a library offers them. They register nothing: a program names the concrete type by an alias.

use std::fs::File;
use std::io::{BufRead, BufReader, Lines};
use std::marker::PhantomData;
use std::path::PathBuf;

use batch_runtime::prelude::*;
use serde::de::DeserializeOwned;

/// Reads one item from each line of a file, which is JSON.
#[derive(BatchArtifact)]
pub struct JsonLines<T> {
    #[batch_property(name = "file")]
    file: PathBuf,
    input: Input<T>,
}

/// Private, and without a bound on `T`.
struct Input<T> {
    lines: Option<Lines<BufReader<File>>>,
    read: usize,
    item: PhantomData<fn() -> T>,
}

impl<T> Default for Input<T> {
    fn default() -> Self {
        Self {
            lines: None,
            read: 0,
            item: PhantomData,
        }
    }
}

#[item_reader]
impl<T: DeserializeOwned + Send + 'static> JsonLines<T> {
    #[open]
    fn open(&mut self, checkpoint: Option<usize>) -> Result<(), std::io::Error> {
        self.input.read = checkpoint.unwrap_or(0);
        let mut lines = BufReader::new(File::open(&self.file)?).lines();
        for line in lines.by_ref().take(self.input.read) {
            line?;
        }
        self.input.lines = Some(lines);
        Ok(())
    }

    #[read_item]
    fn read(&mut self) -> Result<Option<T>, BatchError> {
        let Some(line) = self.input.lines.as_mut().and_then(Iterator::next) else {
            return Ok(None);
        };
        self.input.read += 1;
        Ok(Some(serde_json::from_str(&line?)?))
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) -> usize {
        self.input.read
    }

    #[get_item_count]
    fn count(&self) -> Result<Option<u64>, BatchError> {
        Ok(u64::try_from(BufReader::new(File::open(&self.file)?).lines().count()).ok())
    }
}

#[item_read_listener]
impl<T: std::fmt::Debug + 'static> JsonLines<T> {
    #[after_read]
    fn log(&mut self, item: &T) {
        crate::stage::say("json-lines", format!("{item:?}"));
    }
}
