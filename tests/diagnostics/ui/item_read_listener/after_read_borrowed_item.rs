// Spec: ART-07, LISTEN-READ-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_read_listener]
impl Sample {
    #[after_read]
    fn after(&mut self, _item: &std::borrow::Cow<'_, str>) {}
}

fn main() {}
