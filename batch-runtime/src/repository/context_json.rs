//! The stored form of the execution context: JSON that Spring Batch 4.3 reads.
//!
//! Values are strings; a checkpoint is the JSON text of the artifact's own type in such a string. So Rust types need
//! no type tags of Java, and a checkpoint is restored exactly.
//!
//! Spec: REPO-66, REPO-69, D-69

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::checkpoint::CheckpointInfo;
use crate::plan::PartitionPlan;
use crate::repository::RepositoryLayout;

const CLASS_KEY: &str = "@class";
const CLASS: &str = "java.util.HashMap";
/// The entries in the context of every step that Spring Batch has executed.
const SPRING_BATCH_ENTRIES: [&str; 2] = ["batch.taskletType", "batch.stepType"];
/// The width of SHORT_CONTEXT and EXIT_MESSAGE, in characters. Longer contexts go to SERIALIZED_CONTEXT.
pub(crate) const MAX_VARCHAR: usize = 2_500;

// The keys do not contain the artifact's name, so that a renamed reader keeps its position.
const READER: &str = "batch.reader.checkpoint";
const WRITER: &str = "batch.writer.checkpoint";
const USER_DATA: &str = "batch.persistent.user.data";
const TERMINATION: &str = "batch.termination";
const RESTART: &str = "batch.restart.position";
const ELEMENTS: &str = "batch.parallel.elements";

/// A context that is not one of this runtime or of Spring Batch.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ContextError {
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

/// The state that a step passes from one execution to the next. Spec: REPO-68
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StepState {
    /// The reader's checkpoint.
    pub(crate) reader: Option<CheckpointInfo>,
    /// The writer's checkpoint.
    pub(crate) writer: Option<CheckpointInfo>,
    /// Persistent user data.
    pub(crate) user_data: Option<CheckpointInfo>,
    /// The end of the job by a `fail`, `end` or `stop` element in a partition of a flow.
    pub(crate) termination: Option<CheckpointInfo>,
    /// The entries of other programs, such as Spring Batch.
    pub(crate) other_entries: OtherEntries,
    /// Whether another program executed the step last; not stored. That program copies entries, so checkpoints of
    /// this runtime may be present but outdated.
    pub(crate) of_other_program: bool,
}

/// Entries of other programs by their keys, each as JSON, which are preserved.
pub(crate) type OtherEntries = BTreeMap<String, String>;

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

    /// Returns whether the reader can continue where the step was interrupted: its checkpoint is not `()`.
    pub(crate) fn has_position(&self) -> bool {
        self.reader
            .as_ref()
            .is_some_and(|checkpoint| checkpoint.as_json() != "null")
    }

    /// Encodes the context.
    pub(crate) fn encode(&self, max_short: usize) -> StoredContext {
        StoredContext::new(self.entries(), &self.other_entries, max_short)
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
            termination: take(TERMINATION)?,
            of_other_program: SPRING_BATCH_ENTRIES.iter().any(|key| entries.contains_key(*key)),
            other_entries: other_entries(entries),
        })
    }
}

/// The start position of a restart after a `stop` element. Stored in the context of the job execution that it ended.
///
/// Spec: RESTART-04, D-24
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
    /// The entries of other programs, such as Spring Batch.
    pub(crate) other_entries: OtherEntries,
}

impl JobState {
    /// Encodes the context.
    pub(crate) fn encode(&self, max_short: usize) -> Result<StoredContext, serde_json::Error> {
        let restart = self.restart.as_ref().map(serde_json::to_string).transpose()?;
        let elements = (!self.elements.is_empty())
            .then(|| serde_json::to_string(&self.elements))
            .transpose()?;
        let entries = [(RESTART, &restart), (ELEMENTS, &elements)];
        Ok(StoredContext::new(
            entries
                .into_iter()
                .filter_map(|(key, text)| Some((key, text.as_deref()?))),
            &self.other_entries,
            max_short,
        ))
    }

    /// Encodes the initial context of the next execution of the instance.
    pub(crate) fn for_next(&self, max_short: usize) -> StoredContext {
        StoredContext::new(std::iter::empty(), &self.other_entries, max_short)
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
            restart: restart.transpose().map_err(ContextError::State)?,
            elements: elements
                .transpose()
                .map_err(ContextError::State)?
                .unwrap_or_default(),
            other_entries: other_entries(entries),
        })
    }
}

/// The two columns of a context row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StoredContext {
    /// SHORT_CONTEXT: the whole context, or its start.
    pub(crate) short: String,
    /// SERIALIZED_CONTEXT: the whole context if it does not fit into SHORT_CONTEXT.
    pub(crate) serialized: Option<String>,
}

impl StoredContext {
    /// Returns the whole context.
    pub(crate) fn text(&self) -> &str {
        self.serialized.as_ref().unwrap_or(&self.short)
    }

    /// Returns the context for a narrower SHORT_CONTEXT.
    pub(crate) fn cut_to(self, max_short: usize) -> Self {
        if self.short.chars().count() <= max_short {
            return self;
        }
        let text = self.text().to_owned();
        let start: String = text.chars().take(max_short.saturating_sub(8)).collect();
        Self {
            short: format!("{start} ..."),
            serialized: Some(text),
        }
    }

    /// Returns the context as the programs of a layout read it; `None` if it is so already.
    pub(crate) fn encoded_for(&self, layout: RepositoryLayout, max_short: usize) -> Option<Self> {
        if self.text().is_ascii() && self.short.is_ascii() {
            return None;
        }
        let plain = |text: &str| unfolded(text).into_owned();
        let encoded = match layout.has_typed_parameters() {
            true => Self {
                short: plain(&self.short),
                serialized: self.serialized.as_deref().map(plain),
            },
            false => {
                let bytes = plain(self.text()).into_bytes();
                let folded = Self {
                    short: bytes.into_iter().map(char::from).collect(),
                    serialized: None,
                };
                folded.cut_to(max_short)
            }
        };
        (encoded != *self).then_some(encoded)
    }

    /// Encodes `entries` as texts.
    fn new<'a>(
        entries: impl Iterator<Item = (&'a str, &'a str)>,
        other_entries: &OtherEntries,
        max_short: usize,
    ) -> Self {
        let mut text = String::with_capacity(256);
        let _ = write!(text, "{{\"{CLASS_KEY}\":\"{CLASS}\"");
        for (key, value) in entries {
            text.push(',');
            push_json_string(&mut text, key);
            text.push(':');
            push_json_string(&mut text, value);
        }
        for (key, json) in other_entries {
            text.push(',');
            push_json_string(&mut text, key);
            text.push(':');
            push_ascii(&mut text, json);
        }
        text.push('}');
        // The text is pure ASCII, so bytes are characters.
        if text.len() <= max_short {
            return Self {
                short: text,
                serialized: None,
            };
        }
        let short = format!("{} ...", &text[..max_short.saturating_sub(8)]);
        Self {
            short,
            serialized: Some(text),
        }
    }
}

/// Appends `value` as a JSON string of ASCII characters only: Spring Batch 4.3 reads the bytes as ISO-8859-1.
fn push_json_string(text: &mut String, value: &str) {
    text.push('"');
    let mut rest = value;
    // Most texts are plain, or have few other characters.
    while let Some(at) = rest.bytes().position(|byte| !is_plain(byte)) {
        let (plain, special) = rest.split_at(at);
        text.push_str(plain);
        let mut characters = special.chars();
        match characters.next() {
            Some('"') => text.push_str("\\\""),
            Some('\\') => text.push_str("\\\\"),
            Some(other) => push_escaped(text, other),
            None => {}
        }
        rest = characters.as_str();
    }
    text.push_str(rest);
    text.push('"');
}

/// Returns whether a character stands for itself in a JSON string.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

fn push_escaped(text: &mut String, character: char) {
    let mut units = [0; 2];
    for unit in character.encode_utf16(&mut units) {
        let _ = write!(text, "\\u{unit:04x}");
    }
}

/// Appends JSON in ASCII; other characters can only occur in its strings.
fn push_ascii(text: &mut String, json: &str) {
    for character in json.chars() {
        if character.is_ascii() {
            text.push(character);
        } else {
            push_escaped(text, character);
        }
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
    serde_json::from_str(&unfolded(text)).map_err(ContextError::Json)
}

/// Decodes UTF-8 that Spring Batch wrote as characters of ISO-8859-1. Other programs may write the characters themselves.
fn unfolded(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
    let unfolded = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
    unfolded.map_or(Cow::Borrowed(text), Cow::Owned)
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
        let stored = state.encode(MAX_VARCHAR);
        assert!(stored.short.is_ascii() && stored.serialized.is_none());
        assert!(
            stored
                .short
                .starts_with(r#"{"@class":"java.util.HashMap","batch.reader.checkpoint":"{\"file\""#)
        );
        assert_eq!(StepState::decode(&stored.short).unwrap(), state);
        assert_eq!(
            StepState::default().encode(MAX_VARCHAR).short,
            r#"{"@class":"java.util.HashMap"}"#
        );
    }

    /// Spec: REPO-66, REPO-76
    #[test]
    fn a_long_context_is_whole_in_serialized_context() {
        let around = |length: usize| {
            let overhead = state("").encode(MAX_VARCHAR).short.len();
            state(&"x".repeat(length - overhead)).encode(MAX_VARCHAR)
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

    /// Spec: REPO-66, REPO-91
    #[test]
    fn a_context_is_encoded_for_the_programs_of_a_layout() {
        let context = |short: &str, serialized: Option<&str>| StoredContext {
            short: short.into(),
            serialized: serialized.map(str::to_owned),
        };
        let java = |text: &str| text.bytes().map(char::from).collect::<String>();
        let plain = context("{\"a\":\"größe 漢\"}", None);
        let folded = context(&java(&plain.short), None);
        let encoded = |context: &StoredContext, layout| context.encoded_for(layout, 30);
        assert_eq!(encoded(&folded, RepositoryLayout::V5).as_ref(), Some(&plain));
        assert_eq!(encoded(&plain, RepositoryLayout::V4_3).as_ref(), Some(&folded));
        for (same, layout) in [(&plain, RepositoryLayout::V6), (&folded, RepositoryLayout::V4_3)] {
            assert_eq!(encoded(same, layout), None);
        }
        assert_eq!(encoded(&context("{\"a\":1}", None), RepositoryLayout::V4_3), None);
        // As bytes the text is longer than the column.
        let long = "{\"a\":\"漢漢漢漢漢漢漢漢漢\"}";
        let back = encoded(&context(long, None), RepositoryLayout::V4_3).unwrap();
        assert_eq!(
            (back.short.chars().count(), back.serialized),
            (26, Some(java(long)))
        );
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
            other_entries: BTreeMap::from([("d".into(), r#"["java.lang.Long",2]"#.into())]),
        };
        let stored = state.encode(MAX_VARCHAR).unwrap();
        assert_eq!(JobState::decode(&stored.short).unwrap(), state);
        let empty = StepState::default().encode(MAX_VARCHAR);
        assert_eq!(JobState::decode(&empty.short).unwrap(), JobState::default());
        assert_eq!(JobState::default().encode(MAX_VARCHAR).unwrap(), empty);
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

    /// Entries as Spring Batch stores them: to the digit, and with the bytes of UTF-8 as characters.
    ///
    /// Spec: REPO-66, REPO-69, REPO-75
    #[test]
    fn entries_of_others_are_kept() {
        let json = r#"{"@class":"java.util.HashMap","r.read.count":11,"batch.stepType":"x","größe":"漢","d":["java.math.BigDecimal",1.10],
            "batch.reader.checkpoint":"\"é\""}"#;
        let java: String = json.bytes().map(char::from).collect();
        let state = StepState::decode(&java).unwrap();
        assert!(state.of_other_program);
        assert_eq!(state.reader, Some(CheckpointInfo::from_json("\"é\"".into())));
        let kept = state.encode(MAX_VARCHAR).short;
        assert_eq!(
            kept,
            r#"{"@class":"java.util.HashMap","batch.reader.checkpoint":"\"\u00e9\"","d":["java.math.BigDecimal",1.10],"gr\u00f6\u00dfe":"\u6f22","r.read.count":11}"#
        );
        let again = StepState::decode(&kept).unwrap();
        assert!(!again.of_other_program);
        assert_eq!(again.encode(MAX_VARCHAR), state.encode(MAX_VARCHAR));
        let next = JobState::decode(&kept).unwrap().for_next(MAX_VARCHAR).short;
        assert_eq!(StepState::decode(&next).unwrap(), again);
        // Written by a program that uses plain UTF-8.
        let plain = StepState::decode(r#"{"größe":"漢"}"#).unwrap();
        assert_eq!(
            plain.other_entries,
            BTreeMap::from([("größe".into(), "\"漢\"".into())])
        );
        assert!(StepState::decode("rO0AB").is_err());
    }
}
