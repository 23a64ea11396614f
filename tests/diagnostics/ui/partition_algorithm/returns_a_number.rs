// Spec: ART-07, PALG-04
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[partition_algorithm]
impl Sample {
    #[calculate_partitions]
    fn months(&mut self) -> i32 {
        12
    }
}

fn main() {}
