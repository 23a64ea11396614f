//! Tree to model: the values of attributes after substitution, their types, and what must stand together.
//!
//! Spec: JSL-DOC-12, JSL-DOC-13

mod attributes;
mod chunk;
mod job;
mod step;

use crate::codes;
use crate::diagnostics::{Sink, quoted};
use crate::model::Job;
use crate::outline::Outline;
use crate::span::Span;
use crate::substitute::Scope;
use crate::tree::Element;

/// The state of lowering one job.
pub(crate) struct Lowering<'a> {
    scope: Scope<'a>,
    sink: &'a mut Sink,
    outline: Outline,
}

/// Lowers a job. Whatever is wrong is in `sink`; what is left of the job then is `None` or incomplete.
pub(crate) fn lower<'a>(root: &'a Element, scope: Scope<'a>, sink: &'a mut Sink) -> Option<(Job, Outline)> {
    let mut lowering = Lowering {
        scope,
        sink,
        outline: Outline::default(),
    };
    let job = lowering.job(root)?;
    Some((job, lowering.outline))
}

impl Lowering<'_> {
    /// Reports a part of the draft that the model does not hold yet.
    fn unsupported(&mut self, name: &str, span: &Span) {
        self.sink.error(codes::UNSUPPORTED, span, |d| {
            d.message(format!("{} is not supported by this version", quoted(name)))
        });
    }
}
