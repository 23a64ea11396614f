//! Rejected items, in a file.

mod reject;
mod report;

use std::any::TypeId;
use std::io;
use std::marker::PhantomData;

use batch_runtime::OutputPath;
use batch_runtime::execution::{Metric, MetricName};
use batch_runtime::prelude::*;
use serde::Serialize;

use self::reject::{Owner, PlaceFields, Reject};
use self::report::{Opening, Report};
use crate::choices;
use crate::dataset::{DatasetName, Datasets, of_file};
use crate::error::ResourceError;
use crate::file::{UsedFiles, is_used, kind_to_keep, redact};
use crate::record::Record;

pub use self::reject::RejectFormat;

/// Writes what a step skips to a file: the error, its place, and the rejected record. `I` is the type of the items, `O` the type of the
/// processed ones.
///
/// | property | default | |
/// |---|---|---|
/// | `rejects.output` | required | the file; it exists only if there are rejects |
/// | `rejects.format` | by extension | `csv` or `jsonl` |
/// | `rejects.if.exists` | `fail` | for files of another job instance or step, of unknown content, or that lack rejects of this instance: `fail` at the first checkpoint, or `overwrite` |
/// | `rejects.raw` | none | a file for the text of the rejected records, in UTF-8: corrected, it is the input of another launch, for formats of lines. A record that cannot be read and whose text is not known, such as one that is too long or of Parquet, is only in the report. A record that cannot be processed or written needs `raw.field`; without its text the step fails |
/// | `rejects.raw.header` | none | the first line of that file |
/// | `file.field`, `line.field`, `raw.field` | none | the fields of an item that have its place and text, by the properties of this name of the [reader](crate::file::FileInput) |
///
/// The files contain each committed skip once, also after a crash: a restart removes what was not committed. They belong to one step
/// of one job instance, so their names should contain a parameter of the job; a file of another instance fails the step at its first
/// checkpoint, or is removed with `overwrite`. A
/// partitioned step needs one for each partition: with the same file for two of them, none starts. A file that is removed, moved, replaced or
/// changed while the step runs, or between two runs, fails the step.
///
/// If the step fails, for example because the skip limit is used up, the rejects of the last chunk, which is rolled back, are written to
/// `rejects.csv.uncommitted` instead. If its commit fails, they are in both files, until the next run removes them. The next run of the step removes this file at its first checkpoint. A file of this name that another
/// instance or step has written stays.
///
/// A reject has the fields `skip` (the number of the skip in the step), `instance` (the id of the job instance), `step` (for a partition, with its number), `phase` (`read`, `process` or `write`), `error`, and as far as
/// they are known:
///
/// | field | |
/// |---|---|
/// | `resource`, `line` | the file, or the query, and the line or row |
/// | `field`, `value` | the bad field and its text, if the record cannot be read |
/// | `raw` | the record as text; if it cannot be processed or written, only with `raw.field` |
/// | `raw_end` | the length of the file of `rejects.raw` with this record |
/// | `item` | the item that could not be processed or written, as JSON |
///
/// The records of a group that is dropped because of a bad one have a line each, with the number of its skip. An item that is a group has the
/// place of its first record, and the text of all of them.
///
/// ```
/// use batch_items::RejectListener;
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Serialize)]
/// struct Payment {
///     number: String,
/// }
///
/// #[derive(serde::Serialize)]
/// struct Booking {
///     account: String,
/// }
///
/// #[skip_listener("Rejects")]
/// #[checkpoint_listener("Rejects")]
/// type Rejects = RejectListener<Payment, Booking>;
/// ```
///
/// It is a listener of the step:
///
/// ```xml
/// <step id="book">
///   <listeners>
///     <listener ref="Rejects">
///       <properties>
///         <property name="rejects.output" value="out/rejects-${date}.jsonl"/>
///       </properties>
///     </listener>
///   </listeners>
///   <!-- the chunk -->
/// </step>
/// ```
///
/// # Errors
/// A file that cannot be written fails the step, and its last chunk is rolled back: no reject is lost.
#[derive(BatchArtifact)]
pub struct RejectListener<I, O = I> {
    #[batch_property(name = "rejects.output")]
    output: OutputPath,
    #[batch_property(name = "rejects.if.exists", value = "fail")]
    if_exists: IfRejectsExist,
    #[batch_property(name = "rejects.format")]
    format: Option<RejectFormat>,
    #[batch_property(name = "rejects.raw")]
    raw: Option<OutputPath>,
    #[batch_property(name = "rejects.raw.header")]
    raw_header: Option<String>,
    #[batch_artifact]
    fields: PlaceFields,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
    #[batch_artifact]
    datasets: Datasets,
    pending: Pending,
    report: Option<Report>,
    used: UsedFiles,
    items: PhantomData<fn(I, O)>,
}

const NO_CHECKPOINTS: &str =
    "the listener is not called at checkpoints; register it by `#[checkpoint_listener]` too";

const NO_TEXT: &str = "`rejects.raw` would lack the text of a record that cannot be processed or written: set `raw.field` of the reader, if it \
    has that property, and of this listener to a field of the items and of the results, or remove `rejects.raw`";

const NO_SKIPS: &str = "the listener is not called for skips; register it by `#[skip_listener]` too";

const NOT_ALL_SKIPS: &str = "the listener was not called for each skip of the step, perhaps because another listener failed before it";

const SKIPS: [MetricName; 3] = [
    MetricName::ReadSkipCount,
    MetricName::ProcessSkipCount,
    MetricName::WriteSkipCount,
];

/// Returns the sum of these metrics.
fn sum(metrics: &[Metric], names: &[MetricName]) -> u64 {
    let counted = metrics.iter().filter(|metric| names.contains(&metric.name));
    u64::try_from(counted.map(|metric| metric.value).sum::<i64>()).unwrap_or(0)
}

/// What happens to a file that does not belong to the step: the property `rejects.if.exists`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfRejectsExist {
    /// `fail`: the step fails at its first checkpoint, also if it has no rejects. The default.
    #[default]
    Fail,
    /// `overwrite`: the file is replaced; without rejects, it is removed.
    Overwrite,
}

choices! {
    IfRejectsExist { "fail" => Fail, "overwrite" => Overwrite }
}

/// The rejects since the last checkpoint.
#[derive(Default)]
struct Pending {
    /// In the order of their skips. Skips of intervals that were rolled back come first.
    rejects: Vec<Reject>,
    /// The number of skips that are committed, and their number at the next commit.
    committed: Option<u64>,
    next: u64,
    /// `true` once the listener has been called for a skip.
    was_called: bool,
    /// `true` once the `.uncommitted` file of an earlier run has been removed.
    removed_uncommitted: bool,
}

/// `recordRejects`: the rejects of a step whose items are records.
#[skip_listener("recordRejects")]
#[checkpoint_listener("recordRejects")]
pub type RecordRejectListener = RejectListener<Record>;

/// `recordGroupRejects`: the rejects of a step whose items are groups of records.
#[skip_listener("recordGroupRejects")]
#[checkpoint_listener("recordGroupRejects")]
pub type RecordGroupRejectListener = RejectListener<Vec<Record>>;

/// `recordAggregateRejects`: the rejects of a step with `recordAggregateProcessor`.
#[skip_listener("recordAggregateRejects")]
#[checkpoint_listener("recordAggregateRejects")]
pub type RecordAggregateRejectListener = RejectListener<Vec<Record>, Record>;

#[skip_listener]
impl<I: Serialize + Send + 'static, O: Serialize + Send + 'static> RejectListener<I, O> {
    #[on_skip_in_read]
    fn in_read(&mut self, error: &BatchError) -> Result<(), ResourceError> {
        self.add(Reject::read(error))
    }

    #[on_skip_in_process]
    fn in_process(&mut self, error: &BatchError, item: &I) -> Result<(), ResourceError> {
        self.check_fields(std::slice::from_ref(item))?;
        self.add_with_text(self.fields.reject("process", error, std::slice::from_ref(item)))
    }

    /// A list that is skipped as a whole is one skip.
    #[on_skip_in_write]
    fn in_write(&mut self, error: &BatchError, items: &[O]) -> Result<(), ResourceError> {
        // A type of the program need not have the fields of the input.
        if [TypeId::of::<Record>(), TypeId::of::<Vec<Record>>()].contains(&TypeId::of::<O>()) {
            self.check_fields(items)?;
        }
        self.add_with_text(self.fields.reject("write", error, items))
    }
}

#[checkpoint_listener]
impl<I: Send + 'static, O: Send + 'static> RejectListener<I, O> {
    #[before_checkpoint]
    fn before_checkpoint(&mut self) -> Result<(), ResourceError> {
        let next = self.skips();
        let is_first = self.pending.committed.is_none();
        let committed = self
            .pending
            .committed
            .unwrap_or_else(|| next - self.skips_before_first_commit());
        self.pending.committed = Some(committed);
        self.pending.next = next;
        let fresh = usize::try_from(next - committed).unwrap_or(usize::MAX);
        if fresh > 0 && !self.pending.was_called {
            return Err(self.fail(io::Error::other(NO_SKIPS)));
        }
        // The commit contains the last ones: those before were rolled back, and reported again.
        let Some(stale) = self.pending.rejects.len().checked_sub(fresh) else {
            return Err(self.fail(io::Error::other(NOT_ALL_SKIPS)));
        };
        self.pending.rejects.drain(..stale);
        if !std::mem::replace(&mut self.pending.removed_uncommitted, true) {
            report::remove_uncommitted(self.output.path(), self.format(), &self.owner())
                .map_err(|error| self.fail(error))?;
        }
        if self.report.is_none() && (is_first || !self.pending.rejects.is_empty()) {
            self.report = self.open(committed)?;
            let files = std::iter::once(&self.output).chain(&self.raw);
            self.used = UsedFiles::of(&self.datasets, files.map(|file| of_file(file.path())));
        }
        if !self.pending.rejects.is_empty() {
            self.datasets.report_beside(self.output.path());
            self.raw
                .iter()
                .for_each(|raw| self.datasets.report_beside(raw.path()));
        }
        if next > 0 {
            let line = format!("{next} skipped: see `{}`", self.output.path().display());
            self.step.set_exit_description("rejects", line);
        }
        if let Some(report) = &mut self.report {
            let appended = report.append(&self.pending.rejects, committed + 1);
            appended.map_err(|error| self.fail(error))?;
        }
        Ok(())
    }

    #[after_checkpoint]
    fn after_checkpoint(&mut self) {
        self.pending.rejects.clear();
        self.pending.committed = Some(self.pending.next);
        if let Some(report) = &mut self.report {
            report.committed();
        }
    }
}

impl<I, O> Drop for RejectListener<I, O> {
    fn drop(&mut self) {
        let rejects = self.pending.rejects.len();
        if rejects == 0 {
            return;
        }
        if self.pending.committed != Some(self.skips()) {
            tracing::error!(rejects, "{}", self.fail(io::Error::other(NO_CHECKPOINTS)));
        } else if !self.output.is_url() {
            self.leave_uncommitted();
        }
    }
}

impl<I, O> RejectListener<I, O> {
    /// Fails if the place or the text of an item would be missing.
    fn check_fields(&self, items: &[impl Serialize]) -> Result<(), ResourceError> {
        let checked = items.iter().try_for_each(|item| self.fields.check(item));
        checked.map_err(|cause| self.fail(io::Error::other(cause)))
    }

    /// Adds a reject whose text is known only if its item has it.
    fn add_with_text(&mut self, reject: Reject) -> Result<(), ResourceError> {
        let lacks_text = self.raw.is_some() && reject.lacks_text();
        // Added first, so that the file of rejects that are not committed has it.
        self.add(reject)?;
        match lacks_text {
            true => Err(self.fail(io::Error::other(NO_TEXT))),
            false => Ok(()),
        }
    }

    fn add(&mut self, reject: Reject) -> Result<(), ResourceError> {
        let skips = self.skips();
        self.pending.was_called = true;
        let committed = *self.pending.committed.get_or_insert(skips);
        if skips != committed {
            return Err(self.fail(io::Error::other(NO_CHECKPOINTS)));
        }
        self.pending.rejects.push(reject);
        Ok(())
    }

    /// Returns the number of skips of the step in its job instance.
    fn skips(&self) -> u64 {
        sum(&self.step.metrics(), &SKIPS)
    }

    /// Returns the skips of this execution if it has not committed yet, else 0: a dead worker that started it may have committed some.
    fn skips_before_first_commit(&self) -> u64 {
        let metrics = self.step.execution_metrics();
        match sum(&metrics, &[MetricName::CommitCount]) {
            0 => sum(&metrics, &SKIPS),
            _ => 0,
        }
    }

    /// Writes the rejects of the interval that was rolled back to another file: they show why the step has failed.
    fn leave_uncommitted(&mut self) {
        let (format, owner) = (self.format(), self.owner());
        let first = self.pending.committed.unwrap_or(0) + 1;
        let rejects = reject::without_repetitions(std::mem::take(&mut self.pending.rejects));
        match report::write_uncommitted(self.output.path(), format, &owner, &rejects, first) {
            Ok(file) => tracing::warn!(
                rejects = rejects.len(),
                "the rejects of the chunk that was rolled back are in `{}`",
                file.display()
            ),
            Err(error) => tracing::warn!(
                rejects = rejects.len(),
                "cannot write the rejects of the chunk that was rolled back beside `{}`: {error}",
                redact(self.output.as_str())
            ),
        }
    }

    fn format(&self) -> RejectFormat {
        self.format
            .unwrap_or_else(|| RejectFormat::of(self.output.path()))
    }

    fn owner(&self) -> Owner {
        Owner {
            instance: self.job.instance_id().0,
            step: self.step.execution_name().to_owned(),
        }
    }

    fn open(&self, committed: u64) -> Result<Option<Report>, ResourceError> {
        let files = [
            ("rejects.output", Some(&self.output)),
            ("rejects.raw", self.raw.as_ref()),
        ];
        let url = files
            .into_iter()
            .find(|(_, path)| path.is_some_and(OutputPath::is_url));
        if let Some((property, _)) = url {
            return Err(self.fail(io::Error::other(format!(
                "`{property}` is a URL; rejects are written to local files: set it to a path"
            ))));
        }
        for path in files.into_iter().filter_map(|(_, path)| path) {
            self.check_free(&of_file(path.path()))?;
        }
        let header = self.raw_header.as_ref().map(|header| format!("{header}\n"));
        let opening = Opening {
            path: self.output.path(),
            format: self.format(),
            raw: self
                .raw
                .as_ref()
                .map(|raw| (raw.path(), header.unwrap_or_default())),
            owner: self.owner(),
            committed,
            create: !self.pending.rejects.is_empty(),
            overwrite: self.if_exists == IfRejectsExist::Overwrite,
        };
        opening.open().map_err(|error| self.fail(error))
    }

    /// Fails if a file is a database or a job, or if another artifact of the step uses it.
    fn check_free(&self, file: &DatasetName) -> Result<(), ResourceError> {
        let cause = match kind_to_keep(file) {
            Some(kind) => format!(
                "`{}` is {kind}, which rejects never replace; set another file",
                file.1
            ),
            None if is_used(&self.datasets, file, std::slice::from_ref(&self.used)) => {
                format!(
                    "the step reads `{}`, or writes it by another artifact; set another file",
                    file.1
                )
            }
            None => return Ok(()),
        };
        Err(self.fail(io::Error::other(cause)))
    }

    fn fail(&self, error: io::Error) -> ResourceError {
        let output = redact(self.output.as_str());
        ResourceError::new(format!("write rejects to `{output}`"), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An interval that was rolled back may have written rejects which its repetition does not have.
    #[test]
    fn a_repeated_interval_without_rejects_leaves_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rejects.jsonl");
        let opening = Opening {
            path: &path,
            format: RejectFormat::JsonLines,
            raw: None,
            owner: Owner {
                instance: 1,
                step: "load".to_owned(),
            },
            committed: 0,
            create: true,
            overwrite: false,
        };
        let reject = |text: &str| [Reject::read(&BatchError::msg(text))];
        let mut report = opening.open().unwrap().unwrap();
        report.append(&reject("first"), 1).unwrap();
        report.committed();
        report
            .append(&reject("rolled back, and longer than the others"), 2)
            .unwrap();
        report.append(&[], 2).unwrap();
        report.committed();
        report.append(&reject("second"), 2).unwrap();
        report.committed();
        drop(report);
        let lines = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = lines.lines().collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(
            lines[0].contains("first") && lines[1].contains("second"),
            "{lines:?}"
        );
    }
}
