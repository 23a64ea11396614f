// Spec: ART-07, LISTEN-WRITE-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_write_listener]
impl Sample {
    #[before_write]
    fn before(&mut self, _items: &[std::rc::Rc<u64>]) {}
}

fn main() {}
