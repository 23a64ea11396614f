// Spec: ART-07, PROC-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_processor]
impl Sample {
    #[process_item]
    fn process(&mut self, item: &str) -> Option<String> {
        Some(item.to_owned())
    }
}

fn main() {}
