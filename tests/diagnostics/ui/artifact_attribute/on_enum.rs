// Spec: ART-01
use batch_runtime::prelude::*;

#[item_processor]
enum Sample {}

fn main() {}
