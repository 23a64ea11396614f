//! Notifications: what happened to a job, sent to those who look after it.
//!
//! A [`NotificationTarget`] chooses the events and jobs, and sends through a [`NotificationChannel`], such as a webhook or a command of
//! the crate `batch-notify`. A program adds targets by [`BatchRuntimeBuilder::notify`](crate::BatchRuntimeBuilder::notify).
//!
//! A notification is a row of the repository until it is delivered. The row about an end is written together with the end itself, so that
//! no crash loses it. If the process ends first, or dies, the next one that runs jobs with a target of the same name delivers it. A channel
//! that fails is tried again, at intervals from 1 second to 5 minutes, for 7 days. So each notification arrives at least once, and may
//! arrive again; its [`id`](Notification::id) stays the same.
//!
//! Each target has its own thread, and no job waits for it.
// Spec: NOTIFY-01 to NOTIFY-09

mod cloud_event;
mod observer;
mod rules;
mod sender;
mod target;

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::execution::JobExecution;
use crate::ids::{JobExecutionId, JobInstanceId};
use crate::parameters::JobParameters;

pub use self::target::NotificationTarget;

pub(crate) use self::observer::NotificationObserver;
pub(crate) use self::rules::{NotificationRules, event_of_end};
pub(crate) use self::sender::Senders;

/// What a notification is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum NotificationEvent {
    /// A job execution ended COMPLETED.
    Completed,
    /// A job execution ended STOPPED.
    Stopped,
    /// A job execution ended FAILED. One whose process has died fails when another process closes it.
    Failed,
    /// A step execution has skipped more items than the target allows, see [`NotificationTarget::skipped_more_than`].
    Skipped,
    /// A job execution takes the place of one of its instance whose process has died.
    TakenOver,
    /// A job instance is not complete at the deadline of the property `batch.job.deadline`.
    Overdue,
    /// A step has exceeded its `batch.step.heartbeat`.
    HeartbeatMissed,
    /// An operator tests the target.
    Test,
}

impl NotificationEvent {
    pub(crate) const ALL: [Self; 8] = [
        Self::Completed,
        Self::Stopped,
        Self::Failed,
        Self::Skipped,
        Self::TakenOver,
        Self::Overdue,
        Self::HeartbeatMissed,
        Self::Test,
    ];

    /// Returns its name, such as `taken-over`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::TakenOver => "taken-over",
            Self::Overdue => "overdue",
            Self::HeartbeatMissed => "heartbeat-missed",
            Self::Test => "test",
        }
    }
}

impl fmt::Display for NotificationEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for NotificationEvent {
    type Err = UnknownEvent;

    fn from_str(text: &str) -> Result<Self, UnknownEvent> {
        let mut all = Self::ALL.into_iter();
        all.find(|event| event.as_str() == text)
            .ok_or_else(|| UnknownEvent(text.to_owned()))
    }
}

/// A text that is not the name of a [`NotificationEvent`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown event `{0}`")]
pub struct UnknownEvent(String);

/// A notification, as a channel sends it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Notification {
    /// Identifies it. A repetition has the same.
    pub id: String,
    /// What it is about.
    pub event: NotificationEvent,
    /// The job.
    pub job: String,
    /// The job instance.
    pub instance: JobInstanceId,
    /// The job execution.
    pub execution: JobExecutionId,
    /// When it happened.
    pub at: Timestamp,
    /// The job execution, as it is when the notification is sent. `None` if it was deleted, or for a test.
    pub row: Option<JobExecution>,
    /// Its parameters. Of a secret, the reference.
    pub parameters: JobParameters,
    /// What only this kind of event has.
    pub detail: NotificationDetail,
}

/// What only some kinds of events have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct NotificationDetail {
    /// The step that has skipped items or missed its heartbeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The number of items that it has skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<i64>,
    /// The job execution of the dead process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_execution: Option<i64>,
    /// The deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// An explanation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Sends notifications.
///
/// ```
/// use std::error::Error;
/// use batch_runtime::BatchRuntime;
/// use batch_runtime::notify::{Notification, NotificationChannel, NotificationEvent, NotificationTarget};
///
/// struct Terminal;
///
/// impl NotificationChannel for Terminal {
///     fn send(&self, notification: &Notification) -> Result<(), Box<dyn Error + Send + Sync>> {
///         println!("{} {}", notification.job, notification.event);
///         Ok(())
///     }
/// }
///
/// let runtime = BatchRuntime::builder()
///     .repository("memory:")
///     .notify(NotificationTarget::new("terminal", Terminal).on([NotificationEvent::Failed]))
///     .build()?;
/// # Ok::<(), Box<dyn Error>>(())
/// ```
pub trait NotificationChannel: Send + Sync {
    /// Sends a notification. Called on the thread of the target, with one notification at a time.
    ///
    /// # Errors
    /// When it may not have arrived: it is sent again later. The message is logged and stored, so it must not contain secrets. A panic
    /// counts as an error.
    fn send(&self, notification: &Notification) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// A notification that waits for its delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingNotification {
    /// Identifies it.
    pub id: String,
    /// The name of its target.
    pub target: String,
    /// What it is about.
    pub event: NotificationEvent,
    /// The job.
    pub job: String,
    /// The job execution.
    pub execution: JobExecutionId,
    /// When it was created: at the event, or for an overdue job at the start of the job.
    pub created: Timestamp,
    /// When it is to be sent.
    pub due: Timestamp,
    /// The number of failed attempts.
    pub attempts: u32,
    /// The error of the last one.
    pub last_error: Option<String>,
}
