//! The command line as its users type it: output, exit code, effect.

use std::fs;

use batch_tests::process::{example, run_expecting, text};
use batch_tests::sqlite;
use diesel::connection::SimpleConnection;
use serde_json::Value;

use crate::operating;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Spec: DOM-01, DOM-20, OP-07
#[test]
fn start_greets_and_each_start_is_an_instance() {
    let folder = tempfile::tempdir().unwrap();
    let (out, _) = run_expecting(0, "hello", folder.path(), &["start", "hello", "name=Ada"]);
    assert!(
        out.starts_with("Hello, Ada!\n") && out.contains("hello:1:1 COMPLETED in "),
        "{out}"
    );
    let (out, _) = run_expecting(0, "hello", folder.path(), &["start", "hello", "name=Ada"]);
    assert!(out.contains("hello:2:2 COMPLETED"), "{out}");
    assert!(folder.path().join("batch.db").exists());
}

/// Spec: OP-36
#[test]
fn launch_completes_an_instance_once() {
    let folder = tempfile::tempdir().unwrap();
    run_expecting(0, "hello", folder.path(), &["launch", "hello", "name=Ada"]);
    let (out, err) = run_expecting(10, "hello", folder.path(), &["launch", "hello", "name=Ada"]);
    assert!(
        out.is_empty() && err.contains("is complete (execution 1 ended COMPLETED)"),
        "{out}{err}"
    );
    run_expecting(0, "hello", folder.path(), &["launch", "hello", "name=Grace"]);
    let (_, err) = run_expecting(10, "hello", folder.path(), &["restart", "1"]);
    assert!(err.contains("is complete"), "{err}");
}

/// The last line explains how to resume, if the execution can be resumed.
///
/// Spec: OP-12, OP-36, RESTART-02
#[test]
fn the_end_of_a_failed_run_says_how_to_resume() {
    let folder = tempfile::tempdir().unwrap();
    let job = |id: &str, attributes: &str| {
        let text = format!(
            r#"<job id="{id}" {attributes}><step id="greet"><batchlet ref="Greeter"/><fail on="GREETED"/></step></job>"#
        );
        fs::write(folder.path().join(format!("{id}.xml")), text).unwrap();
    };
    job("again", "");
    job("never", "restartable=\"false\"");
    let hint = |code: i32, verb: &str, job: &str| {
        let (_, err) = run_expecting(code, "hello", folder.path(), &["--job-path", ".", verb, job]);
        err.lines()
            .find(|line| line.starts_with("to resume"))
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(
        hint(1, "launch", "again"),
        "to resume from the last checkpoint, fix the cause and run the same `launch` again, or `restart 1`"
    );
    assert_eq!(
        hint(1, "start", "again"),
        "to resume from the last checkpoint, fix the cause and run `restart 2`"
    );
    assert_eq!(
        hint(1, "restart", "2"),
        "to resume from the last checkpoint, fix the cause and run `restart 3`"
    );
    assert_eq!(hint(1, "launch", "never"), "");

    let (out, _) = run_expecting(0, "hello", folder.path(), &["list", "again", "--job-path", "."]);
    let ids: Vec<&str> = out
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(ids, ["EXECUTION", "3", "2", "1"], "{out}");
    let (out, _) = run_expecting(
        0,
        "hello",
        folder.path(),
        &["list", "again", "--json", "--job-path", "."],
    );
    assert_eq!(json(&out)[2]["execution"], 1);
    run_expecting(2, "hello", folder.path(), &["list", "unknown"]);
}

/// Skipped items are visible at once.
///
/// Spec: CHUNK-SKIP-09, OP-20
#[test]
fn skipped_items_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");
    let flights = fs::read_to_string(format!("{examples}/flights/flights.xml")).unwrap();
    let skipping = flights.replace(
        "    </chunk>",
        r#"<skippable-exception-classes><include class="RecordError"/></skippable-exception-classes></chunk>"#,
    );
    fs::write(folder.path().join("flights.xml"), skipping).unwrap();
    let rows = fs::read_to_string(format!("{examples}/data/flights.csv")).unwrap();
    let some: Vec<&str> = rows.lines().take(100).collect();
    fs::write(
        folder.path().join("rows.csv"),
        some.join("\n") + "\nno flight at all\n",
    )
    .unwrap();
    let (out, _) = run_expecting(
        0,
        "flights",
        folder.path(),
        &["--job-path", ".", "launch", "flights", "flights.file=rows.csv"],
    );
    let loading = out.lines().find(|line| line.starts_with("load-flights")).unwrap();
    assert!(out.contains("WRITTEN  SKIPPED  COMMITS"), "{out}");
    let cells: Vec<&str> = loading.split_whitespace().collect();
    assert_eq!(&cells[3..4], ["99"], "{loading}");
    assert_eq!(&cells[6..8], ["1", "1"], "{loading}");
}

/// Spec: OP-21, OP-33, OP-06
#[test]
fn list_and_show_print_text_and_json() {
    let folder = tempfile::tempdir().unwrap();
    let (out, _) = run_expecting(0, "hello", folder.path(), &["list"]);
    assert_eq!(
        out,
        "JOB    INSTANCES  LAST EXECUTION  STATUS  CREATED\nhello          0  -               -       -\n"
    );
    run_expecting(0, "hello", folder.path(), &["launch", "hello", "name=Ada"]);
    let (out, _) = run_expecting(0, "hello", folder.path(), &["list", "--json"]);
    let list = json(&out);
    assert_eq!(
        (&list[0]["job"], &list[0]["instances"]),
        (&"hello".into(), &1.into())
    );
    assert_eq!(list[0]["lastExecution"]["status"], "COMPLETED");

    let (out, _) = run_expecting(0, "hello", folder.path(), &["show", "1", "--json"]);
    let show = json(&out);
    assert_eq!(show["name"], "hello:1:1");
    assert_eq!(show["parameters"]["name"], "Ada");
    assert_eq!(
        (&show["steps"][0]["step"], &show["steps"][0]["exitStatus"]),
        (&"greet".into(), &"GREETED".into())
    );
    let (out, _) = run_expecting(0, "hello", folder.path(), &["show", "1"]);
    for line in [
        "job          hello",
        "status       COMPLETED",
        "parameter    name=Ada",
        "greet  COMPLETED  GREETED",
    ] {
        assert!(out.contains(line), "{line:?} is missing in\n{out}");
    }
    let (_, err) = run_expecting(2, "hello", folder.path(), &["show", "7"]);
    assert_eq!(err, "error: unknown job execution 7\n");
}

/// Spec: LOADER-08, JSL-DOC-02, PATH-11, PATH-12, OP-11
#[test]
fn check_and_start_point_at_mistakes_and_start_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, xml: &str| fs::write(folder.path().join(name), xml).unwrap();
    let here = ["--job-path", "."];
    let with = |arguments: &[&'static str]| [arguments, &here].concat();
    write(
        "good.xml",
        "<job id='good'>\n  <step id='one'><batchlet ref='Greeter'/></step>\n</job>",
    );
    let (out, _) = run_expecting(0, "hello", folder.path(), &with(&["check"]));
    let runs = "at-least-once: a restart runs the batchlet again";
    let expected = format!("good: ok\n  one: {runs}\nhello: ok\n  greet: {runs}\n");
    assert_eq!(out, expected, "its own job, too");

    write(
        "typo.xml",
        "<job id='typo'>\n  <step id='one' next='tow'><batchlet ref='Greter'/></step>\n</job>",
    );
    write("broken.xml", "<job id='broken'>\n  <step id='one'>\n</job>");
    let (out, err) = run_expecting(2, "hello", folder.path(), &with(&["check"]));
    assert!(out.contains("good: ok") && out.contains("typo: failed"), "{out}");
    assert!(
        err.contains("typo.xml:2:24") && err.contains("broken.xml:2:3"),
        "{err}"
    );
    let (_, err) = run_expecting(2, "hello", folder.path(), &with(&["start", "typo"]));
    assert!(err.contains("`next` refers to an unknown element `tow`"), "{err}");
    write(
        "ref.xml",
        "<job id='ref'>\n  <step id='one'><batchlet ref='Greter'/></step>\n</job>",
    );
    let (_, err) = run_expecting(2, "hello", folder.path(), &with(&["start", "ref"]));
    assert!(
        err.contains("ref.xml:2:33") && err.contains("did you mean `Greeter`?"),
        "{err}"
    );
    assert!(err.contains("use my_artifacts as _;"), "{err}");
    let (out, _) = run_expecting(2, "hello", folder.path(), &with(&["check", "ref", "--json"]));
    assert_eq!(
        (&json(&out)[0]["job"], &json(&out)[0]["right"]),
        (&"ref".into(), &false.into())
    );

    let (_, err) = run_expecting(2, "hello", folder.path(), &with(&["start", "god"]));
    assert!(
        err.contains("unknown job `god`; did you mean `good`?") && err.contains("broken.xml:3:1"),
        "{err}"
    );
    for (arguments, expected) in [
        (
            &["start", "broken"][..],
            "unknown job `broken`\na file that may define it is not valid:\nerror[JSL0003]",
        ),
        (
            &["start", "jobs/good.xml"],
            "unknown job `jobs/good.xml`; give the id of the job, not its file; did you mean `good`?",
        ),
        (
            &["start", "--xml", "./good.xml"],
            "unknown job `./good.xml`; give the name of its file, without the folder; did you mean `good`?",
        ),
    ] {
        let (_, err) = run_expecting(2, "hello", folder.path(), &with(arguments));
        assert!(err.contains(expected), "{err}");
    }
    let (_, err) = run_expecting(
        2,
        "hello",
        folder.path(),
        &["start", "hello", "name=x", &"n".repeat(101), "--job-path", "."],
    );
    assert!(err.contains("expected NAME=VALUE"), "{err}");
    let (out, _) = run_expecting(0, "hello", folder.path(), &with(&["list", "--json"]));
    assert!(
        json(&out)
            .as_array()
            .unwrap()
            .iter()
            .all(|job| job["instances"] == 0),
        "{out}"
    );
}

/// A launch logs that there are warnings, because they are often mistakes that change what the job does.
#[test]
fn a_launch_says_that_there_are_warnings() {
    let folder = tempfile::tempdir().unwrap();
    let property = |name: &str| format!("<properties><property name='{name}' value='1'/></properties>");
    let job = format!(
        "<job id='warns'><step id='one'>{}<batchlet ref='Greeter'>{}</batchlet></step></job>",
        property("batch.retry.inputs"),
        property("nmae")
    );
    fs::write(folder.path().join("warns.xml"), job).unwrap();
    let (_, err) = run_expecting(
        0,
        "hello",
        folder.path(),
        &["--job-path=.", "launch", "warns", "name=Ada"],
    );
    for (column, message) in [
        (
            60,
            "no artifact in scope declares the property `batch.retry.inputs`",
        ),
        (156, "no artifact in scope declares the property `nmae`"),
    ] {
        let warning = err.lines().find(|line| line.contains(message));
        let warning = warning.unwrap_or_else(|| panic!("{err}"));
        assert!(warning.contains("WARN"), "{err}");
        assert!(warning.contains(&format!("warns.xml:1:{column}: ")), "{err}");
        assert!(warning.contains("did you mean"), "{err}");
    }
    let (_, err) = run_expecting(0, "hello", folder.path(), &["launch", "hello", "name=Ada"]);
    assert!(!err.contains("WARN"), "{err}");
}

#[test]
fn wrong_usage_is_exit_code_2_and_help_is_0() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["strat", "hello"][..],
        &["start"],
        &["show", "x"],
        &["start", "hello", "noparameter"],
        &[],
    ] {
        run_expecting(2, "hello", folder.path(), arguments);
    }
    let (out, _) = run_expecting(0, "hello", folder.path(), &["--help"]);
    assert!(
        out.contains("launch") && out.contains("Exit code: 0 COMPLETED, 1 FAILED"),
        "{out}"
    );
    let (_, err) = run_expecting(2, "hello", folder.path(), &["--repository", "oracle://x", "list"]);
    assert!(
        err.contains("unsupported repository `oracle://x`: expected `sqlite://PATH`"),
        "{err}"
    );
    let elsewhere = ["--repository", "sqlite://no/such/x.db"];
    for verb in [&["list"][..], &["show", "1"], &["stop", "1"], &["restart", "1"]] {
        let (_, err) = run_expecting(2, "hello", folder.path(), &[&elsewhere, verb].concat());
        assert_eq!(
            err,
            "error: repository `sqlite://no/such/x.db` does not exist; `launch` or `db migrate` creates it\n"
        );
    }
    let (_, err) = run_expecting(
        2,
        "hello",
        folder.path(),
        &[&elsewhere[..], &["start", "hello"]].concat(),
    );
    assert!(err.contains("unable to open database file"), "{err}");
    assert!(err.contains("its folder does not exist"), "{err}");
    let (_, err) = run_expecting(2, "hello", folder.path(), &["start", "hello", "name=a", "name=b"]);
    assert_eq!(err, "error: parameter `name` is given twice\n");
}

/// An invalid id is reported with the command that lists the valid ones.
#[test]
fn invalid_ids_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let no_execution = "not the id of an execution; expected a number, as `executions` lists them";
    for verb in ["show", "restart", "abandon", "params"] {
        let (_, err) = run_expecting(2, "hello", folder.path(), &[verb, "abc"]);
        let first = err.lines().next().unwrap_or_default();
        assert_eq!(
            first,
            format!("error: invalid value 'abc' for '<EXECUTION>': {no_execution}")
        );
    }
    for (arguments, problem) in [
        (&["recover", "--declare-dead", "abc"][..], no_execution),
        (
            &["export", "abc"],
            "not the id of an instance; expected a number, as `list JOB` lists them",
        ),
        (
            &["executions", "--limit", "many"],
            "expected a whole number from 0 to 4294967295",
        ),
    ] {
        let (_, err) = run_expecting(2, "hello", folder.path(), arguments);
        assert!(err.contains(problem), "{err}");
    }
}

/// `--version` names the program, and the runtime in it.
#[test]
fn the_version_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    for argument in ["--version", "-V"] {
        let (out, err) = run_expecting(0, "hello", folder.path(), &[argument]);
        assert_eq!(
            (out.as_str(), err.as_str()),
            (
                concat!("hello (batch-runtime ", env!("CARGO_PKG_VERSION"), ")\n"),
                ""
            )
        );
    }
}

/// Help lists the options of a command before the global ones.
#[test]
fn the_help_of_a_command_lists_its_own_options_first() {
    let folder = tempfile::tempdir().unwrap();
    let (out, _) = run_expecting(0, "hello", folder.path(), &["executions", "--help"]);
    let (own, global) = out
        .split_once("\nGlobal options:\n")
        .expect("they have a heading");
    for option in ["--job <JOB>", "--status", "--since", "--json", "--help"] {
        assert!(
            own.contains(option) && !global.contains(option),
            "{option}: {out}"
        );
    }
    for option in [
        "--config",
        "--repository",
        "--log",
        "--log-format",
        "--metrics-port",
        "-D",
    ] {
        assert!(
            !own.contains(option) && global.contains(option),
            "{option}: {out}"
        );
    }
}

/// `META-INF/batch.xml` is found in the current directory and in the executable's directory.
///
/// Spec: PKG-02, D-64
#[test]
fn batch_xml_is_found_beside_the_program_and_where_it_is_started() {
    let (current, beside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let map = |folder: &std::path::Path, id: &str| {
        fs::create_dir(folder.join("META-INF")).unwrap();
        let entry =
            format!(r#"<batch-artifacts><artifact id="{id}" classname="hello::Greeter"/></batch-artifacts>"#);
        fs::write(folder.join("META-INF/batch.xml"), entry).unwrap();
    };
    map(current.path(), "Here");
    map(beside.path(), "There");
    let job = r#"<job id="both"><step id="one" next="two"><batchlet ref="Here"/></step><step id="two"><batchlet ref="There"/></step></job>"#;
    fs::write(current.path().join("both.xml"), job).unwrap();
    let program = beside.path().join("hello");
    fs::copy(example("hello"), &program).unwrap();
    let check = |program: &std::path::Path, more: &[&str]| {
        let output = loop {
            let output = std::process::Command::new(program)
                .args(["check", "both", "--job-path", "."])
                .args(more)
                .current_dir(current.path())
                .output();
            match output {
                // A process that another test starts may still have the copy open for writing.
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {}
                output => break output.unwrap(),
            }
        };
        (output.status.code(), text(&output.stderr))
    };
    assert_eq!(check(&program, &[]), (Some(0), String::new()));
    let (code, err) = check(&example("hello"), &[]);
    assert!(
        code == Some(2) && err.contains("`There`") && !err.contains("`Here`"),
        "{err}"
    );
    // With an explicit path, no other place is searched.
    let classpath = format!("-Dbatch.classpath={}", beside.path().display());
    let (code, err) = check(&program, &[&classpath]);
    assert!(
        code == Some(2) && err.contains("`Here`") && !err.contains("`There`"),
        "{err}"
    );
}

/// A check without jobs fails.
///
/// Spec: PATH-06, JSL-DOC-04, BPROP-11
#[test]
fn check_reports_missing_and_misspelt_names() {
    let folder = tempfile::tempdir().unwrap();
    let (_, err) = operating::ends(2, folder.path(), &["check", "--job-path", "nowhere"]);
    assert!(
        err.contains("nowhere: ") && err.contains("the job path contains no job: searched `/"),
        "{err}"
    );
    assert!(
        err.contains("/nowhere`; set the job path by `--job-path DIRS`, "),
        "{err}"
    );
    assert!(!err.contains("WARN"), "reported problems are not logged: {err}");
    let (_, err) = operating::ends(2, folder.path(), &["explain", "hello", "--job-path", "nowhere"]);
    assert!(
        err.contains("/nowhere`; set the job path by `--job-path DIRS`, "),
        "{err}"
    );
    fs::write(folder.path().join("root.xml"), "<jobb id='x'/>").unwrap();
    fs::write(folder.path().join("pom.xml"), "<project/>").unwrap();
    let property = "<properties><property name='nmae' value='Ada'/></properties>";
    let job =
        format!("<job id='x'><step id='one'><batchlet ref='Greeter'>{property}</batchlet></step></job>");
    fs::write(folder.path().join("x.xml"), job).unwrap();
    let (out, err) = run_expecting(2, "hello", folder.path(), &["check", "--job-path", "."]);
    assert!(
        err.contains("ignored ./root.xml: its root element is `jobb`; did you mean `job`?"),
        "{err}"
    );
    assert!(!err.contains("pom.xml"), "{err}");
    assert!(
        err.contains("declares the property `nmae`") && err.contains("did you mean `name`?"),
        "{err}"
    );
    assert!(out.contains("x: ok"), "a warning only: {out}");
    fs::write(folder.path().join("broken.xml"), "<job").unwrap();
    let (_, err) = run_expecting(2, "hello", folder.path(), &["check", "--job-path", "."]);
    assert!(err.contains("broken.xml:1:1") && !err.contains("WARN"), "{err}");
    for name in ["broken.xml", "root.xml"] {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    run_expecting(0, "hello", folder.path(), &["check", "--job-path", "."]);
    let denied = ["check", "--job-path", ".", "--deny-warnings"];
    let (out, err) = run_expecting(2, "hello", folder.path(), &denied);
    assert!(
        out.contains("x: failed") && err.contains("warning[ART0010]"),
        "{out}{err}"
    );
    assert!(!folder.path().join("batch.db").exists());
}

/// A closed pipe must not end the program, whose exit code reports how the job ended.
#[test]
#[cfg(target_os = "linux")]
fn a_closed_or_full_output_does_not_change_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    run_expecting(0, "hello", folder.path(), &["start", "hello"]);
    for arguments in [&["list"][..], &["show", "1"], &["show", "1", "--json"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = batch_tests::process::command("hello", folder.path(), arguments)
            .stdout(full)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(
            text(&output.stderr).contains("cannot write to the standard output"),
            "{}",
            text(&output.stderr)
        );
    }
}

/// Eight processes on a database that does not exist yet: all start.
///
/// Spec: REPO-12, REPO-22, DOM-09
#[test]
fn many_processes_make_the_repository_together() {
    let folder = tempfile::tempdir().unwrap();
    let mut children: Vec<_> = (0..8)
        .map(|_| batch_tests::process::command("hello", folder.path(), &["start", "hello"]))
        .map(|mut command| {
            command
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children.drain(..) {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let (out, _) = run_expecting(0, "hello", folder.path(), &["list", "--json"]);
    assert_eq!(json(&out)[0]["instances"], 8);
    // No process holds a lock any more.
    assert_eq!(
        fs::read_dir(folder.path().join("batch.db-owners"))
            .unwrap()
            .count(),
        0
    );
}

/// Another program's database: commands that inspect, stop or resume do not change a byte of it, nor leave files beside
/// it, whether it has tables of a job repository or not.
///
/// Spec: REPO-06, REPO-07, REPO-12
#[test]
fn a_database_of_another_program_is_not_changed() {
    let instances = "CREATE TABLE BATCH_JOB_INSTANCE (JOB_INSTANCE_ID BIGINT);";
    let spring5 =
        "CREATE TABLE batch_job_execution_params (JOB_EXECUTION_ID BIGINT, PARAMETER_TYPE VARCHAR(100));";
    for (tables, reason) in [
        (
            "CREATE TABLE customer (id INTEGER); INSERT INTO customer VALUES (1)",
            "does not exist",
        ),
        (instances, "created by another program"),
        (
            &format!("{instances}{spring5}"),
            "layout of Spring Batch 5 except for",
        ),
        ("", "does not exist"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("theirs.db");
        fs::write(&file, "").unwrap();
        sqlite::open(&file).batch_execute(tables).unwrap();
        let before = fs::read(&file).unwrap();
        let repository = ["--repository", "sqlite://theirs.db"];
        for verb in [
            &["list"][..],
            &["list", "--json"],
            &["show", "1"],
            &["stop", "1"],
            &["restart", "1"],
        ] {
            let (out, err) = run_expecting(2, "hello", folder.path(), &[&repository, verb].concat());
            assert!(
                out.is_empty() && err.contains(reason),
                "{tables} {verb:?}: {out}{err}"
            );
            assert!(fs::read(&file).unwrap() == before, "{tables} {verb:?}");
            assert_eq!(
                fs::read_dir(folder.path()).unwrap().count(),
                1,
                "{tables} {verb:?}"
            );
        }
        // `start` does not change the rejected database either.
        if reason != "does not exist" {
            let start = [&repository[..], &["start", "hello"]].concat();
            let (_, err) = run_expecting(2, "hello", folder.path(), &start);
            assert!(err.contains(reason), "{err}");
            assert!(fs::read(&file).unwrap() == before, "{tables}");
        }
    }
}

/// The job ran, so unreadable rows afterwards are not wrong usage: the exit code follows from its end, or is 1 if the end is unknown.
///
/// Spec: OP-19, STATUS-13
#[test]
fn unreadable_rows_after_the_job_are_not_wrong_usage() {
    for (table, code) in [("BATCH_JOB_EXECUTION", 1), ("BATCH_STEP_EXECUTION", 0)] {
        let folder = tempfile::tempdir().unwrap();
        run_expecting(0, "hello", folder.path(), &["start", "hello"]);
        let spoil = format!(
            "CREATE TRIGGER spoil AFTER UPDATE OF STATUS ON BATCH_JOB_EXECUTION WHEN NEW.STATUS = 'COMPLETED'
             BEGIN UPDATE {table} SET STATUS = 'NONSENSE' WHERE STATUS = 'COMPLETED'; END"
        );
        sqlite::open(&folder.path().join("batch.db"))
            .batch_execute(&spoil)
            .unwrap();
        let (out, err) = run_expecting(code, "hello", folder.path(), &["start", "hello"]);
        assert!(out.contains("Hello, world!"), "{out}");
        assert!(err.contains("error: ") && err.contains("NONSENSE"), "{err}");
    }
}

/// A long exit status is truncated in the table, and printed in full below it.
///
/// Spec: OP-33
#[test]
fn show_prints_a_long_exit_status_in_full() {
    let folder = tempfile::tempdir().unwrap();
    run_expecting(0, "hello", folder.path(), &["launch", "hello"]);
    let (out, _) = run_expecting(0, "hello", folder.path(), &["show", "1"]);
    assert!(!out.contains("step greet\n"), "{out}");
    let long = "GREETED ".repeat(10) + "ALL";
    sqlite::open(&folder.path().join("batch.db"))
        .batch_execute(&format!("UPDATE BATCH_STEP_EXECUTION SET EXIT_CODE = '{long}'"))
        .unwrap();
    let (out, _) = run_expecting(0, "hello", folder.path(), &["show", "1"]);
    assert!(out.contains(&format!("exit status  {long}\n")), "{out}");
    assert_eq!(
        out.matches(&long).count(),
        1,
        "the table shows a part of it: {out}"
    );
}

/// The files of a new crate have its name; a folder that exists is left alone, and a name that Cargo would reject is an error.
#[test]
fn new_creates_a_crate() {
    let folder = tempfile::tempdir().unwrap();
    let (out, _) = run_expecting(0, "hello", folder.path(), &["new", "payroll"]);
    assert!(out.contains("cargo run -- launch payroll"), "{out}");
    let read = |file: &str| fs::read_to_string(folder.path().join("payroll").join(file)).unwrap();
    assert!(read("jobs/payroll.xml").contains("<job id=\"payroll\">"));
    assert!(read("Cargo.toml").contains(&format!("batch-runtime = \"{}\"", env!("CARGO_PKG_VERSION"))));
    for file in [
        "README.md",
        "src/orders.rs",
        "src/tests.rs",
        "src/main.rs",
        ".gitignore",
    ] {
        assert!(!read(file).contains("NAME"), "{file}");
    }
    let (_, err) = run_expecting(2, "hello", folder.path(), &["new", "payroll"]);
    assert!(err.contains("cannot create `payroll`"), "{err}");
    let (_, err) = run_expecting(2, "hello", folder.path(), &["new", "other", "--crates", "."]);
    assert!(err.contains("batch-runtime/Cargo.toml"), "{err}");
    // Within a workspace that does not list it.
    assert!(!read("Cargo.toml").contains("[workspace]"));
    fs::write(folder.path().join("Cargo.toml"), "[workspace]\n").unwrap();
    run_expecting(0, "hello", folder.path(), &["new", "inside"]);
    let inside = fs::read_to_string(folder.path().join("inside/Cargo.toml")).unwrap();
    assert!(inside.ends_with("[workspace]\n"), "{inside}");
    let (_, err) = run_expecting(2, "hello", folder.path(), &["new", "2nd"]);
    assert!(err.contains("starting with a letter"), "{err}");
}
