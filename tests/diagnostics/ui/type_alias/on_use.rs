// Spec: ART-01
use batch_runtime::prelude::*;

#[item_reader("texts")]
use batch_diagnostics::Items;

fn main() {}
