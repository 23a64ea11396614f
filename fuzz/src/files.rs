//! What the bodies of fuzz targets for the readers of files share. Each accepts any input, terminates, and panics only on a fault of the
//! reader. The crates with the readers include this file.
//!
//! The first byte of an input chooses the properties of the reader; the rest is its file.

use std::fs;

use batch_runtime::__private::{ContextScope, InjectError, InjectionScope, Properties};
use batch_runtime::BatchArtifact;
use batch_runtime::prelude::*;
use tempfile::NamedTempFile;

use super::{FileItemReader, Format, Items, ReadPosition, Record, RecordError, ResourceError};

/// The most events of a file that are compared. A compressed or columnar file may have any number of records.
const MAX_EVENTS: usize = 500;

/// The most checkpoints of a file that a run resumes from.
const MAX_CHECKPOINTS: usize = 10;

/// Declares a fuzz target: its function, its reader, and the properties that the first byte chooses from.
macro_rules! target {
    ($(#[$attribute:meta])* $target:ident = $reader:ident, [$($choice:literal),+ $(,)?]) => {
        /// A file of this format.
        ///
        /// # Panics
        /// If the reader is at fault.
        $(#[$attribute])*
        #[doc(hidden)]
        pub fn $target(data: &[u8]) {
            let inject = <crate::$reader<Record> as ::batch_runtime::BatchArtifact>::inject;
            files::check(data, &[$($choice),+], inject);
        }
    };
}
pub(super) use target;

/// Checks that a file that is read again gives the same, and from a checkpoint the rest.
// Spec: INPUT-01, INPUT-04, INPUT-06
pub(super) fn check<F>(
    data: &[u8],
    choices: &[&str],
    inject: fn(&InjectionScope<'_>) -> Result<FileItemReader<F, Record>, InjectError>,
) where
    F: Format + BatchArtifact,
    F::Records: Items<Record>,
{
    let Some((choice, content)) = data.split_first() else {
        return;
    };
    let choice = choices[usize::from(choice.wrapping_sub(b'0')) % choices.len()];
    let file = NamedTempFile::new().unwrap_or_else(|error| panic!("{error}"));
    fs::write(&file, content).unwrap_or_else(|error| panic!("{error}"));
    let properties = properties(&file.path().display().to_string(), choice);
    let reader = inject(&InjectionScope::new(&properties, &ContextScope::default()));
    let mut reader = reader.unwrap_or_else(|error| panic!("{error}"));

    let (events, positions) = read(&mut reader, None);
    let (again, _) = read(&mut reader, None);
    assert!(again == events, "first {events:?}, then {again:?}");
    let distance = positions.len() / MAX_CHECKPOINTS + 1;
    for (count, position) in positions.into_iter().enumerate().step_by(distance) {
        let (rest, _) = read(&mut reader, Some(position.clone()));
        let expected = &events[count..];
        let compared = rest.len().min(expected.len());
        assert!(
            rest[..compared] == expected[..compared]
                && (compared == expected.len() || events.len() > MAX_EVENTS),
            "after {count} events, at {position:?}: {rest:?} instead of {expected:?}"
        );
    }
}

/// Returns the properties of a reader: its file, and `name=value` lines.
fn properties(file: &str, lines: &str) -> Properties {
    let given = lines.lines().filter_map(|line| line.split_once('='));
    let xml = given.chain([("resource", file)]);
    Properties {
        xml: xml
            .map(|(name, value)| (name.to_owned(), value.to_owned(), String::new()))
            .collect(),
        ..Properties::default()
    }
}

/// Returns the events of a file from a checkpoint to its end, and the position before each: items, the messages of rejected records, and
/// last the end or the error of the file. As texts: there NaN equals itself and the zeros differ.
fn read<F>(
    reader: &mut FileItemReader<F, Record>,
    checkpoint: Option<ReadPosition>,
) -> (Vec<String>, Vec<ReadPosition>)
where
    F: Format + BatchArtifact,
    F::Records: Items<Record>,
{
    let (mut events, mut positions) = (Vec::new(), Vec::new());
    if let Err(error) = reader.open(checkpoint) {
        return (vec![failure(&error)], positions);
    }
    while events.len() <= MAX_EVENTS {
        positions.push(reader.checkpoint());
        match reader.read() {
            Ok(Some(item)) => events.push(format!("{item:?}")),
            Ok(None) => {
                events.push("the end".to_owned());
                break;
            }
            Err(error) if error.downcast_ref::<RecordError>().is_some() => {
                events.push(error.to_string());
            }
            Err(error) => {
                events.push(failure(&error));
                break;
            }
        }
    }
    (events, positions)
}

/// Returns the message of an error of the file.
fn failure(error: &BatchError) -> String {
    assert!(error.downcast_ref::<ResourceError>().is_some(), "{error}");
    error.to_string()
}
