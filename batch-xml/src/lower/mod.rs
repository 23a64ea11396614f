//! Lowers the tree to the model: substitutes and types attributes, and checks each element.
// Spec: JSL-DOC-12, JSL-DOC-13

mod attributes;
mod chunk;
mod flow;
mod job;
mod partition;
mod step;

use crate::diagnostics::Diagnostic;
use crate::model::{ExecutionElement, Job};
use crate::outline::{JOB, Outline};
use crate::span::Span;
use crate::substitute::Scope;
use crate::symbols;
use crate::tree::Element;

pub use partition::PartitionView;

/// The state of lowering one job.
pub(crate) struct Lowering<'a> {
    scope: Scope<'a>,
    outline: Outline,
    /// The container whose elements are being lowered.
    at: usize,
    /// The length of the prefix that the repository puts before the names of steps there.
    prefix: usize,
    /// The requested partitions, outermost first.
    views: &'a [PartitionView<'a>],
}

impl<'a> Lowering<'a> {
    fn new(scope: Scope<'a>, views: &'a [PartitionView<'a>]) -> Lowering<'a> {
        Lowering {
            scope,
            outline: Outline::default(),
            at: JOB,
            prefix: 0,
            views,
        }
    }

    fn error(&mut self, code: &'static str, span: &Span, build: impl FnOnce(Diagnostic) -> Diagnostic) {
        self.scope.sink.error(code, span, build);
    }

    fn warning(&mut self, code: &'static str, span: &Span, build: impl FnOnce(Diagnostic) -> Diagnostic) {
        self.scope.sink.warning(code, span, build);
    }

    /// Runs `action` as if outside of partitioned elements: nothing is deferred.
    fn fixed<T>(&mut self, action: impl FnOnce(&mut Self) -> T) -> T {
        let deferrals = std::mem::take(&mut self.scope.deferrals);
        let result = action(self);
        self.scope.deferrals = deferrals;
        result
    }
}

/// Lowers a job. Mistakes are reported to the scope's sink; the job is then `None` or incomplete.
pub(crate) fn lower<'a>(root: &'a Element, scope: Scope<'a>) -> Option<(Job, Outline)> {
    let mut lowering = Lowering::new(scope, &[]);
    let job = lowering.job(root)?;
    Some((job, lowering.outline))
}

/// Lowers the innermost element of `views`, as it is in the requested partition. `None`, after a report, if there is
/// no such element or if it is wrong.
// Spec: PART-14, SUBST-09
pub(crate) fn lower_partition<'a>(
    root: &'a Element,
    scope: Scope<'a>,
    views: &'a [PartitionView<'a>],
) -> Option<ExecutionElement> {
    let (outermost, innermost) = (views.first()?, views.last()?);
    let mut lowering = Lowering::new(scope, views);
    lowering.scope.enter(root);
    let element = lowering.find(root, outermost.element)?;
    let element = lowering.execution_element(element)?;
    let mut within = std::iter::once(&element).chain(element.elements());
    within
        .find(|inner| inner.id().value == innermost.element && inner.partition().is_some())
        .cloned()
}

impl<'a> Lowering<'a> {
    /// Finds the element with an id, but not in an abstract element.
    fn find(&mut self, within: &'a Element, id: &str) -> Option<&'a Element> {
        for child in &within.children {
            if self.boolean(child, "abstract", false) {
                continue;
            }
            match child.name.value.as_str() {
                "step" | "flow" if self.has_id(child, id) => return Some(child),
                "flow" | "split" => {
                    if let Some(found) = self.find(child, id) {
                        return Some(found);
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn has_id(&mut self, element: &'a Element, id: &str) -> bool {
        let Some(attribute) = element.attribute("id") else {
            return false;
        };
        if !symbols::has_symbols(self.scope.dialect, &attribute.value) {
            return attribute.value.value == id;
        }
        self.scope.enter(element);
        let value = self.scope.attribute(attribute);
        self.scope.leave();
        value.is_some_and(|value| value.text.value == id)
    }
}
