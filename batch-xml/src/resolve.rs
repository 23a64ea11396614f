//! From a document to a job that can be started: `resolve`.

use crate::codes;
use crate::diagnostics::{Diagnostic, JobXmlErrors, Sink};
use crate::document::{Document, RootKind};
use crate::effective::Effective;
use crate::library::Library;
use crate::limits::Limits;
use crate::lower;
use crate::model::Job;
use crate::substitute::{Scope, Values};
use crate::symbols;
use crate::validate;

/// A job that passed every check that needs no artifact.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The job.
    pub job: Job,
    /// What is strange, though not wrong, in the order of the text.
    pub warnings: Vec<Diagnostic>,
    /// What the job was made from.
    pub effective: Effective,
}

/// Why a document is no job that can be started, and what there is of the job nevertheless.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Unresolved {
    /// All mistakes, and the warnings among them, in the order of the text.
    pub errors: JobXmlErrors,
    /// The job without what is wrong: elements, properties and listeners may be missing, transitions may lead nowhere.
    /// For further checks only.
    pub part: Option<Box<Job>>,
}

/// Gives a document what it inherits, substitutes, lowers and validates it: everything that is checked before
/// a job runs and needs no artifact. To be done for every execution, with its parameters.
///
/// Spec: JSL-DOC-12, JSL-DOC-13, JSL-JOB-06, OVR-08, SUBST-05, SUBST-06, SUBST-13
///
/// # Errors
///
/// All mistakes of the document and of the parents it uses in one report, those against the schema included,
/// with the warnings among them. A document that is no job, or an abstract one, is a mistake of its own.
pub fn resolve(
    document: &Document,
    library: &dyn Library,
    values: &Values<'_>,
    limits: &Limits,
) -> Result<Resolved, JobXmlErrors> {
    resolve_or_part(document, library, values, limits).map_err(|unresolved| unresolved.errors)
}

/// [`resolve`], which gives what there is of the job also where something is wrong.
///
/// # Errors
///
/// As [`resolve`].
pub fn resolve_or_part(
    document: &Document,
    library: &dyn Library,
    values: &Values<'_>,
    limits: &Limits,
) -> Result<Resolved, Unresolved> {
    let mut sink = Sink::default();
    if document.root_kind() != RootKind::Job {
        sink.extend(document.warnings());
        not_a_job(document, &mut sink);
        return Err(Unresolved {
            errors: sink.into_errors(),
            part: None,
        });
    }
    let effective = Effective::collect(document, library, limits, &mut sink);
    let root = effective.root();
    let symbols = symbols::collect(document.dialect(), root, &mut sink);
    let lowered = lower::lower(root, Scope::new(document.dialect(), *values, limits), &mut sink);
    if let Some((_, outline)) = &lowered {
        validate::validate(outline, &mut sink);
    }
    let job = lowered.map(|(job, _)| Job { symbols, ..job });
    match job {
        Some(job) if !sink.failed() => Ok(Resolved {
            job,
            warnings: sink.into_errors().into_inner(),
            effective,
        }),
        part => Err(Unresolved {
            errors: sink.into_errors(),
            part: part.map(Box::new),
        }),
    }
}

fn not_a_job(document: &Document, sink: &mut Sink) {
    let kind = document.root_kind().as_str();
    sink.error(codes::NOT_A_JOB, &document.root().name.span, |d| {
        d.message(format!("a document that defines a `{kind}` cannot be started"))
            .label("it serves only as a parent")
    });
}
