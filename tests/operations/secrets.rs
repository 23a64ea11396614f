//! Secrets by reference: only the job reads them.

use std::fs;
use std::path::Path;

use batch_runtime::{BatchRuntime, JobParameters, parameters::SecretReference};
use batch_tests::operated;
use batch_tests::process::text;

const JOB: &str = r#"<job id="vault">
  <properties><property name="password.of.job" value="${password}"/></properties>
  <step id="keep"><batchlet ref="Keeper">
    <properties><property name="url" value="db://me:${password}@host/${password}"/></properties>
  </batchlet></step>
</job>"#;
const SECRET: &str = "correct-horse-battery";
const PIN: &str = "907060504";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("vault.xml"), JOB).unwrap();
    fs::write(folder.path().join("pin"), format!("{PIN}\r\n")).unwrap();
    folder
}

/// Runs `operated`, which must exit with this code, and returns both outputs.
fn operated(code: i32, folder: &Path, password: Option<&str>, arguments: &[&str]) -> String {
    let mut command = operated::command(env!("CARGO_BIN_EXE_operated"), folder, arguments);
    command.env_remove("DB_PASSWORD");
    if let Some(password) = password {
        command.env("DB_PASSWORD", password);
    }
    let output = command.output().unwrap();
    let printed = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {printed}");
    printed
}

/// Returns every file of the folder, except those that contain the secret by design.
fn holds_secret(folder: &Path) -> Vec<String> {
    let mut holding = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = if path.is_file() {
            fs::read(&path).unwrap()
        } else {
            continue;
        };
        let found = bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
        if found && !path.ends_with("expected") {
            holding.push(path.display().to_string());
        }
    }
    holding
}

const REFERENCES: [&str; 2] = ["password(secret)=env:DB_PASSWORD", "-pin(secret)=file:pin"];

/// A job fails, is restarted by other processes, and is inspected with every command: only the job sees the secret.
///
/// Spec: D-91, LOSS-07
#[test]
fn a_secret_reaches_the_job_and_nothing_else() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("expected"), SECRET).unwrap();
    let mut printed = String::new();
    let launch = ["--log", "trace", "--log-format", "json", "launch", "vault"];
    let failing = [&launch[..], &REFERENCES, &["-fail=true"]].concat();
    let failed = operated(1, folder, Some(SECRET), &failing);
    assert!(
        failed.contains("cannot log in by db://me:{secret:env:DB_PASSWORD}@host/{secret:env:DB_PASSWORD} with {secret:env:DB_PASSWORD}"),
        "{failed}"
    );
    printed += &failed;

    // Nothing starts without the secret.
    let refused = operated(2, folder, None, &["restart", "1", "fail=false"]);
    assert!(
        refused.contains(
            "cannot read the secret env:DB_PASSWORD of job parameter `password`: the environment variable is not set"
        ),
        "{refused}"
    );
    assert_eq!(operated(0, folder, None, &["list", "vault"]).lines().count(), 2);

    // The same instance, by its stored parameters: the restart is given none of the references.
    printed += &operated(
        0,
        folder,
        Some(SECRET),
        &["--log", "trace", "restart", "1", "fail=false"],
    );
    let shown = operated(0, folder, None, &["show", "2"]);
    assert!(shown.contains("PASSWORD AND PIN"), "{shown}");
    assert!(shown.contains("compared {secret:env:DB_PASSWORD}"), "{shown}");
    printed += &shown;
    let params = operated(0, folder, None, &["params", "2"]);
    for written in ["password(secret)=env:DB_PASSWORD\n", "-pin(secret)=file:pin\n"] {
        assert!(params.contains(written), "{params}");
    }
    printed += &params;
    let explained = operated(
        0,
        folder,
        None,
        &[&["explain", "vault"], &REFERENCES[..]].concat(),
    );
    assert!(explained.contains("{secret:env:DB_PASSWORD}"), "{explained}");
    printed += &explained;
    // Even where the secret is available.
    for looking in [
        &["show", "1"][..],
        &["show", "1", "--json"],
        &["show", "2", "--json"],
        &["params", "1", "--json"],
        &["executions", "--json"],
        &["list", "--json"],
        &["export", "1"],
        &["show", "1", "--report", "report.html"],
        &["show", "1", "--report", "report.md"],
        &["explain", "vault", "--json", REFERENCES[0], REFERENCES[1]],
        &["check", "vault", REFERENCES[0], REFERENCES[1]],
        &["graph", "vault", REFERENCES[0], REFERENCES[1], "-o", "graph.svg"],
        &["config", "show"],
    ] {
        printed += &operated(0, folder, Some(SECRET), looking);
    }
    assert!(!printed.contains(SECRET) && !printed.contains(PIN), "{printed}");
    assert!(printed.contains(r#""type": "secret""#), "{printed}");
    assert_eq!(holds_secret(folder), Vec::<String>::new());
    // The scan finds a secret that is stored: in the archive of a job that got it as plain text.
    operated(
        0,
        folder,
        None,
        &["launch", "vault", &format!("password={SECRET}")],
    );
    assert!(!holds_secret(folder).is_empty());
}

/// An exported instance is imported with its references, and is resumed there.
///
/// Spec: D-91
#[test]
fn references_are_exported_and_imported() {
    let (from, to) = (folder(), folder());
    for folder in [&from, &to] {
        fs::write(folder.path().join("expected"), SECRET).unwrap();
    }
    operated(
        1,
        from.path(),
        Some(SECRET),
        &["launch", "vault", REFERENCES[0], "-fail=true"],
    );
    let exported = operated(0, from.path(), None, &["export", "1"]);
    fs::write(to.path().join("instance.json"), exported).unwrap();
    operated(0, to.path(), None, &["import", "instance.json"]);
    let ended = operated(
        0,
        to.path(),
        Some(SECRET),
        &["launch", "vault", REFERENCES[0], "-fail=false"],
    );
    assert!(ended.contains("COMPLETED  PASSWORD "), "{ended}");
}

/// A secret that cannot be read is reported without its value, and nothing starts.
#[test]
fn an_unreadable_secret_starts_nothing() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("binary"), [0xff, 0xfe, b'x']).unwrap();
    for (argument, problem) in [
        (
            "password(secret)=env:DB_PASSWORD",
            "the environment variable is not set",
        ),
        ("password(secret)=file:absent", "No such file or directory"),
        ("password(secret)=file:binary", "the file is not UTF-8"),
        ("password(secret)=hunter2", "env:VARIABLE or file:PATH"),
        (
            "password=secret:env:DB_PASSWORD",
            "a text of this form is reserved for references to secrets",
        ),
        // A value that does not fit its field is not printed either.
        ("pin(secret)=file:vault.xml", "the secret is not valid"),
    ] {
        let printed = operated(2, folder, None, &["launch", "vault", argument]);
        assert!(
            printed.contains(problem) && !printed.contains("hunter2 "),
            "{argument}: {printed}"
        );
        assert!(!printed.contains("job id="), "{printed}");
    }
    let listed = operated(0, folder, None, &["list", "vault"]);
    assert_eq!(listed, "vault has no executions\n");
}

/// Texts that only look like references, which other programs may have stored, are plain texts.
#[test]
fn other_texts_are_texts() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("expected"), "env:DB_PASSWORD").unwrap();
    let ended = operated(
        0,
        folder,
        Some(SECRET),
        &["launch", "vault", "password=env:DB_PASSWORD"],
    );
    assert!(ended.contains("COMPLETED  PASSWORD "), "{ended}");
    assert!(operated(0, folder, None, &["params", "1"]).contains("password=env:DB_PASSWORD"));
}

/// Programs can pass references too; the reference identifies the instance.
///
/// Spec: D-91, REPO-26
#[test]
fn programs_pass_references() {
    let reference = |name: &str| SecretReference::Env(name.into());
    let of = |name: &str| JobParameters::new().with_secret("password", reference(name));
    assert_ne!(of("A").job_key(), of("B").job_key());
    // The representation of the stored text in Spring Batch.
    assert_eq!(
        of("A").job_key(),
        JobParameters::from([("password", "secret:env:A")]).job_key()
    );
    let folder = folder();
    let url = format!("sqlite://{}", folder.path().join("batch.db").display());
    let runtime = BatchRuntime::builder()
        .job_path(folder.path().display().to_string())
        .repository(url)
        .build()
        .unwrap();
    let error = runtime
        .job_operator()
        .launch("vault", of("NO_SUCH_VARIABLE"))
        .unwrap_err();
    assert!(error.to_string().contains("NO_SUCH_VARIABLE"), "{error}");
    assert!(
        runtime
            .job_operator()
            .job_instances("vault", 0, 1)
            .unwrap()
            .is_empty()
    );
}
