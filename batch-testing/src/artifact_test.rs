//! Artifacts alone: a job of one step around them.

use std::fmt;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use batch_runtime::JobParameters;
use batch_runtime::prelude::*;
use batch_runtime::xml::builder::{ArtifactBuilder, ChunkBuilder, JobBuilder, StepBuilder};
use batch_runtime::xml::model::Target;
use tempfile::TempDir;

use crate::database::{Prepare, TestDatabase};
use crate::doubles::WriterDouble;
use crate::{JobRun, JobTest, WrittenItems};

/// The names of the artifacts of the step.
const READER: &str = "reader";
const PROCESSOR: &str = "processor";
const WRITER: &str = "writer";
const BEFORE: &str = "before";

/// The code of the warning about a property that no artifact has.
const UNKNOWN_PROPERTY: &str = "ART0010";

/// Creates the artifact under test.
type Make = Arc<dyn Fn() -> LoadedArtifact + Send + Sync>;

/// An artifact that a test calls, in a job of one step that has nothing else.
///
/// The runtime creates the artifact, injects its properties and contexts, and calls it as in any job. A function makes it: either
/// [`LoadedArtifact::of`], or a closure that returns an instance in [`LoadedArtifact::item_reader`] and so on.
///
/// ```standalone_crate
/// use batch_runtime::prelude::*;
/// use batch_testing::ArtifactTest;
///
/// #[derive(BatchArtifact)]
/// struct Squares {
///     #[batch_property(name = "limit")]
///     limit: u64,
/// }
///
/// #[item_processor("Squares")]
/// impl Squares {
///     #[process_item]
///     fn square(&mut self, number: &u64) -> Option<u64> {
///         (*number <= self.limit).then(|| number * number)
///     }
/// }
///
/// let squares = ArtifactTest::new()
///     .property("limit", 3)
///     .process::<u64, u64>(LoadedArtifact::of::<Squares>, [1, 2, 3, 4])?;
/// assert_eq!(squares, [1, 4, 9]);
/// # Ok::<(), batch_testing::ArtifactFailure>(())
/// ```
#[derive(Clone, Default)]
pub struct ArtifactTest {
    properties: Vec<(String, String)>,
    step_properties: Vec<(String, String)>,
    job_properties: Vec<(String, String)>,
    before_step: Option<Arc<BeforeStep>>,
    prepare: Option<Arc<Prepare>>,
}

type BeforeStep = dyn Fn(&StepContext) -> Result<(), BatchError> + Send + Sync;

/// The failure of an artifact: the messages of its job.
#[derive(Clone)]
pub struct ArtifactFailure {
    message: String,
    execution: String,
}

impl ArtifactFailure {
    /// Returns the message of the job, with the causes.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for ArtifactFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.execution)
    }
}

/// As `Display`, because `unwrap` prints it.
impl fmt::Debug for ArtifactFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ArtifactFailure {}

/// Calls a function with the context of the step, before its first item.
#[derive(BatchArtifact)]
struct Before {
    #[batch_context]
    step: Option<StepContext>,
    call: Option<Arc<BeforeStep>>,
}

#[step_listener]
impl Before {
    #[before_step]
    fn before(&mut self) -> Result<(), BatchError> {
        match (&self.call, &self.step) {
            (Some(call), Some(step)) => call(step),
            _ => Ok(()),
        }
    }
}

/// A job of one step, in its own folder.
struct OneStep {
    test: JobTest,
    _folder: TempDir,
}

impl ArtifactTest {
    /// Creates a test without properties.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a property of the artifact.
    #[must_use]
    pub fn property(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        self.properties.push((name.into(), value.to_string()));
        self
    }

    /// Sets a property of the step, as in [`StepContext::properties`].
    #[must_use]
    pub fn step_property(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        self.step_properties.push((name.into(), value.to_string()));
        self
    }

    /// Sets a property of the job, as in [`JobContext::properties`].
    #[must_use]
    pub fn job_property(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        self.job_properties.push((name.into(), value.to_string()));
        self
    }

    /// Sets a function that is called with the context of the step before its first item, such as to set user data.
    #[must_use]
    pub fn before_step<E: Into<BatchError> + 'static>(
        mut self,
        call: impl Fn(&StepContext) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.before_step = Some(Arc::new(move |step| call(step).map_err(Into::into)));
        self
    }

    /// Sets the function that creates the tables of the artifact.
    #[must_use]
    pub fn prepare(mut self, prepare: impl Fn(&mut TestDatabase) + Send + Sync + 'static) -> Self {
        self.prepare = Some(Arc::new(prepare));
        self
    }

    /// Returns all items of a reader.
    ///
    /// # Errors
    /// The failure of the reader.
    #[track_caller]
    pub fn read<T: Clone + Send + 'static>(
        &self,
        reader: impl Fn() -> LoadedArtifact + Send + Sync + 'static,
    ) -> Result<Vec<T>, ArtifactFailure> {
        let (written, step) = self.reading(Arc::new(reader), Arc::new(AtomicUsize::new(usize::MAX)));
        result(&step.launch(self)).map(|()| written.items())
    }

    /// Asserts that a reader returns these items, and, opened at the checkpoint after each of them, exactly the remaining ones.
    ///
    /// The time grows with the square of the number of items; some tens are enough.
    ///
    /// # Panics
    /// If it does not; the message has the number of items before the reopening.
    #[track_caller]
    pub fn assert_restartable<T: Clone + PartialEq + fmt::Debug + Send + 'static>(
        &self,
        reader: impl Fn() -> LoadedArtifact + Send + Sync + 'static,
        items: impl IntoIterator<Item = T>,
    ) {
        let (reader, items): (Make, Vec<T>) = (Arc::new(reader), items.into_iter().collect());
        let of_reader = Arc::clone(&reader);
        let all: Vec<T> = self
            .read(move || of_reader())
            .unwrap_or_else(|failure| panic!("{failure}"));
        assert!(all == items, "the reader returned {all:?} instead of {items:?}");
        for count in 0..items.len() {
            let fails_after = Arc::new(AtomicUsize::new(count));
            let (written, step) = self.reading::<T>(Arc::clone(&reader), Arc::clone(&fails_after));
            step.launch(self);
            fails_after.store(usize::MAX, Ordering::Relaxed);
            let second = step.test.launch();
            let written = written.items();
            let after = written.get(count..).unwrap_or_default();
            assert!(
                after == &items[count..],
                "opened at the checkpoint after {count} of {} items, the reader returned {after:?} instead of {:?}\n{second}",
                items.len(),
                &items[count..]
            );
            result(&second).unwrap_or_else(|failure| panic!("{failure}"));
        }
    }

    /// Returns the results of a processor, without filtered items.
    ///
    /// # Errors
    /// The failure of the processor.
    #[track_caller]
    pub fn process<I, O>(
        &self,
        processor: impl Fn() -> LoadedArtifact + Send + Sync + 'static,
        items: impl IntoIterator<Item = I>,
    ) -> Result<Vec<O>, ArtifactFailure>
    where
        I: Clone + Send + Sync + 'static,
        O: Clone + Send + 'static,
    {
        let written = WrittenItems::new();
        let step = self.one_step(Target::Processor, 1_000, |test| {
            test.reader(READER, items)
                .artifact(PROCESSOR, processor)
                .writer(WRITER, &written)
        });
        result(&step.launch(self)).map(|()| written.items())
    }

    /// Writes items, `commit_interval` in each transaction, and returns the database.
    ///
    /// # Errors
    /// The failure of the writer.
    #[track_caller]
    pub fn write<T: Clone + Send + Sync + 'static>(
        &self,
        writer: impl Fn() -> LoadedArtifact + Send + Sync + 'static,
        items: impl IntoIterator<Item = T>,
        commit_interval: u32,
    ) -> Result<TestDatabase, ArtifactFailure> {
        let step = self.one_step(Target::Writer, commit_interval, |test| {
            test.reader(READER, items)
                .processor(PROCESSOR, |item: &T| Ok::<_, BatchError>(Some(item.clone())))
                .artifact(WRITER, writer)
        });
        let run = step.launch(self);
        result(&run).map(|()| run.database())
    }

    /// Returns a step that reads items and fails after some of them.
    #[track_caller]
    fn reading<T: Clone + Send + 'static>(
        &self,
        reader: Make,
        fails_after: Arc<AtomicUsize>,
    ) -> (WrittenItems<T>, OneStep) {
        let written = WrittenItems::new();
        let step = self.one_step(Target::Reader, 1, |test| {
            let written = written.clone();
            test.artifact(READER, move || reader())
                .processor(PROCESSOR, |item: &T| Ok::<_, BatchError>(Some(item.clone())))
                .artifact(WRITER, move || {
                    let double = WriterDouble::new(written.clone());
                    LoadedArtifact::item_writer(double.failing_after(Arc::clone(&fails_after)))
                })
        });
        (written, step)
    }

    /// Returns a job of one step. The properties are for the artifact `tested`.
    #[track_caller]
    fn one_step(
        &self,
        tested: Target,
        commit_interval: u32,
        artifacts: impl FnOnce(JobTest) -> JobTest,
    ) -> OneStep {
        let mut chunk = ChunkBuilder::new(READER, PROCESSOR, WRITER).commit_interval(commit_interval);
        for (name, value) in &self.properties {
            chunk = chunk.property_for(tested, name, value);
        }
        let mut step = StepBuilder::chunk("step", chunk);
        for (name, value) in &self.step_properties {
            step = step.property(name, value);
        }
        if self.before_step.is_some() {
            step = step.listener(ArtifactBuilder::new(BEFORE));
        }
        let mut job = JobBuilder::new("artifact").element(step);
        for (name, value) in &self.job_properties {
            job = job.property(name, value);
        }
        let made = tempfile::tempdir().and_then(|folder| {
            let file = folder.path().join("artifact.xml");
            fs::write(&file, job.to_xml())?;
            Ok((file, folder))
        });
        let (file, folder) = made.unwrap_or_else(|error| panic!("cannot write the job: {error}"));
        let mut test = artifacts(JobTest::new(file).in_memory());
        if let Some(call) = self.before_step.clone() {
            test = test.artifact(BEFORE, move || {
                LoadedArtifact::step_listener(Before {
                    step: None,
                    call: Some(Arc::clone(&call)),
                })
            });
        }
        OneStep {
            test,
            _folder: folder,
        }
    }
}

impl OneStep {
    #[track_caller]
    fn launch(&self, of: &ArtifactTest) -> JobRun {
        if let Some(prepare) = &of.prepare {
            prepare(&mut TestDatabase::of(&self.test.operator()));
        }
        // A property that the artifact does not have is a warning in a job, and a mistake here.
        let warnings = self.test.operator().check("artifact", JobParameters::new());
        let mut unknown = warnings
            .iter()
            .flatten()
            .filter(|warning| warning.code == UNKNOWN_PROPERTY);
        if let Some(unknown) = unknown.next() {
            panic!("{}", unknown.message);
        }
        self.test.launch()
    }
}

/// Asserts that a reader returns these items, and, opened at the checkpoint after each of them, exactly the remaining ones. See
/// [`ArtifactTest::assert_restartable`].
///
/// # Panics
/// If it does not; the message has the number of items before the reopening.
#[track_caller]
pub fn reader_is_restartable<T: Clone + PartialEq + fmt::Debug + Send + 'static>(
    reader: impl Fn() -> LoadedArtifact + Send + Sync + 'static,
    items: impl IntoIterator<Item = T>,
) {
    ArtifactTest::new().assert_restartable(reader, items);
}

fn result(run: &JobRun) -> Result<(), ArtifactFailure> {
    let execution = run.execution();
    match execution.status {
        batch_runtime::BatchStatus::Completed => Ok(()),
        _ => Err(ArtifactFailure {
            message: execution.exit_message.clone(),
            execution: run.to_string(),
        }),
    }
}
