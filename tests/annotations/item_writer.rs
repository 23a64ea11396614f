//! Writers: with and without the chunk transaction, in chunks and item by item.
//!
//! Spec: WRITE-01, WRITE-02, WRITE-03, WRITE-05, WRITE-06, WRITE-07, WRITE-08, ART-02
#![deny(warnings)]

use batch_runtime::prelude::*;

struct Row;

#[derive(BatchArtifact)]
struct Table;

#[item_writer(value = "table", buffered = true)]
impl Table {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[write_items]
    fn write(&mut self, rows: &[Row], _tx: &mut ChunkTransaction) -> Result<(), std::io::Error> {
        drop(rows.iter());
        Ok(())
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

#[derive(BatchArtifact)]
struct Lines {
    written: usize,
}

#[item_writer("lines", buffered = false, class = "com.example.Lines")]
impl Lines {
    #[open]
    fn open(&mut self, written: Option<usize>) -> Result<(), BatchError> {
        self.written = written.unwrap_or_default();
        Ok(())
    }

    #[write_items]
    fn write(&mut self, items: &[String]) {
        self.written += items.len();
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> Result<usize, std::io::Error> {
        Ok(self.written)
    }

    #[close]
    fn close(&mut self) {}
}

#[test]
fn every_artifact_is_registered() {
    assert_eq!(
        super::registered(module_path!()),
        [("item_writer", "table"), ("item_writer", "lines")]
    );
}
