//! Readers whose items and checkpoints are private, borrowed or nothing.
//!
//! Spec: READ-01, READ-02, READ-04, READ-05, READ-06, READ-08, ART-01, ART-02, ART-05, ART-06
#![deny(warnings)]

use batch_runtime::prelude::*;
use serde::{Deserialize, Serialize};

// Item and checkpoint are private to the module, and the methods have the same names as the trait's.
struct Record {
    _line: u64,
}

#[derive(Serialize, Deserialize)]
struct Position {
    line: u64,
}

#[derive(BatchArtifact)]
struct Results {
    line: u64,
}

#[item_reader("MyItemReader")]
impl Results {
    #[open]
    fn open(&mut self, checkpoint: Option<Position>) -> Result<(), std::io::Error> {
        self.line = checkpoint.map_or(0, |position| position.line);
        Ok(())
    }

    #[read_item]
    fn fill(&mut self) -> Result<Option<Record>, std::io::Error> {
        Ok(Some(Record { _line: self.line }))
    }

    #[get_checkpoint_info]
    fn checkpoint_info(&self) -> Result<Position, BatchError> {
        Ok(Position { line: self.line })
    }

    #[get_item_count]
    fn get_item_count(&self) -> Result<Option<u64>, std::num::TryFromIntError> {
        Ok(Some(u64::try_from(usize::try_from(self.line)?)?))
    }

    #[close]
    fn close(&mut self) -> Result<(), std::fmt::Error> {
        Ok(())
    }
}

#[derive(BatchArtifact)]
struct Plain(Vec<u64>, #[batch_property(name = "limit", value = "10")] usize);

#[item_reader]
impl Plain {
    #[open]
    fn start(&mut self, _: Option<u64>) {}

    #[read_item]
    fn read(&mut self) -> Option<u64> {
        self.0.truncate(self.1);
        self.0.pop()
    }

    #[get_checkpoint_info]
    fn position(&self) -> u64 {
        0
    }

    #[get_item_count]
    fn size(&mut self) -> Option<u64> {
        None
    }
}

#[derive(BatchArtifact)]
struct Texts;

#[item_reader(value = "texts", class = "com.example.Texts")]
impl Texts {
    #[open]
    fn open(&self, _checkpoint: Option<()>) {}

    #[read_item]
    fn read(&self) -> Option<&'static str> {
        None
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}

#[test]
fn every_artifact_is_registered() {
    assert_eq!(
        super::registered(module_path!()),
        [
            ("item_reader", "MyItemReader"),
            ("item_reader", "Plain"),
            ("item_reader", "texts")
        ]
    );
}
