//! Splits: flows on threads of their own.
//!
//! Spec: SPLIT-06 to SPLIT-12, SPLIT-17 to SPLIT-21, SPLIT-23, SPLIT-25, Appendix B.6 of the catalogue

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crossbeam::channel::{Sender, unbounded};
use crossbeam::thread::Scope;

use super::call::Failure;
use super::elements::{Element, ElementBody, Elements};
use super::walk::{ElementEnd, Last, Outcome, Walk};
use super::worker::Worker;
use crate::artifact::ContextScope;
use crate::context::SplitContext;
use crate::repository::RepositoryError;
use crate::status::BatchStatus;
use crate::transition::{Follow, Termination};

/// What the thread of a flow reports when it is over.
struct FlowEnd {
    position: usize,
    worker: Arc<Worker>,
    result: Result<ElementEnd, RepositoryError>,
}

/// What has become of the flows so far.
#[derive(Default)]
struct Flows {
    active: Vec<Arc<Worker>>,
    /// In the order in which the flows finished: how, and with which exit status.
    finished: Vec<(Outcome, Option<String>)>,
    /// The repository does not take any more: nothing can be said.
    broken: Option<RepositoryError>,
}

impl<'a> Walk<'a> {
    /// Runs the flows of a split, each on a thread of its own, until all have ended.
    pub(super) fn split(
        &self,
        element: &'a Element,
        elements: &'a Elements,
    ) -> Result<ElementEnd, RepositoryError> {
        let context = SplitContext::new(&element.id);
        context.set_batch_status(BatchStatus::Started);
        self.worker.enter(context.clone());
        let mut flows = Flows::default();
        let joined = crossbeam::thread::scope(|scope| self.run_flows(scope, &context, elements, &mut flows));
        self.worker.leave();
        // The threads catch what panics in them.
        if joined.is_err() {
            return Err(RepositoryError::Fault);
        }
        if let Some(error) = flows.broken {
            return Err(error);
        }
        let outcome = flows.outcome();
        let worst = flows.worst();
        let exit_status = context
            .exit_status()
            .or_else(|| flows.exit_status(worst))
            .unwrap_or_else(|| worst.to_string());
        context.set_batch_status(worst);
        context.set_exit_status(Some(&exit_status));
        let follow = self.after(element, &outcome, &exit_status);
        Ok(ElementEnd {
            outcome,
            follow,
            last: Some(Last::Split(context)),
        })
    }

    fn run_flows<'scope>(
        &self,
        scope: &Scope<'scope>,
        context: &SplitContext,
        elements: &'a Elements,
        flows: &mut Flows,
    ) where
        'a: 'scope,
    {
        let (sender, ended) = unbounded::<FlowEnd>();
        // All flows that nothing leads to begin at once. Spec: SPLIT-06
        for position in elements.beginnings() {
            self.begin_flow(scope, context, elements, position, flows, &sender);
        }
        while !flows.active.is_empty() {
            let Ok(end) = ended.recv() else { break };
            flows.active.retain(|worker| !Arc::ptr_eq(worker, &end.worker));
            self.shared.running.end_worker(&end.worker);
            match end.result {
                Ok(ended) => {
                    let Some(element) = elements.all.get(end.position) else {
                        continue;
                    };
                    if let Some(next) = self.after_flow(element, ended, elements, flows) {
                        self.begin_flow(scope, context, elements, next, flows, &sender);
                    }
                }
                Err(error) => {
                    flows.broken.get_or_insert(error);
                    flows.stop();
                }
            }
        }
    }

    /// Spec: SPLIT-06, CTX-06, CTX-09, D-67
    fn begin_flow<'scope>(
        &self,
        scope: &Scope<'scope>,
        context: &SplitContext,
        elements: &'a Elements,
        position: usize,
        flows: &mut Flows,
        sender: &Sender<FlowEnd>,
    ) where
        'a: 'scope,
    {
        let Some((element, of_flow)) = elements
            .all
            .get(position)
            .and_then(|element| match &element.body {
                ElementBody::Flow(of_flow) => Some((element, of_flow)),
                _ => None,
            })
        else {
            return;
        };
        let worker = self.shared.running.begin_worker();
        let job = self.contexts.job.as_ref().map(|job| job.for_subjob());
        let split = SplitContext::new(context.id());
        split.set_batch_status(BatchStatus::Started);
        if let Some(job) = &job {
            worker.enter(job.clone());
        }
        worker.enter(split.clone());
        let walk = Walk {
            shared: self.shared,
            worker: Arc::clone(&worker),
            contexts: ContextScope {
                job,
                split: Some(split),
                ..ContextScope::default()
            },
        };
        let (report, reported) = (sender.clone(), Arc::clone(&worker));
        let spawned = scope
            .builder()
            .name(format!("batch-flow-{}", element.id))
            .spawn(move |_| {
                reported.runs_here();
                // A fault of the runtime itself must not leave the split waiting.
                let result = catch_unwind(AssertUnwindSafe(|| walk.flow(element, of_flow)))
                    .unwrap_or(Err(RepositoryError::Fault));
                let _ = report.send(FlowEnd {
                    position,
                    worker: reported,
                    result,
                });
            });
        match spawned {
            Ok(_) => flows.active.push(worker),
            Err(error) => {
                self.shared.running.end_worker(&worker);
                let failure = Failure::new(format!(
                    "no thread for flow `{}` of split `{}`: {error}",
                    element.id,
                    context.id()
                ));
                flows.finished.push((Outcome::Failed(failure), None));
                flows.stop();
            }
        }
    }

    /// What a flow that has ended leads to: a flow, by way of a decision perhaps. Spec: SPLIT-10, SPLIT-12, SPLIT-18, D-30
    fn after_flow(
        &self,
        element: &'a Element,
        ended: ElementEnd,
        elements: &'a Elements,
        flows: &mut Flows,
    ) -> Option<usize> {
        let exit_status = ended.last.as_ref().and_then(Last::exit_status);
        let (mut outcome, mut follow, mut from) = (ended.outcome, ended.follow, element);
        let last = ended.last;
        let next = loop {
            match follow {
                // A stop of the whole job lets nothing begin.
                Follow::Element(_) if self.worker.stop_requested() => {
                    outcome = Outcome::Stopped;
                    break None;
                }
                Follow::Element(position) => {
                    let Some(next) = elements.all.get(position) else {
                        break None;
                    };
                    let ElementBody::Decision(decider) = &next.body else {
                        break Some(position);
                    };
                    let decided = self.decide(next, decider, last.as_ref());
                    (outcome, follow, from) = (decided.outcome, decided.follow, next);
                }
                Follow::Terminate(termination) => {
                    outcome = Outcome::Terminated(termination);
                    break None;
                }
                Follow::Nothing | Follow::Unmatched => break None,
            }
        };
        tracing::debug!(flow = from.id, status = %outcome.status(), "ended");
        let ends_all = matches!(outcome, Outcome::Failed(_) | Outcome::Terminated(_));
        flows.finished.push((outcome, exit_status));
        if ends_all && self.shared.job.dialect.stops_siblings() {
            flows.stop();
        }
        // A sibling that failed meanwhile lets nothing begin either.
        next.filter(|_| !flows.are_ending())
    }
}

impl Flows {
    /// Asks the flows that still run to stop. Spec: SPLIT-18, STATUS-15, STATUS-16, D-32
    fn stop(&self) {
        self.active.iter().for_each(|worker| worker.request_stop());
    }

    fn are_ending(&self) -> bool {
        self.broken.is_some()
            || self
                .finished
                .iter()
                .any(|(outcome, _)| matches!(outcome, Outcome::Failed(_) | Outcome::Terminated(_)))
    }

    /// How the split ends: as a terminating element says, FAILED before STOPPED before COMPLETED; else as the worst of the
    /// flows. Spec: SPLIT-19, SPLIT-21, STATUS-15
    fn outcome(&self) -> Outcome {
        let terminated = |status: BatchStatus| {
            self.finished.iter().find_map(|(outcome, _)| match outcome {
                Outcome::Terminated(termination) if termination.status == status => Some(termination),
                _ => None,
            })
        };
        let end = |termination: &Termination| Outcome::Terminated(termination.clone());
        if let Some(termination) = terminated(BatchStatus::Failed) {
            return end(termination);
        }
        let failed = self
            .finished
            .iter()
            .find(|(outcome, _)| matches!(outcome, Outcome::Failed(_)));
        if let Some((outcome, _)) = failed {
            return outcome.clone();
        }
        if let Some(termination) = terminated(BatchStatus::Stopped).or(terminated(BatchStatus::Completed)) {
            return end(termination);
        }
        match self.worst() {
            BatchStatus::Stopped => Outcome::Stopped,
            _ => Outcome::Completed,
        }
    }

    /// Spec: SPLIT-19, D-31
    fn worst(&self) -> BatchStatus {
        let has = |status| {
            self.finished
                .iter()
                .any(|(outcome, _)| outcome.status() == status)
        };
        [BatchStatus::Failed, BatchStatus::Stopped]
            .into_iter()
            .find(|status| has(*status))
            .unwrap_or(BatchStatus::Completed)
    }

    /// The exit status of the flow that finished last with that batch status. Spec: SPLIT-19, D-31
    fn exit_status(&self, status: BatchStatus) -> Option<String> {
        let mut of_status = self
            .finished
            .iter()
            .filter(|(outcome, _)| outcome.status() == status);
        of_status
            .next_back()
            .and_then(|(_, exit_status)| exit_status.clone())
    }
}
