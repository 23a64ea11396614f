//! An artifact in another crate than the program that uses it, whose type no code names.

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
