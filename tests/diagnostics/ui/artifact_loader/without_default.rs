// Spec: LOADER-06
use batch_runtime::prelude::*;

struct Loader(u16);

#[artifact_loader]
impl BatchArtifactLoader for Loader {
    fn load(&self, _: &str) -> Result<Option<LoadedArtifact>, BatchError> {
        Ok(None)
    }
}

fn loader() -> Loader {
    Loader(5432)
}

fn main() {
    loader().0;
}
