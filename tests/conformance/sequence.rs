//! Helpers that write jobs of several elements, and artifacts for them.

use batch_runtime::prelude::*;
use batch_runtime::{BatchStatus, JobParameters};
use batch_tests::stage::say;

use crate::artifacts::{CallLog, Gate, started, story};

/// Returns the story of a job of these elements, without parameters.
pub(crate) fn run(elements: &str) -> String {
    run_with(elements, ())
}

/// Returns the story of a job of these elements.
pub(crate) fn run_with(elements: &str, parameters: impl Into<JobParameters>) -> String {
    let (stage, execution) = started(elements, parameters);
    story(&stage, execution)
}

/// Returns a step of `Task` whose result is `result`.
pub(crate) fn task(id: &str, attributes: &str, result: &str, transitions: &str) -> String {
    format!(
        r#"<step id="{id}" {attributes}><batchlet ref="Task"><properties><property name="result" value="{result}"/></properties></batchlet>{transitions}</step>
"#
    )
}

/// Returns a step of `Task` that ends with `DONE`, the last of its job or flow.
pub(crate) fn done(id: &str) -> String {
    task(id, "", "DONE", "")
}

/// Returns a flow.
pub(crate) fn flow(id: &str, attributes: &str, elements: &str) -> String {
    format!("<flow id=\"{id}\" {attributes}>\n{elements}</flow>\n")
}

/// Returns a split.
pub(crate) fn split(id: &str, attributes: &str, elements: &str) -> String {
    format!("<split id=\"{id}\" {attributes}>\n{elements}</split>\n")
}

/// Returns a decision whose decider returns `answer`.
pub(crate) fn decision(id: &str, answer: &str, transitions: &str) -> String {
    format!(
        r#"<decision id="{id}" decider="Choice"><properties><property name="answer" value="{answer}"/></properties>{transitions}</decision>
"#
    )
}

/// Returns its property, and records the visible contexts.
#[decider("Choice")]
fn choice(
    #[batch_artifact] log: &CallLog,
    #[batch_property] answer: &str,
    #[batch_context] job: &JobContext,
    #[batch_context] step: Option<StepContext>,
    #[batch_context] flow: Option<FlowContext>,
    #[batch_context] split: Option<SplitContext>,
) -> Result<String, BatchError> {
    let mut seen = Vec::new();
    let mut see = |kind: &str, id: &str, status: BatchStatus, exit: Option<String>| {
        seen.push(format!("{kind} {id} {status} {}", exit.unwrap_or_default()));
    };
    if let Some(step) = &step {
        see("step", step.id(), step.batch_status(), step.exit_status());
    }
    if let Some(flow) = &flow {
        see("flow", flow.id(), flow.batch_status(), flow.exit_status());
    }
    if let Some(split) = &split {
        see("split", split.id(), split.batch_status(), split.exit_status());
    }
    log.record(format!("decide of {} after {}", job.id(), seen.join(", ")))?;
    Ok(answer.to_owned())
}

/// Records the enclosing contexts, and sets exit statuses of flow, split and job.
#[batchlet("Around")]
#[expect(clippy::too_many_arguments, reason = "it sees all contexts")]
fn around(
    #[batch_property] log: &str,
    #[batch_property(name = "flow.exit")] flow_exit: Option<String>,
    #[batch_property(name = "split.exit")] split_exit: Option<String>,
    #[batch_property(name = "job.exit")] job_exit: Option<String>,
    #[batch_context] job: &JobContext,
    #[batch_context] step: &StepContext,
    #[batch_context] flow: Option<FlowContext>,
    #[batch_context] split: Option<SplitContext>,
) -> Result<String, BatchError> {
    let transient = job.transient_user_data::<String>()?.is_some();
    job.set_transient_user_data(String::from("seen"));
    if job_exit.is_some() {
        job.set_exit_status(job_exit.as_deref());
    }
    let (mut of_flow, mut of_split) = ("none".to_owned(), "none".to_owned());
    if let Some(flow) = &flow {
        of_flow = format!("{} {}", flow.id(), flow.batch_status());
        if flow_exit.is_some() {
            flow.set_exit_status(flow_exit.as_deref());
        }
    }
    if let Some(split) = &split {
        of_split = format!("{} {}", split.id(), split.batch_status());
        if split_exit.is_some() {
            split.set_exit_status(split_exit.as_deref());
        }
    }
    let of_job = format!(
        "job {} {} (seen before: {transient})",
        job.id(),
        job.batch_status()
    );
    say(
        log,
        format!("{}: {of_job}, flow {of_flow}, split {of_split}", step.id()),
    );
    Ok("SEEN".into())
}

/// Waits until the number of instances in its property run at the same time; then ends, fails, or waits to be
/// cancelled.
#[derive(BatchArtifact)]
struct Meeting {
    #[batch_property]
    log: String,
    #[batch_property]
    folder: String,
    /// The names that wait for each other, separated by commas.
    #[batch_property]
    meets: Vec<String>,
    /// `end`, `fail`, `wait`, or both: `wait and fail`.
    #[batch_property(value = "end")]
    then: String,
    #[batch_property(value = "MET")]
    result: String,
    /// Default: the step's id.
    #[batch_property]
    name: Option<String>,
    #[batch_context]
    step: StepContext,
}

impl Meeting {
    fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.step.id().to_owned())
    }
}

#[batchlet]
impl Meeting {
    #[process]
    fn meet(&self) -> Result<String, BatchError> {
        let gate = Gate::of(&self.folder);
        gate.open(&format!("{} is here", self.name()));
        for name in &self.meets {
            gate.pass(&format!("{name} is here"));
        }
        if self.then.contains("wait") {
            gate.pass(&format!("{} is cancelled", self.name()));
        }
        if self.then.contains("fail") {
            return Err(BatchError::msg(format!("{} had enough", self.name())));
        }
        Ok(self.result.clone())
    }

    #[cancel]
    fn cancel(&self) {
        say(&self.log, format!("cancel {}", self.name()));
        Gate::of(&self.folder).open(&format!("{} is cancelled", self.name()));
    }
}

/// Returns a step of `Meeting`.
pub(crate) fn meeting(id: &str, attributes: &str, meets: &str, then: &str, transitions: &str) -> String {
    format!(
        r#"<step id="{id}" {attributes}><batchlet ref="Meeting"><properties><property name="meets" value="{meets}"/><property name="then" value="{then}"/><property name="result" value="{id} MET"/></properties></batchlet>{transitions}</step>
"#
    )
}
