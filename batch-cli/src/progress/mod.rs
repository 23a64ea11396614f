//! Shows a job while it runs: on a terminal a line for each running step and partition, elsewhere a line when a step starts and
//! one every few seconds.

mod screen;
mod text;

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use batch_runtime::execution::JobExecution;
use batch_runtime::{JobExecutionId, JobOperator, JobOperatorError};

use self::screen::Screen;
use crate::print::{err, errln};
use crate::signals::Shutdown;

const REDRAW: Duration = Duration::from_millis(100);
/// The time that the process waits for the threads that requested a stop, after the execution has ended.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Waits for the end of an execution and shows its progress: without a terminal every `interval`, or never if that is zero.
/// After a signal it requests the execution to stop; returns `None` if it does not stop in time. `all` are the executions that
/// are shown and stopped with it.
///
/// Its threads may still run when it returns, and end with the process.
pub(crate) fn watch(
    operator: &JobOperator,
    execution: JobExecutionId,
    all: &[JobExecutionId],
    interval: Duration,
    shutdown: &mut Shutdown,
) -> Result<Option<JobExecution>, JobOperatorError> {
    let (done, ended) = sync_channel(1);
    let waiting = operator.clone();
    std::thread::spawn(move || {
        let _ = done.send(waiting.wait(execution));
    });
    // The threads that request a stop hold a sender each, so that the process does not exit while they use the database.
    let (stopping, stopped) = sync_channel::<()>(0);
    let mut stopping = Some(stopping);
    let mut display = Display {
        screen: Screen::of_terminal(),
        interval,
        last_line: Instant::now(),
        announced: vec![0; all.len()],
        waits_for: vec![None; all.len()],
    };
    loop {
        match ended.recv_timeout(REDRAW) {
            Ok(result) => {
                display.finish(operator, execution, all);
                drop(stopping.take());
                let _ = stopped.recv_timeout(STOP_GRACE);
                return result.map(Some);
            }
            Err(RecvTimeoutError::Timeout) => display.show(operator, all),
            Err(RecvTimeoutError::Disconnected) => return operator.wait(execution).map(Some),
        }
        if shutdown.starts() {
            // A second signal ends the process without restoring the terminal.
            display.screen = None;
            let seconds = shutdown.limit().as_secs();
            errln!(
                "stopping execution {execution}, which has {seconds} s to stop; a second signal ends the process"
            );
            for one in all {
                stop(operator.clone(), *one, stopping.clone());
            }
        }
        if shutdown.is_overdue() {
            errln!("execution {execution} did not stop in time and is left running, like after a crash");
            return Ok(None);
        }
    }
}

/// Requests a stop on its own thread, because `#[cancel]` of a batchlet may take long.
fn stop(operator: JobOperator, execution: JobExecutionId, stopping: Option<SyncSender<()>>) {
    std::thread::spawn(move || {
        match operator.stop(execution) {
            // It may have ended in the meantime.
            Ok(_) | Err(JobOperatorError::JobExecutionNotRunning(_)) => {}
            Err(error) => errln!("error: cannot stop execution {execution}: {error}"),
        }
        drop(operator);
        drop(stopping);
    });
}

struct Display {
    /// The terminal, if there is one.
    screen: Option<Screen>,
    interval: Duration,
    last_line: Instant,
    /// The number of steps announced so far, of each execution.
    announced: Vec<usize>,
    /// The execution that each waits for.
    waits_for: Vec<Option<JobExecutionId>>,
}

impl Display {
    fn show(&mut self, operator: &JobOperator, all: &[JobExecutionId]) {
        let mut progress = Vec::new();
        for (index, execution) in all.iter().enumerate() {
            if let Some(of_one) = operator.progress(*execution) {
                self.announce(index, of_one.steps.iter().map(|step| step.step.as_str()));
                if self.waits_for[index] != of_one.waits_for {
                    self.waits_for[index] = of_one.waits_for;
                    if let Some(before) = of_one.waits_for {
                        errln!(
                            "execution {execution} waits for execution {before}: one execution of the job runs at a time"
                        );
                    }
                }
                let name = (all.len() > 1).then(|| format!("{execution} "));
                progress.push((name.unwrap_or_default(), of_one));
            }
        }
        if let Some(screen) = &mut self.screen {
            screen.show(|width, height| text::lines(&progress, width, height));
        } else if !self.interval.is_zero() && self.last_line.elapsed() >= self.interval {
            self.last_line = Instant::now();
            text::summary(&progress).iter().for_each(err);
        }
    }

    /// Prints the steps that have started, if there is no terminal to show them.
    fn announce<'a>(&mut self, execution: usize, steps: impl Iterator<Item = &'a str>) {
        let announced = &mut self.announced[execution];
        for step in steps.skip(*announced) {
            *announced += 1;
            if self.screen.is_none() {
                errln!("step {step}");
            }
        }
    }

    fn finish(mut self, operator: &JobOperator, execution: JobExecutionId, all: &[JobExecutionId]) {
        // Steps may have started and ended between two redraws.
        if let (Some(index), Ok(steps)) = (
            all.iter().position(|one| *one == execution),
            operator.step_executions(execution),
        ) {
            self.announce(index, steps.iter().map(|step| step.step_name.as_str()));
        }
    }
}
