// Spec: LOADER-06
use batch_runtime::prelude::*;

#[artifact_loader]
#[derive(Default)]
struct Loader;

fn main() {}
