//! Decisions.
// Spec: DEC-12 to DEC-17, Appendix B.7 of the catalogue

use super::bound::Bound;
use super::call::{Failure, discard};
use super::elements::{Element, ElementBody, Elements};
use super::outcome::{ElementEnd, Last, Outcome};
use super::walk::Walk;
use crate::artifact::ContextScope;
use crate::context::StepContext;
use crate::execution::{StepCounters, StepExecution};
use crate::repository::{RepositoryError, StepHistory};
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
            Some(Last::Step(step)) => {
                let counted = self.count_partitions(&step);
                counted.map_err(|error| {
                    Failure::new(format!("cannot read the counters of the partitions: {error}"))
                })?;
                contexts.step = Some(step);
            }
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

    /// Gives the context of a partitioned step the sums of its partitions, which a decider needs: the row of the step has no items.
    // Spec: DEC-12
    fn count_partitions(&self, step: &StepContext) -> Result<(), RepositoryError> {
        let key = format!("{}{}", self.prefix, step.id());
        let state = self.state_of(&key);
        let Some(plan) = &state.plan else {
            return Ok(());
        };
        let (instance, since) = (self.shared.running.lease.instance_id, state.since.max(self.since));
        let mut sums = StepCounters::default();
        for number in 1..=plan.sub_job_count() {
            let history = self
                .shared
                .repository
                .step_history(instance, &format!("{key}:{number}"), since)?;
            let last = history.last.map_or(StepCounters::default(), |last| last.counters);
            sums = sums.plus(history.before).plus(last);
        }
        step.set_counters(sums);
        Ok(())
    }

    /// Returns the history of a step of the walk.
    pub(super) fn step_history(&self, id: &str) -> Result<StepHistory, RepositoryError> {
        let (instance, name) = (
            self.shared.running.lease.instance_id,
            format!("{}{id}", self.prefix),
        );
        self.shared.repository.step_history(instance, &name, self.since)
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
        let mut found = Vec::new();
        for steps in sequences {
            let mut latest: Option<StepExecution> = None;
            for id in steps {
                let history = self.step_history(id)?;
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
