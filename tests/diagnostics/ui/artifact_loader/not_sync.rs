// Spec: LOADER-03
use batch_runtime::prelude::*;

use std::cell::Cell;

#[derive(Default)]
struct Loader(Cell<u32>);

#[artifact_loader]
impl BatchArtifactLoader for Loader {
    fn load(&self, _: &str) -> Result<Option<LoadedArtifact>, BatchError> {
        Ok(None)
    }
}

fn main() {}
