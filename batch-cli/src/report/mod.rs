//! The report of an execution, as a page of HTML or a text in Markdown.

mod escape;
mod html;
mod markdown;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use batch_runtime::execution::{JobExecution, StepCounters, StepExecution, StepTotal};
use batch_runtime::{
    JobExecutionId, JobOperator, JobOperatorError, JobParameters, Timestamp,
    time::{Clock, SystemClock, elapsed},
};

use crate::data::data_of;
use crate::error::CliError;
use crate::tables::{TOTAL_COLUMNS, or_dash, total_cells};

/// An execution as the report shows it.
struct Run {
    execution: JobExecution,
    parameters: JobParameters,
    steps: Vec<StepExecution>,
    totals: Vec<StepTotal>,
    /// All executions of the instance.
    executions: Vec<JobExecution>,
    decisions: Vec<(String, String)>,
    /// Why its data cannot be read.
    unreadable: Option<String>,
    /// When it was read. The bars of running steps end there.
    now: Timestamp,
}

impl Run {
    fn of(operator: &JobOperator, id: JobExecutionId) -> Result<Self, JobOperatorError> {
        let execution = operator.job_execution(id)?;
        let execution = execution.ok_or(JobOperatorError::NoSuchJobExecution(id))?;
        let mut executions = operator.job_executions(execution.instance_id)?;
        executions.sort_unstable_by_key(|execution| execution.id);
        let (data, unreadable) = data_of(operator, id)?;
        let decisions = data.decisions().map(|(path, answer)| (path.to_owned(), answer));
        Ok(Self {
            execution,
            executions,
            decisions: decisions.collect(),
            unreadable,
            parameters: operator.parameters(id)?,
            steps: operator.step_executions(id)?,
            totals: operator.step_totals(id)?,
            now: SystemClock.now(),
        })
    }

    fn start(&self) -> Timestamp {
        self.execution.started.unwrap_or(self.execution.created)
    }

    fn end(&self) -> Timestamp {
        self.execution.ended.unwrap_or(self.now)
    }

    /// Returns name and text of each fact.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let execution = &self.execution;
        let mut facts = vec![
            ("Status", execution.status.to_string()),
            ("Exit status", execution.exit_status.clone()),
            ("Job instance", execution.instance_id.to_string()),
            ("Job execution", execution.id.to_string()),
            ("Created", execution.created.to_string()),
            ("Started", or_dash(execution.started)),
            ("Ended", or_dash(execution.ended)),
            ("Took", elapsed(self.end().millis_since(self.start()))),
        ];
        for step in &self.steps {
            if let Some(nested) = step.nested_job() {
                let (job, execution) = (nested.nested_job, nested.execution);
                let fact = format!("{job}, execution {execution}, by step {}", step.step_name);
                facts.push(("Nested job", fact));
            }
        }
        for (decision, answer) in &self.decisions {
            facts.push(("Decision", format!("{decision}: {answer}")));
        }
        if let Some(problem) = &self.unreadable {
            facts.push(("Not shown", problem.clone()));
        }
        if let Some(definition) = &execution.configuration_location {
            facts.push(("Definition", definition.clone()));
        }
        facts
    }

    /// Returns the table of the executions of the instance; without rows if there is one.
    fn executions(&self) -> Table {
        let all = self.executions.iter().filter(|_| self.executions.len() > 1);
        let row = |one: &JobExecution| {
            let start = one.started.unwrap_or(one.created);
            vec![
                one.id.to_string(),
                one.status.to_string(),
                one.exit_status.clone(),
                or_dash(one.started),
                elapsed(one.ended.unwrap_or(self.now).millis_since(start)),
            ]
        };
        Table {
            head: &["Execution", "Status", "Exit status", "Started", "Took"],
            first_number: 4,
            rows: all.map(row).collect(),
        }
    }

    /// Returns the messages of steps, each once, without the job's message.
    fn messages(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut seen = vec![self.execution.exit_message.as_str()];
        self.steps.iter().filter_map(move |step| {
            let message = step.exit_message.as_str();
            if message.is_empty() || seen.contains(&message) {
                return None;
            }
            seen.push(message);
            Some((step.step_name.as_str(), message))
        })
    }

    /// Returns the table of the steps.
    fn steps(&self) -> Table {
        Table {
            head: &COLUMNS,
            first_number: FIRST_NUMBER,
            rows: self.steps.iter().map(|step| self.cells(step)).collect(),
        }
    }

    /// Returns the table of the counters in all executions of the instance; without rows if there is one.
    fn totals(&self) -> Table {
        Table {
            head: &TOTAL_COLUMNS,
            first_number: 1,
            rows: total_cells(&self.totals),
        }
    }

    /// Returns the cells of a step, in the order of [`COLUMNS`].
    fn cells(&self, step: &StepExecution) -> Vec<String> {
        let StepCounters {
            reads,
            writes,
            filters,
            commits,
            rollbacks,
            ..
        } = step.counters;
        let millis = step.ended.unwrap_or(self.now).millis_since(step.started);
        let rate = match (u64::try_from(reads), millis) {
            (Ok(reads), millis) if reads > 0 && millis > 0 => format!("{}/s", reads * 1000 / millis),
            _ => "-".into(),
        };
        let mut cells = vec![
            step.step_name.clone(),
            step.status.to_string(),
            step.exit_status.clone(),
        ];
        cells.extend(
            [reads, filters, writes, step.counters.skips(), commits, rollbacks]
                .map(|count| count.to_string()),
        );
        cells.extend([elapsed(millis), rate]);
        cells
    }
}

const EXECUTIONS: &str = "Executions of the instance";

/// A table of a report.
struct Table {
    head: &'static [&'static str],
    /// The columns before this one hold text.
    first_number: usize,
    rows: Vec<Vec<String>>,
}

const COLUMNS: [&str; 11] = [
    "Step",
    "Status",
    "Exit status",
    "Read",
    "Filtered",
    "Written",
    "Skipped",
    "Commits",
    "Rollbacks",
    "Took",
    "Items",
];
/// The columns before this one hold text.
const FIRST_NUMBER: usize = 3;

/// Returns the report of an execution as a page of HTML.
#[cfg(feature = "console")]
pub(crate) fn html(operator: &JobOperator, id: JobExecutionId) -> Result<String, JobOperatorError> {
    Ok(html::write(&Run::of(operator, id)?))
}

/// Returns the report of an execution in Markdown.
#[cfg(feature = "console")]
pub(crate) fn markdown(operator: &JobOperator, id: JobExecutionId) -> Result<String, JobOperatorError> {
    Ok(markdown::write(&Run::of(operator, id)?))
}

/// Writes the report of an execution, in the format of the file's extension.
pub(crate) fn write(operator: &JobOperator, id: JobExecutionId, file: &Path) -> Result<(), CliError> {
    let write = match file.extension().and_then(OsStr::to_str).unwrap_or_default() {
        "html" | "htm" => html::write,
        "md" | "markdown" => markdown::write,
        _ => return Err(CliError::ReportFormat(file.to_owned())),
    };
    let run = Run::of(operator, id)?;
    fs::write(file, write(&run)).map_err(CliError::file("write", file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use batch_runtime::xml::is_unprintable;
    use batch_runtime::{BatchStatus, JobInstanceId, ParameterValue, StepExecutionId};

    /// Returns an execution with texts that a page must not interpret.
    fn hostile() -> Run {
        let step = |name: &str, from: i64, to: Option<i64>, status| StepExecution {
            id: StepExecutionId(1),
            job_execution_id: JobExecutionId(7),
            step_name: name.into(),
            started: Timestamp(from),
            ended: to.map(Timestamp),
            last_updated: Timestamp(from),
            status,
            exit_status: "A|B".into(),
            exit_message: "no <disk>\n# two".into(),
            counters: StepCounters {
                reads: 3_000,
                read_skips: 1,
                write_skips: 2,
                ..StepCounters::default()
            },
            user_data: None,
            version: 3,
        };
        let execution = JobExecution {
            id: JobExecutionId(7),
            instance_id: JobInstanceId(5),
            job_name: "<b>&\"job`".into(),
            created: Timestamp(0),
            started: Some(Timestamp(1_000)),
            ended: Some(Timestamp(11_000)),
            last_updated: Timestamp(11_000),
            status: BatchStatus::Failed,
            exit_status: "FAILED".into(),
            exit_message: "<script>alert(1)</script>\nthrown by x".into(),
            version: 2,
            configuration_location: Some("jobs/a.xml".into()),
        };
        Run {
            execution,
            parameters: JobParameters::new().with("day", "<1>").with_parameter(
                "n",
                ParameterValue::Long(5),
                false,
            ),
            steps: vec![
                step("load", 1_000, Some(5_000), BatchStatus::Completed),
                step("</svg>", 5_000, None, BatchStatus::Started),
            ],
            totals: Vec::new(),
            executions: Vec::new(),
            decisions: vec![("<i>".into(), "A|B".into())],
            unreadable: None,
            now: Timestamp(61_000),
        }
    }

    #[test]
    fn hostile_texts_are_escaped() {
        let page = html::write(&hostile());
        for text in ["<script>alert", "<b>", "</svg></", "<1>", "<disk>"] {
            assert!(!page.contains(text), "{text}: {page}");
        }
        for text in [
            "&lt;script&gt;alert(1)&lt;/script&gt;",
            "&lt;b&gt;&amp;&quot;job`",
            "&lt;/svg&gt;",
        ] {
            assert!(page.contains(text), "{text}: {page}");
        }
        let text = markdown::write(&hostile());
        assert!(text.contains(r"A\|B"), "{text}");
        // Indented, it is code.
        assert!(
            text.contains("\n\n    <script>") && !text.contains("\n<"),
            "{text}"
        );
        assert!(!text.lines().any(|line| line == "# two"), "{text}");
    }

    /// A carriage return ends a line of Markdown; others turn the direction of the text or ring the bell.
    #[test]
    fn control_characters_end_no_code_block() {
        let mut run = hostile();
        run.execution.job_name = "a\r<b>\u{202e}".into();
        run.execution.exit_message =
            "lost\r<script>alert(1)</script>\u{b}\u{c}\u{1b}[31m\u{7}\u{202e}".into();
        run.steps[1].step_name = "x\r## y".into();
        for page in [html::write(&run), markdown::write(&run)] {
            let found: Vec<char> = page
                .chars()
                .filter(|c| is_unprintable(*c) && *c != '\n')
                .collect();
            assert_eq!(found, [' '; 0], "{page}");
        }
    }

    /// The job has ended, and a step that has not is drawn until now.
    #[test]
    fn a_bar_begins_and_ends_with_its_step() {
        let mut run = hostile();
        run.steps[0].step_name = "load:1".into();
        let page = html::write(&run);
        let bar = |row: &str| page.contains(row);
        assert!(
            bar(
                "<td class=\"inner\">load:1</td><td class=\"bar\"><div class=\"completed\" style=\"margin-left: 0.00%; width: 6.67%\">"
            ),
            "{page}"
        );
        assert!(
            bar(
                "<div class=\"running\" style=\"margin-left: 6.67%; width: 93.33%\"></div></td><td class=\"number\">56.000 s<"
            ),
            "{page}"
        );
    }

    #[test]
    fn a_step_shows_its_numbers() {
        let run = hostile();
        let cells = run.cells(&run.steps[0]);
        assert_eq!(
            cells,
            [
                "load",
                "COMPLETED",
                "A|B",
                "3000",
                "0",
                "0",
                "3",
                "0",
                "0",
                "4.000 s",
                "750/s"
            ]
        );
        assert_eq!(run.cells(&run.steps[1])[9..], ["56.000 s", "53/s"], "until now");
    }
}
