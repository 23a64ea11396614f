//! `restart`: resumes the instance of an execution.

use batch_runtime::JobExecutionId;
use clap::Args;

use super::execution_id;
use crate::follow::{Ending, Resume, follow};
use crate::parameters::Parameters;
use crate::patience::waiting_for;
use crate::session::{Outcome, Session};

/// Resumes the instance of a failed or stopped execution and waits for its end
///
/// Parameters add to those that the instance was started with, and override them.
#[derive(Args, Debug)]
pub(crate) struct Restart {
    /// Id of an execution of the instance
    #[arg(value_parser = execution_id)]
    execution: JobExecutionId,
    #[command(flatten)]
    parameters: Parameters,
}

impl Restart {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let parameters = self.parameters.into_parameters()?;
        let shutdown = session.listen()?;
        let operator = session.open()?;
        let execution = waiting_for(session.repository(), || {
            operator.restart(self.execution, parameters)
        })?;
        follow(
            session,
            &operator,
            execution,
            Ending::text(Resume::ById),
            shutdown,
        )
    }
}
