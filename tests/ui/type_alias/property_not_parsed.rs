// Spec: ART-01
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Limit<T> {
    #[batch_property]
    _limit: T,
}

#[decider]
impl<T: std::str::FromStr<Err: std::fmt::Display> + Send + 'static> Limit<T> {
    #[decide]
    fn decide(&mut self) -> String {
        String::new()
    }
}

#[decider]
type Sample = Limit<Vec<u8>>;

fn main() {}
