// Spec: ART-01
use batch_runtime::prelude::*;

#[item_writer(buffered = false)]
type Sample = Vec<u32>;

fn main() {}
