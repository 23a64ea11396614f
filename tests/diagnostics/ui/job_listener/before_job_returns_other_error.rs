// Spec: ART-06, LISTEN-JOB-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[job_listener]
impl Sample {
    #[before_job]
    fn before(&mut self) -> Result<(), u32> {
        Ok(())
    }
}

fn main() {}
