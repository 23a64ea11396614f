// Spec: ART-05, PALG-04
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[partition_algorithm]
impl Sample {
    fn calculate(&mut self) -> batch_runtime::PartitionPlan {
        batch_runtime::PartitionPlan::new(12)
    }
}

fn main() {}
