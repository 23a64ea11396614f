//! Checks the jobs that artifacts of a job run, before it starts.
//!
//! Spec: NEST-05

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
const RUNS_ITSELF: &str = "ART0025";

/// A search through the jobs that a job runs, and those that they run.
struct Search {
    /// The jobs from the outermost on, each with the jobs that it runs and that are not searched yet.
    path: Vec<(String, vec::IntoIter<NestedJobRef>)>,
    found: HashSet<String>,
    wrong: Vec<Diagnostic>,
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
            path: vec![(checked.bound.job.id.clone(), nested.into_iter())],
            found: HashSet::new(),
            wrong: Vec::new(),
        };
        while let Some((_, nested)) = search.path.last_mut() {
            match nested.next() {
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
        let outer = search.path.iter().position(|(job, _)| *job == nested.job);
        if let Some(outer) = outer {
            let jobs = search.path[outer..].iter().map(|(job, _)| job.as_str());
            let chain: Vec<&str> = jobs.chain([nested.job.as_str()]).collect();
            search.wrong.push(runs_itself(&nested, &chain.join(" runs ")));
            return;
        }
        if search.found.contains(&nested.job) {
            return;
        }
        let found = self.find(Wanted::Id(&nested.job), &rejecting(&nested.job));
        match found {
            Ok(document) => {
                search.found.insert(nested.job.clone());
                let inner = self.nested_jobs(&document).into_iter();
                search.path.push((nested.job, inner));
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

fn runs_itself(nested: &NestedJobRef, chain: &str) -> Diagnostic {
    let message = format!("job `{}` would run itself: {chain}", nested.job);
    Diagnostic::error(RUNS_ITSELF, message, nested.span.clone())
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
            let help = help.trim_start_matches("; ").to_owned();
            (format!("unknown job `{}`", nested.job), help)
        }
        other => (other.to_string(), "leave one of them on the job path".to_owned()),
    };
    let unknown = Diagnostic::error(UNKNOWN_JOB, message, nested.span.clone());
    vec![unknown.label("cannot be run").help(help)]
}
