// Spec: ART-15
use batch_runtime::prelude::*;

struct Rate;

#[item_processor]
fn priced(cents: &u64, #[batch_property] _rate: &Rate) -> Option<u64> {
    Some(*cents)
}

fn main() {}
