//! Whole jobs on each database. The default build has SQLite only; the feature `servers` adds PostgreSQL and MariaDB.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

#[cfg(feature = "servers")]
mod async_methods;
mod both_transactions;
#[cfg(feature = "servers")]
mod commands;
mod contention;
mod conversion;
mod conversion_obstacles;
#[cfg(feature = "servers")]
mod crash;
mod damage;
mod datasets;
#[cfg(feature = "servers")]
mod destination_kills;
mod destinations;
#[cfg(feature = "servers")]
mod dispatch;
mod edges;
#[cfg(feature = "servers")]
mod exit_codes;
mod history;
mod insertables;
mod job_data;
mod jobs;
mod keys;
mod layouts;
#[cfg(feature = "servers")]
mod lost;
#[cfg(feature = "servers")]
mod nats;
mod nested;
#[cfg(feature = "servers")]
mod notifications;
mod open_transactions;
mod opening;
#[cfg(all(feature = "servers", target_os = "linux"))]
mod power;
mod prefix;
mod program_tables;
mod purge;
mod queries;
mod sqlite;
mod statements;
#[cfg(feature = "servers")]
mod sweeps;
mod tables;
#[cfg(unix)]
mod turns;
mod values;
mod zones;
