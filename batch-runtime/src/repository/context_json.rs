//! The stored form of the execution context: JSON that Spring Batch reads.
//!
//! Values are strings; a checkpoint is the JSON text of the artifact's own type in such a string. So Rust types need
//! no type tags of Java, and a checkpoint is restored exactly.
// Spec: REPO-66, REPO-69, D-69

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::RepositoryFormat;
use super::stored_context::{CLASS_KEY, OtherEntries, StoredContext};
use crate::checkpoint::CheckpointInfo;
use crate::plan::PartitionPlan;

/// The entries in the context of every step that Spring Batch has executed.
const SPRING_BATCH_ENTRIES: [&str; 3] = ["batch.taskletType", "batch.stepType", "batch.version"];
/// The start of a context that Java has serialized, in Base64.
const SERIALIZED_BY_JAVA: &str = "rO0AB";

// The keys do not contain the artifact's name, so that a renamed reader keeps its position.
const READER: &str = "batch.reader.checkpoint";
const WRITER: &str = "batch.writer.checkpoint";
const USER_DATA: &str = "batch.persistent.user.data";
const SKIPS: &str = "batch.skips.by.class";
const MARKER: &str = "batch.marker";
const TERMINATION: &str = "batch.termination";
const RESTART: &str = "batch.restart.position";
const ELEMENTS: &str = "batch.parallel.elements";
const TRACEPARENT: &str = "batch.traceparent";
/// Followed by the path of a decision: its answer.
// Spec: DEC-18
pub(crate) const DECISION: &str = "batch.decision.";

/// Changed entries of the context of a job execution, in the form of Spring Batch; `None` removes one.
// Spec: DATA-01
pub(crate) type DataChanges = BTreeMap<String, Option<String>>;

/// Returns whether Java has serialized a context.
pub(crate) fn is_of_java(text: &str) -> bool {
    text.starts_with(SERIALIZED_BY_JAVA)
}

/// A context that is not one of this runtime or of Spring Batch.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ContextError {
    #[error(
        "was serialized by Java, as Spring Batch 5 and 6 do by default, and only the program that wrote it can resume from it; to share \
         instances, give its repository a Jackson serializer"
    )]
    Java,
    #[error("does not contain a JSON object ({0})")]
    Json(#[source] serde_json::Error),
    #[error("has an entry `{key}` that is not a JSON string ({source})")]
    Entry {
        key: &'static str,
        source: serde_json::Error,
    },
    #[error("does not contain the state of a job ({0})")]
    State(#[source] serde_json::Error),
}

/// The state that a step passes from one execution to the next.
// Spec: REPO-68
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StepState {
    /// The reader's checkpoint.
    pub(crate) reader: Option<CheckpointInfo>,
    /// The writer's checkpoint.
    pub(crate) writer: Option<CheckpointInfo>,
    /// Persistent user data.
    pub(crate) user_data: Option<CheckpointInfo>,
    /// The skips by class, if the step limits them.
    pub(crate) skips: Option<CheckpointInfo>,
    /// The position of the marker in the writer's destination.
    // Spec: MARK-04
    pub(crate) marker: Option<CheckpointInfo>,
    /// The end of the job by a `fail`, `end` or `stop` element in a partition of a flow.
    pub(crate) termination: Option<CheckpointInfo>,
    /// The entries of other programs, such as Spring Batch.
    pub(crate) other_entries: OtherEntries,
    /// Whether another program executed the step last; not stored. That program copies entries, so checkpoints of
    /// this runtime may be present but outdated.
    pub(crate) of_other_program: bool,
}

impl StepState {
    fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        [
            (READER, &self.reader),
            (WRITER, &self.writer),
            (USER_DATA, &self.user_data),
            (SKIPS, &self.skips),
            (MARKER, &self.marker),
            (TERMINATION, &self.termination),
        ]
        .into_iter()
        .filter_map(|(key, value)| value.as_ref().map(|value| (key, value.as_json())))
    }

    /// Returns whether the reader can continue where the step was interrupted: its checkpoint is not `()`.
    pub(crate) fn has_position(&self) -> bool {
        self.reader
            .as_ref()
            .is_some_and(|checkpoint| checkpoint.as_json() != "null")
    }

    /// Encodes the context.
    pub(crate) fn encode(&self, format: &RepositoryFormat) -> StoredContext {
        StoredContext::new(self.entries(), &self.other_entries, format)
    }

    /// Decodes a context.
    ///
    /// # Errors
    /// When the text is not such JSON.
    pub(crate) fn decode(text: &str) -> Result<Self, ContextError> {
        let mut entries = decode_entries(text)?;
        let mut take =
            |key| Ok::<_, ContextError>(take_text(&mut entries, key)?.map(CheckpointInfo::from_json));
        Ok(Self {
            reader: take(READER)?,
            writer: take(WRITER)?,
            user_data: take(USER_DATA)?,
            skips: take(SKIPS)?,
            marker: take(MARKER)?,
            termination: take(TERMINATION)?,
            of_other_program: SPRING_BATCH_ENTRIES.iter().any(|key| entries.contains_key(*key)),
            other_entries: other_entries(entries),
        })
    }
}

/// The start position of a restart after a `stop` element. Stored in the context of the job execution that it ended.
// Spec: RESTART-04, D-24
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RestartPosition {
    /// Id of the job-level element.
    pub(crate) element: String,
    /// The element executed before it, which a decision requires.
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

/// The kind of an element with a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ElementKind {
    Step,
    Flow,
    Split,
}

/// The state of a partitioned step or flow, or of a split, until it is complete.
// Spec: PART-30, LTX-16, D-48, D-50
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
    /// The algorithm that made the plan, if it is not from the XML.
    pub(crate) algorithm: Option<String>,
    /// Step executions of earlier job executions do not count: their work was undone.
    pub(crate) since: Option<i64>,
}

/// The state of a logical transaction, recorded before the call that it announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TxState {
    /// `#[logical_tx_begin]` may have been called.
    Begun,
    /// All subjobs are complete; only `#[logical_tx_after_completion]` is left to call.
    Committed,
    /// `#[logical_tx_rollback]` has to be called until it returns.
    RollingBack,
}

/// The context of a job execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobState {
    pub(crate) restart: Option<RestartPosition>,
    /// The states of elements by their paths.
    pub(crate) elements: BTreeMap<String, ElementState>,
    /// The trace context of the execution, if an observer traces it.
    pub(crate) traceparent: Option<String>,
    /// The data of the job, and the entries of other programs, such as Spring Batch.
    pub(crate) other_entries: OtherEntries,
}

impl JobState {
    /// Encodes the context.
    pub(crate) fn encode(&self, format: &RepositoryFormat) -> Result<StoredContext, serde_json::Error> {
        let restart = self.restart.as_ref().map(serde_json::to_string).transpose()?;
        let elements = (!self.elements.is_empty())
            .then(|| serde_json::to_string(&self.elements))
            .transpose()?;
        let entries = [
            (RESTART, &restart),
            (ELEMENTS, &elements),
            (TRACEPARENT, &self.traceparent),
        ];
        Ok(StoredContext::new(
            entries
                .into_iter()
                .filter_map(|(key, text)| Some((key, text.as_deref()?))),
            &self.other_entries,
            format,
        ))
    }

    /// Changes the data of the job: those entries that are not the runtime's own.
    // Spec: DATA-01
    pub(crate) fn change_data(&mut self, changes: &DataChanges) {
        for (name, value) in changes {
            match value {
                Some(value) => self.other_entries.insert(name.clone(), value.clone()),
                None => self.other_entries.remove(name),
            };
        }
    }

    /// Encodes the initial context of the next execution of the instance, with its own trace context.
    pub(crate) fn for_next(&self, traceparent: Option<&str>, format: &RepositoryFormat) -> StoredContext {
        let entries = traceparent.map(|traceparent| (TRACEPARENT, traceparent));
        StoredContext::new(entries.into_iter(), &self.kept_entries(), format)
    }

    /// Returns the entries that the next execution of the instance begins with. It makes its decisions anew.
    pub(crate) fn kept_entries(&self) -> OtherEntries {
        let mut kept = self.other_entries.clone();
        kept.retain(|name, _| !name.starts_with(DECISION));
        kept
    }

    /// Decodes a context.
    ///
    /// # Errors
    /// When the text is not such JSON.
    pub(crate) fn decode(text: &str) -> Result<Self, ContextError> {
        let mut entries = decode_entries(text)?;
        let restart = take_text(&mut entries, RESTART)?.map(|text| serde_json::from_str(&text));
        let elements = take_text(&mut entries, ELEMENTS)?.map(|text| serde_json::from_str(&text));
        Ok(Self {
            // No reason to reject a restart.
            traceparent: take_text(&mut entries, TRACEPARENT).unwrap_or_default(),
            restart: restart.transpose().map_err(ContextError::State)?,
            elements: elements
                .transpose()
                .map_err(ContextError::State)?
                .unwrap_or_default(),
            other_entries: other_entries(entries),
        })
    }
}

type Entries = BTreeMap<String, Box<RawValue>>;

/// Takes an entry of the runtime's own. To ignore one that cannot be read would repeat work.
fn take_text(entries: &mut Entries, key: &'static str) -> Result<Option<String>, ContextError> {
    let text = entries.remove(key).map(|value| serde_json::from_str(value.get()));
    text.transpose()
        .map_err(|source| ContextError::Entry { key, source })
}

/// Returns the entries that are not the runtime's own.
fn other_entries(entries: Entries) -> OtherEntries {
    let is_kept = |key: &str| key != CLASS_KEY && !SPRING_BATCH_ENTRIES.contains(&key);
    let kept = entries.into_iter().filter(|(key, _)| is_kept(key));
    kept.map(|(key, value)| (key, value.get().to_owned())).collect()
}

fn decode_entries(text: &str) -> Result<Entries, ContextError> {
    serde_json::from_str(text).map_err(|problem| match is_of_java(text) {
        true => ContextError::Java,
        false => ContextError::Json(problem),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::RepositoryLayout;

    fn format_of(layout: RepositoryLayout) -> RepositoryFormat {
        RepositoryFormat {
            layout,
            ..RepositoryFormat::default()
        }
    }

    fn state(reader: &str) -> StepState {
        StepState {
            reader: Some(CheckpointInfo::from_json(reader.into())),
            ..StepState::default()
        }
    }

    // Spec: REPO-66, REPO-69, REPO-75
    #[test]
    fn a_context_is_ascii_json_and_comes_back() {
        let state = state(r#"{"file":"é漢😀\n","line":3}"#);
        let stored = state.encode(&RepositoryFormat::default());
        assert!(stored.short.is_ascii() && stored.serialized.is_none());
        assert!(
            stored
                .short
                .starts_with(r#"{"@class":"java.util.HashMap","batch.reader.checkpoint":"{\"file\""#)
        );
        assert_eq!(StepState::decode(&stored.short).unwrap(), state);
        assert_eq!(
            StepState::default().encode(&RepositoryFormat::default()).short,
            r#"{"@class":"java.util.HashMap"}"#
        );
    }

    // Spec: REPO-66, REPO-76
    #[test]
    fn a_long_context_is_whole_in_serialized_context() {
        let around = |length: usize| {
            let overhead = state("").encode(&RepositoryFormat::default()).short.len();
            state(&"x".repeat(length - overhead)).encode(&RepositoryFormat::default())
        };
        assert_eq!(around(2_500).serialized, None);
        let long = around(2_501);
        assert_eq!(long.serialized.as_ref().map(String::len), Some(2_501));
        assert_eq!(long.short.len(), 2_496);
        assert!(long.short.ends_with(" ..."));
        // A repository may have a narrower column.
        assert_eq!(around(100).cut_to(100).serialized, None);
        assert_eq!(
            around(101).cut_to(100).serialized.map(|text| text.len()),
            Some(101)
        );
    }

    // Spec: RESTART-04, PART-30, LTX-16
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
            traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
            other_entries: BTreeMap::from([("d".into(), r#"["java.lang.Long",2]"#.into())]),
        };
        let stored = state.encode(&RepositoryFormat::default()).unwrap();
        assert_eq!(JobState::decode(&stored.short).unwrap(), state);
        let empty = StepState::default().encode(&RepositoryFormat::default());
        assert_eq!(JobState::decode(&empty.short).unwrap(), JobState::default());
        assert_eq!(
            JobState::default().encode(&RepositoryFormat::default()).unwrap(),
            empty
        );
        assert!(JobState::decode(r#"{"batch.restart.position":"step1"}"#).is_err());
        for entry in [
            "batch.reader.checkpoint",
            "batch.persistent.user.data",
            "batch.termination",
        ] {
            let problem = StepState::decode(&format!(r#"{{"{entry}":7}}"#))
                .unwrap_err()
                .to_string();
            assert!(
                problem.contains(&format!("an entry `{entry}` that is not a JSON string")),
                "{problem}"
            );
        }
        for entry in ["batch.parallel.elements", "batch.restart.position"] {
            assert!(
                JobState::decode(&format!(r#"{{"{entry}":{{}}}}"#)).is_err(),
                "{entry}"
            );
        }
    }

    /// The next execution has its own trace, and a damaged one is no reason to reject it.
    // Spec: OTEL-03
    #[test]
    fn the_trace_of_an_execution_is_its_own() {
        let format = RepositoryFormat::default();
        let first = JobState::default().for_next(Some("00-1"), &format).short;
        assert_eq!(
            first,
            r#"{"@class":"java.util.HashMap","batch.traceparent":"00-1"}"#
        );
        let first = JobState::decode(&first).unwrap();
        assert_eq!(first.traceparent.as_deref(), Some("00-1"));
        let second = JobState::decode(&first.for_next(Some("00-2"), &format).short).unwrap();
        assert_eq!(second.traceparent.as_deref(), Some("00-2"));
        let untraced = second.for_next(None, &format);
        assert_eq!(JobState::decode(&untraced.short).unwrap(), JobState::default());
        let damaged = JobState::decode(r#"{"batch.traceparent":{"a":1}}"#).unwrap();
        assert_eq!(damaged, JobState::default());
    }

    // Spec: DEC-18, DATA-02
    #[test]
    fn decisions_are_not_those_of_the_next_execution() {
        let format = RepositoryFormat::default();
        let state = JobState::decode(r#"{"batch.decision.a":"YES","total":1}"#).unwrap();
        let next = JobState::decode(&state.for_next(None, &format).short).unwrap();
        assert_eq!(
            next.other_entries,
            OtherEntries::from([("total".into(), "1".into())])
        );
    }

    /// Entries as Spring Batch stores them, to the digit.
    // Spec: REPO-66, REPO-69, REPO-75
    #[test]
    fn entries_of_others_are_kept() {
        let json = r#"{"@class":"java.util.HashMap","r.read.count":11,"batch.stepType":"x","größe":"漢","d":["java.math.BigDecimal",1.10],
            "batch.reader.checkpoint":"\"é\"","batch.version":"5.2.6"}"#;
        let state = StepState::decode(json).unwrap();
        assert!(state.of_other_program);
        assert_eq!(state.reader, Some(CheckpointInfo::from_json("\"é\"".into())));
        let kept = state.encode(&RepositoryFormat::default()).short;
        assert_eq!(
            kept,
            r#"{"@class":"java.util.HashMap","batch.reader.checkpoint":"\"\u00e9\"","d":["java.math.BigDecimal",1.10],"gr\u00f6\u00dfe":"\u6f22","r.read.count":11}"#
        );
        let again = StepState::decode(&kept).unwrap();
        assert!(!again.of_other_program);
        let (format, of_6) = (RepositoryFormat::default(), format_of(RepositoryLayout::V6));
        assert_eq!(again.encode(&format), state.encode(&format));
        let next = JobState::decode(&kept).unwrap().for_next(None, &format).short;
        assert_eq!(StepState::decode(&next).unwrap(), again);
        let without_class = kept.replace(r#""@class":"java.util.HashMap","#, "");
        assert_eq!(state.encode(&of_6).short, without_class);
        assert_eq!(StepState::default().encode(&of_6).short, "{}");
    }

    // Spec: REPO-66, REPO-90
    #[test]
    fn a_context_that_java_has_serialized_is_recognized() {
        let problem = StepState::decode("rO0ABXNyABFqYXZhLnV0aWwuSGFzaE1hcA==").unwrap_err();
        assert!(
            problem.to_string().starts_with("was serialized by Java"),
            "{problem}"
        );
        let problem = JobState::decode("rO").unwrap_err().to_string();
        assert!(problem.starts_with("does not contain a JSON object"), "{problem}");
    }
}
