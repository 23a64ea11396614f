//! `start`: runs a new instance of a job.

use clap::Args;

use crate::follow::{Ending, Resume, follow};
use crate::parameters::Parameters;
use crate::patience::waiting_for;
use crate::session::{Outcome, Session};

/// Starts a new instance of a job and waits for its end
#[derive(Args, Debug)]
pub(crate) struct Start {
    /// Id of the job, or with `--xml` the name of its file
    job: String,
    /// Finds the job by the name of its file, with or without `.xml`, as Jakarta Batch does
    #[arg(long)]
    xml: bool,
    #[command(flatten)]
    parameters: Parameters,
}

impl Start {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        session.check_properties(&self.job)?;
        let parameters = self.parameters.into_parameters()?;
        let shutdown = session.listen()?;
        let operator = session.create_for(|runtime| match self.xml {
            true => runtime.check_start_xml(&self.job, parameters.clone()),
            false => runtime.check_start(&self.job, parameters.clone()),
        })?;
        let execution = waiting_for(session.repository(), || match self.xml {
            true => operator.start_xml(&self.job, parameters),
            false => operator.start(&self.job, parameters),
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
