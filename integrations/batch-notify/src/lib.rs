//! Channels for [notifications](batch_runtime::notify) about batch jobs: a [`Webhook`], and a [`Command`].
//!
//! ```no_run
//! use batch_notify::Webhook;
//! use batch_runtime::BatchRuntime;
//! use batch_runtime::notify::{NotificationEvent, NotificationTarget};
//!
//! let webhook = Webhook::new("https://alerts.example.com/batch")?.signed("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
//! let target = NotificationTarget::new("ops", webhook).on([NotificationEvent::Failed, NotificationEvent::Overdue]);
//! let runtime = BatchRuntime::builder().notify(target).build()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The command line of `batch-cli` with the feature `notify` configures them by `[notify]` in `batch.toml`.
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `sqlite` (default), `postgres`, `mysql` | the databases of job repositories, as of `batch-runtime` |
//! | `bundled-postgres`, `bundled-mysql` | the same, with the client library compiled in |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod command;
mod signature;
mod webhook;

pub use command::{Command, CommandError};
pub use signature::KeyError;
pub use webhook::{UrlError, Webhook};
