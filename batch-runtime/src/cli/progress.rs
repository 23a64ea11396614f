//! What is seen of a job while it runs: one live line on a terminal, else a line per step and one every ten seconds.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use crossbeam::channel::{RecvTimeoutError, bounded};
use indicatif::{ProgressBar, ProgressStyle};

use crate::engine::Progress;
use crate::execution::JobExecution;
use crate::ids::JobExecutionId;
use crate::operator::{JobOperator, JobOperatorError};

const REDRAW: Duration = Duration::from_millis(100);
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Waits for the execution's end and shows its progress meanwhile.
pub(super) fn watch(
    operator: &JobOperator,
    execution: JobExecutionId,
) -> Result<JobExecution, JobOperatorError> {
    let (done, ended) = bounded(1);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let _ = done.send(operator.wait(execution));
        });
        let mut display = Display::new();
        loop {
            match ended.recv_timeout(REDRAW) {
                Ok(result) => {
                    display.finish();
                    return result;
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(progress) = operator.progress(execution) {
                        display.show(&progress);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return operator.wait(execution),
            }
        }
    })
}

struct Display {
    bar: Option<ProgressBar>,
    step: Option<String>,
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
            step: None,
            step_began: now,
            last_line: now,
        }
    }

    fn show(&mut self, progress: &Progress) {
        let new_step = progress.step != self.step;
        if new_step {
            self.step.clone_from(&progress.step);
            self.step_began = Instant::now();
        }
        let Some(step) = &self.step else { return };
        match &self.bar {
            Some(bar) => {
                bar.set_message(line(step, progress, self.step_began.elapsed()));
                bar.tick();
            }
            None if new_step => eprintln!("step {step}"),
            None if self.last_line.elapsed() >= LINE_EVERY => {
                self.last_line = Instant::now();
                eprintln!("{}", line(step, progress, self.step_began.elapsed()));
            }
            None => {}
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn line(step: &str, progress: &Progress, elapsed: Duration) -> String {
    let (reads, writes) = (progress.counters.reads, progress.counters.writes);
    let seconds = elapsed.as_secs();
    let clock = format!("{}:{:02}", seconds / 60, seconds % 60);
    if reads == 0 {
        return format!("step {step}  {clock}");
    }
    // A rate for people; the rounding of large numbers does no harm.
    let rate = u128::try_from(reads).unwrap_or(0) * 1000 / elapsed.as_millis().max(1);
    format!("step {step}  {reads} read, {writes} written, {rate}/s, {clock}")
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
        let progress = Progress {
            step: Some("load".into()),
            counters,
            steps_begun: 1,
        };
        let text = line("load", &progress, Duration::from_secs(90));
        assert_eq!(text, "step load  90000 read, 80000 written, 1000/s, 1:30");
        assert_eq!(
            line("load", &Progress::default(), Duration::ZERO),
            "step load  0:00"
        );
    }
}
