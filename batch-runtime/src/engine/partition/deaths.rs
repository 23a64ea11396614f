//! The workers that died while they ran a partition.

/// The attempts to run a partition that have ended without a recorded end.
#[derive(Default)]
pub(super) struct Deaths {
    /// The workers that died since the last progress, for the failure of the partition.
    workers: Vec<String>,
    /// The commits of the partition at the last death.
    commits: i64,
    /// The number of attempts that made progress, or came before one that did.
    forgiven: i64,
}

impl Deaths {
    /// Notes the end of an attempt, with the worker and the commits of the partition if the worker has died. Progress since the death
    /// before starts the count again.
    pub(super) fn note(&mut self, attempts: i64, died: Option<(String, i64)>) {
        // A lease that was released, or never taken, proves no death.
        let Some((worker, commits)) = died else { return };
        if commits > self.commits {
            self.commits = commits;
            self.workers.clear();
            // This death is the first one since the progress, so it counts.
            self.forgiven = attempts - 1;
        }
        self.workers.push(format!("{worker} after {commits} commits"));
    }

    /// Returns the failure of the partition if it had as many attempts without progress as `limit`, unless that is 0.
    pub(super) fn failure(&self, attempts: i64, limit: i64) -> Option<String> {
        let attempts = attempts - self.forgiven;
        if limit == 0 || attempts < limit {
            return None;
        }
        let list = self.workers.join(", ");
        let why = match self.workers.len() {
            0 => format!(
                "{attempts} attempts to run the partition could not record their end; see the logs of the workers"
            ),
            dead if i64::try_from(dead) == Ok(attempts) => {
                format!("{attempts} workers died while they ran the partition: {list}")
            }
            _ => format!(
                "{attempts} attempts to run the partition ended without a record; see the logs of the workers, of which died: {list}"
            ),
        };
        Some(format!("{why} (`crash-limit` is {limit})"))
    }
}

#[cfg(test)]
mod tests {
    use super::Deaths;

    fn died(commits: i64) -> Option<(String, i64)> {
        Some(("a".to_owned(), commits))
    }

    // Spec: DISP-07
    #[test]
    fn a_partition_fails_after_deaths_without_progress() {
        let mut deaths = Deaths::default();
        for attempt in 1..=9 {
            deaths.note(attempt, died(attempt * 10));
            assert_eq!(deaths.failure(attempt, 3), None, "each made progress");
        }
        deaths.note(10, died(90));
        assert_eq!(deaths.failure(10, 3), None);
        deaths.note(11, died(90));
        assert_eq!(
            deaths.failure(11, 3).unwrap(),
            "3 workers died while they ran the partition: a after 90 commits, a after 90 commits, a after 90 commits \
             (`crash-limit` is 3)"
        );
        assert_eq!(deaths.failure(11, 0), None, "no limit");
    }

    // Spec: DISP-07
    #[test]
    fn only_dead_workers_are_said_to_have_died() {
        let mut deaths = Deaths::default();
        (1..=2).for_each(|attempt| deaths.note(attempt, None));
        assert!(!deaths.failure(2, 2).unwrap().contains("died"));
        deaths.note(3, died(0));
        assert!(
            deaths
                .failure(3, 2)
                .unwrap()
                .contains("of which died: a after 0 commits")
        );
    }
}
