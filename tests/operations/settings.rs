//! The inputs of the command line: parameters, exit codes, settings from arguments, environment and files.

use std::fs;
use std::path::Path;
use std::process::Command;

use batch_tests::operated;
use batch_tests::process::text;
use serde_json::{Value, json};

/// Runs the program `operated` in a folder.
fn program(folder: &Path, arguments: &[&str]) -> Command {
    operated::command(env!("CARGO_BIN_EXE_operated"), folder, arguments)
}

/// Returns its output, standard output first.
fn ends(code: i32, mut command: Command) -> (String, String) {
    let output = command.output().unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{command:?}\n{out}\n{err}");
    (out, err)
}

fn operated(code: i32, folder: &Path, arguments: &[&str]) -> (String, String) {
    ends(code, program(folder, arguments))
}

fn read(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// Jobs can map exit statuses to exit codes; an invalid mapping is a mistake of the job.
///
/// Spec: REPO-48
#[test]
fn a_job_maps_its_exit_statuses_to_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    let job = |codes: &str| {
        let text = format!(
            r#"<job id="mapped"><properties><property name="batch.exit.codes" value="{codes}"/></properties>
            <step id="one"><batchlet ref="Result"/><fail on="BAD" exit-status="IT WAS BAD"/><stop on="UGLY"/><end on="*" exit-status="FINE"/></step></job>"#
        );
        fs::write(folder.path().join("mapped.xml"), text).unwrap();
    };
    job("IT WAS*=40, STOPPED=50, ${fine}=7");
    for (result, fine, code) in [
        ("BAD", "FINE", 40),
        ("UGLY", "FINE", 50),
        ("GOOD", "FINE", 7),
        ("GOOD", "OK", 0),
    ] {
        let parameters = [format!("result={result}"), format!("-fine={fine}")];
        operated(
            code,
            folder.path(),
            &["start", "mapped", &parameters[0], &parameters[1]],
        );
    }
    job("A=1000");
    let (_, err) = operated(2, folder.path(), &["start", "mapped"]);
    assert!(
        err.contains("error[ART0012]: invalid exit code \"1000\": expected a number from 0 to 255"),
        "{err}"
    );
}

/// Types, non-identifying parameters, and parameter files; `params` prints them in the same syntax.
///
/// Spec: REPO-30, REPO-36, DOM-10, OP-06
#[test]
fn parameters_have_types_and_come_from_files() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("job.xml"),
        r#"<job id="job"><step id="one"><batchlet ref="Result"/></step></job>"#,
    )
    .unwrap();
    fs::write(
        folder.path().join("more"),
        "# those of the month\n\nmonth=2026-11\n -note = of a file \n",
    )
    .unwrap();
    let launch = [
        "launch",
        "job",
        "n(long)=5",
        "-x(double)=0.5",
        "@more",
        "day(date)=2026/11/20",
    ];
    operated(0, folder.path(), &launch);
    let (out, _) = operated(0, folder.path(), &["params", "1"]);
    assert_eq!(
        out,
        "day(date)=2026-11-20T00:00:00.000Z\nmonth=2026-11\nn(long)=5\n-note=of a file\n-x(double)=0.5\n"
    );
    let (out, _) = operated(0, folder.path(), &["params", "1", "--json"]);
    assert_eq!(
        read(&out)[2],
        json!({"name": "n", "type": "long", "value": 5, "identifying": true})
    );
    // A non-identifying parameter may change.
    let (_, err) = operated(
        10,
        folder.path(),
        &[
            "launch",
            "job",
            "n(long)=5",
            "month=2026-11",
            "day(date)=2026-11-20",
        ],
    );
    assert!(err.contains("is complete"), "{err}");
    fs::write(folder.path().join("more"), "month=2026-11\nmonth\n").unwrap();
    for (argument, problem) in [
        ("@more", "error: more:2: expected NAME=VALUE"),
        ("@absent", "error: cannot read the parameter file `absent`: "),
        (
            "n(int)=5",
            "unknown type `int`: expected string, long, double, date, secret, null or a class of Java such as java.time.LocalDate",
        ),
        ("n(long)=five", "invalid value `five`: expected a 64-bit integer"),
    ] {
        let (out, err) = operated(2, folder.path(), &["launch", "job", argument]);
        assert!(out.is_empty() && err.contains(problem), "{argument}: {err}");
    }
}

/// Arguments override the environment, which overrides the file, which overrides the default; `config show` prints the
/// source.
#[test]
fn settings_come_from_arguments_environment_and_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = "repository = \"sqlite://file.db\"\n\nstop-timeout = 7\nlog-format = \"json\"\nrepository-time-zone = \"Europe/Berlin\"\n[system-properties]\nwho = \"file\"\nyear = 2026\n";
    fs::write(folder.path().join("batch.toml"), file).unwrap();
    let mut show = program(
        folder.path(),
        &["config", "show", "--shutdown-timeout", "3", "-Dwho=argument"],
    );
    show.env("BATCH_LOG_FORMAT", "text")
        .env("BATCH_SHUTDOWN_TIMEOUT", "4")
        .env("BATCH_LEASE_TIME", "60");
    let (out, _) = ends(0, show);
    assert_eq!(
        out,
        "\
KEY                     VALUE                 FROM
repository              sqlite://file.db      batch.toml:1
job-path                .                     default
shutdown-timeout        3                     argument --shutdown-timeout
stop-timeout            7                     batch.toml:3
lease-time              60                    environment variable BATCH_LEASE_TIME
partition-threads       4 for each processor  default
log                     warn                  default
log-format              text                  environment variable BATCH_LOG_FORMAT
metrics-port            none                  default
crash-limit             3                     default
repository-time-zone    Europe/Berlin         batch.toml:5
progress-interval       10                    default
dialect                 that of each file     default
dispatch                local                 default
system-properties.who   argument              argument -D
system-properties.year  2026                  batch.toml:8
"
    );
    let (out, _) = operated(
        0,
        folder.path(),
        &["config", "show", "--json", "--repository", "sqlite://other.db"],
    );
    assert_eq!(
        read(&out)[0],
        json!({"key": "repository", "value": "sqlite://other.db", "from": "argument --repository"})
    );
    // The settings take effect, too.
    fs::write(
        folder.path().join("job.xml"),
        r#"<job id="job"><step id="one"><batchlet ref="Result"><properties><property name="result" value="${who} ${year}"/></properties></batchlet></step></job>"#,
    )
    .unwrap();
    let (out, _) = operated(0, folder.path(), &["start", "job", "-Dwho=argument"]);
    assert!(out.contains("argument 2026"), "{out}");
    assert!(folder.path().join("file.db").exists());
}

/// An invalid setting is reported with its place, and nothing runs.
#[test]
fn invalid_settings_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    for (file, problem) in [
        (
            "log = \"warn\"\nrepositry = \"x\"",
            "batch.toml:2: unknown setting `repositry`; did you mean `repository`?",
        ),
        (
            "log = \"warn\"\nx = 1",
            "batch.toml:2: unknown setting `x`; expected one of repository, job-path, shutdown-timeout,",
        ),
        (
            "\nlog = \"loud\"",
            "batch.toml:2: invalid value `loud`: expected off, error, warn, info, debug or trace",
        ),
        (
            "stop-timeout = -1",
            "batch.toml:1: invalid value `-1`: expected a whole number of seconds",
        ),
        (
            "stop-timeout = 1.5",
            "batch.toml:1: invalid value for `stop-timeout`: expected a string or a whole number",
        ),
        (
            "partition-threads = 0",
            "batch.toml:1: invalid value `0`: expected a whole number, at least 1",
        ),
        (
            "log = \"warn\"\nrepository-time-zone = \"Europe/Berln\"",
            "batch.toml:2: unknown time zone \"Europe/Berln\": did you mean `Europe/Berlin`?",
        ),
        (
            "system-properties = 1",
            "batch.toml:1: `system-properties` is not a table",
        ),
        ("log = \"warn\"\n[", "batch.toml:2: "),
    ] {
        fs::write(folder.path().join("batch.toml"), file).unwrap();
        let (out, err) = operated(2, folder.path(), &["start", "job"]);
        assert!(
            out.is_empty() && err.starts_with(&format!("error: {problem}")),
            "{file}: {err}"
        );
    }
    fs::remove_file(folder.path().join("batch.toml")).unwrap();
    let (_, err) = operated(2, folder.path(), &["--config", "absent.toml", "list"]);
    assert!(
        err.starts_with("error: argument --config: cannot read `absent.toml`: "),
        "{err}"
    );
    let mut list = program(folder.path(), &["list"]);
    list.env("BATCH_STOP_TIMEOUT", "soon");
    let (_, err) = ends(2, list);
    assert_eq!(
        err,
        "error: environment variable BATCH_STOP_TIMEOUT: invalid value `soon`: expected a whole number of seconds\n"
    );
    let (_, err) = operated(
        2,
        folder.path(),
        &["start", "job", "--repository-time-zone", "2:00"],
    );
    assert_eq!(
        err,
        "error: argument --repository-time-zone: unknown time zone \"2:00\": expected a name such as Europe/Berlin, or an \
         offset such as +02:00\n"
    );
    let offset = ["config", "show", "--json", "--repository-time-zone", "-03:30"];
    let (out, _) = operated(0, folder.path(), &offset);
    assert!(out.contains(r#""value": "-03:30""#), "{out}");
    assert!(!folder.path().join("batch.db").exists());
}

/// Every command reports all invalid values at once, each with its source.
#[test]
fn every_command_rejects_invalid_values() {
    let folder = tempfile::tempdir().unwrap();
    let file = "metrics-port = 99999\nrepository = 5\nlease-time = 0\n\nlog = true\nrepositry = \"x\"\n";
    fs::write(folder.path().join("batch.toml"), file).unwrap();
    let mistakes = [
        "error: batch.toml:6: unknown setting `repositry`; did you mean `repository`?",
        "error: batch.toml:2: unsupported repository `5`: expected `sqlite://PATH`, `sqlite://:memory:`, \
         `postgres://USER@HOST/DATABASE`, `mysql://USER@HOST/DATABASE` or `memory:`",
        "error: batch.toml:3: invalid value `0`: expected a whole number of seconds, at least 1",
        "error: batch.toml:5: invalid value `true`: expected off, error, warn, info, debug or trace",
        "error: batch.toml:1: invalid value `99999`: expected a port from 0 to 65535, or an IP address with a port, such as \
         `0.0.0.0:9464`",
    ];
    for verb in [
        &["config", "show"][..],
        &["list"],
        &["check"],
        &["start", "job"],
        &["db", "status"],
    ] {
        let (out, err) = operated(2, folder.path(), verb);
        assert!(out.is_empty(), "{verb:?}: {out}");
        assert_eq!(err.lines().collect::<Vec<_>>(), mistakes, "{verb:?}");
    }
    fs::remove_file(folder.path().join("batch.toml")).unwrap();
    for (name, value, problem) in [
        (
            "BATCH_REPOSITORY",
            "",
            "unsupported repository ``: expected `sqlite://PATH`",
        ),
        (
            "BATCH_REPOSITORY",
            "oracle://x",
            "unsupported repository `oracle://x`: expected `sqlite://PATH`",
        ),
        (
            "BATCH_REPOSITORY",
            "sqlite://a.db?synchronous=off",
            "unsupported repository `sqlite://a.db?synchronous=off`: invalid value `off` of `synchronous`",
        ),
        ("BATCH_JOB_PATH", "", "invalid value ``: expected directories"),
        (
            "BATCH_LEASE_TIME",
            "",
            "invalid value ``: expected a whole number of seconds, at least 1",
        ),
        (
            "BATCH_CONFIG",
            "",
            "invalid value ``: expected the path of a settings file, such as `batch.toml`",
        ),
        ("BATCH_CONFIG", "absent.toml", "cannot read `absent.toml`: "),
    ] {
        let mut show = program(folder.path(), &["config", "show"]);
        show.env(name, value);
        let (out, err) = ends(2, show);
        assert!(
            out.is_empty() && err.starts_with(&format!("error: environment variable {name}: {problem}")),
            "{err}"
        );
    }
    for wrong in ["http", "0.0.0.0", "0.0.0.0:99999", "::9464"] {
        let (_, err) = operated(2, folder.path(), &["config", "show", "--metrics-port", wrong]);
        assert_eq!(
            err,
            format!(
                "error: argument --metrics-port: invalid value `{wrong}`: expected a port from 0 to 65535, or an IP address with a port, \
                 such as `0.0.0.0:9464`\n"
            )
        );
    }
    for right in ["0", "0.0.0.0:9464", "[::]:9464"] {
        operated(0, folder.path(), &["config", "show", "--metrics-port", right]);
    }
    // Empty values count as not set.
    let mut show = program(folder.path(), &["config", "show"]);
    show.env("BATCH_METRICS_PORT", "")
        .env("BATCH_PARTITION_THREADS", "");
    ends(0, show);
}

/// A variable that nearly matches a setting is reported; others may belong to another program.
#[test]
fn a_misspelt_variable_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut show = program(folder.path(), &["config", "show"]);
    show.env("BATCH_REPOSITRY", "sqlite://a.db")
        .env("BATCH_LOGFORMAT", "json")
        .env("BATCH_ROOT", "/srv")
        .env("BATCH_SEED", "1")
        .env("BATCH_LOG", "info")
        .env("BATCHES", "7");
    let (out, err) = ends(0, show);
    assert_eq!(
        err,
        "warning: environment variable BATCH_LOGFORMAT is ignored; did you mean BATCH_LOG_FORMAT?\n\
         warning: environment variable BATCH_REPOSITRY is ignored; did you mean BATCH_REPOSITORY?\n"
    );
    assert!(out.contains("sqlite://batch.db"), "{out}");
}

/// For programs that read logs, each line is JSON.
#[test]
fn the_log_may_be_json() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("job.xml"),
        r#"<job id="job"><step id="one"><batchlet ref="Result"/></step></job>"#,
    )
    .unwrap();
    fs::write(folder.path().join("wrong.xml"), "<job").unwrap();
    let (_, err) = operated(0, folder.path(), &["start", "job", "--log-format", "json"]);
    let lines: Vec<&str> = err.lines().filter(|line| line.starts_with('{')).collect();
    assert!(
        matches!(lines[..], [line] if read(line)["level"] == "WARN"),
        "{err}"
    );
}

/// Completes a command line in bash; the last word is the one at the cursor.
fn completed(folder: &Path, words: &[&str]) -> Vec<String> {
    let script = r#"
        source <("$1" completions bash)
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _operated_candidates "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let output = Command::new("bash")
        .args(["-c", script, "bash", env!("CARGO_BIN_EXE_operated")])
        .args(words)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let completed = text(&output.stdout);
    let lines = completed.lines().filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// Commands, options, the jobs of the job path with their parameters, and the executions of the repository. Nothing is created.
///
/// Spec: CLI-01, CLI-09
#[test]
fn shells_complete_commands_jobs_and_executions() {
    let folder = tempfile::tempdir().unwrap();
    for job in ["nightly", "nightly-late", "other"] {
        let job = format!(r#"<job id="{job}"><step id="one"><batchlet ref="sqlScript"/></step></job>"#);
        let name = folder.path().join(format!("{}.xml", job.len()));
        fs::write(name, job).unwrap();
    }
    let day = r#"<job id="daily"><properties><property name="day" value="${when}"/></properties></job>"#;
    fs::write(folder.path().join("daily.xml"), day).unwrap();
    let check = |words: &[&str], expected: &[&str]| {
        assert_eq!(completed(folder.path(), words), expected, "{words:?}")
    };
    check(&["abando"], &["abandon"]);
    check(&["launch", "ni"], &["nightly", "nightly-late"]);
    check(&["launch", ""], &["daily", "nightly", "nightly-late", "other"]);
    check(&["launch", "--ru"], &[]);
    check(&["launch", "--com"], &["--complete-ok"]);
    check(&["stop", "o"], &["other"]);
    check(&["launch", "daily", "w"], &["when="]);
    check(&["launch", "daily", "when=1", "d"], &["day="]);
    check(&["launch", "daily", "when=1", "w"], &[]);
    check(&["show", ""], &[]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
    // It fails, and is an execution all the same.
    operated(1, folder.path(), &["start", "other", "-sql=SELECT"]);
    check(&["show", ""], &["1"]);
    check(&["stop", ""], &["daily", "nightly", "nightly-late", "other", "1"]);
    for shell in ["powershell", "elvish"] {
        let (script, _) = operated(0, folder.path(), &["completions", shell]);
        assert!(
            script.contains("operated") && script.contains("launch"),
            "{shell}: {script}"
        );
    }
}

/// Spec: CLI-09
#[test]
fn fish_and_zsh_complete_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let job = r#"<job id="nightly"><step id="one"><batchlet ref="sqlScript"/></step></job>"#;
    fs::write(folder.path().join("nightly.xml"), job).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_operated"));
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    // zsh completes in a terminal only, so it shows what would be added.
    let zsh = "compdef() { }; compadd() { shift; print -l -- $@ }; words=(operated launch '') CURRENT=3
        source <(operated completions zsh); _operated() { }; _operated_candidates";
    let fish = "source (operated completions fish | psub); complete --do-complete 'operated launch n'";
    for (shell, script) in [("zsh", zsh), ("fish", fish)] {
        let mut command = Command::new(shell);
        match command
            .args(["-c", script])
            .env("PATH", &path)
            .current_dir(folder.path())
            .output()
        {
            Ok(output) => {
                let (completed, errors) = (text(&output.stdout), text(&output.stderr));
                assert!(
                    completed.lines().any(|line| line == "nightly"),
                    "{shell}: {completed}{errors}"
                );
            }
            Err(_) => println!("NOT TESTED: the completions of {shell}, which is not installed"),
        }
    }
}

/// Its mistakes are all that is said; not also that there is no job.
///
/// Spec: CLI-10
#[test]
fn a_malformed_file_is_the_only_mistake() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("broken.xml"), "<job id=\"broken\">").unwrap();
    for arguments in [&["check"][..], &["launch", "broken"], &["graph", "broken"]] {
        let (out, err) = operated(2, folder.path(), arguments);
        assert_eq!(err.matches("error[JSL0003]").count(), 1, "{err}");
        assert!(!format!("{out}{err}").contains("no job"), "{out}{err}");
    }
    let (out, _) = operated(0, folder.path(), &["list"]);
    assert_eq!(
        out,
        "no jobs: no file of the job path is valid; `check` shows the mistakes\n"
    );
}

/// Databases beside the repository have names, and their URLs may be references to secrets, which only commands that run jobs read.
///
/// Spec: MARK-13
#[test]
fn databases_are_named_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let settings = |text: &str| fs::write(folder.path().join("batch.toml"), text).unwrap();
    settings("[databases]\nledger = \"env:LEDGER_URL\"\narchive = \"postgres://me:secret@host/sales\"\n");
    let (out, _) = operated(0, folder.path(), &["config", "show"]);
    let shown = |line: &str| {
        out.lines()
            .any(|found| found.split_whitespace().eq(line.split(' ')))
    };
    assert!(shown("databases.ledger env:LEDGER_URL batch.toml:2"), "{out}");
    assert!(
        out.contains("databases.archive") && !out.contains("secret"),
        "{out}"
    );
    let (_, err) = operated(2, folder.path(), &["launch", "job"]);
    assert!(
        err.contains("batch.toml:2: the database `ledger`: cannot read the secret env:LEDGER_URL"),
        "{err}"
    );
    for (text, expected) in [
        ("databases = 1\n", "batch.toml:1: `databases` is not a table"),
        (
            "[databases]\n\"a:b\" = \"x\"\n",
            "batch.toml:2: invalid name `a:b` of a database",
        ),
        (
            "[databases]\nledger = \"oracle://host\"\n",
            "batch.toml:2: the database `ledger`: ",
        ),
    ] {
        settings(text);
        let (_, err) = operated(2, folder.path(), &["launch", "job"]);
        assert!(err.contains(expected), "{expected}: {err}");
    }
}

/// `check` and `launch` know the names of the databases, without their secrets. The message does not repeat the value, which may contain a password.
///
/// Spec: MARK-13
#[test]
fn a_job_whose_database_is_unknown_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let job = |database: &str| {
        let job = format!(
            r#"<job id="copy"><step id="copy"><chunk reader="queryRecordReader" writer="recordCsvWriter"><properties>
              <property name="database" value="{database}" target="reader"/>
              <property name="query" value="SELECT 1" target="reader"/>
              <property name="output" value="out.csv" target="writer"/>
            </properties></chunk></step></job>"#
        );
        fs::write(folder.path().join("copy.xml"), job).unwrap();
    };
    let settings = |text: &str| fs::write(folder.path().join("batch.toml"), text).unwrap();
    let no_databases = "name it in the table `[databases]` of batch.toml";
    let wrong = "value=\"ledgar\"";
    for (databases, database, expected) in [
        ("", "ledger", no_databases),
        (
            "[databases]\nledger = \"env:LEDGER_URL\"\n",
            "ledgar",
            "unknown database `ledgar`; did you mean `ledger`?",
        ),
        ("", "oracle://me:secret@host/x", "of `queryRecordReader`: "),
        (
            "",
            "password=secret",
            "unknown database; expected a name, a URL, or",
        ),
    ] {
        settings(databases);
        job(database);
        let (_, err) = operated(2, folder.path(), &["check"]);
        assert!(
            err.contains("error[ART0031]") && err.contains(expected),
            "{expected}: {err}"
        );
        assert!(err.contains("copy.xml:2:"), "{err}");
        assert!(database != "ledgar" || err.contains(wrong), "{err}");
    }
    settings("[databases]\nledger = \"env:LEDGER_URL\"\n");
    job("ledger");
    operated(0, folder.path(), &["check"]);
    settings("[databases]\nledger = \"sqlite://ledger.db\"\n");
    job("ledgar");
    let (_, err) = operated(2, folder.path(), &["launch", "copy"]);
    assert!(err.contains("error[ART0031]"), "{err}");
}
