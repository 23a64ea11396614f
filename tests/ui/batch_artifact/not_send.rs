// Spec: ART-10
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
pub struct Sample {
    rows: std::rc::Rc<u32>,
}

fn main() {}
