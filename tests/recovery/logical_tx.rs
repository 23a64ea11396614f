//! Deaths of the process at each step of a logical transaction.

use std::process::Stdio;
use std::thread;

use Step::*;
use batch_tests::kill::{Folder, PARTITIONS};
use batch_tests::partitions::Input;
use batch_tests::{process, sqlite};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};

/// The place where the process hangs until it is killed. The preceding step is recorded by then, and nothing after it.
#[derive(Clone, Copy)]
enum Step {
    /// The begin is recorded; in the call.
    Begin,
    /// All partitions are complete; in the call before completion.
    Completion,
    /// The commit is recorded; in the call after it.
    Commit,
    /// The rollback is recorded; in the call.
    Rollback,
    /// The rollback has returned; in the call after it.
    RolledBack,
    /// Everything was called and recorded; before the end of the step.
    End,
}

impl Step {
    /// The statement that hangs.
    fn hangs_at(self) -> String {
        let call = |name| format!("INSERT ON load_call WHEN NEW.call = '{name}'");
        match self {
            Begin => call("begin"),
            Completion => call("before completion"),
            Commit => call("COMMIT"),
            Rollback => call("rollback"),
            RolledBack => call("ROLLBACK"),
            End => "UPDATE ON BATCH_STEP_EXECUTION WHEN NEW.STEP_NAME = 'load' AND NEW.STATUS = 'COMPLETED'"
                .into(),
        }
    }

    /// Counts a row once an execution has come there.
    fn is_reached(self, execution: i64) -> String {
        let recorded = |tx: &str| {
            format!(
                "BATCH_JOB_EXECUTION_CONTEXT WHERE SHORT_CONTEXT LIKE '%tx\\\":{tx}%' AND JOB_EXECUTION_ID"
            )
        };
        let last_partition = "STEP_NAME LIKE 'load:%' AND STATUS = 'COMPLETED'";
        let evidence = match self {
            Begin => recorded("\\\"begun"),
            Completion => format!("BATCH_STEP_EXECUTION WHERE {last_partition} AND JOB_EXECUTION_ID"),
            Commit => recorded("\\\"committed"),
            Rollback => recorded("\\\"rolling_back"),
            RolledBack => "load_call WHERE call = 'rollback' AND job_execution_id".into(),
            End => recorded("null"),
        };
        let enough = if let Completion = self { 8 } else { 1 };
        format!("SELECT COUNT(*) >= {enough} AS n FROM {evidence} = {execution}")
    }
}

/// After each death the next execution makes the missing calls before anything else; committed work is not loaded
/// again.
///
/// Spec: LTX-07, LTX-08, LTX-09, LTX-16, LTX-17, LTX-18, LTX-19, LTX-22, RESTART-16, PART-30
#[test]
fn pending_calls_follow_a_death_at_each_step() {
    let folder = Folder::new();
    let input = Input::write(folder.path());
    // Creates the tables.
    launch_to_the_end(&folder, 0);
    // A trigger cannot contain an endless query, but it can read a view that does.
    let endless = "CREATE VIEW endless AS WITH RECURSIVE number(n) AS
                   (SELECT 1 UNION ALL SELECT n + 1 FROM number) SELECT COUNT(*) AS n FROM number;";
    sqlite::open(&folder.database()).batch_execute(endless).unwrap();

    let anew = "rollback, ROLLBACK, begin, before completion, COMMIT";
    let cases: [(&[Step], &[&str]); 7] = [
        (&[], &["begin, before completion, COMMIT"]),
        (&[Begin], &["", anew]),
        (&[Completion], &["begin", anew]),
        (&[Completion, Rollback], &["begin", "", anew]),
        (&[Completion, RolledBack], &["begin", "rollback", anew]),
        (&[Commit], &["begin, before completion", "COMMIT"]),
        (&[End], &["begin, before completion, COMMIT", ""]),
    ];
    for (run, (deaths, expected)) in (1..).zip(cases) {
        let first = executions(&folder) + 1;
        for step in deaths {
            launch_and_die(&folder, run, *step);
        }
        launch_to_the_end(&folder, run);
        let calls: Vec<String> = (first..=executions(&folder))
            .map(|execution| calls_of(&folder, execution))
            .collect();
        assert_eq!(calls, expected);
        input
            .verify_logical_tx(&folder.database(), run + 1)
            .unwrap_or_else(|problem| panic!("{expected:?}: {problem}"));
    }
}

fn launch_to_the_end(folder: &Folder, run: i64) {
    process::run_expecting(
        0,
        PARTITIONS.program,
        folder.path(),
        &launch(&format!("run={run}")),
    );
}

/// Kills the process when it hangs.
fn launch_and_die(folder: &Folder, run: i64, step: Step) {
    let execute = |sql: &str| sqlite::open(&folder.database()).batch_execute(sql).unwrap();
    execute(&format!(
        "CREATE TRIGGER hang BEFORE {} BEGIN SELECT n FROM endless; END",
        step.hangs_at()
    ));
    let reached = step.is_reached(executions(folder) + 1);
    let mut child = process::command(PARTITIONS.program, folder.path(), &launch(&format!("run={run}")))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while folder.count(&reached) == 0 {
        assert!(child.try_wait().unwrap().is_none(), "did not hang");
        thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    execute("DROP TRIGGER hang");
}

fn launch(run: &str) -> Vec<&str> {
    [PARTITIONS.launch, &[run]].concat()
}

fn executions(folder: &Folder) -> i64 {
    folder.count("SELECT COUNT(*) AS n FROM BATCH_JOB_EXECUTION")
}

/// The calls of the logical transaction in an execution.
fn calls_of(folder: &Folder, execution: i64) -> String {
    #[derive(QueryableByName)]
    struct Calls {
        #[diesel(sql_type = Text)]
        text: String,
    }
    let query = diesel::sql_query(
        "SELECT COALESCE(GROUP_CONCAT(call, ', '), '') AS text
         FROM (SELECT call FROM load_call WHERE job_execution_id = ? ORDER BY rowid)",
    );
    let calls: Calls = query
        .bind::<BigInt, _>(execution)
        .get_result(&mut sqlite::open(&folder.database()))
        .unwrap();
    calls.text
}
