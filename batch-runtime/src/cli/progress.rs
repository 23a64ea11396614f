//! What is seen of a job while it runs: one live line on a terminal, else a line per step and one every ten seconds.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use crossbeam::channel::{RecvTimeoutError, bounded};
use indicatif::{ProgressBar, ProgressStyle};

use super::print::err;
use super::shutdown::Shutdown;
use crate::engine::{Progress, StepProgress};
use crate::execution::JobExecution;
use crate::ids::JobExecutionId;
use crate::operator::{JobOperator, JobOperatorError};

const REDRAW: Duration = Duration::from_millis(100);
const LINE_EVERY: Duration = Duration::from_secs(10);
/// Before that, a rate would be a guess.
const RATE_AFTER: Duration = Duration::from_millis(500);

/// Waits for the execution's end and shows its progress meanwhile. After a signal the execution is asked to stop; `None` when
/// it has not stopped in time. The threads that wait are not waited for: they end with the process, if need be. `all` are the
/// executions that are to stop with it.
pub(super) fn watch(
    operator: &JobOperator,
    execution: JobExecutionId,
    all: &[JobExecutionId],
    shutdown: &mut Shutdown,
) -> Result<Option<JobExecution>, JobOperatorError> {
    let (done, ended) = bounded(1);
    let waiting = operator.clone();
    std::thread::spawn(move || {
        let _ = done.send(waiting.wait(execution));
    });
    let mut display = Display::new();
    loop {
        match ended.recv_timeout(REDRAW) {
            Ok(result) => {
                display.finish(operator, execution);
                return result.map(Some);
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Some(progress) = operator.progress(execution) {
                    display.show(&progress);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return operator.wait(execution).map(Some),
        }
        if shutdown.begins() {
            let seconds = shutdown.limit().as_secs();
            display.say(format_args!(
                "stopping execution {execution}, which has {seconds} s for it; the signal again ends it at once"
            ));
            for one in all {
                stop(operator.clone(), *one);
            }
        }
        if shutdown.is_over() {
            display.say(format_args!(
                "execution {execution} has not stopped in time, and is left as by a crash"
            ));
            return Ok(None);
        }
    }
}

/// On a thread of its own: `#[cancel]` of a batchlet may take its time.
fn stop(operator: JobOperator, execution: JobExecutionId) {
    std::thread::spawn(move || match operator.stop(execution) {
        // It has ended meanwhile.
        Ok(_) | Err(JobOperatorError::JobExecutionNotRunning(_)) => {}
        Err(error) => err(format_args!("error: cannot stop execution {execution}: {error}")),
    });
}

struct Display {
    bar: Option<ProgressBar>,
    /// Steps announced so far.
    announced: usize,
    step_began: Instant,
    last_line: Instant,
}

impl Display {
    fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{spinner} {wide_msg}");
            ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        });
        let now = Instant::now();
        Self {
            bar,
            announced: 0,
            step_began: now,
            last_line: now,
        }
    }

    fn show(&mut self, progress: &Progress) {
        self.announce(progress.steps.iter().map(|step| step.step.as_str()));
        // Of several that run at the same time, the one that began last.
        let Some(step) = progress.steps.last() else { return };
        let elapsed = self.step_began.elapsed();
        match &self.bar {
            // A step without items prints for itself, if at all.
            Some(bar) if step.counters.reads == 0 => bar.set_message(""),
            Some(bar) => {
                bar.set_message(line(step, elapsed));
                bar.tick();
            }
            None if self.last_line.elapsed() >= LINE_EVERY => {
                self.last_line = Instant::now();
                err(line(step, elapsed));
            }
            None => {}
        }
    }

    /// A line among the others.
    fn say(&self, text: impl std::fmt::Display) {
        match &self.bar {
            Some(bar) => bar.suspend(|| err(text)),
            None => err(text),
        }
    }

    fn announce<'a>(&mut self, steps: impl Iterator<Item = &'a str>) {
        for step in steps.skip(self.announced) {
            self.announced += 1;
            self.step_began = Instant::now();
            if self.bar.is_none() {
                err(format_args!("step {step}"));
            }
        }
    }

    fn finish(&mut self, operator: &JobOperator, execution: JobExecutionId) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        // Steps that were quicker than the eye.
        if let Ok(steps) = operator.step_executions(execution) {
            self.announce(steps.iter().map(|step| step.step_name.as_str()));
        }
    }
}

fn line(progress: &StepProgress, elapsed: Duration) -> String {
    let StepProgress { step, counters } = progress;
    let (reads, writes) = (counters.reads, counters.writes);
    let seconds = elapsed.as_secs();
    let clock = format!("{}:{:02}", seconds / 60, seconds % 60);
    if reads == 0 {
        return format!("step {step}  {clock}");
    }
    let rate = match elapsed >= RATE_AFTER {
        true => format!(
            " {}/s,",
            u128::try_from(reads).unwrap_or(0) * 1000 / elapsed.as_millis().max(1)
        ),
        false => String::new(),
    };
    format!("step {step}  {reads} read, {writes} written,{rate} {clock}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::StepCounters;

    #[test]
    fn the_line_tells_counts_rate_and_time() {
        let counters = StepCounters {
            reads: 90_000,
            writes: 80_000,
            ..StepCounters::default()
        };
        let mut progress = StepProgress {
            step: "load".into(),
            counters,
        };
        let text = line(&progress, Duration::from_secs(90));
        assert_eq!(text, "step load  90000 read, 80000 written, 1000/s, 1:30");
        assert_eq!(
            line(&progress, Duration::ZERO),
            "step load  90000 read, 80000 written, 0:00"
        );
        progress.counters = StepCounters::default();
        assert_eq!(line(&progress, Duration::ZERO), "step load  0:00");
    }
}
