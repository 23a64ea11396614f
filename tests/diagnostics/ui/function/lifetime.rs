// Spec: ART-15
use batch_runtime::prelude::*;

#[item_processor]
fn first<'a>(text: &'a String) -> Option<char> {
    text.chars().next()
}

fn main() {}
