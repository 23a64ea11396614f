//! What is seen of a job while it runs: on a terminal a line for each step and partition that runs, else a line when a step
//! begins and one every few seconds.

mod screen;
mod text;

use std::time::{Duration, Instant};

use crossbeam::channel::{RecvTimeoutError, Sender, bounded};

use self::screen::Screen;
use super::print::err;
use super::shutdown::Shutdown;
use crate::execution::JobExecution;
use crate::ids::JobExecutionId;
use crate::operator::{JobOperator, JobOperatorError};

const REDRAW: Duration = Duration::from_millis(100);
/// Who has asked for a stop sees soon that the execution has ended.
const LONGEST_ASKING: Duration = Duration::from_secs(5);

/// Waits for the execution's end and shows its progress meanwhile, every `interval` where there is no terminal; never for
/// zero. After a signal the execution is asked to stop; `None` when it has not stopped in time. The threads that wait are not
/// waited for: they end with the process, if need be. `all` are the executions that are shown, and are to stop, with it.
pub(super) fn watch(
    operator: &JobOperator,
    execution: JobExecutionId,
    all: &[JobExecutionId],
    interval: Duration,
    shutdown: &mut Shutdown,
) -> Result<Option<JobExecution>, JobOperatorError> {
    let (done, ended) = bounded(1);
    let waiting = operator.clone();
    std::thread::spawn(move || {
        let _ = done.send(waiting.wait(execution));
    });
    // The threads that ask for a stop each hold one end: a library of the database must not be at work while the process ends.
    let (asking, asked) = bounded::<()>(0);
    let mut asking = Some(asking);
    let mut display = Display {
        screen: Screen::of_terminal(),
        interval,
        last_line: Instant::now(),
        announced: vec![0; all.len()],
    };
    loop {
        match ended.recv_timeout(REDRAW) {
            Ok(result) => {
                display.finish(operator, execution, all);
                drop(asking.take());
                let _ = asked.recv_timeout(LONGEST_ASKING);
                return result.map(Some);
            }
            Err(RecvTimeoutError::Timeout) => display.show(operator, all),
            Err(RecvTimeoutError::Disconnected) => return operator.wait(execution).map(Some),
        }
        if shutdown.begins() {
            // The signal may come again, and end the process whatever the terminal looks like.
            display.screen = None;
            let seconds = shutdown.limit().as_secs();
            err(format_args!(
                "stopping execution {execution}, which has {seconds} s for it; the signal again ends it at once"
            ));
            for one in all {
                stop(operator.clone(), *one, asking.clone());
            }
        }
        if shutdown.is_over() {
            err(format_args!(
                "execution {execution} has not stopped in time, and is left as by a crash"
            ));
            return Ok(None);
        }
    }
}

/// On a thread of its own: `#[cancel]` of a batchlet may take its time.
fn stop(operator: JobOperator, execution: JobExecutionId, asking: Option<Sender<()>>) {
    std::thread::spawn(move || {
        match operator.stop(execution) {
            // It has ended meanwhile.
            Ok(_) | Err(JobOperatorError::JobExecutionNotRunning(_)) => {}
            Err(error) => err(format_args!("error: cannot stop execution {execution}: {error}")),
        }
        drop(operator);
        drop(asking);
    });
}

struct Display {
    /// The terminal, if there is one.
    screen: Option<Screen>,
    interval: Duration,
    last_line: Instant,
    /// Steps announced so far, of each execution.
    announced: Vec<usize>,
}

impl Display {
    fn show(&mut self, operator: &JobOperator, all: &[JobExecutionId]) {
        let mut progress = Vec::new();
        for (index, execution) in all.iter().enumerate() {
            if let Some(of_one) = operator.progress(*execution) {
                self.announce(index, of_one.steps.iter().map(|step| step.step.as_str()));
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

    /// Where nobody sees the steps come and go.
    fn announce<'a>(&mut self, execution: usize, steps: impl Iterator<Item = &'a str>) {
        let announced = &mut self.announced[execution];
        for step in steps.skip(*announced) {
            *announced += 1;
            if self.screen.is_none() {
                err(format_args!("step {step}"));
            }
        }
    }

    fn finish(mut self, operator: &JobOperator, execution: JobExecutionId, all: &[JobExecutionId]) {
        // Steps that were quicker than the eye.
        if let (Some(index), Ok(steps)) = (
            all.iter().position(|one| *one == execution),
            operator.step_executions(execution),
        ) {
            self.announce(index, steps.iter().map(|step| step.step_name.as_str()));
        }
    }
}
