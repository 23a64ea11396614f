// Spec: ART-03
use batch_runtime::prelude::*;

#[process]
pub struct Sample;

fn main() {}
