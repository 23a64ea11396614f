//! A case: a job as a model, and the faults of its launches. It is stored as JSON, which replays it.

use batch_runtime::repository::RepositoryLayout;
use serde::{Deserialize, Serialize};

/// A job and its faults.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Case {
    /// The seed that it was made of; 0 for one that was reduced.
    pub(crate) seed: u64,
    /// The layout of the repository's tables.
    #[serde(default)]
    pub(crate) layout: RepositoryLayout,
    pub(crate) elements: Vec<Element>,
    /// The faults of the first launches, one for each. Later launches are undisturbed.
    pub(crate) faults: Vec<Fault>,
}

/// An element of a job or flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Element {
    Chunk(Chunk),
    Batchlet(Batchlet),
    Split {
        id: String,
        flows: Vec<Vec<Element>>,
    },
    /// A flow, run once for each part.
    Flow {
        id: String,
        parts: u32,
        logical_tx: bool,
        elements: Vec<Element>,
    },
    /// A decision, and the step that it passes over or not.
    Decision {
        id: String,
        passes_over: bool,
        step: Chunk,
    },
}

/// A chunk step. The items of a part are numbered from `part * PART`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Chunk {
    pub(crate) id: String,
    /// For each part.
    pub(crate) items: u32,
    pub(crate) interval: u32,
    pub(crate) chunk_size: u32,
    /// 0 for a step without partitions.
    pub(crate) parts: u32,
    pub(crate) logical_tx: bool,
    pub(crate) pipeline: bool,
    pub(crate) processors: u32,
    /// Every item with a multiple of this number is filtered.
    pub(crate) filter: u32,
    /// The items, counted within their part, that cannot be read, processed or written, and are skipped.
    pub(crate) bad_reads: Vec<u32>,
    pub(crate) bad_results: Vec<u32>,
    pub(crate) bad_writes: Vec<u32>,
    /// The items that each process fails to write once, and retries.
    pub(crate) transient: Vec<u32>,
    /// The item that fails the first execution.
    pub(crate) fails_at: Option<u32>,
}

/// The distance of the numbers of two parts.
pub(crate) const PART: u32 = 1_000;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Batchlet {
    pub(crate) id: String,
    /// 0 for a step without partitions.
    pub(crate) parts: u32,
    /// Whether the first execution fails.
    pub(crate) fails: bool,
}

/// The fault of a launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    pub(crate) time: FaultTime,
    /// The process is also killed, this number of microseconds after the fault.
    #[serde(default)]
    pub(crate) killed_after: Option<u64>,
}

/// The time of a fault.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum FaultTime {
    /// At this call of an artifact, which waits until the fault has happened.
    Call(u32),
    /// At this time after the start of the process, in microseconds.
    Micros(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FaultKind {
    /// SIGKILL.
    Kill,
    /// SIGSTOP, other processes that launch the job for longer than the lease, SIGCONT.
    Freeze,
    /// The wall clock of the process, and of another that launches the job, steps by this number of seconds.
    Clock(i64),
    /// All connections to the server are cut.
    Cut,
    /// The server crashes and is started again.
    ServerCrash,
    /// No file can grow.
    FullDisk,
    /// The lock files of the owners are removed, and another process launches the job.
    NoLocks,
    /// This many processes run `launch`, `restart`, `stop`, `recover` and `purge` at the same time.
    Race(u32),
    /// A stop request.
    Stop,
    /// Commands that must not touch a running execution.
    Abandon,
    Purge,
    Recover,
    Restart,
    /// Before the launch: the context of an interrupted step is deleted, emptied or damaged; it is restored afterwards.
    NoContext,
    EmptyContext,
    DamagedContext,
    /// Before the launch: nothing in the folder can be written.
    ReadOnly,
}

impl FaultKind {
    /// Returns its name, without its size.
    pub(crate) fn name(self) -> String {
        let name = format!("{self:?}");
        name.split('(').next().unwrap_or_default().to_owned()
    }

    /// All kinds, with sizes to choose from.
    pub(crate) const ALL: [Self; 21] = [
        Self::Kill,
        Self::Kill,
        Self::Kill,
        Self::Freeze,
        Self::Clock(3_600),
        Self::Clock(-3_600),
        Self::Cut,
        Self::ServerCrash,
        Self::FullDisk,
        Self::NoLocks,
        Self::Race(2),
        Self::Race(8),
        Self::Stop,
        Self::Abandon,
        Self::Purge,
        Self::Recover,
        Self::Restart,
        Self::NoContext,
        Self::EmptyContext,
        Self::DamagedContext,
        Self::ReadOnly,
    ];
}

impl Case {
    /// Returns the chunk steps that run, each with its parts, or the parts of the flow around it.
    pub(crate) fn chunks(&self) -> Vec<(&Chunk, Vec<u32>)> {
        let steps = self.steps().into_iter();
        let chunks = steps.filter_map(|step| match step.work {
            Work::Chunk(chunk) => Some((chunk, step.parts)),
            Work::Batchlet(_) => None,
        });
        chunks.collect()
    }

    /// Returns the ids of the batchlets, each with its parts.
    pub(crate) fn tasks(&self) -> Vec<(&str, Vec<u32>)> {
        let steps = self.steps().into_iter();
        let tasks = steps.filter_map(|step| match step.work {
            Work::Batchlet(task) => Some((task.id.as_str(), step.parts)),
            Work::Chunk(_) => None,
        });
        tasks.collect()
    }

    /// Returns the number of planned failures.
    pub(crate) fn planned_failures(&self) -> usize {
        let failures = self.steps().into_iter().map(|step| {
            let fails = match step.work {
                Work::Chunk(chunk) => chunk.fails_at.is_some(),
                Work::Batchlet(task) => task.fails,
            };
            usize::from(fails) * step.parts.len()
        });
        failures.sum()
    }

    /// Returns whether a logical transaction may undo the work of a step, which then starts from the beginning.
    pub(crate) fn is_undone(&self, id: &str) -> bool {
        let is_it = |step: &Step<'_>| matches!(step.work, Work::Chunk(chunk) if chunk.id == id);
        self.steps().iter().any(|step| step.is_undone && is_it(step))
    }

    fn steps(&self) -> Vec<Step<'_>> {
        let mut found = Vec::new();
        collect(&self.elements, (&[0], false), &mut found);
        found
    }
}

/// A step that runs.
struct Step<'c> {
    work: Work<'c>,
    /// Its partitions, or the parts of the flow around it.
    parts: Vec<u32>,
    /// Whether a logical transaction may undo its work.
    is_undone: bool,
}

enum Work<'c> {
    Chunk(&'c Chunk),
    Batchlet(&'c Batchlet),
}

/// Collects the steps; `around` are the parts of the flow around them, and whether that has a logical transaction.
fn collect<'c>(elements: &'c [Element], around: (&[u32], bool), found: &mut Vec<Step<'c>>) {
    let (parts_around, undone_around) = around;
    let parts_of = |own: u32| match own {
        0 => parts_around.to_vec(),
        own => (1..=own).collect(),
    };
    for element in elements {
        match element {
            Element::Chunk(chunk)
            | Element::Decision {
                passes_over: false,
                step: chunk,
                ..
            } => found.push(Step {
                work: Work::Chunk(chunk),
                parts: parts_of(chunk.parts),
                is_undone: undone_around || chunk.logical_tx,
            }),
            Element::Batchlet(task) => found.push(Step {
                work: Work::Batchlet(task),
                parts: parts_of(task.parts),
                is_undone: undone_around,
            }),
            Element::Split { flows, .. } => flows.iter().for_each(|flow| collect(flow, around, found)),
            Element::Flow {
                parts,
                logical_tx,
                elements,
                ..
            } => {
                collect(elements, (&parts_of(*parts), undone_around || *logical_tx), found);
            }
            Element::Decision {
                passes_over: true, ..
            } => {}
        }
    }
}
