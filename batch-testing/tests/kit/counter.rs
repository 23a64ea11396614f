//! A reader whose checkpoints a test can make wrong.

use batch_runtime::prelude::*;

/// Counts to the limit; `shift` is added to each checkpoint.
#[derive(BatchArtifact)]
pub(crate) struct Counter {
    #[batch_property(name = "limit", value = "5")]
    limit: u64,
    #[batch_property(name = "shift", value = "0")]
    shift: i64,
    last: u64,
}

#[item_reader("Counter")]
impl Counter {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.last = checkpoint.unwrap_or(0);
    }
    #[read_item]
    fn read(&mut self) -> Option<u64> {
        self.last += 1;
        (self.last <= self.limit).then_some(self.last)
    }
    #[get_checkpoint_info]
    fn checkpoint(&self) -> u64 {
        self.last.saturating_add_signed(self.shift)
    }
}
