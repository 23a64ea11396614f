//! `candidates`: what may follow the words of a command line, for the scripts of `completions`.

use std::process::ExitCode;

use batch_runtime::repository::ExecutionFilter;
use clap::{Arg, ArgAction, Args, Command};

use crate::print::out;
use crate::session::{Outcome, Session};

/// The number of executions that are offered, the newest.
const OFFERED: u32 = 20;

/// Prints the jobs, executions or parameters that may follow these words
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
        let Some((argument, given)) = next_argument(&arguments, &self.words) else {
            return Ok(ExitCode::SUCCESS);
        };
        let mut candidates = Vec::new();
        let kinds: Vec<&str> = argument.split('|').collect();
        if kinds.contains(&"JOB") {
            candidates.extend(session.open_or_empty()?.job_names()?);
        }
        if kinds.contains(&"EXECUTION") {
            let latest = ExecutionFilter {
                limit: Some(OFFERED),
                ..ExecutionFilter::default()
            };
            let found = session.open_or_empty()?.find_executions(&latest)?;
            candidates.extend(found.iter().map(|execution| execution.id.to_string()));
        }
        if argument == "NAME=VALUE"
            && let [job, ..] = given.as_slice()
        {
            let names = session.definitions()?.parameter_names(job).unwrap_or_default();
            let names = names.into_iter().map(|name| name + "=");
            candidates.extend(names.filter(|name| !given.iter().any(|one| one.starts_with(name.as_str()))));
        }
        for candidate in candidates.iter().filter(|candidate| is_plain(candidate)) {
            out(candidate);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the value name of the argument at the next position, and the arguments given before it.
fn next_argument(arguments: &Command, words: &[String]) -> Option<(String, Vec<String>)> {
    let command_of = |word: &String| arguments.find_subcommand(word);
    let position = words.iter().position(|word| command_of(word).is_some())?;
    let (before, after) = words.split_at(position + 1);
    let command = command_of(before.last()?)?;
    // An option with a value in the next word is not noticed: then nothing is offered.
    let given: Vec<String> = after
        .iter()
        .filter(|word| !word.starts_with('-'))
        .cloned()
        .collect();
    let all: Vec<_> = command.get_positionals().collect();
    let is_list = |last: &&&Arg| matches!(last.get_action(), ArgAction::Append);
    let next = all.get(given.len()).or_else(|| all.last().filter(is_list))?;
    let name = next.get_value_names()?.first()?;
    Some((name.to_string(), given))
}

/// Returns whether a shell takes the text as it is: rows of other programs may hold any.
fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || "_-.=".contains(c))
}
