// Spec: ART-07, CKALG-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[checkpoint_algorithm]
impl Sample {
    #[is_ready_to_checkpoint]
    fn is_ready(&mut self) -> bool {
        true
    }

    #[get_checkpoint_timeout]
    fn timeout(&mut self, timeout: i32) -> i64 {
        timeout.into()
    }
}

fn main() {}
