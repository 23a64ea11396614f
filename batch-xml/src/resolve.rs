//! Resolves a document into a job that can be started.

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
    /// The warnings, in the order of the text.
    pub warnings: Vec<Diagnostic>,
    /// The effective document that the job was made from.
    pub effective: Effective,
}

/// A document that cannot be started as a job.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Unresolved {
    /// All mistakes and warnings, in the order of the text.
    pub errors: JobXmlErrors,
    /// The job without the wrong parts: elements, properties and listeners may be missing, and transitions may lead
    /// nowhere. Only for further checks.
    pub part: Option<Box<Job>>,
}

/// Resolves inheritance, substitutes, and checks everything that needs no artifact. Has to be repeated for every
/// execution, with its parameters.
///
/// # Errors
///
/// All mistakes and warnings of the document and of the parents that it uses, those against the schema included. A
/// document that is not a job, or an abstract one, is a mistake too.
// Spec: JSL-DOC-12, JSL-DOC-13, JSL-JOB-06, OVR-08, SUBST-05, SUBST-06, SUBST-13
pub fn resolve(
    document: &Document,
    library: &dyn Library,
    values: &Values<'_>,
    limits: &Limits,
) -> Result<Resolved, JobXmlErrors> {
    resolve_or_part(document, library, values, limits).map_err(|unresolved| unresolved.errors)
}

/// Resolves a document like [`resolve`], and returns the remaining parts of the job if it is wrong.
///
/// # Errors
///
/// See [`resolve`].
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
    let scope = Scope::new(document.dialect(), *values, limits, &mut sink);
    let lowered = lower::lower(root, scope);
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
        d.message(format!("a document with the root `{kind}` cannot be started"))
            .label("can only be used as a parent")
    });
}
