//! Checks the jobs that artifacts of a job run, before it starts.
// Spec: NEST-05

use std::collections::HashSet;
use std::vec;

use batch_xml::{Diagnostic, Document, JobXmlErrors};

use super::definitions::{Checked, Definitions, Wanted, rejecting};
use super::{JobOperatorError, Result, StartError};
use crate::loader::NestedJobRef;
use crate::parameters::JobParameters;
use crate::secret::Secrets;

/// An artifact runs an unknown job, or one that several files define.
const UNKNOWN_JOB: &str = "ART0024";
/// A job would run itself.
pub(super) const RUNS_ITSELF: &str = "ART0025";

/// A search through the jobs that a job runs, and those that they run.
struct Search {
    /// The jobs from the outermost on.
    path: Vec<Level>,
    found: HashSet<String>,
    wrong: Vec<Diagnostic>,
}

/// A job of the path.
struct Level {
    job: String,
    /// Where the job before names it; `None` for the outermost.
    named: Option<NestedJobRef>,
    /// The jobs that it runs and that are not searched yet.
    left: vec::IntoIter<NestedJobRef>,
}

impl Definitions {
    /// Rejects a job whose artifacts run an unknown job, or one that runs itself through others. Of the parameters of the other jobs nothing
    /// is known, so from there on only names count that are written as such. The others are checked at run time.
    pub(super) fn check_nested(
        &self,
        checked: &mut Checked,
        reject: &dyn Fn(StartError) -> JobOperatorError,
    ) -> Result<()> {
        let nested = std::mem::take(&mut checked.bound.nested);
        let mut search = Search {
            path: vec![Level {
                job: checked.bound.job.id.clone(),
                named: None,
                left: nested.into_iter(),
            }],
            found: HashSet::new(),
            wrong: Vec::new(),
        };
        while let Some(level) = search.path.last_mut() {
            match level.left.next() {
                Some(nested) => self.enter(&mut search, nested),
                None => drop(search.path.pop()),
            }
        }
        // Each partition has the mistakes of its step.
        let mut seen = HashSet::new();
        let mut wrong = search.wrong;
        wrong.retain(|one| seen.insert((one.span.to_string(), one.message.clone())));
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(reject(StartError::Definition(wrong.into()))),
        }
    }

    fn enter(&self, search: &mut Search, nested: NestedJobRef) {
        let outer = search.path.iter().position(|level| level.job == nested.job);
        if let Some(outer) = outer {
            let named = search.path[outer + 1..]
                .iter()
                .filter_map(|level| level.named.as_ref());
            search.wrong.push(runs_itself(named.chain([&nested]).collect()));
            return;
        }
        if search.found.contains(&nested.job) {
            return;
        }
        let found = self.find(Wanted::Id(&nested.job), &rejecting(&nested.job));
        match found {
            Ok(document) => {
                search.found.insert(nested.job.clone());
                let left = self.nested_jobs(&document).into_iter();
                search.path.push(Level {
                    job: nested.job.clone(),
                    named: Some(nested),
                    left,
                });
            }
            Err(error) => search.wrong.extend(not_found(&nested, error)),
        }
    }

    /// Returns the jobs that a job runs with any parameters.
    fn nested_jobs(&self, document: &Document) -> Vec<NestedJobRef> {
        let external = self.external_values(&JobParameters::new(), Secrets::default());
        let job = match self.resolved(document, &external) {
            Ok(resolved) => Some(resolved.job),
            Err(unresolved) => unresolved.part.map(|part| *part),
        };
        let mut nested = job.map_or_else(Vec::new, |job| self.artifacts.nested_jobs(&job, external));
        nested.retain(|nested| nested.is_literal);
        nested
    }
}

/// Reports a cycle of jobs, each as the one before names it, and the first as the last does. The report is the same from whichever job the
/// search begins.
fn runs_itself(mut cycle: Vec<&NestedJobRef>) -> Diagnostic {
    let first = (0..cycle.len()).min_by_key(|place| &cycle[*place].job);
    cycle.rotate_left(first.unwrap_or_default());
    let jobs = cycle.iter().chain(cycle.first()).map(|named| named.job.as_str());
    let chain = jobs.collect::<Vec<_>>().join(" runs ");
    let message = format!("job `{}` would run itself: {chain}", cycle[0].job);
    Diagnostic::error(RUNS_ITSELF, message, cycle[0].span.clone())
        .label("runs one of its outer jobs")
        .help("name another job, or move the steps that both need to a third one")
}

/// Reports a job that cannot be found; the mistakes of its file, if it cannot be read.
fn not_found(nested: &NestedJobRef, error: JobOperatorError) -> Vec<Diagnostic> {
    let (message, help) = match error {
        JobOperatorError::JobStart {
            cause: StartError::Definition(errors),
            ..
        } => return JobXmlErrors::into_inner(errors),
        JobOperatorError::NoSuchJob { help, .. } => {
            let help = help.trim_start_matches([';', ' ', '\n']).to_owned();
            (format!("unknown job `{}`", nested.job), help)
        }
        other => (other.to_string(), "leave one of them on the job path".to_owned()),
    };
    let unknown = Diagnostic::error(UNKNOWN_JOB, message, nested.span.clone());
    vec![unknown.label("cannot be run").help(help)]
}
