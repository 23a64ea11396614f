// Spec: FAULT-04
// A policy is asked about a failed item, which has the error.
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Policy;

#[skip_policy]
impl Policy {
    #[should_skip]
    fn should_skip(&mut self, error: &BatchError) -> bool {
        true
    }
}

fn main() {}
