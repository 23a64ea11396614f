//! A job listener.

use batch_runtime::prelude::*;

/// Prints how the job ended.
#[derive(BatchArtifact)]
struct Summary {
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: Option<StepContext>,
    lines: Vec<String>,
}

#[job_listener("Summary")]
impl Summary {
    #[after_step]
    fn note(&mut self) {
        let Some(step) = &self.step else { return };
        let counts = step.metrics().into_iter().filter(|metric| metric.value > 0);
        let counts: Vec<String> = counts
            .map(|metric| format!("{:?} {}", metric.name, metric.value))
            .collect();
        self.lines.push(format!(
            "  {:<14} {} {}",
            step.id(),
            step.batch_status(),
            counts.join(", ")
        ));
    }

    #[after_job]
    fn print(&mut self) {
        println!("{} {}", self.job.name(), self.job.batch_status());
        self.lines.iter().for_each(|line| println!("{line}"));
    }
}
