// Spec: ART-06, ART-07
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_processor]
impl Sample {
    #[process_item]
    fn process(&mut self, item: &u32) -> Result<Option<u32>, u32> {
        Ok(Some(*item))
    }
}

fn main() {}
