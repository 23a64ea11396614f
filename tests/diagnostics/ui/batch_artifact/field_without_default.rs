// Spec: ART-10
use batch_runtime::prelude::*;

pub struct Terminal(u32);

#[derive(BatchArtifact)]
pub struct Sample {
    terminal: Terminal,
}

fn main() {}
