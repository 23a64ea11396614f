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
        let (mut all, mut outside, mut commits) = (Vec::new(), Vec::new(), 0);
        let mut transactions: HashMap<&str, Transaction> = HashMap::new();
        for line in text.lines() {
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
        Some(Self { all, outside })
    }

    /// Returns whether a statement on a table was in no transaction of the repository.
    pub(super) fn is_outside(&self, table: &str) -> bool {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let names = |statement: &String| {
            let mut words = statement.split(|c| !is_name(c));
            words.any(|word| word.eq_ignore_ascii_case(table))
        };
        self.outside.iter().any(names)
    }
}
