// Spec: LOADER-06
use batch_runtime::prelude::*;

#[derive(Default)]
struct Loader;

#[artifact_loader]
impl Loader {
    fn load(&self, _: &str) -> Result<Option<LoadedArtifact>, BatchError> {
        Ok(None)
    }
}

fn main() {}
