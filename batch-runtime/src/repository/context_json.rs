//! The execution context in its stored form: the JSON that Spring Batch 4.3 reads.
//!
//! Values are strings; a checkpoint is the JSON text of the artifact's own type inside such a string. So nothing of a
//! Rust type needs Java's type tags, and a checkpoint comes back exactly as it was given.
//!
//! Spec: REPO-66, REPO-69, D-69

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::checkpoint::CheckpointInfo;
use crate::plan::PartitionPlan;

const CLASS_KEY: &str = "@class";
const CLASS: &str = "java.util.HashMap";
/// What stands in each context of Spring Batch, and says nothing.
const OF_ALL: [&str; 3] = [CLASS_KEY, "batch.taskletType", "batch.stepType"];
/// The widest SHORT_CONTEXT; what is longer goes to SERIALIZED_CONTEXT.
const SHORT_CONTEXT: usize = 2_500;

// The keys do not hold the artifact's name: a reader that was renamed between two executions must not lose its place.
const READER: &str = "batch.reader.checkpoint";
const WRITER: &str = "batch.writer.checkpoint";
const USER_DATA: &str = "batch.persistent.user.data";
const TERMINATION: &str = "batch.termination";
const RESTART: &str = "batch.restart.position";
const ELEMENTS: &str = "batch.parallel.elements";

/// What a step keeps from one execution to the next. Spec: REPO-68
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StepState {
    /// The reader's checkpoint.
    pub(crate) reader: Option<CheckpointInfo>,
    /// The writer's checkpoint.
    pub(crate) writer: Option<CheckpointInfo>,
    /// Persistent user data.
    pub(crate) user_data: Option<CheckpointInfo>,
    /// How a `fail`, `end` or `stop` element within a partition of a flow ended the job.
    pub(crate) termination: Option<CheckpointInfo>,
    /// An entry that another program made, such as Spring Batch; it is not kept.
    pub(crate) foreign: Option<String>,
}

impl StepState {
    fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        [
            (READER, &self.reader),
            (WRITER, &self.writer),
            (USER_DATA, &self.user_data),
            (TERMINATION, &self.termination),
        ]
        .into_iter()
        .filter_map(|(key, value)| value.as_ref().map(|value| (key, value.as_json())))
    }

    /// The stored form.
    pub(crate) fn encode(&self) -> StoredContext {
        StoredContext::new(self.entries())
    }

    /// From the stored form.
    ///
    /// # Errors
    /// When the text is no such JSON.
    pub(crate) fn decode(text: &str) -> Result<Self, String> {
        let mut entries = decode_entries(text)?;
        let mut take = |key| take_text(&mut entries, key).map(CheckpointInfo::from_json);
        Ok(Self {
            reader: take(READER),
            writer: take(WRITER),
            user_data: take(USER_DATA),
            termination: take(TERMINATION),
            foreign: entries.into_keys().find(|key| !OF_ALL.contains(&key.as_str())),
        })
    }
}

/// Where a restart begins after a `stop` element. Kept in the context of the job execution that it ended.
///
/// Spec: RESTART-04, D-24
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RestartPosition {
    /// Id of the job-level element.
    pub(crate) element: String,
    /// What was executed before it, which a decision asks for.
    pub(crate) after: Option<ElementBefore>,
}

/// An element that was executed, with its final statuses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ElementBefore {
    pub(crate) id: String,
    pub(crate) kind: ElementKind,
    pub(crate) batch_status: String,
    pub(crate) exit_status: String,
}

/// What kind of element has a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ElementKind {
    Step,
    Flow,
    Split,
}

/// What is kept of a partitioned step or flow, or of a split, while it is not complete.
///
/// Spec: PART-30, LTX-16, D-48, D-50
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ElementState {
    /// The logical transaction, while it is open.
    pub(crate) tx: Option<TxState>,
    /// The job execution that committed the logical transaction.
    pub(crate) committed: Option<i64>,
    /// The plan of the first attempt.
    pub(crate) plan: Option<PartitionPlan>,
    /// The job execution that made the plan.
    pub(crate) planned: i64,
    /// The algorithm that it was asked of, if it was not the XML that told.
    pub(crate) algorithm: Option<String>,
    /// Step executions of job executions before this one do not count: their work has been undone.
    pub(crate) since: Option<i64>,
}

/// How far a logical transaction is. Each is recorded before the call that it announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TxState {
    /// `#[logical_tx_begin]` may have been called.
    Begun,
    /// All subjobs are complete; only `#[logical_tx_after_completion]` is owed.
    Committed,
    /// `#[logical_tx_rollback]` is owed until it returns.
    RollingBack,
}

/// The context of a job execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobState {
    pub(crate) restart: Option<RestartPosition>,
    /// By the path of the element.
    pub(crate) elements: BTreeMap<String, ElementState>,
}

impl JobState {
    /// The stored form.
    pub(crate) fn encode(&self) -> Result<StoredContext, serde_json::Error> {
        let restart = self.restart.as_ref().map(serde_json::to_string).transpose()?;
        let elements = (!self.elements.is_empty())
            .then(|| serde_json::to_string(&self.elements))
            .transpose()?;
        let entries = [(RESTART, &restart), (ELEMENTS, &elements)];
        Ok(StoredContext::new(
            entries
                .into_iter()
                .filter_map(|(key, text)| Some((key, text.as_deref()?))),
        ))
    }

    /// From the stored form; entries of others are passed over.
    ///
    /// # Errors
    /// When the text is no such JSON.
    pub(crate) fn decode(text: &str) -> Result<Self, String> {
        let mut entries = decode_entries(text)?;
        let restart = take_text(&mut entries, RESTART).map(|text| serde_json::from_str(&text));
        let elements = take_text(&mut entries, ELEMENTS).map(|text| serde_json::from_str(&text));
        let broken = |error| format!("holds no state of a job ({error})");
        Ok(Self {
            restart: restart.transpose().map_err(broken)?,
            elements: elements.transpose().map_err(broken)?.unwrap_or_default(),
        })
    }
}

/// The two columns of a context row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredContext {
    /// SHORT_CONTEXT: the whole context, or its beginning.
    pub(crate) short: String,
    /// SERIALIZED_CONTEXT: the whole context if it does not fit into SHORT_CONTEXT.
    pub(crate) serialized: Option<String>,
}

impl StoredContext {
    /// A context without entries.
    pub(crate) fn empty() -> Self {
        Self::new(std::iter::empty())
    }

    fn new<'a>(entries: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut text = String::with_capacity(256);
        let _ = write!(text, "{{\"{CLASS_KEY}\":\"{CLASS}\"");
        for (key, value) in entries {
            text.push(',');
            push_json_string(&mut text, key);
            text.push(':');
            push_json_string(&mut text, value);
        }
        text.push('}');
        // The text is pure ASCII, so bytes are characters.
        if text.len() <= SHORT_CONTEXT {
            return Self {
                short: text,
                serialized: None,
            };
        }
        let short = format!("{} ...", &text[..SHORT_CONTEXT - 8]);
        Self {
            short,
            serialized: Some(text),
        }
    }
}

/// Appends `value` as a JSON string of ASCII characters only: Spring Batch 4.3 reads the bytes as ISO-8859-1.
fn push_json_string(text: &mut String, value: &str) {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            ' '..='~' => text.push(character),
            _ => {
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
        }
    }
    text.push('"');
}

type Entries = BTreeMap<String, serde_json::Value>;

fn take_text(entries: &mut Entries, key: &str) -> Option<String> {
    match entries.remove(key) {
        Some(serde_json::Value::String(text)) => Some(text),
        _ => None,
    }
}

fn decode_entries(text: &str) -> Result<Entries, String> {
    serde_json::from_str(text).map_err(|error| format!("holds no JSON object ({error})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(reader: &str) -> StepState {
        StepState {
            reader: Some(CheckpointInfo::from_json(reader.into())),
            ..StepState::default()
        }
    }

    /// Spec: REPO-66, REPO-69, REPO-75
    #[test]
    fn a_context_is_ascii_json_and_comes_back() {
        let state = state(r#"{"file":"é漢😀\n","line":3}"#);
        let stored = state.encode();
        assert!(stored.short.is_ascii() && stored.serialized.is_none());
        assert!(
            stored
                .short
                .starts_with(r#"{"@class":"java.util.HashMap","batch.reader.checkpoint":"{\"file\""#)
        );
        assert_eq!(StepState::decode(&stored.short), Ok(state));
        assert_eq!(StoredContext::empty().short, r#"{"@class":"java.util.HashMap"}"#);
    }

    /// Spec: REPO-66, REPO-76
    #[test]
    fn a_long_context_is_whole_in_serialized_context() {
        let around = |length: usize| {
            let overhead = state("").encode().short.len();
            state(&"x".repeat(length - overhead)).encode()
        };
        assert_eq!(around(2_500).serialized, None);
        let long = around(2_501);
        assert_eq!(long.serialized.as_ref().map(String::len), Some(2_501));
        assert_eq!(long.short.len(), 2_496);
        assert!(long.short.ends_with(" ..."));
    }

    /// Spec: RESTART-04, PART-30, LTX-16
    #[test]
    fn the_state_of_a_job_comes_back() {
        let state = JobState {
            restart: Some(RestartPosition {
                element: "decide".into(),
                after: Some(ElementBefore {
                    id: "load".into(),
                    kind: ElementKind::Step,
                    batch_status: "COMPLETED".into(),
                    exit_status: "EMPTY".into(),
                }),
            }),
            elements: BTreeMap::from([(
                "load:2/rows".into(),
                ElementState {
                    tx: Some(TxState::RollingBack),
                    committed: Some(6),
                    plan: Some(PartitionPlan::with_properties([[("month", "1")]])),
                    planned: 7,
                    algorithm: Some("Months".into()),
                    since: Some(7),
                },
            )]),
        };
        let stored = state.encode().unwrap();
        assert_eq!(JobState::decode(&stored.short), Ok(state));
        assert_eq!(
            JobState::decode(&StoredContext::empty().short),
            Ok(JobState::default())
        );
        assert_eq!(JobState::default().encode().unwrap(), StoredContext::empty());
        assert!(JobState::decode(r#"{"batch.restart.position":"step1"}"#).is_err());
    }

    #[test]
    fn entries_of_others_are_passed_over_and_other_text_is_an_error() {
        let java = r#"{"@class":"java.util.HashMap","r.read.count":11,"d":["java.lang.Long",2]}"#;
        let foreign = |text: &str| StepState::decode(text).map(|state| state.foreign);
        assert_eq!(foreign(java), Ok(Some("d".to_owned())));
        assert_eq!(StepState::decode(java).unwrap().encode(), StoredContext::empty());
        let without_state = r#"{"@class":"java.util.HashMap","batch.stepType":"x","batch.taskletType":"y"}"#;
        assert_eq!(foreign(without_state), Ok(None));
        assert!(StepState::decode("rO0AB").is_err());
    }
}
