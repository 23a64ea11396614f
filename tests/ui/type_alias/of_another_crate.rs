// Spec: ART-01
use batch_runtime::prelude::*;

#[item_reader("texts")]
type Texts = batch_tests::generic::NoRole<String>;

fn main() {}
