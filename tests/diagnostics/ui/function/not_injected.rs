// Spec: ART-15
use batch_runtime::prelude::*;

#[item_processor]
fn discount(price: &u64, percent: u64) -> Option<u64> {
    Some(price - price * percent / 100)
}

#[batchlet]
fn greet(name: String) {
    println!("Hello, {name}!");
}

fn main() {}
