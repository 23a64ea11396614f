//! The shared code of the tests.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

pub mod contender;
pub mod database;
pub mod deadline;
pub mod dispatching;
pub mod faulty;
pub mod fleet;
pub mod flights;
pub mod folder;
pub mod generic;
mod great_circle;
pub mod http;
pub mod kill;
pub mod launching;
mod linked_artifact;
pub mod logical_tx;
pub mod moving;
pub mod operated;
pub mod order;
pub mod own_process;
pub mod partitions;
#[cfg(target_os = "linux")]
pub mod power;
pub mod process;
#[doc(hidden)]
pub mod properties;
pub mod proxy;
pub mod random;
pub mod shapes;
pub mod slow;
pub mod sqlite;
pub mod stage;
#[cfg(unix)]
pub mod suspended;
pub mod sweep;
pub mod writing;

/// The README's programs compile.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// The programs of the guide compile.
#[cfg(doctest)]
pub mod guide {
    #[doc = include_str!("../../docs/guide/tour.md")]
    pub struct Tour;
    #[doc = include_str!("../../docs/guide/faq.md")]
    pub struct Faq;
    #[doc = include_str!("../../docs/guide/troubleshooting.md")]
    pub struct Troubleshooting;
    #[doc = include_str!("../../docs/guide/glossary.md")]
    pub struct Glossary;
    #[doc = include_str!("../../docs/guide/command-line.md")]
    pub struct CommandLine;
    #[doc = include_str!("../../docs/guide/known-limits.md")]
    pub struct KnownLimits;
    #[doc = include_str!("../../docs/guide/stability.md")]
    pub struct Stability;
    #[doc = include_str!("../../docs/guide/artifacts.md")]
    pub struct Artifacts;
    #[doc = include_str!("../../docs/guide/files.md")]
    pub struct Files;
    #[doc = include_str!("../../docs/guide/formats.md")]
    pub struct Formats;
    #[doc = include_str!("../../docs/guide/tables.md")]
    pub struct Tables;
    #[doc = include_str!("../../docs/guide/records.md")]
    pub struct Records;
    #[doc = include_str!("../../docs/guide/expressions.md")]
    pub struct Expressions;
    #[doc = include_str!("../../docs/guide/properties.md")]
    pub struct Properties;
    #[doc = include_str!("../../docs/guide/batchlets.md")]
    pub struct Batchlets;
    #[doc = include_str!("../../docs/guide/composing.md")]
    pub struct Composing;
    #[doc = include_str!("../../docs/guide/repositories.md")]
    pub struct Repositories;
    #[doc = include_str!("../../docs/guide/odbc.md")]
    pub struct Odbc;
    #[doc = include_str!("../../docs/guide/databases.md")]
    pub struct Databases;
    #[doc = include_str!("../../docs/guide/transactions.md")]
    pub struct Transactions;
    #[doc = include_str!("../../docs/guide/skip-retry.md")]
    pub struct SkipRetry;
    #[doc = include_str!("../../docs/guide/parallel.md")]
    pub struct Parallel;
    #[doc = include_str!("../../docs/guide/workers.md")]
    pub struct Workers;
    #[doc = include_str!("../../docs/guide/dispatchers.md")]
    pub struct Dispatchers;
    #[doc = include_str!("../../docs/guide/restart.md")]
    pub struct Restart;
    #[doc = include_str!("../../docs/guide/operating.md")]
    pub struct Operating;
    #[doc = include_str!("../../docs/guide/deploying.md")]
    pub struct Deploying;
    #[doc = include_str!("../../docs/guide/platforms.md")]
    pub struct Platforms;
    #[doc = include_str!("../../docs/guide/testing.md")]
    pub struct Testing;
    #[doc = include_str!("../../docs/guide/migrating-from-spring-batch.md")]
    pub struct MigratingFromSpringBatch;
    #[doc = include_str!("../../docs/guide/migrating-from-jakarta-batch.md")]
    pub struct MigratingFromJakartaBatch;
}
