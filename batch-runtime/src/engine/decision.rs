//! Decisions.
//!
//! Spec: DEC-12 to DEC-17, Appendix B.7 of the catalogue

use super::bound::Bound;
use super::call::{Failure, discard};
use super::elements::Element;
use super::outcome::{ElementEnd, Last, Outcome};
use super::walk::Walk;
use crate::artifact::ContextScope;
use crate::transition::Follow;

impl Walk<'_> {
    /// Calls the decider, whose result becomes the exit status of the job. Spec: DEC-14, DEC-17, D-27
    pub(super) fn decide(&self, element: &Element, decider: &Bound, last: Option<&Last>) -> ElementEnd {
        let decided = match self.decided(decider, last) {
            Ok(decided) => decided,
            Err(failure) => return ElementEnd::failed(failure),
        };
        if let Some(job) = &self.contexts.job {
            job.set_exit_status(Some(&decided));
        }
        let dialect = self.shared.job.dialect;
        match element.transitions.after_decision(dialect, &decided) {
            Follow::Unmatched => ElementEnd::failed(Failure::new(format!(
                "the result `{decided}` of decision `{}` matches none of its transition elements",
                element.id
            ))),
            follow => ElementEnd {
                outcome: Outcome::Completed,
                follow,
                last: None,
            },
        }
    }

    /// Calls the decider with the contexts of the job and of the last element in scope. Spec: DEC-12, CTX-10
    fn decided(&self, bound: &Bound, last: Option<&Last>) -> Result<String, Failure> {
        let mut contexts = ContextScope {
            job: self.contexts.job.clone(),
            ..ContextScope::default()
        };
        match last.cloned() {
            Some(Last::Step(step)) => contexts.step = Some(step),
            Some(Last::Flow(flow)) => contexts.flow = Some(flow),
            Some(Last::Split(split)) => contexts.split = Some(split),
            None => {}
        }
        let mut decider = bound.decider(&contexts)?;
        let decided = bound.call("decide", || decider.decide());
        discard(decider);
        let decided = decided?;
        if decided.is_empty() {
            return Err(Failure::new(format!(
                "decider `{}` returned an empty exit status",
                bound.name
            )));
        }
        Ok(decided)
    }
}
