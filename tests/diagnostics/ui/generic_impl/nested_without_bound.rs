// Spec: D-97
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample<T> {
    #[batch_artifact]
    inner: T,
}

#[decider]
impl<T: ToString + Send + 'static> Sample<T> {
    #[decide]
    fn decide(&mut self) -> String {
        self.inner.to_string()
    }
}

fn main() {}
