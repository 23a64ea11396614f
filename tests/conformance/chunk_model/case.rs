//! Cases: a configuration of a chunk step, and the items that fail, with place and error.

use proptest::prelude::*;

pub(crate) use crate::faults::{Oops as Class, RULES};

impl Class {
    pub(crate) fn is_skippable(self) -> bool {
        matches!(self, Self::Skip | Self::Both | Self::SoftSkip)
    }
    pub(crate) fn is_retryable(self) -> bool {
        matches!(self, Self::Retry | Self::Both | Self::Soft | Self::SoftSkip)
    }
    pub(crate) fn has_no_rollback(self) -> bool {
        matches!(self, Self::Soft | Self::SoftSkip | Self::NoRollback)
    }
}

/// The artifact that throws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Read,
    Process,
    Write,
    OnRetryException,
    OnRetryItem,
}

/// An item that fails.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) item: u64,
    pub(crate) phase: Phase,
    pub(crate) class: Class,
    /// The number of times it is thrown for the item; from the writer, for the item alone or when it names the item.
    pub(crate) times: u32,
    /// The number of times the item is written before that.
    pub(crate) after: u32,
    /// The writer names the item; the reader moves on to the next one.
    pub(crate) named: bool,
}

impl Fault {
    fn thrown(&self) -> Thrown {
        let Self { class, named, .. } = *self;
        Thrown { class, named }
    }
}

/// A configuration and its faults.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) items: u64,
    pub(crate) commit_interval: u32,
    pub(crate) chunk_size: u32,
    /// The number of threads that process.
    pub(crate) processors: u32,
    /// The next chunk is read while one is written.
    pub(crate) pipelined: bool,
    /// The custom policy, with an algorithm that counts in the same way.
    pub(crate) custom: bool,
    pub(crate) buffered: bool,
    pub(crate) transactional: bool,
    pub(crate) buffer_reads: bool,
    pub(crate) listened: bool,
    pub(crate) skip_limit: Option<u32>,
    pub(crate) retry_limit: Option<u32>,
    /// Every item with a multiple of this number is filtered.
    pub(crate) filter: u64,
    pub(crate) faults: Vec<Fault>,
}

impl Case {
    /// Items per call of the writer. Spec: D-04
    pub(crate) fn write_batch(&self) -> usize {
        if self.buffered && self.buffer_reads {
            usize::try_from(self.chunk_size).expect("small")
        } else {
            1
        }
    }
}

/// The faults of a running case, as reader, processor, writer and retry listeners see them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan(Vec<Fault>);

/// The error of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thrown {
    pub(crate) class: Class,
    pub(crate) named: bool,
}

impl Plan {
    pub(crate) fn new(case: &Case) -> Self {
        Self(case.faults.clone())
    }

    /// Returns the error of a call about one item.
    pub(crate) fn throws(&mut self, phase: Phase, item: u64) -> Option<Thrown> {
        let is_due = |fault: &&mut Fault| fault.phase == phase && fault.item == item && fault.times > 0;
        let fault = self.0.iter_mut().find(is_due)?;
        fault.times -= 1;
        Some(fault.thrown())
    }

    /// Returns the first item of a call of the writer that fails, with its place in the list.
    pub(crate) fn write(&mut self, list: &[u64]) -> Option<(Thrown, usize)> {
        for (place, item) in list.iter().enumerate() {
            let is_due = |fault: &&mut Fault| {
                let fails = fault.phase == Phase::Write && fault.item == *item;
                fails && fault.times > 0 && fault.after == 0
            };
            if let Some(fault) = self.0.iter_mut().find(is_due) {
                // An item that fails in a list without being named fails until it is found.
                if fault.named || list.len() == 1 {
                    fault.times -= 1;
                }
                return Some((fault.thrown(), place));
            }
        }
        for fault in &mut self.0 {
            if fault.phase == Phase::Write && list.contains(&fault.item) {
                fault.after = fault.after.saturating_sub(1);
            }
        }
        None
    }
}

fn class() -> impl Strategy<Value = Class> {
    prop_oneof![
        6 => Just(Class::Skip),
        6 => Just(Class::Retry),
        6 => Just(Class::Both),
        4 => Just(Class::Soft),
        4 => Just(Class::SoftSkip),
        1 => Just(Class::NoRollback),
        1 => Just(Class::Fatal),
        1 => Just(Class::Panic),
    ]
}

fn fault(items: u64) -> impl Strategy<Value = Fault> {
    let phase = prop_oneof![
        2 => Just(Phase::Read),
        2 => Just(Phase::Process),
        8 => Just(Phase::Write),
        1 => Just(Phase::OnRetryException),
        1 => Just(Phase::OnRetryItem),
    ];
    let times = prop_oneof![4 => 1..=3u32, 2 => Just(1_000_000)];
    let after = prop_oneof![5 => Just(0), 1 => 1..=2u32];
    (1..=items, phase, class(), times, after, any::<bool>()).prop_map(
        |(item, phase, class, times, after, named)| {
            let is_write = phase == Phase::Write;
            Fault {
                item,
                phase,
                class,
                // An error that is not skipped must not repeat without end.
                times: if is_write { times } else { times.min(3) },
                after: if is_write { after } else { 0 },
                named,
            }
        },
    )
}

/// Generates any case.
pub(crate) fn case() -> impl Strategy<Value = Case> {
    let limit = |most: u32| prop_oneof![1 => Just(None), 3 => (0..=most).prop_map(Some)];
    let sizes = (0..=9u64, 1..=6u32, 1..=6u32, 2..=12u64);
    let mostly = || prop::bool::weighted(0.8);
    let flags = (any::<bool>(), mostly(), any::<bool>(), mostly(), any::<bool>());
    let threads = (prop_oneof![2 => Just(1), 1 => 2..=4u32], any::<bool>());
    (sizes, flags, limit(5), limit(6), threads).prop_flat_map(
        |(sizes, flags, skip_limit, retry_limit, (processors, pipelined))| {
            let (items, commit_interval, chunk_size, filter) = sizes;
            let (custom, buffered, transactional, buffer_reads, listened) = flags;
            let processors = if custom { 1 } else { processors };
            let pipelined = pipelined && !custom && buffer_reads;
            let is_ahead = processors > 1 || pipelined;
            prop::collection::vec(fault(items.max(1)), 0..=5).prop_map(move |mut faults| {
                // The number of writes of an item before a named one in the same search depends on the search algorithm.
                if transactional && faults.iter().any(|fault| fault.after > 0) {
                    faults.iter_mut().for_each(|fault| fault.named = false);
                }
                // Items after one that fails the step were read and processed too: what they throw must not depend on it.
                let of_input = |fault: &&mut Fault| matches!(fault.phase, Phase::Read | Phase::Process);
                for fault in faults.iter_mut().filter(|fault| is_ahead && of_input(fault)) {
                    (fault.times, fault.named) = (1_000_000, true);
                }
                Case {
                    items,
                    commit_interval,
                    chunk_size,
                    processors,
                    pipelined,
                    custom,
                    buffered,
                    transactional,
                    buffer_reads,
                    listened,
                    skip_limit,
                    retry_limit,
                    filter,
                    faults,
                }
            })
        },
    )
}
