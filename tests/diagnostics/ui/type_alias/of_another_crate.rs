// Spec: ART-01
use batch_runtime::prelude::*;

#[item_reader("texts")]
type Texts = batch_diagnostics::NoRole<String>;

fn main() {}
