// Spec: LOADER-06
use batch_runtime::prelude::*;

struct Loader;

#[artifact_loader]
impl Default for Loader {
    fn default() -> Self {
        Self
    }
}

fn main() {}
