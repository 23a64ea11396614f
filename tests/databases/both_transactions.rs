//! A writer that writes to a destination, and in the transaction of the repository.

use std::fs;

use batch_items::RejectListener;
use batch_runtime::BatchStatus;
use batch_runtime::destination::AnyDestination;
use batch_runtime::prelude::*;
use batch_runtime::repository::DatabaseConnection;
use batch_tests::database::Database;
use batch_tests::stage::{said, say};
use diesel::connection::SimpleConnection;

use super::destinations::{Scene, count, faulty, pairs, plan_of};

/// Inserts numbers into both databases. It cannot write the bad number to the destination.
#[derive(BatchArtifact)]
struct LedgerAndCopy {
    #[batch_property]
    url: String,
    #[batch_property(value = "marked")]
    log: String,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
}

#[item_writer("LedgerAndCopy")]
impl LedgerAndCopy {
    #[destination]
    fn ledger(&self) -> Result<Option<AnyDestination>, BatchError> {
        Ok(Some(faulty(&self.url, &self.log)?.into()))
    }

    #[write_items]
    fn write(&mut self, numbers: &[u64], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let bad = plan_of(&self.log).1;
        for number in numbers {
            let copy = format!("INSERT INTO copy VALUES ({number})");
            match tx.any()? {
                DatabaseConnection::Sqlite(here) => here.batch_execute(&copy)?,
                #[cfg(feature = "servers")]
                DatabaseConnection::Postgres(here) => here.batch_execute(&copy)?,
                #[cfg(feature = "servers")]
                DatabaseConnection::Mysql(here) => here.batch_execute(&copy)?,
                _ => return Err(BatchError::msg("another database")),
            }
            if tx.destination_has_items() {
                continue;
            }
            let there = tx.destination::<RepositoryConnection>()?;
            there.batch_execute(&format!("INSERT INTO number VALUES ({number})"))?;
            if *number == bad {
                return Err(std::io::Error::other(format!("{number} is bad")).into());
            }
        }
        count(&self.step, &self.job, numbers)
    }
}

#[derive(BatchArtifact)]
struct SaySkipped {
    #[batch_property(value = "marked")]
    log: String,
}

#[skip_listener("SaySkipped")]
impl SaySkipped {
    #[on_skip_in_write]
    fn skipped(&self, _error: &BatchError, number: &u64) {
        say(&self.log, format!("skipped {number}"));
    }
}

#[skip_listener("Rejects")]
#[checkpoint_listener("Rejects")]
type Rejects = RejectListener<u64, u64>;

const SKIPS: &str =
    r#"<skippable-exception-classes><include class="std::io::Error"/></skippable-exception-classes>"#;

fn scene(repository: Database, destination: Database, chunk: &str, faults: &str) -> Scene {
    let scene = Scene::new(repository, destination, chunk, faults);
    let scene = scene.with_text(|job| job.replace("\"Ledger\"", "\"LedgerAndCopy\""));
    scene
        .repository
        .connect()
        .execute("CREATE TABLE copy (number INTEGER)")
        .unwrap();
    scene
}

fn copied(scene: &Scene) -> Vec<i64> {
    let mut here = scene.repository.connect();
    let numbers = here.rows("SELECT CAST(number AS CHAR(9)) AS text FROM copy ORDER BY number");
    numbers
        .iter()
        .map(|number| number.trim().parse().unwrap())
        .collect()
}

/// Where the destination has committed an interval and the repository has not, the repository writes its own part of it again, alone.
///
/// Spec: MARK-08, MARK-15
#[test]
fn both_databases_have_each_item_once_whatever_is_lost_between_the_commits() {
    for (repository, destination) in pairs() {
        for (fault, fails, begins) in [
            ("none", false, vec!["from 0"]),
            ("before", true, vec!["from 0", "from 3"]),
            // The second interval is read again, and then the third.
            ("after", true, vec!["from 0", "from 3", "from 6"]),
            ("connection", false, vec!["from 0", "from 3", "from 6"]),
            // The last interval is read again, and its reader was at the end.
            ("after@3", true, vec!["from 0", "from 6", "from 8"]),
            ("act:between", false, vec!["from 0", "from 3"]),
        ] {
            for pipeline in ["false", "true"] {
                let context = format!("{fault}, pipeline {pipeline}, {repository:?} to {destination:?}");
                let scene = scene(repository, destination, "", "");
                let pipeline = format!(
                    r#"<step id="load"><properties><property name="batch.chunk.pipeline" value="{pipeline}"/></properties>"#
                );
                let scene = scene.with_text(|job| job.replace(r#"<step id="load">"#, &pipeline));
                let (status, message) = scene.launch(fault, 0);
                if fails {
                    assert_eq!(status, BatchStatus::Failed, "{context}");
                    let (status, message) = scene.launch("none", 0);
                    assert_eq!(status, BatchStatus::Completed, "{context}: {message}");
                } else {
                    assert_eq!(status, BatchStatus::Completed, "{context}: {message}");
                }
                assert_eq!(scene.is_exact(&context), begins, "{context}");
                assert_eq!(copied(&scene), [1, 2, 3, 4, 5, 6, 7], "{context}");
            }
        }
    }
}

/// An item that the destination rejects is in neither database, also where the interval of its skip is replayed.
///
/// Spec: MARK-09, MARK-15
#[test]
fn a_skipped_item_is_in_neither_database() {
    for (repository, destination) in pairs() {
        for fault in ["none", "after", "connection"] {
            let context = format!("{fault}, {repository:?} to {destination:?}");
            let scene = scene(repository, destination, r#"skip-limit="1""#, SKIPS);
            let rejects = format!("{}/rejects.jsonl", scene.log);
            let listeners = format!(
                r#"<step id="load"><listeners>
                  <listener ref="SaySkipped"><properties><property name="log" value="${{log}}"/></properties></listener>
                  <listener ref="Rejects"><properties><property name="rejects.output" value="{rejects}"/></properties></listener>
                </listeners>"#
            );
            let scene = scene.with_text(|job| job.replace(r#"<step id="load">"#, &listeners));
            let (status, message) = scene.launch(fault, 5);
            if fault == "after" {
                assert_eq!(status, BatchStatus::Failed, "{context}: {message}");
                let (status, message) = scene.launch("none", 0);
                assert_eq!(status, BatchStatus::Completed, "{context}: {message}");
            } else {
                assert_eq!(status, BatchStatus::Completed, "{context}: {message}");
            }
            assert_eq!(scene.written(), (vec![1, 2, 3, 4, 6, 7], 0), "{context}");
            assert_eq!(copied(&scene), [1, 2, 3, 4, 6, 7], "{context}");
            assert_eq!(scene.counters(), (7, 6, 1), "{context}");
            // The listener has heard of the skip when the destination committed it.
            let said = said(&scene.log);
            let skipped: Vec<_> = said.iter().filter(|said| said.starts_with("skipped")).collect();
            assert_eq!(skipped, ["skipped 5"], "{context}");
            let rejects = fs::read_to_string(rejects).unwrap();
            assert!(
                rejects.lines().count() == 1 && rejects.contains("5 is bad"),
                "{context}: {rejects}"
            );
        }
    }
}

/// An interval whose input has changed since the destination committed it cannot be replayed.
///
/// Spec: MARK-15
#[test]
fn a_changed_input_fails_the_step() {
    let scene = scene(Database::Sqlite, Database::Sqlite, "", "");
    let (status, _) = scene.launch("after", 0);
    assert_eq!(status, BatchStatus::Failed);
    let fewer = r#"<property name="items" value="4"/><property name="url""#;
    let scene = scene.with_text(|job| job.replace(r#"<property name="url""#, fewer));
    let (status, message) = scene.launch("none", 0);
    assert_eq!(status, BatchStatus::Failed);
    assert!(
        message.contains("The destination has: 3 items read") && message.contains("This time: 1 items read"),
        "{message}"
    );
    assert_eq!(copied(&scene), [1, 2, 3]);
}

fn unreadable(scene: Scene, number: u64) -> Scene {
    let property = format!(r#"<property name="unreadable" value="{number}"/><property name="url""#);
    scene.with_text(|job| job.replace(r#"<property name="url""#, &property))
}

/// A record that can be read no longer: the next one would take its place in the repository.
///
/// Spec: MARK-15
#[test]
fn a_record_that_is_skipped_only_this_time_fails_the_step() {
    let scene = scene(Database::Sqlite, Database::Sqlite, r#"skip-limit="1""#, SKIPS);
    let (status, _) = scene.launch("after", 0);
    assert_eq!(status, BatchStatus::Failed);
    let scene = unreadable(scene, 5);
    let (status, message) = scene.launch("none", 0);
    assert_eq!(status, BatchStatus::Failed);
    assert!(
        message.contains("This time: 3 items read and 1 skipped"),
        "{message}"
    );
    assert_eq!(copied(&scene), [1, 2, 3]);
    let (bad, none) = (r#"name="unreadable" value="5""#, r#"name="unreadable" value="0""#);
    let scene = scene.with_text(|job| job.replace(bad, none));
    let (status, message) = scene.launch("none", 0);
    assert_eq!(status, BatchStatus::Completed, "{message}");
    assert_eq!(copied(&scene), [1, 2, 3, 4, 5, 6, 7]);
}

/// A bad record after the last item belongs to the last interval, too.
///
/// Spec: MARK-15
#[test]
fn a_bad_record_at_the_end_is_replayed() {
    let scene = scene(Database::Sqlite, Database::Sqlite, r#"skip-limit="1""#, SKIPS);
    let scene = unreadable(scene, 8);
    let (status, _) = scene.launch("after@3", 0);
    assert_eq!(status, BatchStatus::Failed);
    let (status, message) = scene.launch("none", 0);
    assert_eq!(status, BatchStatus::Completed, "{message}");
    assert_eq!(copied(&scene), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(scene.written().0, [1, 2, 3, 4, 5, 6, 7]);
}
