//! Jobs that one program runs, and the other stops or rejects.

use batch_runtime::{BatchStatus, JobExecutionId, JobOperatorError};
use batch_tests::database::Database;
use batch_tests::process::text;
use serde_json::json;

use super::artifacts::until_waiting;
use super::shared::{Shared, TablesOf, parameters, shown_parameters};

/// An execution is stopped from the other program, by STATUS and VERSION; meanwhile neither program can run the
/// instance again; and each resumes the executions that the other stopped.
///
/// Spec: REPO-14, REPO-15, REPO-17, OP-17, OP-34, ID-06
#[test]
fn each_program_stops_jobs_of_the_other() {
    for (database, tables) in [
        (Database::Sqlite, TablesOf::SpringBatch),
        (Database::Postgres, TablesOf::Us),
        (Database::Mariadb, TablesOf::SpringBatch),
    ] {
        let mut shared = Shared::new(database, tables);
        let run = json!(["run", "waits", shown_parameters(&parameters(1))]);

        // In Spring Batch, stopped by this runtime's command line.
        shared.spring.send(&shared.place, run.clone());
        assert_eq!(shared.spring.said(), "waiting 1", "{database:?}");
        let refused = shared.operator.launch("waits", parameters(1)).unwrap_err();
        assert!(
            matches!(refused, JobOperatorError::JobExecutionAlreadyRunning { .. }),
            "{database:?}: {refused}"
        );
        let stopped = shared.command(&["stop", "1"]);
        assert!(stopped.status.success(), "{}", text(&stopped.stderr));
        let ended = shared.spring.answer().unwrap();
        assert_eq!(ended["status"], "STOPPED", "{database:?}");
        let seen = &shared.seen_here()[0];
        assert_eq!(seen["status"], "STOPPED", "{database:?}");
        assert_eq!(seen["exitStatus"], "STOPPED", "{database:?}");

        // In this runtime, the same instance, stopped by Spring Batch.
        let here = shared.operator.launch("waits", parameters(1)).unwrap();
        until_waiting(&shared.name);
        let refused = shared.spring.ask(&shared.place, run.clone()).unwrap_err();
        assert!(
            refused.starts_with("JobExecutionAlreadyRunningException"),
            "{database:?}: {refused}"
        );
        assert_eq!(shared.spring.done(&shared.place, json!(["stop", here.0])), true);
        let ended = shared.operator.wait(here).unwrap();
        assert_eq!(
            ended.status,
            BatchStatus::Stopped,
            "{database:?}: {}",
            ended.exit_message
        );

        // In Spring Batch again.
        shared.spring.send(&shared.place, json!(["restart", here.0]));
        assert_eq!(shared.spring.said(), "waiting 3", "{database:?}");
        assert!(shared.operator.stop(JobExecutionId(3)).unwrap(), "{database:?}");
        assert_eq!(
            shared.spring.answer().unwrap()["status"],
            "STOPPED",
            "{database:?}"
        );
        let seen = shared.seen_here();
        assert!(
            seen.iter()
                .all(|one| one["instance"] == 1 && one["status"] == "STOPPED"),
            "{database:?}"
        );
        assert_eq!(seen.len(), 3, "{database:?}");
    }
}

/// A killed JVM leaves its execution STARTED, and its death cannot be detected. `recover --declare-dead` closes it
/// without SQL; then either program resumes.
///
/// Spec: OP-34, OP-35, REPO-14, REPO-15
#[test]
fn an_instance_of_a_killed_jvm_is_resumed() {
    for database in Database::ALL {
        let mut shared = Shared::new(database, TablesOf::SpringBatch);
        let run = json!(["run", "waits", shown_parameters(&parameters(1))]);
        shared.spring.send(&shared.place, run.clone());
        assert_eq!(shared.spring.said(), "waiting 1", "{database:?}");
        shared.spring.dies("UTC");

        let refused = shared.spring.ask(&shared.place, run.clone()).unwrap_err();
        assert!(refused.contains("already running"), "{database:?}: {refused}");
        let recovered = shared.command(&["recover"]);
        assert_eq!(text(&recovered.stdout), "no execution is dead\n", "{database:?}");
        let declared = shared.command(&["recover", "--declare-dead", "1"]);
        assert!(declared.status.success(), "{}", text(&declared.stderr));
        let closed = &shared.seen_here()[0];
        assert_eq!(closed["status"], "FAILED", "{database:?}");
        assert_eq!(closed["exitStatus"], "CRASHED", "{database:?}");
        let again = shared.command(&["recover", "--declare-dead", "1"]);
        assert!(!again.status.success(), "{}", text(&again.stdout));

        // In Spring Batch, with the new JVM; and then in this runtime.
        shared.spring.send(&shared.place, run);
        assert_eq!(shared.spring.said(), "waiting 2", "{database:?}");
        assert!(shared.operator.stop(JobExecutionId(2)).unwrap(), "{database:?}");
        assert_eq!(
            shared.spring.answer().unwrap()["status"],
            "STOPPED",
            "{database:?}"
        );
        let here = shared.operator.launch("waits", parameters(1)).unwrap();
        until_waiting(&shared.name);
        let refused = shared.command(&["recover", "--declare-dead", "3"]);
        let refused = text(&refused.stderr);
        assert!(refused.contains("running"), "{database:?}: {refused}");
        assert!(shared.operator.stop(here).unwrap(), "{database:?}");
        assert_eq!(
            shared.operator.wait(here).unwrap().status,
            BatchStatus::Stopped,
            "{database:?}"
        );
    }
}
