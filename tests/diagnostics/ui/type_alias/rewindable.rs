// Spec: ART-01
use batch_runtime::prelude::*;

#[item_writer(rewindable = true)]
type Sample = Vec<u32>;

fn main() {}
