//! An artifact of another crate than the program that uses it, which never names its type.

use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct LinkedArtifact {}

#[batchlet(class = "com.example.LinkedArtifact")]
impl LinkedArtifact {
    #[process]
    fn process(&self) -> String {
        "LINKED".into()
    }
    #[cancel]
    fn cancel(&self) {}
}
