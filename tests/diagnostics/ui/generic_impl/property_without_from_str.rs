// Spec: BPROP-10
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample<T> {
    #[batch_property]
    limit: T,
}

#[decider]
impl<T: Clone + Send + 'static> Sample<T> {
    #[decide]
    fn decide(&mut self) -> String {
        drop(self.limit.clone());
        String::new()
    }
}

fn main() {}
