//! A process that runs many jobs keeps the threads and the open files of a few.

use std::fs;
use std::sync::{Condvar, Mutex};

use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use batch_tests::fleet::until;
use batch_tests::own_process;
use batch_tests::stage::Stage;

use crate::artifacts::{assert_starts, job, restart_with};
use crate::parallel::partition_of;
use crate::s5_5_subjobs::BOTH;
use crate::sequence::{flow, split};

/// Waits until it is cancelled, if the parameter `waits` is true.
#[derive(BatchArtifact)]
struct Patient {
    #[batch_property(value = "false")]
    waits: bool,
    is_cancelled: Mutex<bool>,
    changed: Condvar,
}

#[batchlet]
impl Patient {
    #[process]
    fn process(&self) {
        let is_cancelled = self.is_cancelled.lock().unwrap();
        let wait = |is_cancelled: &mut bool| self.waits && !*is_cancelled;
        drop(self.changed.wait_while(is_cancelled, wait).unwrap());
    }
    #[cancel]
    fn cancel(&self) {
        *self.is_cancelled.lock().unwrap() = true;
        self.changed.notify_all();
    }
}

/// Returns a job with every element that starts threads: flows, partitions, processors of a chunk, time-outs.
fn with_all_threads() -> String {
    let limits = "<properties><property name=\"batch.step.timeout\" value=\"600\"/>\
                  <property name=\"batch.step.heartbeat\" value=\"600\"/></properties>";
    let chunk = "<chunk reader=\"Numbers\" processor=\"Labels\" writer=\"Lines\" commit-interval=\"2\">\
                 <properties><property name=\"batch.chunk.processors\" value=\"2\"/></properties></chunk>";
    let copy = format!("<step id=\"copy\">{limits}{chunk}</step>");
    let task = format!("<step id=\"task\">{limits}<batchlet ref=\"Task\"/></step>");
    let parts = format!(
        "<step id=\"parts\" next=\"last\">{limits}<batchlet ref=\"Part\"/>{}</step>",
        partition_of(&format!("instances=\"3\"|{BOTH}"))
    );
    let flows = flow("left", "", &copy) + &flow("right", "", &task);
    let last = format!("<step id=\"last\">{limits}<batchlet ref=\"Patient\"/></step>");
    job(&format!(
        "{}{parts}{last}",
        split("both", "next=\"parts\"", &flows)
    ))
}

/// Runs the job to an end, which depends on `number`: it completes, a writer, a partition or an artifact's panic fails it, or
/// it is stopped; after that it is restarted.
fn run(stage: &Stage, number: usize) {
    let failures = [
        ("waits", "false"),
        ("fail", "write n3 n4"),
        ("fail", "process nameless"),
        ("panic", "open reader at the beginning"),
        ("waits", "true"),
    ];
    let (name, value) = failures[number % failures.len()];
    let run = number.to_string();
    let operator = stage.operator();
    let parameters = [("run", run.as_str()), (name, value)];
    let execution = operator.start("job", parameters).unwrap();
    if value == "true" {
        operator.stop(execution).unwrap();
    }
    let ended = operator.wait(execution).unwrap().status;
    let expected = match value {
        "false" => BatchStatus::Completed,
        "true" => BatchStatus::Stopped,
        _ => BatchStatus::Failed,
    };
    assert_eq!(ended, expected, "{}", stage.tree(execution));
    if ended != BatchStatus::Completed {
        let again = restart_with(stage, execution, [("run", run.as_str()), (name, "false")]);
        assert_starts(&stage.tree(again), "job job COMPLETED");
    }
    stage.log();
}

/// Returns the number of entries of this folder of `/proc/self`: `task` for threads, `fd` for open files.
fn count(of: &str) -> usize {
    fs::read_dir(format!("/proc/self/{of}")).unwrap().count()
}

/// After a hundred jobs that completed, failed, panicked or were stopped, and their restarts, a process has as many threads as after
/// ten, and as many open files, apart from the files of connections that the pool has opened for more concurrent requests.
///
/// Spec: OP-38
#[test]
fn a_process_that_runs_many_jobs_does_not_grow() {
    // The database, its write-ahead log and the memory of that.
    const OF_CONNECTIONS: usize = 3 * 3;
    let folder = tempfile::tempdir().unwrap();
    own_process::run(
        "resources::a_process_that_runs_many_jobs_does_not_grow",
        folder.path(),
        || {
            let stage = Stage::new(&with_all_threads());
            (0..10).for_each(|number| run(&stage, number));
            let (threads, files) = (count("task"), count("fd"));
            (10..100).for_each(|number| run(&stage, number));
            until("the threads of the jobs end", || {
                (count("task") <= threads).then_some(())
            });
            until("the files of the jobs are closed", || {
                (count("fd") <= files + OF_CONNECTIONS).then_some(())
            });
        },
    );
}
