//! Checks of work for other processes, before anything starts.

use batch_xml::suggest::nearest;
use thiserror::Error;

use super::JobOperator;
use crate::repository::{RepositoryError, WorkerRow};

/// The longest name of a queue.
const LONGEST_NAME: usize = 100;
/// The difference of two clocks, in milliseconds, that is not worth an error.
const TOLERATED: i64 = 10_000;

/// The reason why work cannot be given to, or taken from, other processes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RemoteProblem {
    /// The name of a queue is empty or too long.
    #[error("the name of a queue has 1 to 100 characters, and `{}` has {}", .0.escape_debug(), .0.chars().count())]
    QueueName(String),
    /// No worker takes from the queue, but one takes from a queue with nearly the same name.
    #[error(
        "no worker takes from the queue `{}`; did you mean `{nearest}`? If not, start a worker of the queue first", .queue.escape_debug()
    )]
    UnknownQueue {
        /// The name of the queue.
        queue: String,
        /// The queue of a worker.
        nearest: String,
    },
    /// The clocks of this host and of the database differ.
    #[error(
        "the clock of this host is {:.1} s {} that of the database; synchronize the clocks of all hosts, because the times of \
         executions come from them", .ahead.unsigned_abs() as f64 / 1e3, if *.ahead < 0 { "behind" } else { "ahead of" }
    )]
    Clock {
        /// How far the clock of this host is ahead, in milliseconds.
        ahead: i64,
    },
    /// The repository is in the memory of this process.
    #[error(
        "the repository `memory:` is in the memory of this process, so no other process can see its work; use `sqlite://PATH`, \
         PostgreSQL or MySQL"
    )]
    InMemory,
    /// A process on another host uses the same SQLite file.
    #[error(
        "the process {owner} on another host uses this SQLite file, whose locks hold on one host only; use PostgreSQL or MySQL for \
         several hosts"
    )]
    SqliteOfOtherHost {
        /// The name of the process: a worker, or the owner of a job execution.
        owner: String,
    },
    /// The repository failed.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

impl JobOperator {
    /// Checks that other processes can see the repository, the name of a queue, the clocks and the hosts.
    // Spec: DISP-16, MEM-02
    pub(crate) fn check_remote(&self, queue: &str) -> Result<(), RemoteProblem> {
        if queue.is_empty() || queue.chars().count() > LONGEST_NAME {
            return Err(RemoteProblem::QueueName(queue.to_owned()));
        }
        let repository = &self.shared.repository;
        let Ok(store) = repository.worker_store() else {
            return Err(RemoteProblem::InMemory);
        };
        let ahead = store.clock_ahead()?;
        if ahead.abs() > TOLERATED {
            return Err(RemoteProblem::Clock { ahead });
        }
        if store.is_on_server() {
            return Ok(());
        }
        let host = |name: &str| name.split('/').next().unwrap_or_default().to_owned();
        let here = host(repository.owner_name());
        let workers = store.workers()?.into_iter().filter(|worker| worker.is_alive);
        let mut owners = store.owners()?;
        owners.extend(workers.map(|worker| worker.name));
        match owners.into_iter().find(|owner| host(owner) != here) {
            Some(owner) => Err(RemoteProblem::SqliteOfOtherHost { owner }),
            None => Ok(()),
        }
    }

    /// Checks as `check_remote` does, and rejects a misspelt name of a queue that work is given to.
    pub(crate) fn check_queue(&self, queue: &str) -> Result<(), RemoteProblem> {
        self.check_remote(queue)?;
        let workers = self.shared.repository.worker_store()?.workers()?;
        match misspelt(queue, &workers) {
            None => Ok(()),
            Some(nearest) => Err(RemoteProblem::UnknownQueue {
                queue: queue.to_owned(),
                nearest: nearest.to_owned(),
            }),
        }
    }
}

/// Returns the queue that was probably meant. A queue without a worker may have one later, and names such as `eu-1` and `eu-2` are not
/// misspelt.
fn misspelt<'w>(queue: &str, workers: &'w [WorkerRow]) -> Option<&'w str> {
    let known = || workers.iter().map(|worker| worker.queue.as_str());
    if known().any(|known| known == queue) {
        return None;
    }
    let letters = |name: &str| name.replace(|digit: char| digit.is_ascii_digit(), "");
    let near = nearest(queue, known())?;
    (letters(near) != letters(queue)).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: DISP-16
    #[test]
    fn only_misspelt_queues_are_unknown() {
        let worker = |queue: &str| WorkerRow {
            name: "host/1/a/locked".into(),
            queue: queue.into(),
            slots: 1,
            version: String::new(),
            is_draining: false,
            started: 0,
            expires: 0,
            is_alive: true,
            partitions: Vec::new(),
        };
        let workers = [worker("printers"), worker("eu-1")];
        for (queue, meant) in [
            ("prnters", Some("printers")),
            ("printers", None),
            ("eu-2", None),
            ("default", None),
        ] {
            assert_eq!(misspelt(queue, &workers), meant, "{queue}");
        }
    }
}
