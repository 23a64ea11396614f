//! Jobs that one program runs, and the other stops or rejects.

use batch_runtime::{BatchStatus, JobExecutionId, JobOperatorError};
use batch_tests::database::Database;
use batch_tests::process::text;
use serde_json::json;

use super::artifacts::until_waiting;
use super::shared::{On, Shared, TablesOf, parameters, shown_parameters};
use super::spring::Version;

/// An execution is stopped from the other program, by STATUS and VERSION; meanwhile neither program can run the
/// instance again; and each resumes the executions that the other stopped.
///
/// Spec: REPO-14, REPO-15, REPO-17, OP-17, OP-34, ID-06
#[test]
fn each_program_stops_jobs_of_the_other() {
    // In Spring Batch 5 and 6 the waiting step holds the write lock of SQLite for almost all the time.
    let waits_outside =
        |(on, _): &(On, TablesOf)| on.version == Version::V4 || on.database != Database::Sqlite;
    for (on, tables) in On::with_tables().filter(waits_outside) {
        let mut shared = Shared::new(on, tables);
        let run = json!(["run", "waits", shown_parameters(&parameters(1))]);

        // In Spring Batch, stopped by this runtime's command line.
        shared.spring.send(&shared.place, run.clone());
        assert_eq!(shared.spring.said(), "waiting 1", "{on:?}");
        let refused = shared.operator.launch("waits", parameters(1)).unwrap_err();
        assert!(
            matches!(refused, JobOperatorError::JobExecutionAlreadyRunning { .. }),
            "{on:?}: {refused}"
        );
        let stopped = shared.command(&["stop", "1"]);
        assert!(stopped.status.success(), "{}", text(&stopped.stderr));
        let ended = shared.spring.answer().unwrap();
        assert_eq!(ended["status"], "STOPPED", "{on:?}");
        let seen = &shared.seen_here()[0];
        assert_eq!(seen["status"], "STOPPED", "{on:?}");
        assert_eq!(seen["exitStatus"], "STOPPED", "{on:?}");

        // In this runtime, the same instance, stopped by Spring Batch.
        let here = shared.operator.launch("waits", parameters(1)).unwrap();
        until_waiting(&shared.name);
        let refused = shared.spring.ask(&shared.place, run.clone()).unwrap_err();
        assert!(
            refused.starts_with("JobExecutionAlreadyRunningException"),
            "{on:?}: {refused}"
        );
        match shared.spring.ask(&shared.place, json!(["stop", here.0])) {
            Ok(is_stopped) => assert_eq!(is_stopped, true, "{on:?}"),
            // Spring Batch 6 then ends the steps, too, unless their runner has obeyed in between and has ended them.
            Err(problem) => assert!(
                on.version == Version::V6 && problem.starts_with("OptimisticLockingFailureException"),
                "{on:?}: {problem}"
            ),
        }
        match shared.operator.wait(here) {
            Ok(ended) => assert_eq!(ended.status, BatchStatus::Stopped, "{on:?}"),
            // Spring Batch 6 records the end at once: the runner loses its execution, and writes nothing more.
            Err(lost) => assert!(
                on.version == Version::V6 && matches!(lost, JobOperatorError::JobExecutionLost { .. }),
                "{on:?}: {lost}"
            ),
        }

        // In Spring Batch again.
        shared.spring.send(&shared.place, json!(["restart", here.0]));
        assert_eq!(shared.spring.said(), "waiting 3", "{on:?}");
        assert!(shared.operator.stop(JobExecutionId(3)).unwrap(), "{on:?}");
        assert_eq!(shared.spring.answer().unwrap()["status"], "STOPPED", "{on:?}");
        let seen = shared.seen_here();
        assert!(
            seen.iter()
                .all(|one| one["instance"] == 1 && one["status"] == "STOPPED"),
            "{on:?}"
        );
        assert_eq!(seen.len(), 3, "{on:?}");
    }
}

/// A killed JVM leaves its execution STARTED, and its death cannot be detected. `recover --declare-dead` closes it
/// without SQL; then either program resumes.
///
/// Spec: OP-34, OP-35, REPO-14, REPO-15
#[test]
fn an_instance_of_a_killed_jvm_is_resumed() {
    for on in On::ALL {
        let mut shared = Shared::new(on, TablesOf::SpringBatch);
        let run = json!(["run", "waits", shown_parameters(&parameters(1))]);
        shared.spring.send(&shared.place, run.clone());
        assert_eq!(shared.spring.said(), "waiting 1", "{on:?}");
        shared.spring.dies("UTC");

        let refused = shared.spring.ask(&shared.place, run.clone()).unwrap_err();
        assert!(refused.contains("already running"), "{on:?}: {refused}");
        let recovered = shared.command(&["recover"]);
        assert_eq!(text(&recovered.stdout), "no execution is dead\n", "{on:?}");
        let declared = shared.command(&["recover", "--declare-dead", "1"]);
        assert!(declared.status.success(), "{}", text(&declared.stderr));
        let closed = &shared.seen_here()[0];
        assert_eq!(closed["status"], "FAILED", "{on:?}");
        assert_eq!(closed["exitStatus"], "CRASHED", "{on:?}");
        let again = shared.command(&["recover", "--declare-dead", "1"]);
        assert!(!again.status.success(), "{}", text(&again.stdout));

        // In Spring Batch, with the new JVM; and then in this runtime.
        shared.spring.send(&shared.place, run);
        assert_eq!(shared.spring.said(), "waiting 2", "{on:?}");
        assert!(shared.operator.stop(JobExecutionId(2)).unwrap(), "{on:?}");
        assert_eq!(shared.spring.answer().unwrap()["status"], "STOPPED", "{on:?}");
        let here = shared.operator.launch("waits", parameters(1)).unwrap();
        until_waiting(&shared.name);
        let refused = shared.command(&["recover", "--declare-dead", "3"]);
        let refused = text(&refused.stderr);
        assert!(refused.contains("running"), "{on:?}: {refused}");
        assert!(shared.operator.stop(here).unwrap(), "{on:?}");
        assert_eq!(
            shared.operator.wait(here).unwrap().status,
            BatchStatus::Stopped,
            "{on:?}"
        );
    }
}
