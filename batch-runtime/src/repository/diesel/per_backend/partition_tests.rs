//! Partitions that one thread runs, one after the other.

use std::time::Duration;

use super::super::fixture::Place;
use super::tests::{StartedJob, assert_fenced, completed, open};
use crate::checkpoint::CheckpointInfo;
use crate::execution::{StepCounters, StepExecution};
use crate::repository::{ChunkCommit, EndOfStep, SideWrites, StepState, StepStore};
use crate::status::BatchStatus;

/// The end of a partition and the start of the next one are recorded together, or not at all.
// Spec: PART-33, REPO-15, D-105
#[test]
fn a_partition_begins_with_the_end_of_another_one() {
    for state in [None, Some(StepState::default())] {
        let place = Place::new();
        let repository = open(&place, Duration::from_secs(3_600));
        let mut started = StartedJob::new(&repository);
        let names = ["load:1".to_owned(), "load:2".to_owned()];
        let mut partitions = repository.create_partitions(&started.lease, &names).unwrap();
        let (mut last, mut next) = (partitions.pop().unwrap(), partitions.pop().unwrap());
        let end = |step: &mut StepExecution, next: &mut StepExecution| {
            let end = EndOfStep {
                ending: &completed(),
                next: Some(next),
            };
            repository.end_step(&started.lease, step, end, state.as_ref(), &SideWrites::default())
        };
        let stored = |step: &StepExecution| repository.step(step.id).unwrap().unwrap().0;
        started.step.counters.reads = 7;
        end(&mut started.step, &mut next).unwrap();
        for step in [&started.step, &next] {
            assert_eq!(format!("{step:?}"), format!("{:?}", stored(step)));
        }
        let statuses = [started.step.status, next.status, last.status];
        assert_eq!(
            statuses,
            [
                BatchStatus::Completed,
                BatchStatus::Started,
                BatchStatus::Starting
            ]
        );

        // The row of the one or of the other was changed meanwhile.
        for changed in ["next", "last"] {
            let (mut one, mut other) = (next.clone(), last.clone());
            match changed {
                "next" => one.version += 1,
                _ => other.version += 1,
            }
            assert_fenced(changed, end(&mut one, &mut other));
            for step in [&next, &last] {
                assert_eq!(format!("{step:?}"), format!("{:?}", stored(step)), "{changed}");
            }
        }
        end(&mut next, &mut last).unwrap();
        assert_eq!(stored(&last).status, BatchStatus::Started);
    }
}

/// The last chunk of a partition, its end and the start of the next one are recorded together, or not at all.
// Spec: PART-33, CHUNK-LOOP-12, D-107
#[test]
fn a_partition_ends_with_its_last_chunk() {
    let place = Place::new();
    let repository = open(&place, Duration::from_secs(3_600));
    let mut started = StartedJob::new(&repository);
    let names = ["load:1".to_owned(), "load:2".to_owned()];
    let mut partitions = repository.create_partitions(&started.lease, &names).unwrap();
    let mut next = partitions.pop().unwrap();
    let counters = StepCounters {
        reads: 7,
        commits: 1,
        ..StepCounters::default()
    };
    let state = StepState {
        reader: Some(CheckpointInfo::encode(&7).unwrap()),
        ..StepState::default()
    };
    let commit = |step: &mut StepExecution, next: &mut StepExecution| {
        let commit = ChunkCommit {
            counters,
            state: &state,
            side_writes: &SideWrites::default(),
            renew: None,
            end: Some(EndOfStep {
                ending: &completed(),
                next: Some(next),
            }),
        };
        repository.commit_chunk(&mut repository.begin_chunk(), step, commit)
    };
    let stored = |step: &StepExecution| repository.step(step.id).unwrap().unwrap();
    for changed in ["step", "next"] {
        let (mut one, mut other) = (started.step.clone(), next.clone());
        match changed {
            "step" => one.version += 1,
            _ => other.version += 1,
        }
        let before = [stored(&one), stored(&other)];
        assert_fenced(changed, commit(&mut one, &mut other));
        let after = [stored(&one), stored(&other)];
        assert_eq!(format!("{before:?}"), format!("{after:?}"), "{changed}");
    }
    commit(&mut started.step, &mut next).unwrap();
    for step in [&started.step, &next] {
        assert_eq!(format!("{step:?}"), format!("{:?}", stored(step).0));
    }
    let (row, kept) = stored(&started.step);
    assert_eq!(
        (row.status, row.counters, kept.reader, next.status),
        (
            BatchStatus::Completed,
            counters,
            state.reader,
            BatchStatus::Started
        )
    );
}
