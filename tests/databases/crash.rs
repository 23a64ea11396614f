//! A server that dies in the middle of a job, and comes back.

use std::collections::HashMap;
use std::sync::Mutex;

use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, BatchStatus, JobParameters};
use batch_test_servers::{Kind, Server};
use batch_tests::databases::{Database, Place};
use batch_tests::stage::said;

use super::jobs::{CHUNK, SUM, execute};

/// The servers of the tests, by the name of the log.
static SERVERS: Mutex<Option<HashMap<String, Server>>> = Mutex::new(None);

/// Writes as `Rows` does; the server dies when it comes to 25, once.
#[derive(BatchArtifact)]
struct RowsUntilTheCrash {
    #[batch_property(name = "log")]
    log: String,
    #[batch_property(name = "crashes")]
    crashes: Option<String>,
}

#[item_writer("RowsUntilTheCrash")]
impl RowsUntilTheCrash {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, numbers: &[u32], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        for number in numbers {
            execute(tx, &format!("INSERT INTO written VALUES ({number})"))?;
            if *number == 25 && self.crashes.as_deref() == Some("once") {
                let mut servers = SERVERS.lock().unwrap();
                let server = servers.as_mut().unwrap().get_mut(&self.log).unwrap();
                server.crash();
            }
        }
        Ok(())
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// The step fails at its last checkpoint, which is recorded as soon as the server is back: connections that it has closed
/// are not used again. A restart goes on from there.
///
/// Spec: CHUNK-LOOP-12, REPO-03, REPO-15, RESTART-08
#[test]
fn a_server_that_dies_costs_one_chunk() {
    for (kind, database) in [
        (Kind::Postgres, Database::Postgres),
        (Kind::Mariadb, Database::Mariadb),
    ] {
        let server = Server::start(kind);
        let place = Place::existing(database, server.new_database());
        let log = format!("crash of {kind:?}");
        SERVERS
            .lock()
            .unwrap()
            .get_or_insert_default()
            .insert(log.clone(), server);
        let folder = tempfile::tempdir().unwrap();
        let xml = CHUNK.replace("\"Rows\"", "\"RowsUntilTheCrash\"");
        std::fs::write(folder.path().join("job.xml"), xml).unwrap();
        let operator = BatchRuntime::builder()
            .repository(place.url())
            .job_path(folder.path().display().to_string())
            .system_property("log", &log)
            .build()
            .unwrap()
            .job_operator();
        place
            .connect()
            .execute("CREATE TABLE written (n INTEGER)")
            .unwrap();
        let parameters = JobParameters::from([("to", "35")]).with_non_identifying("crashes", "once");
        let first = operator.launch("job", parameters).unwrap();
        let ended = operator.wait(first).unwrap();
        assert_eq!(
            ended.status,
            BatchStatus::Failed,
            "{kind:?}: {}",
            ended.exit_message
        );
        let step = &operator.step_executions(first).unwrap()[0];
        assert_eq!(
            (step.status, step.counters.writes),
            (BatchStatus::Failed, 20),
            "{kind:?}"
        );

        let again = JobParameters::from([("to", "35")]).with_non_identifying("crashes", "no more");
        let second = operator.launch("job", again).unwrap();
        let ended = operator.wait(second).unwrap();
        assert_eq!(
            ended.status,
            BatchStatus::Completed,
            "{kind:?}: {}",
            ended.exit_message
        );
        assert_eq!(said(&log), ["open None", "open Some(20)"], "{kind:?}");
        assert_eq!(place.connect().number(SUM), 35_000_630, "{kind:?}");
        SERVERS.lock().unwrap().as_mut().unwrap().remove(&log);
    }
}
