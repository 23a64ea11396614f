//! The bodies of fuzz targets for what the runtime reads: see `fuzz/README.md`. Each accepts any input, terminates, and panics only on
//! a fault of the runtime. The tests run them with the corpus and with mutations of it.

use crate::exit_codes::ExitCodes;
use crate::operator::Imported;
use crate::repository::{
    JobState, MAX_VARCHAR, RepositoryFormat, RepositoryLayout, StepState, StoredContext,
};
use crate::status::BatchStatus;
use crate::{BatchRuntime, JobOperator};

/// Any text as the execution context of a step and of a job: one that is decoded is the same after it was stored.
// Spec: REPO-66, REPO-69
#[doc(hidden)]
pub fn context(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for (max_short, layout) in [(100, RepositoryLayout::V4_3), (MAX_VARCHAR, RepositoryLayout::V6)] {
        let format = &RepositoryFormat {
            layout,
            max_varchar: max_short,
            ..RepositoryFormat::default()
        };
        if let Ok(state) = StepState::decode(&text) {
            let stored = state.encode(format);
            check_stored(&stored, max_short);
            let again =
                StepState::decode(stored.text()).unwrap_or_else(|error| panic!("{error}: {stored:?}"));
            assert_eq!(
                (&again.reader, &again.writer, &again.user_data, &again.termination),
                (&state.reader, &state.writer, &state.user_data, &state.termination)
            );
            assert_eq!(again.encode(format), stored);
        }
        if let Ok(state) = JobState::decode(&text) {
            let stored = state
                .encode(format)
                .unwrap_or_else(|error| panic!("{error}: {state:?}"));
            check_stored(&stored, max_short);
            let again = JobState::decode(stored.text()).unwrap_or_else(|error| panic!("{error}: {stored:?}"));
            assert_eq!(
                (&again.restart, &again.elements),
                (&state.restart, &state.elements)
            );
            assert_eq!(again.encode(format).ok().as_ref(), Some(&stored));
        }
    }
}

fn check_stored(stored: &StoredContext, max_short: usize) {
    assert!(
        stored.text().is_ascii() && stored.short.len() <= max_short,
        "{stored:?}"
    );
    let cut = stored.clone().cut_to(50);
    assert!(cut.short.len() <= 50 && cut.text() == stored.text(), "{cut:?}");
}

/// Any line as an archived instance: one that is imported can be exported, and the export can be imported.
#[doc(hidden)]
pub fn import(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for url in ["memory:", "sqlite://:memory:"] {
        let (first, second) = (operator(url), operator(url));
        let Ok(Imported::New(id)) = first.import(&text) else {
            continue;
        };
        assert!(matches!(first.import(&text), Ok(Imported::Unchanged(same)) if same == id));
        let exported = export(&first, id);
        let again = second
            .import(&exported)
            .unwrap_or_else(|error| panic!("{error}: {exported}"));
        assert!(matches!(again, Imported::New(_)), "{exported}");
        assert!(matches!(second.import(&text), Ok(Imported::Unchanged(same)) if same == again.id()));
    }
}

fn export(operator: &JobOperator, id: crate::JobInstanceId) -> String {
    match operator.export(id) {
        Ok(Some(line)) => line,
        other => panic!("{other:?}"),
    }
}

fn operator(url: &str) -> JobOperator {
    let runtime = BatchRuntime::builder()
        .repository(url)
        .job_path("fuzz/no-jobs")
        .build();
    match runtime {
        Ok(runtime) => runtime.job_operator(),
        Err(error) => panic!("{error}"),
    }
}

/// Reads an exit status, and on the other lines the value of `batch.exit.codes`. The exit code must come from the first matching entry,
/// which a simpler and slower comparison finds.
#[doc(hidden)]
pub fn exit_codes(data: &[u8]) {
    /// The simpler comparison takes time proportional to the product of the lengths.
    const MAX_BYTES: usize = 2_000;
    let text = String::from_utf8_lossy(&data[..data.len().min(MAX_BYTES)]);
    let Some((status, text)) = text.split_once('\n') else {
        return;
    };
    let Ok(codes) = text.parse::<ExitCodes>() else {
        return;
    };
    let entries = text.split(',').filter_map(|entry| entry.rsplit_once('='));
    let mut matching = entries.filter(|(pattern, _)| matches(pattern.trim(), status));
    let expected = matching
        .next()
        .map_or(3, |(_, code)| code.trim().parse().unwrap_or(0));
    assert_eq!(
        codes.of(BatchStatus::Stopped, status),
        expected,
        "{text:?} {status:?}"
    );
}

/// Returns whether the pattern matches, character by character.
// Spec: SEQ-13, SEQ-14, SEQ-15, SEQ-16
fn matches(pattern: &str, status: &str) -> bool {
    let status: Vec<char> = status.chars().collect();
    // For each length, whether the pattern so far matches the beginning of the status with that length.
    let mut ends = vec![false; status.len() + 1];
    ends[0] = true;
    for character in pattern.chars() {
        let mut next = vec![false; ends.len()];
        for length in 1..ends.len() {
            next[length] = match character {
                '*' => ends[length - 1] || next[length - 1],
                '?' => ends[length - 1],
                literal => ends[length - 1] && status[length - 1] == literal,
            };
        }
        ends = next;
    }
    ends[status.len()]
}

#[cfg(test)]
mod mutate;

#[cfg(test)]
mod tests {
    use super::mutate::replay;

    // Spec: REPO-66, REPO-69
    #[test]
    fn a_context_is_the_same_after_it_was_stored() {
        replay("context", 5_000, super::context);
    }

    #[test]
    fn an_imported_instance_can_be_exported() {
        replay("import", 800, super::import);
    }

    #[test]
    fn the_first_pattern_chooses_the_exit_code() {
        replay("exit_codes", 5_000, super::exit_codes);
    }
}
