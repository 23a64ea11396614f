//! `console`: serves the operations console.

use clap::Args;

use crate::metrics::Address;
use crate::session::{Outcome, Session};

/// Serves the operations console: pages that show running and failed jobs and operate them, and a JSON API
///
/// Every user of this computer may use it; `[console]` in batch.toml configures tokens, a reverse proxy and other addresses. Jobs that are
/// launched there run in this process, or on workers. SIGTERM stops them, as it stops jobs of `launch`.
#[derive(Args, Debug)]
pub(crate) struct Console {
    /// Where it listens: a port of 127.0.0.1, or an IP address with a port; 0 picks a free port [default: 7070]
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    port: Option<Address>,
}

impl Console {
    #[cfg(feature = "console")]
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        with_feature::run(session, self.port.map(|address| address.0))
    }

    #[cfg(not(feature = "console"))]
    pub(crate) fn run(self, _: &mut Session) -> Outcome {
        let _ = self.port;
        Err(crate::error::CliError::Usage(
            "this program has no console; build it with the feature `console` of batch-cli".into(),
        ))
    }
}

#[cfg(feature = "console")]
mod with_feature {
    use std::net::SocketAddr;
    use std::process::ExitCode;
    use std::thread;
    use std::time::Duration;

    use batch_runtime::repository::ExecutionFilter;
    use batch_runtime::{BatchStatus, JobExecutionId, JobOperator, JobOperatorError};

    use crate::console;
    use crate::print::{errln, outln};
    use crate::session::{Outcome, Session};

    /// The interval between polls for signals and the ends of jobs.
    const POLL: Duration = Duration::from_millis(50);

    pub(super) fn run(session: &mut Session, address: Option<SocketAddr>) -> Outcome {
        // Before anything is opened.
        let access = console::access(&session.settings.console)?;
        let address = console::address(address, &session.settings.console);
        if !session.exists()? {
            console::check_address(&access, address)?;
        }
        let (mut shutdown, metrics) = session.listen_with_metrics()?;
        let runtime = session.build()?;
        let operator = runtime.job_operator();
        let mut console = console::configured(&runtime, &session.settings.console)?
            .metrics(move || metrics.text().unwrap_or_default());
        if let Some(lines) = session.log_lines() {
            console = console.logs(lines);
        }
        let server = console.start(address)?;
        outln!("console at http://{}/", server.address());
        while !shutdown.starts() {
            thread::sleep(POLL);
        }
        drop(server);
        let running = own(&operator)?;
        // A stop waits for a while, so all are requested at once.
        thread::scope(|scope| {
            let operator = &operator;
            for execution in &running {
                errln!("stopping execution {execution} at its next checkpoint");
                scope.spawn(move || {
                    if let Err(error) = operator.stop(*execution) {
                        errln!("error: cannot stop execution {execution}: {error}");
                    }
                });
            }
        });
        while !running
            .iter()
            .all(|execution| operator.progress(*execution).is_none())
        {
            if shutdown.is_overdue() {
                errln!(
                    "error: not all executions have stopped in {} s; `launch`, `restart` or `recover` resumes them (set a longer \
                     `shutdown-timeout` to wait longer)",
                    session.settings.shutdown_timeout.as_secs()
                );
                return Ok(ExitCode::FAILURE);
            }
            thread::sleep(POLL);
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the executions that run in this process.
    fn own(operator: &JobOperator) -> Result<Vec<JobExecutionId>, JobOperatorError> {
        let open = operator.find_executions(&ExecutionFilter {
            statuses: vec![BatchStatus::Starting, BatchStatus::Started, BatchStatus::Stopping],
            ..ExecutionFilter::default()
        })?;
        let ids = open.into_iter().map(|execution| execution.id);
        Ok(ids.filter(|id| operator.progress(*id).is_some()).collect())
    }
}
