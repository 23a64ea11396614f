//! `candidates`: what may follow the words of a command line, for the scripts of `completions`.

use std::process::ExitCode;

use batch_runtime::repository::ExecutionFilter;
use clap::{Args, Command};

use crate::print::out;
use crate::session::{Outcome, Session};

/// The number of executions that are offered, the newest.
const OFFERED: u32 = 20;

/// Prints the jobs or executions that may follow these words
#[derive(Args, Debug)]
#[command(hide = true)]
pub(crate) struct Candidates {
    /// The words before the one that is completed, without the program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl Candidates {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let arguments = session.arguments();
        let Some(expected) = next_argument(&arguments, &self.words) else {
            return Ok(ExitCode::SUCCESS);
        };
        let operator = session.open_or_empty()?;
        let mut candidates = Vec::new();
        if matches!(expected.as_str(), "job" | "what") {
            candidates.extend(operator.job_names()?);
        }
        if matches!(expected.as_str(), "execution" | "what") {
            let latest = ExecutionFilter {
                limit: Some(OFFERED),
                ..ExecutionFilter::default()
            };
            let found = operator.find_executions(&latest)?;
            candidates.extend(found.iter().map(|execution| execution.id.to_string()));
        }
        for candidate in candidates.iter().filter(|candidate| is_plain(candidate)) {
            out(candidate);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the name of the argument that the next word is.
fn next_argument(arguments: &Command, words: &[String]) -> Option<String> {
    let is_command = |word: &String| arguments.find_subcommand(word);
    let position = words.iter().position(|word| is_command(word).is_some())?;
    let (before, after) = words.split_at(position + 1);
    let command = is_command(before.last()?)?;
    // An option with a value in the next word is not noticed: then nothing is offered.
    let given = after.iter().filter(|word| !word.starts_with('-')).count();
    let expected = command.get_positionals().nth(given)?;
    Some(expected.get_id().to_string())
}

/// Returns whether a shell takes the text as it is: rows of other programs may hold any.
fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c))
}
