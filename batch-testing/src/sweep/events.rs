//! The events that a child process has written.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// The number of characters of a statement that a message shows.
const SHOWN: usize = 100;

/// Returns whether a statement begins a transaction.
pub(super) fn begins(statement: &str) -> bool {
    statement.starts_with("BEGIN") || statement.contains("START TRANSACTION")
}

/// The line in the file of events that records the fault.
pub(super) const STRUCK: &str = "! struck\n";

/// An event of a run.
pub(super) struct Event {
    /// `before` or `after`, and the statement.
    pub(super) text: String,
    /// The number of commits before it.
    pub(super) commits: usize,
}

/// The events of a run, in their order, and the statements that are not events.
pub(super) struct Events {
    pub(super) all: Vec<Event>,
    /// The other statements that were in no transaction of the repository.
    outside: Vec<String>,
    /// Whether the fault has happened.
    pub(super) struck: bool,
}

/// A transaction of a connection.
#[derive(Default)]
struct Transaction {
    others: Vec<String>,
    is_of_repository: bool,
}

impl Events {
    /// Reads the events; `None` if the process has not written any.
    pub(super) fn read(file: &Path) -> Option<Self> {
        let text = fs::read_to_string(file).ok()?;
        let (mut all, mut outside, mut commits, mut struck) = (Vec::new(), Vec::new(), 0, false);
        let mut transactions: HashMap<&str, Transaction> = HashMap::new();
        for line in text.lines() {
            struck |= line == STRUCK.trim_end();
            let mut parts = line.splitn(3, ' ');
            let (Some(number), Some(connection), Some(rest)) = (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            if number == "-" {
                match transactions.get_mut(connection) {
                    Some(transaction) => transaction.others.push(rest.to_owned()),
                    None => outside.push(rest.to_owned()),
                }
                if rest.starts_with("ROLLBACK") && !rest.contains("SAVEPOINT") {
                    transactions.remove(connection);
                }
                continue;
            }
            all.push(Event {
                text: rest.chars().take(SHOWN).collect(),
                commits,
            });
            if rest.strip_prefix("before ").is_some_and(begins) {
                transactions.insert(connection, Transaction::default());
            } else if rest == "after COMMIT" {
                commits += 1;
                let ended = transactions.remove(connection).unwrap_or_default();
                if !ended.is_of_repository {
                    outside.extend(ended.others);
                }
            } else if rest != "before COMMIT"
                && let Some(transaction) = transactions.get_mut(connection)
            {
                transaction.is_of_repository = true;
            }
        }
        Some(Self { all, outside, struck })
    }

    /// Returns whether a statement that writes to a table was in no transaction of the repository.
    pub(super) fn is_outside(&self, table: &str) -> bool {
        const WRITES: [&str; 7] = ["insert", "update", "delete", "replace", "merge", "copy", "with"];
        let table = [table.to_lowercase()];
        let writes = |statement: &str| {
            let first = statement.split_whitespace().next().unwrap_or_default();
            WRITES.contains(&first.to_lowercase().as_str())
        };
        let mut outside = self.outside.iter();
        outside.any(|statement| writes(statement) && names_one_of(statement, &table))
    }
}

/// Returns whether a statement contains one of these names, which are in lower case.
pub(super) fn names_one_of(statement: &str, names: &[String]) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let lower = statement.to_lowercase();
    let mut words = lower.split(|c| !is_name(c));
    words.any(|word| names.iter().any(|name| name == word))
}
