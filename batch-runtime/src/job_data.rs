//! The persistent data of a job execution.
// Spec: DATA-01 to DATA-04

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::checkpoint::UserDataError;
use crate::error::BatchError;
use crate::repository::{DECISION, DataChanges, RepositoryLayout, from_java, to_java};

/// The largest value, in bytes of JSON.
const MAX_VALUE: usize = 1024 * 1024;
/// The start of the names of the runtime's own entries, and of Spring Batch's.
const RESERVED: &str = "batch.";

/// The persistent data of a job execution: values by their names.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PersistentData(BTreeMap<String, String>);

impl PersistentData {
    /// `entries` are in the form of Spring Batch.
    pub(crate) fn new(entries: BTreeMap<String, String>) -> Self {
        Self(entries)
    }

    /// Returns a value; `None` if nothing has this name.
    ///
    /// # Errors
    /// If the value has another type.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, UserDataError> {
        self.0.get(name).map(|stored| decode(stored)).transpose()
    }

    /// Returns the names with their values as JSON, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, String)> {
        let entries = self.0.iter().filter(|(name, _)| !name.starts_with(DECISION));
        entries.map(|(name, stored)| {
            let plain = from_java(stored).map(|value| value.to_string());
            (name.as_str(), plain.unwrap_or_else(|| stored.clone()))
        })
    }

    /// Returns the decisions of the execution by their paths, with the answers of their deciders.
    // Spec: DEC-18
    pub fn decisions(&self) -> impl Iterator<Item = (&str, String)> {
        self.0.iter().filter_map(|(name, stored)| {
            let path = name.strip_prefix(DECISION)?;
            Some((path, decode(stored).unwrap_or_else(|_| stored.clone())))
        })
    }
}

impl fmt::Debug for PersistentData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

fn decode<T: DeserializeOwned>(stored: &str) -> Result<T, UserDataError> {
    let value = from_java(stored).ok_or_else(|| UserDataError::of_json::<T>(stored))?;
    let shown = value.to_string();
    serde_json::from_value(value).map_err(|_| UserDataError::of_json::<T>(&shown))
}

/// The committed data of a job execution, shared by its threads.
#[derive(Clone, Default)]
pub(crate) struct CommittedData {
    entries: Arc<Mutex<BTreeMap<String, String>>>,
    layout: RepositoryLayout,
}

impl CommittedData {
    pub(crate) fn new(entries: BTreeMap<String, String>, layout: RepositoryLayout) -> Self {
        Self {
            entries: Arc::new(Mutex::new(entries)),
            layout,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The data as the artifacts of one thread of the job see it: with the changes that are not committed yet.
#[derive(Clone, Default)]
pub(crate) struct JobData {
    committed: CommittedData,
    changes: Arc<Mutex<Changes>>,
    /// True in a partition.
    is_read_only: bool,
}

#[derive(Default)]
struct Changes {
    pending: DataChanges,
    /// Those from before the current chunk.
    before_chunk: DataChanges,
}

impl JobData {
    pub(crate) fn new(committed: CommittedData, is_read_only: bool) -> Self {
        Self {
            committed,
            changes: Arc::default(),
            is_read_only,
        }
    }

    /// Returns the data for the thread of a subjob.
    pub(crate) fn for_subjob(&self, is_read_only: bool) -> Self {
        Self::new(self.committed.clone(), self.is_read_only || is_read_only)
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, UserDataError> {
        let changed = self.changes().pending.get(name).cloned();
        let stored = match changed {
            Some(changed) => changed,
            None => self.committed.lock().get(name).cloned(),
        };
        stored.map(|stored| decode(&stored)).transpose()
    }

    /// Encodes a value; `None` if it is `null`.
    pub(crate) fn encode<T: Serialize + ?Sized>(
        &self,
        name: &str,
        value: &T,
    ) -> Result<Option<String>, BatchError> {
        self.check(name)?;
        let problem = |problem: String| BatchError::msg(format!("cannot store the data `{name}`: {problem}"));
        let stored = to_java(value, self.committed.layout);
        let stored = stored.map_err(|error| problem(error.to_string()))?;
        if stored.len() > MAX_VALUE {
            let bytes = stored.len();
            return Err(problem(format!(
                "it has {bytes} bytes of JSON, and at most {MAX_VALUE} are allowed; store it in a table or file"
            )));
        }
        Ok(Some(stored).filter(|stored| stored != "null"))
    }

    /// Checks that a value of this name can be changed here.
    pub(crate) fn check(&self, name: &str) -> Result<(), BatchError> {
        let problem = match name {
            _ if self.is_read_only => {
                "a partition cannot change the data of the job; report to an analyzer, which can"
            }
            "" => "its name is empty",
            "@class" => "the name is reserved",
            name if name.starts_with(RESERVED) => "names that begin with `batch.` are reserved",
            _ => return Ok(()),
        };
        Err(BatchError::msg(format!(
            "cannot change the data `{name}`: {problem}"
        )))
    }

    /// Changes a value, or removes it.
    pub(crate) fn change(&self, name: &str, stored: Option<String>) {
        self.changes().pending.insert(name.to_owned(), stored);
    }

    /// Notes the answer of a decider, for those who look at the execution. In a partition it is not kept.
    // Spec: DEC-18
    pub(crate) fn note_decision(&self, path: &str, answer: &str) {
        if !self.is_read_only {
            let stored = serde_json::Value::from(answer).to_string();
            self.change(&format!("{DECISION}{path}"), Some(stored));
        }
    }

    /// Stores fields of a JSON object under their names. Returns the problems: what cannot be stored is left out.
    pub(crate) fn promote(&self, names: &[String], object: &str) -> Vec<String> {
        let fields: Option<BTreeMap<String, serde_json::Value>> = serde_json::from_str(object).ok();
        let Some(fields) = fields else {
            return vec!["the persistent user data of the step is not a struct or map".into()];
        };
        let mut problems = Vec::new();
        for name in names {
            match fields.get(name).map(|value| self.encode(name, value)) {
                Some(Ok(stored)) => self.change(name, stored),
                Some(Err(error)) => problems.push(error.to_string()),
                None => problems.push(format!(
                    "the persistent user data of the step has no field `{name}`"
                )),
            }
        }
        problems
    }

    /// Returns the changes that are not committed.
    pub(crate) fn pending(&self) -> DataChanges {
        self.changes().pending.clone()
    }

    /// Notes the start of a chunk.
    pub(crate) fn begin_chunk(&self) {
        let changes = &mut *self.changes();
        changes.before_chunk.clone_from(&changes.pending);
    }

    /// Undoes the changes since the start of the chunk.
    pub(crate) fn roll_back_chunk(&self) {
        let changes = &mut *self.changes();
        changes.pending.clone_from(&changes.before_chunk);
    }

    /// Commits the changes by `save`, if there are any.
    pub(crate) fn save<E>(&self, save: impl FnOnce(&DataChanges) -> Result<(), E>) -> Result<(), E> {
        let pending = self.pending();
        if !pending.is_empty() {
            save(&pending)?;
            self.committed(pending);
        }
        Ok(())
    }

    /// Notes that changes are committed.
    pub(crate) fn committed(&self, committed: DataChanges) {
        if committed.is_empty() {
            return;
        }
        let mut changes = self.changes();
        changes.before_chunk.clear();
        let mut entries = self.committed.lock();
        for (name, stored) in committed {
            // It may have been changed again meanwhile.
            if changes.pending.get(&name) == Some(&stored) {
                changes.pending.remove(&name);
            }
            match stored {
                Some(stored) => entries.insert(name, stored),
                None => entries.remove(&name),
            };
        }
    }
}
