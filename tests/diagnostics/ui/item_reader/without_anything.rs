// Spec: ART-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_reader]
impl Sample {}

fn main() {}
