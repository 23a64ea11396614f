//! The programs and the jobs of the comparison, and which program cannot do which job.

use std::path::Path;
use std::process::Command;

/// The programs: name, and how it is started. The first is what the others are compared with.
pub const PROGRAMS: [(&str, Start); 8] = [
    ("this runtime", Start::Rust("this-runtime", false)),
    ("this runtime, pipeline", Start::Rust("this-runtime", true)),
    ("by hand", Start::Rust("by-hand", false)),
    ("spring-batch-rs 0.4.1", Start::Rust("spring-batch-rs", false)),
    ("oxide-batch 0.6.0", Start::Rust("oxide-batch", false)),
    ("Spring Batch 4.3.10", Start::Java("spring-batch-4")),
    ("Spring Batch 6.0.4", Start::Java("spring-batch-6")),
    ("JBeret 3.1.0", Start::Java("jberet")),
];

#[derive(Clone, Copy)]
pub enum Start {
    /// The name of the program, and if the job runs with `batch.chunk.pipeline`.
    Rust(&'static str, bool),
    Java(&'static str),
}

pub const JOBS: [(&str, &str); 7] = [
    ("csv-csv", "CSV to CSV"),
    ("csv-sqlite", "CSV to SQLite, FULL"),
    ("csv-postgres", "CSV to PostgreSQL"),
    (
        "skip",
        "CSV to PostgreSQL, which rejects one row of each thousand (a twentieth of the rows)",
    ),
    (
        "restart",
        "CSV to PostgreSQL, the restart of a job that failed at 90 % of the rows",
    ),
    ("cold", "A job without work, on PostgreSQL"),
    (
        "partitions",
        "1,000 partitions of 10 items on PostgreSQL, two at a time",
    ),
];

/// Returns why the table has no figures of a program for a job.
#[must_use]
pub fn reason(program: &str, job: &str) -> Option<&'static str> {
    match (program, job) {
        (program, "cold" | "skip" | "partitions") if program.ends_with("pipeline") => Some("as without"),
        ("spring-batch-rs 0.4.1", "skip") => Some("drops the whole chunk"),
        ("spring-batch-rs 0.4.1", "restart") => Some("no restart"),
        ("spring-batch-rs 0.4.1", "cold") => Some("no repository"),
        ("spring-batch-rs 0.4.1", "partitions") => Some("no partitions"),
        ("oxide-batch 0.6.0", "csv-sqlite") => Some("no SQLite"),
        _ => None,
    }
}

/// Checks that the programs in the two folders accept the same jobs, apart from those with a reason.
///
/// # Errors
/// Returns a line per program that accepts other jobs.
pub fn compare_jobs(rust: &Path, java: Option<&Path>) -> Result<(), String> {
    let mut differences = Vec::new();
    for (name, start) in PROGRAMS {
        let mut command = match (start, java) {
            (Start::Rust(_, true), _) | (Start::Java(_), None) => continue,
            (Start::Rust(program, false), _) => Command::new(rust.join(program)),
            (Start::Java(program), Some(java)) => java_program(java, program),
        };
        let output = command
            .arg("jobs")
            .output()
            .map_err(|error| format!("{command:?}: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut accepted: Vec<_> = text.lines().collect();
        accepted.sort_unstable();
        let mut expected: Vec<_> = JOBS.iter().map(|(job, _)| *job).collect();
        expected.retain(|job| reason(name, job).is_none());
        expected.sort_unstable();
        if accepted != expected {
            differences.push(format!("`{name}` accepts {accepted:?} instead of {expected:?}"));
        }
    }
    if differences.is_empty() {
        Ok(())
    } else {
        Err(differences.join("\n"))
    }
}

/// Returns the command that starts a Java program.
#[must_use]
pub fn java_program(java: &Path, program: &str) -> Command {
    let built = java.join(program);
    let mut command = Command::new("java");
    command
        .arg("-cp")
        .arg(format!("{0}/peer.jar:{0}/lib/*", built.display()))
        .arg("peer.Main");
    command
}
