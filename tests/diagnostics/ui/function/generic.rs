// Spec: ART-15
use batch_runtime::prelude::*;

#[item_processor]
fn same<T: Clone>(item: &T) -> Option<T> {
    Some(item.clone())
}

fn main() {}
