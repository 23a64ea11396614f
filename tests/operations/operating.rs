//! The commands of operators: recover and abandon dead executions, find, purge and move instances, report runs, check the tables.
#![cfg(unix)]

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

use batch_tests::database::Outside;
use batch_tests::operated::{self, Operated};
use batch_tests::process::text;
use batch_tests::sqlite;
use diesel::connection::SimpleConnection;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_operated");

const WAITS: &str = r#"<job id="waits"><step id="wait"><batchlet ref="Patient"/></step></job>"#;
const ONCE: &str =
    r#"<job id="once" restartable="false"><step id="wait"><batchlet ref="Patient"/></step></job>"#;
const POISON: &str = r#"<job id="poison"><step id="load">
    <chunk reader="Numbers" processor="Poison" writer="Nowhere" commit-interval="${every}"/></step></job>"#;
const FAILS: &str = r#"<job id="fails"><step id="one"><batchlet ref="Result"/><fail on="*"/></step></job>"#;
const WORKS: &str = r#"<job id="works"><step id="one"><batchlet ref="Result"/></step></job>"#;

const CARELESS: &str = r#"<job id="careless"><step id="one"><batchlet ref="Careless"/></step></job>"#;
const COUNTS: &str = r#"<job id="counts"><step id="one">
    <properties><property name="batch.chunk.processors" value="${processors}"/></properties>
    <chunk reader="Numbers" processor="CarelessAt3" writer="Nowhere" commit-interval="10"/></step></job>"#;

pub(crate) fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let jobs = [
        ("waits", WAITS),
        ("once", ONCE),
        ("poison", POISON),
        ("fails", FAILS),
        ("works", WORKS),
        ("careless", CARELESS),
        ("counts", COUNTS),
    ];
    for (id, job) in jobs {
        fs::write(folder.path().join(format!("{id}.xml")), job).unwrap();
    }
    fs::write(folder.path().join("go"), "").unwrap();
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    operated::command(PROGRAM, folder, arguments).output().unwrap()
}

/// Returns its output, standard output first.
pub(crate) fn ends(code: i32, folder: &Path, arguments: &[&str]) -> (String, String) {
    let output = run(folder, arguments);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{out}\n{err}");
    (out, err)
}

/// Launches a job that waits, and kills its process.
pub(crate) fn leave_dead(folder: &Path, job: &str) {
    let mut process = Operated::run(PROGRAM, folder, &["launch", job]);
    process.until("waiting");
    process.signal("KILL");
    process.ends();
}

/// The ids and statuses of all executions.
fn executions(folder: &Path, filter: &[&str]) -> Vec<(i64, String)> {
    let arguments = [&["executions", "--json"], filter].concat();
    let (out, _) = ends(0, folder, &arguments);
    let all: Vec<Value> = serde_json::from_str(&out).unwrap();
    all.iter()
        .map(|one| {
            (
                one["execution"].as_i64().unwrap(),
                one["status"].as_str().unwrap().to_owned(),
            )
        })
        .collect()
}

fn named(all: &[(i64, &str)]) -> Vec<(i64, String)> {
    all.iter()
        .map(|(id, status)| (*id, (*status).to_owned()))
        .collect()
}

/// An item that kills the process may do so once more than the crash limit; then a launch is rejected, and reports
/// where the process died. `restart` starts it anyway. A new checkpoint in between resets the count.
///
/// Spec: OP-35
#[test]
fn a_process_that_dies_again_and_again_is_not_started_for_ever() {
    let folder = folder();
    let launch = ["launch", "poison", "every=10", "-note=x"];
    for _ in 0..4 {
        assert_eq!(run(folder.path(), &launch).status.signal(), Some(6), "it aborts");
    }
    let refusal = "its process died 4 times in a row without a new checkpoint, most recently in step `load` after 0 items and \
                   0 commits, which probably kills it; fix the cause, then run `restart 4` to resume from the last checkpoint, or raise the \
                   setting `crash-limit`";
    for _ in 0..2 {
        let (_, err) = ends(2, folder.path(), &launch);
        assert!(err.contains(refusal), "{err}");
    }
    let all = [(4, "FAILED"), (3, "FAILED"), (2, "FAILED"), (1, "FAILED")];
    assert_eq!(
        executions(folder.path(), &[]),
        named(&all),
        "nothing is left open"
    );
    let (shown, _) = ends(0, folder.path(), &["show", "2"]);
    assert!(
        shown.contains("\ninstance     1 (executions 1, 2, 3, 4)\n"),
        "{shown}"
    );
    // A manual restart; then the count starts again.
    assert_eq!(run(folder.path(), &["restart", "4"]).status.signal(), Some(6));
    assert_eq!(run(folder.path(), &launch).status.signal(), Some(6));
    fs::write(folder.path().join("fixed"), "").unwrap();
    ends(0, folder.path(), &launch);
}

/// An execution that makes progress between two deaths may die more often.
///
/// Spec: OP-35
#[test]
fn a_new_checkpoint_resets_the_count() {
    let folder = folder();
    for at in 1..=6 {
        let property = format!("<properties><property name=\"at\" value=\"{at}\"/></properties>");
        let poison = POISON.replace(
            "commit-interval=\"${every}\"/>",
            &format!("commit-interval=\"1\">{property}</chunk>"),
        );
        fs::write(folder.path().join("poison.xml"), poison).unwrap();
        let died = run(folder.path(), &["launch", "poison"]);
        assert_eq!(died.status.signal(), Some(6), "{at}: {}", text(&died.stderr));
    }
    // The same without a limit.
    let launch = ["launch", "poison", "other=1"];
    for _ in 0..6 {
        let died = Command::new(PROGRAM)
            .args(launch)
            .env("BATCH_CRASH_LIMIT", "0")
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert_eq!(died.status.signal(), Some(6), "{}", text(&died.stderr));
    }
}

/// `recover` resumes dead executions, closes those that were requested to stop, and reports those that it cannot resume.
///
/// Spec: OP-35, OP-17
#[test]
fn dead_executions_are_recovered() {
    let folder = folder();
    let (out, _) = ends(0, folder.path(), &["start", "works"]);
    assert!(out.contains("COMPLETED"), "{out}");
    assert_eq!(ends(0, folder.path(), &["recover"]).0, "no execution is dead\n");
    leave_dead(folder.path(), "waits");
    leave_dead(folder.path(), "once");
    // A stop was requested when its process died.
    let waits = WAITS.replace("\"waits\"", "\"stops\"");
    fs::write(folder.path().join("stops.xml"), waits).unwrap();
    leave_dead(folder.path(), "stops");
    sqlite::open(&folder.path().join("batch.db"))
        .batch_execute("UPDATE BATCH_JOB_EXECUTION SET STATUS = 'STOPPING', VERSION = VERSION + 1 WHERE JOB_EXECUTION_ID = 4")
        .unwrap();
    let (out, _) = ends(0, folder.path(), &["recover", "--dry-run"]);
    assert_eq!(
        out,
        "execution 4 of `stops` STOPPING, process dead\n\
         execution 3 of `once` STARTED, process dead\n\
         execution 2 of `waits` STARTED, process dead\n"
    );
    // The resumed execution waits again until it is stopped.
    let mut recover = Operated::run(PROGRAM, folder.path(), &["recover"]);
    recover.until_all(&[
        "error: execution 3 of `once` is not resumed: cannot restart job execution 3: it is not restartable",
        "waiting",
    ]);
    recover.signal("TERM");
    recover.until("cancelled");
    assert_eq!(recover.ends().code(), Some(1));
    let all = [
        (5, "STOPPED"),
        (4, "STOPPED"),
        (3, "STARTED"),
        (2, "FAILED"),
        (1, "COMPLETED"),
    ];
    assert_eq!(executions(folder.path(), &[]), named(&all));
    // Nothing runs under an execution that was closed.
    let open = "SELECT STEP_NAME || ' ' || E.STATUS || ' ' || S.STATUS AS text FROM BATCH_STEP_EXECUTION S
        JOIN BATCH_JOB_EXECUTION E USING (JOB_EXECUTION_ID) WHERE JOB_EXECUTION_ID = 4";
    let database = folder.path().join("batch.db");
    assert_eq!(
        Outside::Sqlite(sqlite::open(&database)).rows(open),
        ["wait STOPPED STOPPED"]
    );
    // The one that is not restartable was reported again, by the exit code too.
    let (_, err) = ends(1, folder.path(), &["recover"]);
    assert!(err.contains("execution 3 of `once` is not resumed"), "{err}");
}

/// A recovered execution has the parameters of the dead one; one signal stops all recovered executions.
///
/// Spec: OP-35, OP-06
#[test]
fn a_recovered_execution_keeps_its_parameters() {
    let folder = folder();
    for day in ["day=1", "day=2"] {
        let mut first = Operated::run(PROGRAM, folder.path(), &["launch", "waits", day, "-input=broken"]);
        first.until("waiting");
        first.signal("TERM");
        first.ends();
    }
    for (execution, input) in [("1", "-input=fixed"), ("2", "-input=other")] {
        let mut second = Operated::run(PROGRAM, folder.path(), &["restart", execution, input]);
        second.until("waiting");
        second.signal("KILL");
        second.ends();
    }
    let mut recover = Operated::run(PROGRAM, folder.path(), &["recover"]);
    recover.until("waiting");
    recover.until("waiting");
    recover.signal("TERM");
    assert_eq!(recover.ends().code(), Some(1));
    let all = [
        (6, "STOPPED"),
        (5, "STOPPED"),
        (4, "FAILED"),
        (3, "FAILED"),
        (2, "STOPPED"),
        (1, "STOPPED"),
    ];
    assert_eq!(executions(folder.path(), &[]), named(&all));
    let (out, _) = ends(0, folder.path(), &["params", "5"]);
    assert!(out.contains("input=fixed"), "{out}");
}

/// An execution of another program is not dead because this runtime has released its lease.
///
/// Spec: OP-35
#[test]
fn an_execution_of_another_program_is_not_dead() {
    let folder = folder();
    ends(1, folder.path(), &["launch", "fails"]);
    sqlite::open(&folder.path().join("batch.db"))
        .batch_execute(
            "INSERT INTO BATCH_JOB_EXECUTION
                 SELECT 2, 1, JOB_INSTANCE_ID, CREATE_TIME, START_TIME, NULL, 'STARTED', 'UNKNOWN', '', LAST_UPDATED, NULL
                 FROM BATCH_JOB_EXECUTION;
             INSERT INTO BATCH_JOB_EXECUTION_SEQ VALUES (2)",
        )
        .unwrap();
    assert_eq!(ends(0, folder.path(), &["recover"]).0, "no execution is dead\n");
    for (code, refused) in [
        (11, ["launch", "fails"]),
        (11, ["restart", "1"]),
        (2, ["abandon", "2"]),
    ] {
        let (_, err) = ends(code, folder.path(), &refused);
        assert!(err.contains("another program that keeps no lease"), "{err}");
    }
    let (out, _) = ends(1, folder.path(), &["stop", "2"]);
    assert!(
        out.contains("requested execution 2 to stop; it is still running"),
        "{out}"
    );
    let all = [(2, "STOPPING"), (1, "FAILED")];
    assert_eq!(executions(folder.path(), &[]), named(&all));
}

/// An abandoned execution cannot be resumed. A complete one is abandoned on request only.
///
/// Spec: JAK-35
#[test]
fn an_abandoned_execution_is_not_resumed() {
    let folder = folder();
    ends(1, folder.path(), &["launch", "fails"]);
    ends(0, folder.path(), &["launch", "works"]);
    let (out, _) = ends(0, folder.path(), &["abandon", "1"]);
    assert_eq!(
        out,
        "execution 1 is abandoned: its instance can no longer be resumed\n"
    );
    for again in [["launch", "fails"], ["restart", "1"]] {
        let (_, err) = ends(2, folder.path(), &again);
        assert!(
            err.contains("this instance of job `fails` was abandoned (execution 1 is ABANDONED)"),
            "{err}"
        );
    }
    let (_, err) = ends(2, folder.path(), &["abandon", "2"]);
    assert!(
        err.contains("execution 2 of job `works` is complete; pass `--completed`"),
        "{err}"
    );
    ends(0, folder.path(), &["abandon", "--completed", "2"]);
    let (_, err) = ends(2, folder.path(), &["launch", "works"]);
    assert!(err.contains("(execution 2 is ABANDONED)"), "{err}");
    let (_, err) = ends(2, folder.path(), &["abandon", "77"]);
    assert_eq!(err, "error: unknown job execution 77\n");
    let mut runs = Operated::run(PROGRAM, folder.path(), &["launch", "waits"]);
    runs.until("waiting");
    let (_, err) = ends(2, folder.path(), &["abandon", "3"]);
    assert!(
        err.starts_with("error: job execution 3 is running (owner "),
        "{err}"
    );
    runs.signal("KILL");
    runs.ends();
    // A dead one can.
    ends(0, folder.path(), &["abandon", "3"]);
    ends(2, folder.path(), &["launch", "waits"]);
    let all = [(3, "ABANDONED"), (2, "ABANDONED"), (1, "ABANDONED")];
    assert_eq!(executions(folder.path(), &[]), named(&all));
}

/// Each process dies in another step: a completed step is progress, so the limit of crashes in a row is not reached.
///
/// Spec: OP-35
#[test]
fn completed_steps_are_progress() {
    let folder = folder();
    let steps: String = (1..=6)
        .map(|step| {
            let next = if step < 6 {
                format!(" next=\"s{}\"", step + 1)
            } else {
                String::new()
            };
            format!(
                r#"<step id="s{step}"{next}><batchlet ref="DiesOnce"><properties>
                    <property name="step" value="{step}"/></properties></batchlet></step>"#
            )
        })
        .collect();
    fs::write(
        folder.path().join("dies.xml"),
        format!(r#"<job id="dies">{steps}</job>"#),
    )
    .unwrap();
    for _ in 1..=6 {
        assert_eq!(
            run(folder.path(), &["launch", "dies"]).status.code(),
            None,
            "killed"
        );
    }
    let (out, _) = ends(0, folder.path(), &["launch", "dies"]);
    assert!(out.contains("COMPLETED"), "{out}");
}

/// Executions are found by job, status and time.
#[test]
fn executions_are_found() {
    let folder = folder();
    ends(0, folder.path(), &["start", "works"]);
    ends(1, folder.path(), &["start", "fails"]);
    ends(0, folder.path(), &["start", "works"]);
    let found = |filter: &[&str]| -> Vec<i64> {
        executions(folder.path(), filter)
            .into_iter()
            .map(|(id, _)| id)
            .collect()
    };
    assert_eq!(found(&["--job", "works"]), [3, 1]);
    assert_eq!(found(&["--status", "failed"]), [2]);
    assert_eq!(
        found(&["--status", "FAILED", "--status", "COMPLETED", "--limit", "2"]),
        [3, 2]
    );
    assert_eq!(found(&["--since", "2026-01-01"]), [3, 2, 1]);
    assert_eq!(found(&["--until", "2026-01-01"]), [0_i64; 0]);
    // From a time on, and before a time.
    let (out, _) = ends(0, folder.path(), &["show", "2", "--json"]);
    let shown: Value = serde_json::from_str(&out).unwrap();
    let created = shown["created"].as_str().unwrap();
    assert_eq!(found(&["--since", created]), [3, 2]);
    assert_eq!(found(&["--until", created]), [1]);
    let (out, _) = ends(0, folder.path(), &["executions"]);
    let head = out.lines().next().unwrap();
    assert_eq!(
        head.split_whitespace().collect::<Vec<_>>(),
        [
            "EXECUTION",
            "INSTANCE",
            "JOB",
            "STATUS",
            "EXIT",
            "STATUS",
            "CREATED",
            "ENDED"
        ]
    );
    assert_eq!(
        ends(0, folder.path(), &["executions", "--job", "x"]).0,
        "no matching executions\n"
    );
    for (filter, problem) in [
        (
            ["--status", "GOOD"],
            "expected one of STARTING, STARTED, STOPPING, STOPPED, FAILED, COMPLETED, ABANDONED, UNKNOWN",
        ),
        (["--since", "yesterday"], "expected a day or a time in UTC"),
    ] {
        let arguments = [&["executions"], &filter[..]].concat();
        let (_, err) = ends(2, folder.path(), &arguments);
        assert!(err.contains(problem), "{err}");
    }
}

/// The tables: their state, their creation, and their statements.
#[test]
fn tables_are_inspected_and_created() {
    let folder = folder();
    let (out, _) = ends(1, folder.path(), &["db", "status"]);
    assert_eq!(
        out,
        "`sqlite://batch.db` has no tables; the first start creates them\n"
    );
    assert!(!folder.path().join("batch.db").exists(), "nothing was changed");
    assert_eq!(
        ends(0, folder.path(), &["db", "migrate"]).0,
        "`sqlite://batch.db` is up to date\n"
    );
    assert_eq!(
        ends(0, folder.path(), &["db", "status"]).0,
        "`sqlite://batch.db` is up to date, in the layout of Spring Batch 4.3\n"
    );
    sqlite::open(&folder.path().join("batch.db"))
        .batch_execute("DROP TABLE BATCH_JOB_INSTANCE_LEASE; DELETE FROM __diesel_schema_migrations WHERE version LIKE '%431'")
        .unwrap();
    let (out, _) = ends(1, folder.path(), &["db", "status"]);
    assert!(
        out.contains("is not up to date") && out.contains("job_instance_lease"),
        "{out}"
    );
    ends(0, folder.path(), &["start", "works"]);
    ends(0, folder.path(), &["db", "status"]);
    for (arguments, part) in [
        (&["db", "export-schema"][..], "LAST_CHECKPOINT_VERSION INTEGER"),
        (
            &[
                "db",
                "export-schema",
                "--repository",
                "sqlite://a.db?table_prefix=MY_",
            ],
            "constraint MY_JOB_EXEC_PARAMS_FK foreign key (JOB_EXECUTION_ID)\n    references MY_JOB_EXECUTION",
        ),
        (
            &["db", "export-schema", "--database", "postgresql"],
            "SEQUENCE IF NOT EXISTS BATCH_JOB_SEQ",
        ),
        (&["db", "export-schema", "--database", "mysql"], "ENGINE=InnoDB"),
        (
            &["db", "export-schema", "--upgrade-from", "2.2"],
            "ADD COLUMN JOB_CONFIGURATION_LOCATION",
        ),
    ] {
        let (out, _) = ends(0, folder.path(), arguments);
        assert!(out.contains(part), "{out}");
    }
}

/// Manually created tables are up to date once that is recorded, in each layout; nothing is created again.
///
/// Spec: REPO-08, REPO-12, REPO-87, CLI-15
#[test]
fn tables_created_by_hand_are_used() {
    for (layout, parameter) in [
        ("4.3", "KEY_NAME"),
        ("5", "PARAMETER_TYPE"),
        ("6", "PARAMETER_TYPE"),
    ] {
        let folder = folder();
        let url = format!("sqlite://batch.db?layout={layout}");
        let ends_there = |code, words: &[&str]| {
            let (out, _) = ends(code, folder.path(), &[words, &["--repository", &url]].concat());
            out
        };
        let statements = ends_there(0, &["db", "export-schema"]);
        assert!(statements.contains(parameter), "{layout}: {statements}");
        assert_eq!(
            statements.contains("BATCH_JOB_INSTANCE_SEQ"),
            layout == "6",
            "{statements}"
        );
        sqlite::open(&folder.path().join("batch.db"))
            .batch_execute(&statements)
            .unwrap();
        let out = ends_there(1, &["db", "status"]);
        assert!(
            out.contains("is not up to date; the next start, or `db migrate`, runs"),
            "{layout}: {out}"
        );
        // A command that only reads upgrades nothing.
        for command in [&["list"][..], &["executions"], &["show", "1"]] {
            let (_, err) = ends(2, folder.path(), &[command, &["--repository", &url]].concat());
            assert!(
                err.contains("are not up to date") && err.contains("`db migrate`"),
                "{err}"
            );
        }
        ends_there(1, &["db", "status"]);
        ends_there(0, &["db", "migrate"]);
        let out = ends_there(0, &["db", "status"]);
        assert!(
            out.ends_with(&format!("in the layout of Spring Batch {layout}\n")),
            "{out}"
        );
        ends_there(0, &["start", "works"]);
    }
    let (help, _) = ends(0, folder().path(), &["db", "export-schema", "--help"]);
    assert!(help.contains("until `db migrate`, or the first start"), "{help}");
}

/// Spring Batch 5 and 6 serialize contexts by Java, unless they are configured otherwise. What does not depend on them is shown, and a launch
/// warns, once, that Spring Batch will not be able to read it.
///
/// Spec: REPO-90
#[test]
fn a_repository_with_contexts_of_java_is_shown() {
    let folder = folder();
    let at = |code, words: &[&str]| {
        let url = ["--repository", "sqlite://batch.db?layout=6"];
        let (out, err) = ends(code, folder.path(), &[words, &url].concat());
        out + &err
    };
    at(0, &["start", "works"]);
    let java = "rO0ABXNyABFqYXZhLnV0aWwuSGFzaE1hcA==";
    let serialize = format!(
        "UPDATE BATCH_JOB_EXECUTION_CONTEXT SET SHORT_CONTEXT = '{java}'; UPDATE BATCH_STEP_EXECUTION_CONTEXT SET SHORT_CONTEXT = '{java}'"
    );
    sqlite::open(&folder.path().join("batch.db"))
        .batch_execute(&serialize)
        .unwrap();
    for (words, shown, not_shown) in [
        (
            &["show", "1"][..],
            "one   COMPLETED",
            "\nnot shown    the context of job execution 1",
        ),
        (&["show", "1", "--json"], "\"step\": \"one\"", "\"unreadable\": ["),
    ] {
        let text = at(0, words);
        assert!(text.contains(shown) && text.contains(not_shown), "{text}");
        assert!(text.contains("was serialized by Java"), "{text}");
    }
    at(0, &["show", "1", "--report", "report.md"]);
    let report = fs::read_to_string(folder.path().join("report.md")).unwrap();
    assert!(report.contains("was serialized by Java"), "{report}");
    assert!(report.contains("| one "), "{report}");
    let started = at(0, &["start", "works"]);
    assert_eq!(
        started
            .matches("JacksonExecutionContextStringSerializer in 6")
            .count(),
        1,
        "{started}"
    );
}

/// A report is HTML or Markdown; other files are rejected.
#[test]
fn a_run_is_reported() {
    let folder = folder();
    ends(1, folder.path(), &["start", "fails", "result=<b>"]);
    for (file, beginning, part) in [
        ("run.html", "<!doctype html>", "<div class=\"failed\""),
        ("run.md", "# fails 1 FAILED", "```mermaid\ngantt"),
    ] {
        let (out, err) = ends(0, folder.path(), &["show", "1", "--report", file]);
        assert_eq!((out, err), (String::new(), String::new()));
        let report = fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(report.starts_with(beginning) && report.contains(part), "{report}");
        assert!(report.contains("&lt;b") && !report.contains("<b>"), "{report}");
    }
    for (arguments, problem) in [
        (
            ["show", "1", "--report", "run.txt"],
            "error: cannot write a report to `run.txt`: expected a file name that ends with .html or .md\n",
        ),
        (
            ["show", "7", "--report", "run.md"],
            "error: unknown job execution 7\n",
        ),
    ] {
        assert_eq!(ends(2, folder.path(), &arguments).1, problem);
    }
    let (_, err) = ends(2, folder.path(), &["show", "1", "--report", "absent/run.md"]);
    assert!(err.starts_with("error: cannot write `absent/run.md`: "), "{err}");
}

/// Old instances are purged, and optionally archived; archived instances can be imported.
#[test]
fn old_instances_are_purged() {
    let folder = folder();
    for _ in 0..3 {
        ends(0, folder.path(), &["start", "works"]);
    }
    ends(1, folder.path(), &["start", "fails"]);
    let (_, err) = ends(2, folder.path(), &["purge"]);
    assert!(err.contains("required arguments were not provided"), "{err}");
    let (out, _) = ends(0, folder.path(), &["purge", "--older-than", "1"]);
    assert_eq!(out, "0 instances deleted\n");
    let (out, _) = ends(0, folder.path(), &["purge", "--keep", "1", "--dry-run"]);
    assert_eq!(
        out,
        "instance 1 of `works`\ninstance 2 of `works`\n2 instances would be deleted\n"
    );
    let (out, _) = ends(
        0,
        folder.path(),
        &["purge", "--keep", "1", "--archive", "old.jsonl"],
    );
    assert_eq!(out, "2 instances deleted\n");
    assert_eq!(
        executions(folder.path(), &[]),
        named(&[(4, "FAILED"), (3, "COMPLETED")])
    );
    let (line, _) = ends(0, folder.path(), &["export", "4"]);
    assert!(
        line.starts_with(r#"{"format":"batch-instance/1","instance":4,"job":"fails""#),
        "{line}"
    );
    let (out, _) = ends(0, folder.path(), &["import", "old.jsonl"]);
    assert_eq!(out, "imported as instance 5\nimported as instance 6\n");
    // The torn line of a purge that was killed is removed, because its instance is still there. Other lines are kept, and do not
    // prevent the import of the others.
    let archived = fs::read_to_string(folder.path().join("old.jsonl")).unwrap();
    let whole = archived.trim_end();
    let torn = |cut: usize| format!("a note\n{whole}\n{}", &whole[..cut]);
    for cut in [1, 30, 300] {
        fs::write(folder.path().join("torn.jsonl"), torn(cut)).unwrap();
        ends(
            0,
            folder.path(),
            &["purge", "--older-than", "1", "--archive", "torn.jsonl"],
        );
        let left = fs::read_to_string(folder.path().join("torn.jsonl")).unwrap();
        assert_eq!(left, format!("a note\n{archived}"), "{cut}");
    }
    // A whole line is not torn, and another file keeps its last line.
    for kept in [whole, "a note", r#"{"format":"other"#] {
        fs::write(folder.path().join("torn.jsonl"), kept).unwrap();
        ends(
            0,
            folder.path(),
            &["purge", "--older-than", "1", "--archive", "torn.jsonl"],
        );
        let left = fs::read_to_string(folder.path().join("torn.jsonl")).unwrap();
        assert_eq!(left, format!("{kept}\n"));
    }
    let (out, _) = ends(
        0,
        folder.path(),
        &["purge", "--keep", "1", "--archive", "torn.jsonl"],
    );
    assert_eq!(out, "2 instances deleted\n");
    let (out, err) = ends(1, folder.path(), &["import", "torn.jsonl"]);
    assert!(
        err.starts_with("error: torn.jsonl:1: not an exported instance: "),
        "{err}"
    );
    assert_eq!(out, "imported as instance 7\nimported as instance 8\n");
    #[cfg(unix)]
    for endless in ["/dev/zero", "/dev/full"] {
        let (_, err) = ends(2, folder.path(), &["import", endless]);
        let expected = format!("cannot read `{endless}`: it is neither a regular file nor a pipe");
        assert!(err.contains(&expected), "{err}");
    }
    fs::write(folder.path().join("empty.jsonl"), "\u{feff}\n").unwrap();
    let (_, err) = ends(1, folder.path(), &["import", "empty.jsonl"]);
    assert_eq!(err, "error: empty.jsonl has no instance\n");
    // What is there already is not an error: a killed purge may have archived an instance twice. A byte-order mark is no content.
    let old = fs::read_to_string(folder.path().join("old.jsonl")).unwrap();
    fs::write(folder.path().join("old.jsonl"), format!("\u{feff}{old}")).unwrap();
    let (out, _) = ends(0, folder.path(), &["import", "old.jsonl"]);
    assert_eq!(
        out,
        "unchanged in the repository: instance 8\nunchanged in the repository: instance 6\n"
    );
    // A later start may get the number of an imported instance.
    let elsewhere = self::folder();
    let old = folder.path().join("old.jsonl");
    ends(0, elsewhere.path(), &["import", old.to_str().unwrap()]);
    for _ in 0..3 {
        ends(0, elsewhere.path(), &["start", "works"]);
    }
    let (out, _) = ends(0, folder.path(), &["purge", "--before", "2100-01-01", "--force"]);
    assert_eq!(out, "4 instances deleted\n");
    let (_, err) = ends(2, folder.path(), &["export", "4"]);
    assert_eq!(err, "error: unknown job instance 4\n");
}

/// The message of a panic on any thread has its source line, also in `show`.
///
/// Spec: CHUNK-EXC-03
#[test]
fn a_panic_is_found_in_the_source() {
    let folder = folder();
    let source = include_str!("../support/programs/operated.rs");
    for (arguments, text_of_panic, column) in [
        (vec!["careless"], "nobody looked", 9),
        (vec!["counts", "processors=1"], "3 is wrong", 5),
        (vec!["counts", "processors=2"], "3 is wrong", 5),
    ] {
        let arguments = [vec!["launch"], arguments].concat();
        ends(1, folder.path(), &arguments);
        let (shown, _) = ends(0, folder.path(), &["show", "--last"]);
        let line = source.lines().position(|line| line.contains(text_of_panic));
        let place = format!(
            "programs/operated.rs:{}:{column}: {text_of_panic}",
            line.unwrap() + 1
        );
        let has_place = shown
            .lines()
            .any(|line| line.contains("the artifact panicked at ") && line.ends_with(&place));
        assert!(has_place, "{arguments:?}\n{shown}");
    }
}
