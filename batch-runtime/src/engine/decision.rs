//! Decisions.
//!
//! Spec: DEC-12 to DEC-17, Appendix B.7 of the catalogue

use super::bound::Bound;
use super::call::{Failure, call, discard};
use super::elements::Element;
use super::outcome::{ElementEnd, Last, Outcome};
use super::walk::Walk;
use crate::artifact::ContextScope;
use crate::transition::Follow;

impl Walk<'_> {
    /// Calls the decider, whose result becomes the exit status of the job. Spec: DEC-14, DEC-17, D-27
    pub(super) fn decide(&self, element: &Element, decider: &Bound, last: Option<&Last>) -> ElementEnd {
        match self.decided(decider, last) {
            Ok(decided) => {
                if let Some(job) = &self.contexts.job {
                    job.set_exit_status(Some(&decided));
                }
                let follow = element
                    .transitions
                    .after_decision(self.shared.job.dialect, &decided);
                let outcome = match &follow {
                    Follow::Unmatched => Outcome::Failed(Failure::new(format!(
                        "the result `{decided}` of decision `{}` matches none of its transition elements",
                        element.id
                    ))),
                    _ => Outcome::Completed,
                };
                ElementEnd {
                    // An unmatched decision ends the walk with this outcome.
                    follow: match follow {
                        Follow::Unmatched => Follow::Nothing,
                        other => other,
                    },
                    outcome,
                    last: None,
                }
            }
            Err(failure) => ElementEnd {
                outcome: Outcome::Failed(failure),
                follow: Follow::Nothing,
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
        let mut decider = bound
            .decider(&contexts)
            .map_err(|error| Failure::not_made(bound, &error))?;
        let decided = call(|| decider.decide()).map_err(|error| Failure::thrown(bound, "decide", error));
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
