//! Decisions.
// Spec: DEC-12 to DEC-17, Appendix B.7 of the catalogue

use super::bound::Bound;
use super::call::{Failure, discard};
use super::elements::{Element, ElementBody, Elements};
use super::outcome::{ElementEnd, Last, Outcome};
use super::walk::Walk;
use crate::artifact::ContextScope;
use crate::execution::StepExecution;
use crate::repository::RepositoryError;
use crate::role::StepsBefore;
use crate::transition::Follow;

impl Walk<'_> {
    /// Calls the decider, whose result becomes the exit status of the job.
    // Spec: DEC-14, DEC-17, D-27
    pub(super) fn decide(&self, element: &Element, decider: &Bound, last: Option<&Last>) -> ElementEnd {
        let decided = match self.decided(decider, last) {
            Ok(decided) => decided,
            Err(failure) => return ElementEnd::failed(failure),
        };
        if let Some(job) = &self.contexts.job {
            job.set_exit_status(Some(&decided));
        }
        self.data
            .note_decision(&format!("{}{}", self.prefix, element.id), &decided);
        tracing::info!(decision = element.id, answer = decided, "decided");
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

    /// Calls the decider with the contexts of the job and of the last element in scope.
    // Spec: DEC-12, CTX-10
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
        let read = || {
            let steps = last.map_or_else(|| Ok(Vec::new()), |last| self.steps_of(last));
            Ok(steps?)
        };
        let decided = bound.call("decide", || decider.decide(&StepsBefore::new(&read)));
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

    /// Returns the executions of the steps that ended an element.
    // Spec: JAK-26
    fn steps_of(&self, last: &Last) -> Result<Vec<StepExecution>, RepositoryError> {
        let Some(element) = find(&self.shared.job.elements, last.id()) else {
            return Ok(Vec::new());
        };
        let sequences: Vec<Vec<&str>> = match &element.body {
            ElementBody::Split(split) => split.elements.all.iter().map(steps_in).collect(),
            _ => vec![steps_in(element)],
        };
        let instance = self.shared.running.lease.instance_id;
        let mut found = Vec::new();
        for steps in sequences {
            let mut latest: Option<StepExecution> = None;
            for id in steps {
                let name = format!("{}{id}", self.prefix);
                let history = self.shared.repository.step_history(instance, &name, self.since)?;
                let user_data = history.state.user_data.map(|data| data.as_json().to_owned());
                let last = history.last.map(|last| StepExecution { user_data, ..last });
                latest = latest.into_iter().chain(last).max_by_key(|step| step.id);
            }
            found.extend(latest);
        }
        Ok(found)
    }
}

/// Returns the element with an id, at any depth.
fn find<'e>(elements: &'e Elements, id: &str) -> Option<&'e Element> {
    elements.all.iter().find_map(|element| match &element.body {
        _ if element.id == id => Some(element),
        ElementBody::Flow(flow) => find(&flow.elements, id),
        ElementBody::Split(split) => find(&split.elements, id),
        ElementBody::Step(_) | ElementBody::Decision(_) => None,
    })
}

/// Returns the ids of the steps in an element.
fn steps_in(element: &Element) -> Vec<&str> {
    match &element.body {
        ElementBody::Step(_) => vec![element.id.as_str()],
        ElementBody::Flow(flow) => flow.elements.all.iter().flat_map(steps_in).collect(),
        ElementBody::Split(split) => split.elements.all.iter().flat_map(steps_in).collect(),
        ElementBody::Decision(_) => Vec::new(),
    }
}
