//! The threads that deliver notifications, one for each target.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded, unbounded};

use super::{Notification, NotificationChannel, NotificationEvent, NotificationTarget};
use crate::back_off::BackOff;
use crate::clock::Clock;
use crate::ids::{JobExecutionId, JobInstanceId};
use crate::outage::Outage;
use crate::parameters::JobParameters;
use crate::random::random_id;
use crate::repository::{JobRepository, NextNotification, QueuedNotification, RepositoryError};
use crate::status::BatchStatus;
use crate::thread;

/// The interval between searches for notifications that other processes have left.
const LOOK: Duration = Duration::from_secs(15);
/// How long a process claims a notification while it sends it.
const ATTEMPT: Duration = Duration::from_secs(60);
/// The pauses after attempts that failed. Their jitter keeps processes apart whose attempts failed together.
const PAUSES: BackOff = BackOff {
    quick: 0,
    initial: Duration::from_secs(1),
    multiplier: 2.0,
    max: Duration::from_secs(300),
    jitter: 0.5,
};
/// The age of an undelivered notification when it is given up.
const GIVE_UP_MILLIS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// Delivers notifications of a runtime.
pub(crate) struct Senders {
    deliveries: Vec<Arc<Delivery>>,
    threads: Mutex<Vec<Sender<Message>>>,
    /// The answer that an earlier wait for a thread has not got.
    unanswered: Mutex<Option<Receiver<()>>>,
}

enum Message {
    Wake,
    /// Answers when everything due has been sent once.
    Flush(Sender<()>),
}

impl Senders {
    pub(crate) fn new(
        targets: Vec<NotificationTarget>,
        repository: &Arc<dyn JobRepository>,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        let delivery = |target: NotificationTarget| {
            Some(Arc::new(Delivery {
                target: target.name,
                channel: target.channel?,
                repository: Arc::clone(repository),
                clock: Arc::clone(clock),
            }))
        };
        Self {
            deliveries: targets.into_iter().filter_map(delivery).collect(),
            threads: Mutex::default(),
            unanswered: Mutex::default(),
        }
    }

    pub(crate) fn deliveries(&self) -> impl Iterator<Item = &Delivery> {
        self.deliveries.iter().map(AsRef::as_ref)
    }

    /// Starts the threads, or wakes them.
    pub(crate) fn wake(&self) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if threads.is_empty() {
            threads.extend(self.deliveries.iter().filter_map(start));
        }
        for thread in threads.iter() {
            let _ = thread.send(Message::Wake);
        }
    }

    /// Waits until the threads have sent everything that is due, but not longer than `limit`. It does not wait again for a thread that
    /// still hangs since an earlier call.
    pub(crate) fn drain(&self, limit: Duration) {
        let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        let hangs = |answer: &Receiver<()>| answer.try_recv() == Err(TryRecvError::Empty);
        if unanswered.as_ref().is_some_and(hangs) {
            return;
        }
        let until = Instant::now() + limit;
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let answers: Vec<Receiver<()>> = threads.iter().filter_map(flush).collect();
        drop(threads);
        for answer in answers {
            if answer.recv_deadline(until).is_err() {
                tracing::warn!(
                    "notifications are not delivered yet; the next process that runs jobs delivers them"
                );
                *unanswered = Some(answer);
                return;
            }
        }
    }
}

fn start(delivery: &Arc<Delivery>) -> Option<Sender<Message>> {
    let (sender, messages) = unbounded();
    let delivery = Arc::clone(delivery);
    match thread::start("batch-notify", move || delivery.run(&messages)) {
        Ok(_) => Some(sender),
        Err(error) => {
            tracing::error!(%error, "cannot start a thread for notifications; another process has to deliver them");
            None
        }
    }
}

fn flush(thread: &Sender<Message>) -> Option<Receiver<()>> {
    let (sender, answer) = bounded(1);
    thread.send(Message::Flush(sender)).ok().map(|()| answer)
}

/// The delivery to one target.
pub(crate) struct Delivery {
    target: String,
    channel: Arc<dyn NotificationChannel>,
    repository: Arc<dyn JobRepository>,
    clock: Arc<dyn Clock>,
}

impl Delivery {
    /// Returns the name of the target.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    fn run(&self, messages: &Receiver<Message>) {
        let mut outage = Outage::default();
        let mut waiting: Vec<Sender<()>> = Vec::new();
        loop {
            let wait = self.send_due_or_wait(&mut outage);
            for answer in waiting.drain(..) {
                let _ = answer.send(());
            }
            let first = match messages.recv_timeout(wait) {
                Err(RecvTimeoutError::Disconnected) => return,
                first => first.ok(),
            };
            // Many that came while it was sending need one look.
            let all = first.into_iter().chain(messages.try_iter());
            waiting.extend(all.filter_map(|message| match message {
                Message::Wake => None,
                Message::Flush(answer) => Some(answer),
            }));
        }
    }

    /// Sends everything due, and returns when to look again.
    fn send_due_or_wait(&self, outage: &mut Outage) -> Duration {
        const ACTION: &str = "look for notifications";
        match self.send_due() {
            Ok(next) => {
                outage.ended(ACTION);
                next.unwrap_or(LOOK).min(LOOK)
            }
            Err(error) => {
                outage.failed(ACTION, &error);
                LOOK
            }
        }
    }

    /// Sends everything due. Returns when the next one is due, if there is one.
    pub(crate) fn send_due(&self) -> Result<Option<Duration>, RepositoryError> {
        let mut sent = HashSet::new();
        loop {
            match self.repository.take_notification(&self.target, ATTEMPT)? {
                NextNotification::Due(queued) => {
                    self.deliver(&queued)?;
                    // Attempts that fail slowly are due again before the last one has failed. All others have been sent by then, because
                    // they were due before.
                    if !sent.insert(queued.id) {
                        return Ok(Some(Duration::ZERO));
                    }
                }
                // Another process has taken it.
                NextNotification::In(Duration::ZERO) => {}
                NextNotification::In(wait) => return Ok(Some(wait)),
                NextNotification::None => return Ok(None),
            }
        }
    }

    /// Makes everything due that has failed before, and sends what is due.
    pub(crate) fn send_now(&self) -> Result<(), RepositoryError> {
        self.repository.retry_notifications(&self.target)?;
        self.send_due().map(drop)
    }

    fn deliver(&self, queued: &QueuedNotification) -> Result<(), RepositoryError> {
        if queued.event == NotificationEvent::Overdue && self.is_in_time(queued)? {
            return self.repository.forget_notification(&queued.id);
        }
        // What cannot be read is an attempt that failed, so that it does not come back for good.
        let notification = self.notification(queued).map_err(|error| error.to_string());
        let Err(error) = notification.and_then(|notification| self.send(&notification)) else {
            return self.repository.forget_notification(&queued.id);
        };
        let (target, id) = (&self.target, &queued.id);
        // A deadline may be long past when the job starts, or long after it.
        let since = queued
            .detail
            .deadline
            .unwrap_or(queued.created)
            .max(queued.created);
        if self.clock.now().millis_since(since) > GIVE_UP_MILLIS {
            tracing::error!(
                target_name = target,
                id,
                error,
                "a notification is given up after 7 days"
            );
            return self.repository.forget_notification(id);
        }
        let pause = PAUSES
            .pause(queued.attempts.saturating_add(1))
            .unwrap_or_default();
        tracing::warn!(
            target_name = target,
            id,
            error,
            "a notification could not be delivered; trying again in {pause:.0?}"
        );
        self.repository.postpone_notification(id, pause, &error)
    }

    fn notification(&self, queued: &QueuedNotification) -> Result<Notification, RepositoryError> {
        Ok(Notification {
            id: queued.id.clone(),
            event: queued.event,
            job: queued.job.clone(),
            instance: queued.instance,
            execution: queued.execution,
            at: queued.detail.deadline.unwrap_or(queued.created),
            row: self.repository.job_execution(queued.execution)?,
            parameters: self.repository.parameters(queued.execution)?,
            detail: queued.detail.clone(),
        })
    }

    /// Returns whether the instance was complete at its deadline, or is abandoned or purged.
    fn is_in_time(&self, queued: &QueuedNotification) -> Result<bool, RepositoryError> {
        let executions = self.repository.job_executions(queued.instance)?;
        Ok(executions.is_empty()
            || executions.iter().any(|execution| match execution.status {
                BatchStatus::Completed => execution.ended <= queued.detail.deadline,
                BatchStatus::Abandoned => true,
                _ => false,
            }))
    }

    fn send(&self, notification: &Notification) -> Result<(), String> {
        let sent = catch_unwind(AssertUnwindSafe(|| self.channel.send(notification)));
        sent.unwrap_or_else(|_| Err("the channel panicked".into()))
            .map_err(|error| error.to_string())
    }

    /// Sends a notification of no execution. It is not stored.
    pub(crate) fn send_test(&self) -> Result<(), String> {
        self.send(&Notification {
            id: random_id(),
            event: NotificationEvent::Test,
            job: "test".into(),
            instance: JobInstanceId(0),
            execution: JobExecutionId(0),
            at: self.clock.now(),
            row: None,
            parameters: JobParameters::new(),
            detail: super::NotificationDetail::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;
    use crate::clock::Timestamp;
    use crate::notify::{NotificationChannel, NotificationDetail};
    use crate::repository::{Claim, ClaimRequest, Ending, NewNotification, RepositoryConfig, open};

    /// A day of 2026.
    const BEGIN: i64 = 1_780_000_000_000;
    const DAY: i64 = 24 * 60 * 60 * 1_000;

    struct TestClock(AtomicI64);

    impl Clock for TestClock {
        fn now(&self) -> Timestamp {
            Timestamp(self.0.load(Ordering::Relaxed))
        }
    }

    /// Fails after a time.
    struct Fails {
        after: i64,
        clock: Arc<TestClock>,
        attempts: Arc<Mutex<Vec<i64>>>,
    }

    impl NotificationChannel for Fails {
        fn send(&self, notification: &Notification) -> Result<(), Box<dyn Error + Send + Sync>> {
            self.clock.0.fetch_add(self.after, Ordering::Relaxed);
            self.attempts.lock().unwrap().push(notification.execution.0);
            Err("no route".into())
        }
    }

    struct Stage {
        delivery: Delivery,
        clock: Arc<TestClock>,
        /// The executions of the notifications, in the order of the attempts.
        attempts: Arc<Mutex<Vec<i64>>>,
    }

    /// Returns the delivery to a target that fails `after` a time, with a notification of each execution.
    fn stage(after: i64, deadline: Option<i64>, executions: &[i64]) -> Stage {
        let clock = Arc::new(TestClock(AtomicI64::new(BEGIN)));
        let config = RepositoryConfig {
            clock: Arc::<TestClock>::clone(&clock),
            ..RepositoryConfig::with_lease(ATTEMPT)
        };
        let repository = open("memory:", config).unwrap();
        let detail = NotificationDetail {
            deadline: deadline.map(Timestamp),
            ..NotificationDetail::default()
        };
        let new = |execution: &i64| {
            let (instance, execution) = (JobInstanceId(1), JobExecutionId(*execution));
            NewNotification::now(
                "ops",
                NotificationEvent::Failed,
                "job",
                instance,
                execution,
                &detail,
            )
        };
        let new: Vec<_> = executions.iter().map(new).collect();
        repository.queue_notifications(&new).unwrap();
        let attempts = Arc::new(Mutex::new(Vec::new()));
        let channel = Fails {
            after,
            clock: Arc::clone(&clock),
            attempts: Arc::clone(&attempts),
        };
        let delivery = Delivery {
            target: "ops".into(),
            channel: Arc::new(channel),
            repository,
            clock: Arc::<TestClock>::clone(&clock),
        };
        Stage {
            delivery,
            clock,
            attempts,
        }
    }

    // Spec: NOTIFY-08
    #[test]
    fn sending_ends_although_what_fails_is_due_again_at_once() {
        // More than the longest pause.
        let stage = stage(400_000, None, &[1, 2, 3]);
        stage.delivery.send_now().unwrap();
        let attempts = stage.attempts.lock().unwrap().clone();
        assert_eq!(attempts, [1, 2, 3, 1]);
    }

    /// Returns when the test permits it.
    struct Gate(Receiver<()>);

    impl NotificationChannel for Gate {
        fn send(&self, _: &Notification) -> Result<(), Box<dyn Error + Send + Sync>> {
            Ok(self.0.recv()?)
        }
    }

    /// Not only for what it had taken before.
    // Spec: NOTIFY-04
    #[test]
    fn the_end_waits_for_what_is_due() {
        const PATIENCE: Duration = Duration::from_secs(60);
        let clock: Arc<dyn Clock> = Arc::new(TestClock(AtomicI64::new(BEGIN)));
        let repository = open("memory:", RepositoryConfig::with_lease(ATTEMPT)).unwrap();
        let (open_gate, gate) = unbounded();
        let target = NotificationTarget::new("ops", Gate(gate));
        let senders = Senders::new(vec![target], &repository, &clock);
        senders.wake();
        senders.drain(PATIENCE);
        assert!(senders.unanswered.lock().unwrap().is_none());
        let (job, execution) = (JobInstanceId(1), JobExecutionId(1));
        let detail = NotificationDetail::default();
        let new = NewNotification::now("ops", NotificationEvent::Failed, "job", job, execution, &detail);
        repository.queue_notifications(&[new]).unwrap();
        senders.drain(Duration::from_millis(200));
        let answer = senders.unanswered.lock().unwrap().take();
        let answer = answer.expect("it has waited for the gate");
        open_gate.send(()).unwrap();
        answer.recv_timeout(PATIENCE).unwrap();
        assert!(repository.notifications().unwrap().is_empty());
    }

    // Spec: NOTIFY-04
    #[test]
    fn pauses_grow() {
        for (attempts, longest) in [(1, 1), (2, 2), (9, 256), (10, 300), (u32::MAX, 300)] {
            let pause = PAUSES.pause(attempts).unwrap();
            let longest = Duration::from_secs(longest);
            assert!(
                longest / 2 <= pause && pause <= longest,
                "{pause:?} after attempt {attempts}"
            );
        }
    }

    // Spec: NOTIFY-07
    #[test]
    fn an_instance_that_was_complete_at_its_deadline_is_not_overdue() {
        for (late, expected) in [(0, 0), (1, 1)] {
            let stage = stage(0, None, &[]);
            let repository = &stage.delivery.repository;
            let claim = repository.claim(&ClaimRequest::of_new_instance());
            let Claim {
                lease, mut execution, ..
            } = claim.unwrap();
            let detail = NotificationDetail {
                deadline: Some(Timestamp(BEGIN)),
                ..NotificationDetail::default()
            };
            let (instance, event) = (execution.instance_id, NotificationEvent::Overdue);
            let overdue = NewNotification::now("ops", event, "job", instance, execution.id, &detail);
            repository.queue_notifications(&[overdue]).unwrap();
            stage.clock.0.store(BEGIN + late, Ordering::Relaxed);
            let ending = Ending::of(BatchStatus::Completed, String::new());
            repository.end_job(&lease, &mut execution, &ending).unwrap();
            stage.delivery.send_now().unwrap();
            assert_eq!(stage.attempts.lock().unwrap().len(), expected, "{late} ms late");
        }
    }

    /// Not earlier, although its deadline was long before.
    // Spec: NOTIFY-04
    #[test]
    fn a_notification_is_given_up_after_seven_days() {
        for deadline in [None, Some(BEGIN - 30 * DAY)] {
            let stage = stage(0, deadline, &[1]);
            let pending = |at: i64| {
                stage.clock.0.store(at, Ordering::Relaxed);
                stage.delivery.send_now().unwrap();
                stage.delivery.repository.notifications().unwrap().len()
            };
            assert_eq!(pending(BEGIN), 1, "{deadline:?}");
            assert_eq!(pending(BEGIN + 7 * DAY), 1, "{deadline:?}");
            assert_eq!(pending(BEGIN + 7 * DAY + 1), 0, "{deadline:?}");
        }
    }
}
