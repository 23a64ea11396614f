//! What the Rust programs of the comparison share: their command line, the data, and the report to the runner.

pub mod programs;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Items per chunk, in every program.
pub const CHUNK: usize = 1000;
/// Partitions of the job `partitions`, in every program.
pub const PARTITIONS: i64 = 1000;
/// Items in each of them.
pub const ITEMS: i64 = 10;

/// A row of the input and of the output.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Person {
    pub id: i64,
    pub first: String,
    pub last: String,
    pub email: String,
    pub amount: f64,
    pub date: String,
}

impl Person {
    /// Returns the row of a number, as it is in the input.
    #[must_use]
    pub fn number(id: i64) -> Self {
        Self {
            id,
            first: format!("First{id}"),
            last: format!("Last{id}"),
            email: format!("first{id}.last{id}@example.com"),
            amount: (id % 100_000) as f64 / 100.0,
            date: format!("2026-11-{:02}", id % 28 + 1),
        }
    }

    /// The work of every processor.
    #[must_use]
    pub fn processed(mut self) -> Self {
        self.last = self.last.to_uppercase();
        self.amount = (self.amount * 110.0).round() / 100.0;
        self
    }
}

/// The command line of a program: a verb, then `key=value`.
pub struct Task {
    pub verb: String,
    values: BTreeMap<String, String>,
}

impl Task {
    /// Reads the command line of this process.
    ///
    /// # Panics
    /// If it is not one of the runner.
    #[must_use]
    pub fn of_process() -> Self {
        let mut words = std::env::args().skip(1);
        let verb = words.next().expect("a verb");
        let pair = |word: String| {
            let (key, value) = word.split_once('=').expect("key=value");
            (key.to_owned(), value.to_owned())
        };
        Self {
            verb,
            values: words.map(pair).collect(),
        }
    }

    /// Returns the job of the verb. The verb `jobs` prints the names, for the runner to compare.
    ///
    /// # Panics
    /// If there is no such job.
    #[must_use]
    pub fn job<T: Copy>(&self, jobs: &[(&str, T)]) -> T {
        if self.verb == "jobs" {
            jobs.iter().for_each(|(name, _)| println!("{name}"));
            std::process::exit(0);
        }
        let known = jobs.iter().find(|(name, _)| *name == self.verb);
        known.unwrap_or_else(|| panic!("no job `{}`", self.verb)).1
    }

    /// Returns a value that the runner gives for this verb.
    ///
    /// # Panics
    /// If it is missing.
    #[must_use]
    pub fn value(&self, key: &str) -> &str {
        self.values
            .get(key)
            .unwrap_or_else(|| panic!("`{}` without `{key}`", self.verb))
    }

    #[must_use]
    pub fn input(&self) -> PathBuf {
        self.value("input").into()
    }

    #[must_use]
    pub fn output(&self) -> PathBuf {
        self.value("output").into()
    }

    /// Returns the id of the row that makes the job fail, if it has to.
    #[must_use]
    pub fn fail_at(&self) -> Option<i64> {
        self.values.get("fail").map(|id| id.parse().expect("an id"))
    }

    /// Returns the URL of the PostgreSQL database.
    #[must_use]
    pub fn postgres(&self) -> String {
        let (port, name) = (self.value("port"), self.value("database"));
        format!("postgres://postgres@127.0.0.1:{port}/{name}?sslmode=disable")
    }
}

/// Checks the job's own count of written items, and prints the time of the job for the runner.
///
/// # Panics
/// If the job wrote another number of items.
pub fn report(task: &Task, written: u64, time: Duration) {
    if let Some(expected) = task.values.get("expected") {
        assert_eq!(*expected, written.to_string(), "items written by `{}`", task.verb);
    }
    println!("job-seconds={:.6}", time.as_secs_f64());
}
