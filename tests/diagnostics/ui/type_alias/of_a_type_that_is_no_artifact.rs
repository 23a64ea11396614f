// Spec: ART-01
use batch_runtime::prelude::*;

#[item_reader]
type Sample = Vec<u32>;

fn main() {}
