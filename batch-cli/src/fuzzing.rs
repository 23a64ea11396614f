//! The bodies of fuzz targets for what the command line reads: see `fuzz/README.md`. Each accepts any input, terminates, and panics
//! only on a fault of the command line. The tests run them with the corpus and with mutations of it.

use batch_runtime::JobParameters;
use batch_runtime::parameters::NamedParameter;

use crate::settings::Settings;

/// Any lines as parameters: one that is parsed is the same after it was formatted.
#[doc(hidden)]
pub fn parameters(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut all = JobParameters::new();
    for line in text.split('\n') {
        let Ok(parsed) = line.parse::<NamedParameter>() else {
            continue;
        };
        let formatted = parsed.to_string();
        let again: NamedParameter = formatted
            .parse()
            .unwrap_or_else(|error| panic!("{error}: {formatted:?}"));
        // As text, because NaN differs from itself.
        assert_eq!(format!("{again:?}"), format!("{parsed:?}"), "{formatted:?}");
        let NamedParameter { name, parameter } = parsed;
        all = all.with_parameter(name, parameter.value, parameter.identifying);
    }
    assert_eq!(all.job_key().len(), 32);
}

/// Any text as `batch.toml`: there are settings, or a message for each line that is wrong.
#[doc(hidden)]
pub fn settings(data: &[u8]) {
    const FILE: &str = "batch.toml";
    let text = String::from_utf8_lossy(data);
    match Settings::of_file(FILE.as_ref(), &text) {
        Ok(settings) => drop(settings.describe()),
        Err(problems) => {
            assert!(!problems.is_empty());
            let lines = text.matches('\n').count() + 1;
            for problem in problems {
                let place = problem.strip_prefix(FILE).and_then(|rest| rest.strip_prefix(':'));
                let line = place.and_then(|place| place.split_once(':'));
                let line = line.and_then(|(line, _)| line.parse::<usize>().ok());
                assert!(line.is_some_and(|line| (1..=lines).contains(&line)), "{problem}");
            }
        }
    }
}

#[cfg(test)]
mod mutate;

#[cfg(test)]
mod tests {
    use super::mutate::replay;

    #[test]
    fn a_parameter_is_the_same_after_it_was_formatted() {
        replay("parameters", 5_000, super::parameters);
    }

    #[test]
    fn each_mistake_in_batch_toml_is_reported_with_its_line() {
        replay("settings", 5_000, super::settings);
    }
}
