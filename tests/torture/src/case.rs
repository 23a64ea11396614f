//! A case: a job as a model, and the faults of its launches. It is stored as JSON, which replays it.

use serde::{Deserialize, Serialize};

/// A job and its faults.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Case {
    /// The seed that it was made of; 0 for one that was reduced.
    pub(crate) seed: u64,
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
    /// The item at which the first execution fails.
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
    pub(crate) moment: Moment,
}

/// The time of a fault.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Moment {
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
    /// So many processes launch the job at the same moment.
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
    /// Returns all chunk steps that run, each with the parts of the elements around it.
    pub(crate) fn chunks(&self) -> Vec<(&Chunk, Vec<u32>)> {
        let mut found = Vec::new();
        collect(&self.elements, &[0], &mut found);
        found
    }

    /// Returns the ids of the batchlets, each with its parts.
    pub(crate) fn tasks(&self) -> Vec<(&str, Vec<u32>)> {
        fn of<'c>(elements: &'c [Element], parts: &[u32], found: &mut Vec<(&'c str, Vec<u32>)>) {
            for element in elements {
                match element {
                    Element::Batchlet(task) if task.parts > 0 => {
                        found.push((&task.id, (1..=task.parts).collect()))
                    }
                    Element::Batchlet(task) => found.push((&task.id, parts.to_vec())),
                    Element::Split { flows, .. } => flows.iter().for_each(|flow| of(flow, parts, found)),
                    Element::Flow { parts, elements, .. } => {
                        let parts: Vec<u32> = (1..=*parts).collect();
                        of(elements, &parts, found);
                    }
                    Element::Chunk(_) | Element::Decision { .. } => {}
                }
            }
        }
        let mut found = Vec::new();
        of(&self.elements, &[0], &mut found);
        found
    }

    /// Returns the number of planned failures.
    pub(crate) fn planned_failures(&self) -> usize {
        fn of(elements: &[Element]) -> usize {
            elements.iter().map(count).sum()
        }
        fn count(element: &Element) -> usize {
            match element {
                Element::Chunk(chunk) => usize::from(chunk.fails_at.is_some()) * chunk.parts.max(1) as usize,
                Element::Batchlet(batchlet) => usize::from(batchlet.fails) * batchlet.parts.max(1) as usize,
                Element::Split { flows, .. } => flows.iter().map(|flow| of(flow)).sum(),
                Element::Flow { parts, elements, .. } => *parts as usize * of(elements),
                Element::Decision { step, .. } => usize::from(step.fails_at.is_some()),
            }
        }
        of(&self.elements)
    }
}

/// Collects the chunk steps; `parts` are the parts of the flow around them.
fn collect<'c>(elements: &'c [Element], parts: &[u32], found: &mut Vec<(&'c Chunk, Vec<u32>)>) {
    for element in elements {
        match element {
            Element::Chunk(chunk) if chunk.parts > 0 => found.push((chunk, (1..=chunk.parts).collect())),
            Element::Chunk(chunk) => found.push((chunk, parts.to_vec())),
            Element::Batchlet(_)
            | Element::Decision {
                passes_over: true, ..
            } => {}
            Element::Split { flows, .. } => flows.iter().for_each(|flow| collect(flow, parts, found)),
            Element::Flow { parts, elements, .. } => {
                let parts: Vec<u32> = (1..=*parts).collect();
                collect(elements, &parts, found);
            }
            Element::Decision { step, .. } => found.push((step, parts.to_vec())),
        }
    }
}
