// Spec: LOADER-06, LOADER-13
use batch_runtime::prelude::*;

#[derive(Default)]
struct Loader<T>(T);

#[artifact_loader]
impl BatchArtifactLoader for Loader<u32> {
    fn load(&self, _: &str) -> Result<Option<LoadedArtifact>, BatchError> {
        Ok(None)
    }
}

fn main() {}
