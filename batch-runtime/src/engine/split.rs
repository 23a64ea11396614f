//! Splits: each flow runs on its own thread.
// Spec: SPLIT-06 to SPLIT-12, SPLIT-17 to SPLIT-21, SPLIT-23, SPLIT-25, Appendix B.6 of the catalogue

use std::collections::VecDeque;
use std::sync::Arc;

use super::call::Failure;
use super::elements::{BoundSplit, Element, ElementBody};
use super::outcome::{ElementEnd, Last, Outcome};
use super::partition::contexts_of_subjob;
use super::threads::{
    Analysis, Collecting, CollectorSink, Report, SubjobEnd, SubjobOutcomes, SubjobThreads, Worker,
    exit_status_of,
};
use super::walk::{Walk, data_of};
use crate::artifact::ContextScope;
use crate::context::SplitContext;
use crate::repository::RepositoryError;
use crate::status::BatchStatus;
use crate::thread;
use crate::transition::Follow;

impl Walk<'_> {
    /// Runs the flows of a split, each on its own thread, until all have ended.
    pub(super) fn split(&self, element: &Element, split: &BoundSplit) -> Result<ElementEnd, RepositoryError> {
        let context = SplitContext::new(&element.id);
        context.set_batch_status(BatchStatus::Started);
        self.worker.enter(context.clone());
        let contexts = ContextScope {
            split: Some(context.clone()),
            ..self.contexts.clone()
        };
        let mut ends = SubjobOutcomes::default();
        let outcome = self.flows(element, split, &contexts, &mut ends);
        self.worker.leave();
        let outcome = outcome?;
        let worst = match &outcome {
            Outcome::Failed(_) => BatchStatus::Failed,
            _ => ends.worst(),
        };
        let exit_status = context
            .exit_status()
            .or_else(|| ends.exit_status(worst))
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

    fn flows(
        &self,
        element: &Element,
        split: &BoundSplit,
        contexts: &ContextScope,
        ends: &mut SubjobOutcomes,
    ) -> Result<Outcome, RepositoryError> {
        let mut analysis = match Analysis::make(split.subjobs.analyzer.as_ref(), contexts) {
            Ok(analysis) => analysis,
            Err(failure) => return Ok(Outcome::Failed(failure)),
        };
        let (key, logical_tx) = (&element.id, split.subjobs.logical_tx.as_ref());
        self.in_logical_tx(key, logical_tx, contexts, split.elements.run_again(), || {
            let joined = thread::scoped(|scope| {
                let threads = SubjobThreads::new(scope, self.shared.running, &self.worker);
                self.run_flows(threads, element, split, contexts, &mut analysis, ends);
            });
            // The threads catch panics.
            if joined.is_err() {
                return Err(RepositoryError::Fault);
            }
            if let Some(error) = ends.broken.take() {
                return Err(error);
            }
            Ok(match analysis.failure.take() {
                Some(failure) => (Outcome::Failed(failure), BatchStatus::Failed),
                None => (ends.outcome(), ends.worst()),
            })
        })
    }

    fn run_flows<'scope>(
        &'scope self,
        mut threads: SubjobThreads<'_, 'scope>,
        element: &'scope Element,
        split: &'scope BoundSplit,
        contexts: &'scope ContextScope,
        analysis: &mut Analysis<'_>,
        ends: &mut SubjobOutcomes,
    ) {
        let all = &split.elements.all;
        let limit = split.threads.unwrap_or(self.shared.partition_threads);
        let dialect = self.shared.job.dialect;
        // All flows that no element leads to start at once, as far as the limit allows. Spec: SPLIT-06
        let mut waiting: VecDeque<usize> = split.elements.initial_flows().into();
        let (mut running, mut is_first) = (0, true);
        loop {
            while running < limit && !ends.stop_siblings(dialect) {
                let Some(position) = waiting.pop_front() else {
                    break;
                };
                let Some(flow) = all.get(position) else { continue };
                if !is_first && self.worker.stop_requested() {
                    ends.insert(position, Outcome::Stopped, None);
                    continue;
                }
                let name = format!("batch-flow-{}", flow.id);
                let started = threads.begin(position, name, move |worker, sink| {
                    self.run_flow(worker, sink, element, flow, split, contexts)
                });
                running += 1;
                if let Err(error) = started {
                    running -= 1;
                    let (flow, split) = (&flow.id, &element.id);
                    let failure = Failure::new(format!(
                        "cannot start a thread for flow `{flow}` of split `{split}`: {error}"
                    ));
                    ends.insert(position, Outcome::Failed(failure), None);
                }
            }
            is_first = false;
            if analysis.failure.is_some() || ends.stop_siblings(dialect) {
                waiting.clear();
                threads.stop();
            }
            let Some(report) = threads.next() else { break };
            match report {
                Report::Data(_, data) => analysis.data(data),
                Report::Ended(end) => {
                    running -= 1;
                    waiting.extend(self.flow_ended(end, split, analysis, ends));
                }
            }
        }
    }

    /// Notes the end of a flow, and returns the flow that follows it.
    fn flow_ended(
        &self,
        end: SubjobEnd,
        split: &BoundSplit,
        analysis: &mut Analysis<'_>,
        ends: &mut SubjobOutcomes,
    ) -> Option<usize> {
        let position = end.position;
        let flow = split.elements.all.get(position)?;
        match end.result {
            Ok(ended) => {
                analysis.ended(ended.outcome.status(), &exit_status_of(&ended));
                self.after_flow(position, flow, ended, split, ends)
            }
            Err(error) => {
                ends.broken.get_or_insert(error);
                None
            }
        }
    }

    /// Runs a flow, on its thread.
    // Spec: SPLIT-06, SUBJOB-22, CTX-06, CTX-09, D-67
    fn run_flow(
        &self,
        worker: &Arc<Worker>,
        sink: &Arc<dyn CollectorSink>,
        element: &Element,
        flow: &Element,
        split: &BoundSplit,
        contexts: &ContextScope,
    ) -> Result<ElementEnd, RepositoryError> {
        let contexts = contexts_of_subjob(contexts, worker, false);
        let collector = split.subjobs.collector.clone();
        let collecting = collector.map(|bound| Collecting::new(bound, sink));
        let walk = Walk {
            worker: Arc::clone(worker),
            data: data_of(&contexts),
            contexts,
            // A rollback of an enclosing element has undone this work, too, so the later one counts.
            since: self.state_of(&element.id).since.max(self.since),
            collecting,
            lanes: self.lanes_with(&element.id, format!("flow `{}`", flow.id)),
            ..self.clone()
        };
        let ended = match &flow.body {
            ElementBody::Flow(body) => walk.flow(flow, body)?,
            // Only flows are started.
            _ => return Err(RepositoryError::Fault),
        };
        walk.save_data()?;
        Ok(ended)
    }

    /// Returns the flow that follows a flow, directly or by a decision.
    // Spec: SPLIT-10, SPLIT-12, SPLIT-18, D-30
    fn after_flow(
        &self,
        position: usize,
        flow: &Element,
        ended: ElementEnd,
        split: &BoundSplit,
        ends: &mut SubjobOutcomes,
    ) -> Option<usize> {
        let exit_status = ended.last.as_ref().and_then(Last::exit_status);
        let (mut outcome, mut follow, last) = (ended.outcome, ended.follow, ended.last);
        let next = loop {
            match follow {
                // No flow starts after a stop of the job.
                Follow::Element(_) if self.worker.stop_requested() => {
                    outcome = Outcome::Stopped;
                    break None;
                }
                Follow::Element(position) => {
                    let Some(next) = split.elements.all.get(position) else {
                        break None;
                    };
                    let ElementBody::Decision(decider) = &next.body else {
                        break Some(position);
                    };
                    let decided = self.decide(next, decider, last.as_ref());
                    // The flow that follows reads only what is committed.
                    if let Err(error) = self.save_data() {
                        ends.broken.get_or_insert(error);
                        break None;
                    }
                    (outcome, follow) = (decided.outcome, decided.follow);
                }
                Follow::Terminate(termination) => {
                    outcome = Outcome::Terminated(termination);
                    break None;
                }
                Follow::Nothing | Follow::Unmatched => break None,
            }
        };
        tracing::debug!(flow = flow.id, status = %outcome.status(), "ended");
        ends.insert(position, outcome, exit_status);
        // No flow starts after the failure of a sibling.
        next.filter(|_| !ends.are_ending())
    }
}
