// Spec: LOADER-06
use batch_runtime::prelude::*;

#[derive(Default)]
struct Loader<T>(T);

#[artifact_loader]
impl<T: Default + Send + Sync> BatchArtifactLoader for Loader<T> {
    fn load(&self, _: &str) -> Result<Option<LoadedArtifact>, BatchError> {
        Ok(None)
    }
}

fn main() {}
