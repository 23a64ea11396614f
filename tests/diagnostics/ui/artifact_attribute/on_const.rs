// Spec: ART-01
use batch_runtime::prelude::*;

#[item_writer]
pub const WRITER: u32 = 3;

fn main() {}
