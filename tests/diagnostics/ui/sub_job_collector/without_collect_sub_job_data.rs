// Spec: ART-05, PALG-06
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[sub_job_collector]
impl Sample {}

fn main() {}
