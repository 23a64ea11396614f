// Spec: ART-07, LISTEN-READ-04
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_read_listener]
impl Sample {
    #[on_read_error]
    fn error(&mut self, _ex: &std::io::Error) {}
}

fn main() {}
