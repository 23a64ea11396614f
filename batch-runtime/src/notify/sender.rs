//! The threads that deliver notifications, one for each target.

use std::any::Any;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded, unbounded};

use super::{Notification, NotificationEvent, NotificationTarget};
use crate::clock::Clock;
use crate::ids::{JobExecutionId, JobInstanceId};
use crate::outage::Outage;
use crate::parameters::JobParameters;
use crate::repository::{JobRepository, NextNotification, QueuedNotification, RepositoryError};
use crate::status::BatchStatus;

/// The interval at which a thread looks for what other processes have left.
const LOOK: Duration = Duration::from_secs(15);
/// The time for which a process keeps a notification to itself while it sends it.
const ATTEMPT: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// The age at which a notification that cannot be delivered is given up.
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
        let delivery = |target| {
            Arc::new(Delivery {
                target,
                repository: Arc::clone(repository),
                clock: Arc::clone(clock),
            })
        };
        Self {
            deliveries: targets.into_iter().map(delivery).collect(),
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

    /// Waits until the threads have sent everything that is due, but not longer than `limit`. If a thread still hangs for which an earlier
    /// call has waited, it does not wait again.
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
    let thread = thread::Builder::new().name("batch-notify".into());
    match thread.spawn(move || delivery.run(&messages)) {
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
    target: NotificationTarget,
    repository: Arc<dyn JobRepository>,
    clock: Arc<dyn Clock>,
}

impl Delivery {
    pub(crate) fn target(&self) -> &NotificationTarget {
        &self.target
    }

    fn run(&self, messages: &Receiver<Message>) {
        let mut outage = Outage::default();
        loop {
            let wait = self.send_due_or_wait(&mut outage);
            match messages.recv_timeout(wait) {
                Ok(Message::Wake) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Message::Flush(answer)) => {
                    self.send_due_or_wait(&mut outage);
                    let _ = answer.send(());
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
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

    /// Sends everything due once. Returns when the next one is due, if there is one.
    pub(crate) fn send_due(&self) -> Result<Option<Duration>, RepositoryError> {
        loop {
            match self.repository.take_notification(self.target.name(), ATTEMPT)? {
                NextNotification::Due(queued) => self.deliver(&queued)?,
                NextNotification::In(wait) => return Ok(Some(wait)),
                NextNotification::None => return Ok(None),
            }
        }
    }

    /// Makes everything due that has failed before, and sends what is due.
    pub(crate) fn send_now(&self) -> Result<(), RepositoryError> {
        self.repository.hasten_notifications(self.target.name())?;
        self.send_due().map(drop)
    }

    fn deliver(&self, queued: &QueuedNotification) -> Result<(), RepositoryError> {
        if queued.event == NotificationEvent::Overdue && self.is_in_time(queued)? {
            return self.repository.forget_notification(&queued.id);
        }
        let notification = Notification {
            id: queued.id.clone(),
            event: queued.event,
            job: queued.job.clone(),
            instance: queued.instance,
            execution: queued.execution,
            at: queued.detail.deadline.unwrap_or(queued.created),
            row: self.repository.job_execution(queued.execution)?,
            parameters: self.repository.parameters(queued.execution)?,
            detail: queued.detail.clone(),
        };
        let Err(error) = self.send(&notification) else {
            return self.repository.forget_notification(&queued.id);
        };
        let (target, id) = (self.target.name(), &queued.id);
        if self.clock.now().millis_since(notification.at) > GIVE_UP_MILLIS {
            tracing::error!(
                target_name = target,
                id,
                error,
                "a notification is given up after 7 days"
            );
            return self.repository.forget_notification(id);
        }
        let pause = pause_after(queued.attempts);
        tracing::warn!(
            target_name = target,
            id,
            error,
            "a notification could not be delivered; trying again in {pause:.0?}"
        );
        self.repository.postpone_notification(id, pause, &error)
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
        let sent = catch_unwind(AssertUnwindSafe(|| self.target.channel.send(notification)));
        match sent {
            Ok(sent) => sent.map_err(|error| error.to_string()),
            Err(panic) => Err(format!("the channel panicked: {}", text_of(&*panic))),
        }
    }

    /// Sends a notification of no execution. It is not stored.
    pub(crate) fn send_test(&self) -> Result<(), String> {
        self.send(&Notification {
            id: new_id(),
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

/// Returns the pause after a failed attempt, of which there were `attempts` before.
fn pause_after(attempts: u32) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1_u32.checked_shl(attempts).unwrap_or(u32::MAX));
    // From half of it to all of it, so that processes whose attempts failed together do not repeat them together.
    let random = RandomState::new().hash_one(()) as f64 / u64::MAX as f64;
    doubled.min(LONGEST_PAUSE).mul_f64(0.5 + random / 2.0)
}

/// Returns a random id.
pub(crate) fn new_id() -> String {
    let [high, low] = [0, 1].map(|half| RandomState::new().hash_one(half));
    format!("{high:016x}{low:016x}")
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
