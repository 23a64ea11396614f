//! An artifact of another crate than the program that uses it. Nobody names its type.

use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct FromElsewhere {}

#[batchlet(class = "com.example.FromElsewhere")]
impl FromElsewhere {
    #[process]
    fn process(&self) -> String {
        "FROM ELSEWHERE".into()
    }
    #[cancel]
    fn cancel(&self) {}
}
