// Spec: LOADER-06
use batch_runtime::prelude::*;

struct Loader;

#[artifact_loader]
impl BatchArtifactLoader for &'static Loader {
    fn load(&self, _: &str) -> Result<Option<LoadedArtifact>, BatchError> {
        Ok(None)
    }
}

fn main() {}
