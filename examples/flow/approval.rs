//! An approval by a person: the step ends, and a `stop` element stops the job until it is launched again.

use batch_runtime::prelude::*;

/// Requires the job parameter `approved.by`.
#[derive(BatchArtifact)]
struct Approve {
    #[batch_property(name = "approved.by")]
    by: Option<String>,
    #[batch_property(name = "day", value = "today")]
    day: String,
}

#[batchlet("Approve")]
impl Approve {
    #[process]
    fn ask(&self) -> String {
        match &self.by {
            Some(name) => {
                println!("{} was approved by {name}", self.day);
                format!("APPROVED BY {name}")
            }
            None => {
                println!(
                    "the orders of {} need an approval: launch again with -approved.by=NAME",
                    self.day
                );
                "NEEDS APPROVAL".into()
            }
        }
    }

    #[cancel]
    fn cancel(&self) {}
}
