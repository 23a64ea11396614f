//! A step that only commits: one item per checkpoint, and a writer that discards it.

use batch_runtime::prelude::*;

use crate::{closed, opened};

/// Returns as many numbers as `commits`.
#[derive(BatchArtifact)]
struct CommitReader {
    #[batch_property(name = "commits")]
    commits: u64,
    next: u64,
}

#[item_reader]
impl CommitReader {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.next = checkpoint.unwrap_or(0);
        opened();
    }
    #[read_item]
    fn read(&mut self) -> Option<u64> {
        (self.next < self.commits).then(|| {
            self.next += 1;
            self.next
        })
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.next
    }
    #[close]
    fn close(&mut self) {
        closed();
    }
}

#[derive(BatchArtifact)]
struct CommitProcessor {}

#[item_processor]
impl CommitProcessor {
    #[process_item]
    fn process(&mut self, item: u64) -> Option<u64> {
        Some(item)
    }
}

#[derive(BatchArtifact)]
struct CommitWriter {}

#[item_writer]
impl CommitWriter {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, _items: &[u64]) {}
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}
