// Spec: ART-15
use batch_runtime::prelude::*;

struct Rate(u64);

impl std::str::FromStr for Rate {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

#[item_processor]
fn priced(cents: &u64, #[batch_property] rate: Rate) -> Option<u64> {
    Some(cents * rate.0)
}

fn main() {}
