//! A transport that delivers everything twice, and may be slow, in this process.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use batch_runtime::observer::{JobEvent, JobObserver};
use batch_runtime::partition::{
    DeclinedPartition, DispatchError, PartitionChannel, PartitionDelivery, PartitionDispatcher,
    PartitionEvent, PartitionSource, PartitionTicket, PartitionTransport,
};
use batch_runtime::{BatchRuntime, BatchRuntimeBuilder, JobExecutionId};
use batch_tests::fleet::until;
use batch_tests::stage::Stage;

use crate::artifacts::{assert_contains_all, assert_starts, job, tree};
use crate::parallel::properties;
use crate::s5_5_subjobs::{BOTH, chunk};

#[derive(Clone)]
struct Twice {
    submit: Sender<PartitionTicket>,
    take: Arc<Mutex<Receiver<PartitionTicket>>>,
    events: Arc<Mutex<BTreeMap<JobExecutionId, Sender<PartitionEvent>>>>,
    /// The number of calls that wait for an event and get none, before the first event arrives.
    quiet: u32,
}

impl PartitionDispatcher for Twice {
    fn open(&self, execution: JobExecutionId, _: &str) -> Result<Box<dyn PartitionChannel>, DispatchError> {
        let (events, receiver) = channel();
        self.events.lock().unwrap().insert(execution, events);
        Ok(Box::new(Coordinator {
            tickets: self.submit.clone(),
            receiver,
            quiet: self.quiet,
            silence: channel(),
        }))
    }
}

impl PartitionTransport for Twice {
    fn connect_worker(&self, _: &str) -> Result<Box<dyn PartitionSource>, DispatchError> {
        Ok(Box::new(self.clone()))
    }
}

struct Coordinator {
    tickets: Sender<PartitionTicket>,
    receiver: Receiver<PartitionEvent>,
    quiet: u32,
    /// Nothing is ever sent.
    silence: (Sender<()>, Receiver<()>),
}

impl PartitionChannel for Coordinator {
    fn submit(&mut self, tickets: &[PartitionTicket]) -> Result<(), DispatchError> {
        assert!(!tickets.is_empty());
        for ticket in tickets.iter().chain(tickets) {
            self.tickets.send(ticket.clone()).unwrap();
        }
        Ok(())
    }
    fn receive(&mut self, wait: Duration) -> Result<Option<PartitionEvent>, DispatchError> {
        if self.quiet > 0 {
            self.quiet -= 1;
            let _ = self.silence.1.recv_timeout(wait);
            return Ok(None);
        }
        Ok(self.receiver.recv_timeout(wait).ok())
    }
    fn stop(&mut self) {}
}

impl PartitionSource for Twice {
    fn take(&mut self, _: u32, wait: Duration) -> Result<Vec<Box<dyn PartitionDelivery>>, DispatchError> {
        let ticket = self.take.lock().unwrap().recv_timeout(wait).ok();
        let delivery = |ticket: PartitionTicket| -> Box<dyn PartitionDelivery> {
            Box::new(Delivery {
                events: self.events.lock().unwrap()[&ticket.job_execution].clone(),
                tickets: self.submit.clone(),
                ticket,
            })
        };
        Ok(ticket.into_iter().map(delivery).collect())
    }
}

struct Delivery {
    ticket: PartitionTicket,
    tickets: Sender<PartitionTicket>,
    events: Sender<PartitionEvent>,
}

impl Delivery {
    /// The coordinator may have gone.
    fn report(&self, event: impl Fn() -> PartitionEvent) {
        let _ = self.events.send(event());
        let _ = self.events.send(event());
    }
}

impl PartitionDelivery for Delivery {
    fn ticket(&self) -> &PartitionTicket {
        &self.ticket
    }
    fn ended(&self) -> Result<(), DispatchError> {
        self.report(|| PartitionEvent::Ended(self.ticket.step_execution));
        Ok(())
    }
    fn decline(&self, reason: &DeclinedPartition, _: Duration) -> Result<(), DispatchError> {
        self.report(|| PartitionEvent::Declined(self.ticket.step_execution, reason.clone()));
        Ok(())
    }
    fn hand_back(&self, _: Duration) -> Result<(), DispatchError> {
        self.tickets.send(self.ticket.clone()).unwrap();
        Ok(())
    }
    fn discard(&self) -> Result<(), DispatchError> {
        Ok(())
    }
}

/// Returns the steps of a job, and the reports to its analyzer, with the partitions on these workers.
fn steps_and_reports(stage: &Stage, dispatch: &str) -> (String, Vec<String>) {
    let execution = stage.start("job", [("sets", "true"), ("batch.dispatch", dispatch)]);
    let is_report = |call: &String| call.starts_with("data") || call.starts_with("status");
    let mut log = stage.log();
    log.retain(is_report);
    (tree(stage, execution), log)
}

/// Returns a transport of this process.
fn twice() -> Twice {
    let (submit, take) = channel();
    let take = Arc::new(Mutex::new(take));
    Twice {
        submit,
        take,
        events: Arc::default(),
        quiet: 0,
    }
}

/// Runs something while a worker of this runtime takes partitions, and until it has drained.
fn with_worker<T>(workers: &BatchRuntime, run: impl FnOnce() -> T) -> T {
    let worker = workers.worker().slots(1).start().unwrap();
    let result = run();
    worker.drain();
    worker.wait().unwrap();
    result
}

/// A ticket that arrives twice runs its partition once, and a report that arrives twice counts once: the job ends as with threads.
///
/// Spec: DISP-01, DISP-04, DISP-14, SUBJOB-09, SUBJOB-10
#[test]
fn what_is_delivered_twice_counts_once() {
    let twice = twice();
    let xml = job(&chunk(BOTH));
    let transported = |builder: BatchRuntimeBuilder| builder.partition_transport("twice", twice.clone());
    let stage = Stage::configured(&xml, transported);
    let workers = stage.another_runtime_with(|builder| transported(builder).dispatch("twice"));
    let on_workers = with_worker(&workers, || steps_and_reports(&stage, "twice"));
    assert_starts(&on_workers.0, "job job COMPLETED");
    assert_eq!(on_workers, steps_and_reports(&Stage::new(&xml), "local"));
}

/// The coordinator finds the ends in the repository while the reports are under way. It waits for them, because the payloads of the
/// partitions come before.
///
/// Spec: DISP-05, SUBJOB-09, SUBJOB-11
#[test]
fn payloads_that_are_under_way_are_waited_for() {
    // Longer than the interval of the polls, and shorter than a report may be under way.
    let slow = Twice { quiet: 8, ..twice() };
    let xml = job(&chunk(BOTH));
    let transported = |builder: BatchRuntimeBuilder| builder.partition_transport("slow", slow.clone());
    let stage = Stage::configured(&xml, transported);
    let workers = stage.another_runtime_with(|builder| transported(builder).dispatch("slow"));
    let on_workers = with_worker(&workers, || steps_and_reports(&stage, "slow"));
    assert_eq!(on_workers, steps_and_reports(&Stage::new(&xml), "local"));
}

/// Chooses one trace for all.
struct Tracing;

impl JobObserver for Tracing {
    fn on_event(&self, _: &JobEvent) {}
    fn trace_job(&self, _: &str) -> Option<String> {
        Some("the trace".into())
    }
}

/// The events of a worker have the trace that its ticket carries, or that the repository has.
///
/// Spec: OTEL-04
#[test]
fn events_of_a_worker_have_the_trace_of_the_job() {
    for dispatch in ["twice", "repository"] {
        let twice = twice();
        let transported = |builder: BatchRuntimeBuilder| builder.partition_transport("twice", twice.clone());
        let stage = Stage::configured(&job(&chunk(BOTH)), |builder| {
            transported(builder).observer(Tracing)
        });
        let seen: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
        let seeing = Arc::clone(&seen);
        let observer = move |event: &JobEvent| {
            seeing.lock().unwrap().push(event.job.trace.context.clone());
        };
        let workers =
            stage.another_runtime_with(|builder| transported(builder).dispatch(dispatch).observer(observer));
        with_worker(&workers, || steps_and_reports(&stage, dispatch));
        workers.job_operator().flush_observers();
        let seen = seen.lock().unwrap();
        assert!(!seen.is_empty(), "{dispatch}");
        let is_traced = |trace: &Option<String>| trace.as_deref() == Some("the trace");
        assert!(seen.iter().all(is_traced), "{dispatch}: {seen:?}");
    }
}

/// A worker that has run the partitions of one element uses the plan of the next one for the partitions of that.
///
/// Spec: DISP-01, PART-12, PART-20, D-75
#[test]
fn a_worker_knows_the_plan_of_each_element() {
    let element = |id: &str, next: &str, parts: &str| {
        format!(
            r#"<step id="{id}" {next}>{}<batchlet ref="Part"/><partition><algorithm ref="Planner"/></partition></step>"#,
            properties(&format!("parts={parts}"))
        )
    };
    let xml = job(&(element("one", r#"next="two:b""#, "a,b") + &element("two:b", "", "c,d")));
    let stage = Stage::new(&xml);
    let workers = stage.another_runtime_with(|builder| builder.dispatch("repository"));
    let (steps, _) = with_worker(&workers, || steps_and_reports(&stage, "repository"));
    assert_contains_all(&steps, &["one:1 COMPLETED a DONE", "one:2 COMPLETED b DONE"]);
    assert_contains_all(&steps, &["two:b:1 COMPLETED c DONE", "two:b:2 COMPLETED d DONE"]);
}

/// Spec: DISP-13
#[test]
fn a_worker_renews_its_registration() {
    let stage = Stage::new(&job(&chunk(BOTH)));
    let workers = stage.another_runtime_with(|builder| builder.lease_time(Duration::from_secs(1)));
    let query = "SELECT COALESCE(MAX(EXPIRES_AT), 0) FROM BATCH_WORKER";
    let expiry = || stage.outside().number(query);
    with_worker(&workers, || {
        let first = until("the worker is registered", || Some(expiry()).filter(|at| *at > 0));
        until("the registration is renewed", || (expiry() > first).then_some(()));
    });
}
