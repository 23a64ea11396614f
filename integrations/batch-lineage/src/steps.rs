//! The run of a step: its datasets, and the rows that its partitions have read and written.

use std::collections::BTreeMap;

use batch_runtime::Timestamp;
use batch_runtime::execution::StepCounters;
use batch_runtime::observer::{Dataset, DatasetField, DatasetRole, StepBody};

use crate::parent::RunOf;

/// The minimum time between events RUNNING, in milliseconds.
const PAUSE: u64 = 30_000;

/// A dataset that a step uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) role: DatasetRole,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) fields: Vec<DatasetField>,
    is_counted: bool,
    /// The rows of the executions that used no other dataset of this role; `None` if there were none.
    rows: Option<i64>,
    /// True once an execution used several, so that the rows of each are not known.
    is_shared: bool,
}

impl Used {
    /// Returns the number of its rows, if that is known.
    pub(crate) fn rows(&self) -> Option<i64> {
        self.rows.filter(|_| !self.is_shared)
    }
}

/// The run of a step.
pub(crate) struct StepRun {
    pub(crate) run: RunOf,
    /// The run of its job.
    pub(crate) job: RunOf,
    /// True if another process coordinates the partitions that run here.
    pub(crate) is_remote: bool,
    pub(crate) datasets: Vec<Used>,
    /// The executions that run, by their names in the repository: the step or its partitions, with the places of their datasets.
    executions: BTreeMap<String, Vec<usize>>,
    last_event: Timestamp,
    /// True if a dataset is in no event yet.
    has_news: bool,
    /// True once an event has had datasets.
    has_shown: bool,
}

impl StepRun {
    pub(crate) fn new(run: RunOf, job: RunOf, is_remote: bool, at: Timestamp) -> Self {
        Self {
            run,
            job,
            is_remote,
            datasets: Vec::new(),
            executions: BTreeMap::new(),
            last_event: at,
            has_news: false,
            has_shown: false,
        }
    }

    /// Notes the start of the step or of a partition.
    pub(crate) fn started(&mut self, execution: &str) {
        self.executions.insert(execution.to_owned(), Vec::new());
    }

    /// Notes a dataset of an execution.
    pub(crate) fn uses(&mut self, execution: &str, dataset: &Dataset) {
        let is_same = |used: &Used| {
            used.role == dataset.role && used.namespace == dataset.namespace && used.name == dataset.name
        };
        let place = self.datasets.iter().position(is_same);
        let place = place.unwrap_or_else(|| {
            self.datasets.push(Used {
                role: dataset.role,
                namespace: dataset.namespace.clone(),
                name: dataset.name.clone(),
                fields: Vec::new(),
                is_counted: dataset.is_counted,
                rows: None,
                is_shared: false,
            });
            self.has_news = true;
            self.datasets.len() - 1
        });
        let used = &mut self.datasets[place];
        if !dataset.fields.is_empty() && used.fields != dataset.fields {
            used.fields.clone_from(&dataset.fields);
            self.has_news = true;
        }
        let own = self.executions.entry(execution.to_owned()).or_default();
        if !own.contains(&place) {
            own.push(place);
        }
    }

    /// Notes the end of the step or of a partition. Returns whether it was the last one that ran.
    pub(crate) fn ended(&mut self, execution: &str, counted: Option<(StepBody, &StepCounters)>) -> bool {
        let own = self.executions.remove(execution).unwrap_or_default();
        if let Some((StepBody::Chunk, counters)) = counted {
            self.count(&own, DatasetRole::Input, counters.reads);
            self.count(&own, DatasetRole::Output, counters.writes);
        }
        self.executions.is_empty()
    }

    /// Adds rows to the dataset of a role, if the execution has used no other one.
    fn count(&mut self, own: &[usize], role: DatasetRole, rows: i64) {
        let of_role = own.iter().copied();
        let of_role: Vec<_> = of_role
            .filter(|place| self.datasets[*place].role == role && self.datasets[*place].is_counted)
            .collect();
        for place in &of_role {
            let used = &mut self.datasets[*place];
            match of_role.len() {
                1 => used.rows = Some(used.rows.unwrap_or_default() + rows),
                _ => used.is_shared = true,
            }
        }
    }

    /// Returns whether the event RUNNING is due: the first one with datasets, and others from time to time.
    pub(crate) fn is_due(&self, at: Timestamp) -> bool {
        let is_first = self.has_news && !self.has_shown;
        is_first || at.millis_since(self.last_event) >= PAUSE
    }

    /// Returns whether a dataset is in no event yet.
    pub(crate) fn has_news(&self) -> bool {
        self.has_news
    }

    /// Notes an event of the run.
    pub(crate) fn shown(&mut self, at: Timestamp) {
        self.last_event = at;
        self.has_shown |= !self.datasets.is_empty();
        self.has_news = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step() -> StepRun {
        let run = |job: &str| RunOf {
            namespace: "n".into(),
            job: job.into(),
            run: job.into(),
        };
        StepRun::new(run("job.load"), run("job"), false, Timestamp(0))
    }

    fn input(name: &str) -> Dataset {
        Dataset::new(DatasetRole::Input, "file", name)
    }

    fn counted(reads: i64) -> StepCounters {
        StepCounters {
            reads,
            ..StepCounters::default()
        }
    }

    fn rows(step: &StepRun) -> Vec<Option<i64>> {
        step.datasets.iter().map(Used::rows).collect()
    }

    // Spec: LIN-06
    #[test]
    fn rows_of_partitions_are_summed() {
        let mut step = step();
        for (partition, file, reads) in [("load:1", "a", 3), ("load:2", "b", 4), ("load:3", "a", 5)] {
            step.started(partition);
            step.uses(partition, &input(file));
            assert!(step.ended(partition, Some((StepBody::Chunk, &counted(reads)))));
        }
        assert_eq!(rows(&step), [Some(8), Some(4)]);
    }

    // Spec: LIN-06
    #[test]
    fn rows_of_several_datasets_are_not_known() {
        let mut step = step();
        step.started("load");
        step.uses("load", &input("a"));
        step.uses("load", &input("b"));
        step.uses("load", &input("b"));
        step.ended("load", Some((StepBody::Chunk, &counted(3))));
        assert_eq!(rows(&step), [None, None]);
    }

    // Spec: LIN-06
    #[test]
    fn rows_are_not_those_of_rejects() {
        let mut step = step();
        step.started("load");
        step.uses("load", &input("rejects").uncounted());
        step.uses("load", &input("a"));
        step.ended("load", Some((StepBody::Chunk, &counted(3))));
        assert_eq!(rows(&step), [None, Some(3)]);
    }

    // Spec: LIN-03
    #[test]
    fn a_run_shows_its_datasets_once_and_then_from_time_to_time() {
        let mut step = step();
        step.started("load");
        assert!(!step.is_due(Timestamp(29_999)));
        step.uses("load", &input("a"));
        assert!(step.is_due(Timestamp(1)));
        step.shown(Timestamp(1));
        // Further ones wait.
        step.uses("load", &input("b"));
        assert!(step.has_news() && !step.is_due(Timestamp(30_000)));
        assert!(step.is_due(Timestamp(30_001)));
        step.shown(Timestamp(30_001));
        assert!(!step.has_news());
        // The same ones with fields are news.
        let fields = [("id".to_owned(), Some("bigint".to_owned()))];
        step.uses("load", &input("b").with_fields(fields));
        assert!(step.has_news());
    }
}
