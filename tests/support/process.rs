//! The example programs as real processes.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use crate::deadline;

/// Returns the path of an example program.
pub fn example(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(build_examples);
    folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// The variable that points the examples to their input files, as `cargo run` sets it.
pub const OF_CARGO: (&str, &str) = (
    "CARGO_MANIFEST_DIR",
    concat!(env!("CARGO_MANIFEST_DIR"), "/../examples"),
);

/// Returns the folder that cargo has built this test in.
pub fn build_folder() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let build = test.parent().and_then(Path::parent);
    build.expect("the test lies in the build folder").to_owned()
}

/// Builds the examples in the profile of the running test, and returns their folder. `cargo test` has built them
/// already, but not if a package or a test is selected; then outdated examples would run.
fn build_examples() -> PathBuf {
    let build = build_folder();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--examples"]);
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    for (feature, is_on) in [
        ("servers", cfg!(feature = "servers")),
        ("interop", cfg!(feature = "interop")),
    ] {
        if is_on {
            cargo.args(["--features", &format!("batch-tests/{feature}")]);
        }
    }
    if build.ends_with("release") {
        cargo.arg("--release");
    }
    let output = cargo.output().expect("cargo runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    build.join("examples")
}

/// Returns a command for an example in its own folder.
pub fn command(name: &str, folder: &Path, arguments: &[&str]) -> Command {
    let waited_for = format!("`{name} {}` in {}", arguments.join(" "), folder.display());
    deadline::waits_for(move || waited_for.clone());
    let mut command = Command::new(example(name));
    command
        .args(arguments)
        .current_dir(folder)
        .env_remove("BATCH_FAILPOINTS")
        .env(OF_CARGO.0, OF_CARGO.1)
        // A process that is killed at random may die several times without progress.
        .env("BATCH_CRASH_LIMIT", "0")
        .stdin(Stdio::null());
    command
}

/// Returns a command of a program in a folder, without the variables of the test's own environment that configure programs.
pub fn configured_alone(program: &str, folder: &Path, arguments: &[&str]) -> Command {
    let waited_for = format!("`{}` in {}", arguments.join(" "), folder.display());
    deadline::waits_for(move || waited_for.clone());
    let mut command = Command::new(program);
    for (name, _) in std::env::vars() {
        if ["BATCH_", "OTEL_", "OPENLINEAGE_", "TRACE"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
        {
            command.env_remove(name);
        }
    }
    command.args(arguments).current_dir(folder);
    command
}

/// Checks the exit code of a process; returns what it printed, standard output first.
pub fn ended(code: i32, output: &Output) -> (String, String) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{out}\n{err}");
    (out, err)
}

/// Sends a process a signal: `TERM`, `STOP` ...
#[cfg(unix)]
pub fn signal(child: &Child, name: &str) {
    let kill = format!("kill -{name} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    if name == "STOP" {
        // One thread receives the signal, and the others run until it has stopped: they could begin a transaction meanwhile.
        while !is_stopped(child) {
            std::thread::yield_now();
        }
    }
}

/// Returns whether all threads of a process are stopped. Without `/proc`, whether the process is.
fn is_stopped(child: &Child) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", child.id())) else {
        let state = Command::new("ps")
            .args(["-o", "stat=", "-p", &child.id().to_string()])
            .output()
            .unwrap();
        return text(&state.stdout).starts_with('T');
    };
    threads.flatten().all(|thread| {
        // The state follows the name, which is in parentheses. A thread that has ended meanwhile has none.
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.is_empty() || stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    })
}

/// Runs an example to its end.
pub fn run(name: &str, folder: &Path, arguments: &[&str]) -> Output {
    command(name, folder, arguments)
        .output()
        .expect("the example runs")
}

/// Runs an example that must end with this exit code; returns what it printed, standard output first.
pub fn run_expecting(code: i32, name: &str, folder: &Path, arguments: &[&str]) -> (String, String) {
    let output = run(name, folder, arguments);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(
        output.status.code(),
        Some(code),
        "{name} {arguments:?}\n{out}\n{err}"
    );
    (out, err)
}

/// Starts an example and returns when it has printed a line with `marker` on its standard error.
pub fn spawn_until(mut command: Command, marker: &str) -> Child {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the example starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped"));
    let mut seen = String::new();
    loop {
        let mut line = String::new();
        let read = lines.read_line(&mut line).expect("readable");
        assert!(read > 0, "ended before it printed {marker:?}:\n{seen}");
        seen.push_str(&line);
        if line.contains(marker) {
            break;
        }
    }
    // The rest is read, so that the child never blocks on a full pipe.
    std::thread::spawn(move || lines.read_to_string(&mut String::new()));
    child
}

/// Returns bytes as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
