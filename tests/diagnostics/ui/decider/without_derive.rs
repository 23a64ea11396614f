// Spec: ART-10, DECIDER-01
use batch_runtime::prelude::*;

struct Sample;

#[decider]
impl Sample {
    #[decide]
    fn which(&mut self) -> String {
        "LATE".into()
    }
}

fn main() {}
