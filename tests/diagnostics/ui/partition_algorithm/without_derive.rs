// Spec: ART-10, PALG-02
use batch_runtime::prelude::*;

struct Sample;

#[partition_algorithm]
impl Sample {
    #[calculate_partitions]
    fn months(&mut self) -> batch_runtime::PartitionPlan {
        batch_runtime::PartitionPlan::new(12)
    }
}

fn main() {}
