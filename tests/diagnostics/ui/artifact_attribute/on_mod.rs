// Spec: ART-01
use batch_runtime::prelude::*;

#[item_writer]
mod writer {}

fn main() {}
