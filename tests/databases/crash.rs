//! A server that crashes in the middle of a job, and restarts.

use std::collections::HashMap;
use std::sync::Mutex;

use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, BatchStatus};
use batch_test_servers::{Kind, Server};
use batch_tests::database::{Database, Place};
use batch_tests::stage::said;

use super::jobs::{CHUNK, SUM};
use batch_tests::database::execute;

/// The servers of the tests, by the name of the log, and the number of crashes left for each.
static SERVERS: Mutex<Option<HashMap<String, (Server, usize)>>> = Mutex::new(None);

/// Writes as `Rows` does; the server crashes when it comes to 25.
#[derive(BatchArtifact)]
struct RowsUntilTheCrash {
    #[batch_property(name = "log")]
    log: String,
}

#[item_writer("RowsUntilTheCrash")]
impl RowsUntilTheCrash {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, numbers: &[u32], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        for number in numbers {
            execute(tx, &format!("INSERT INTO written VALUES ({number})"))?;
            if *number == 25 {
                let mut servers = SERVERS.lock().unwrap();
                let (server, crashes) = servers.as_mut().unwrap().get_mut(&self.log).unwrap();
                if *crashes > 0 {
                    *crashes -= 1;
                    server.crash();
                }
            }
        }
        Ok(())
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// The step resumes from its last checkpoint when the server is back: closed connections are not used again. If the
/// server crashes at the same chunk twice more, the step fails, and a restart resumes.
///
/// Spec: CHUNK-LOOP-12, CHUNK-LOOP-14, REPO-03, REPO-15, RESTART-08, D-80
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
            .insert(log.clone(), (server, 0));
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
        let run = |crashes: usize, from: &str| {
            SERVERS.lock().unwrap().as_mut().unwrap().get_mut(&log).unwrap().1 = crashes;
            let id = operator.launch("job", [("to", "35"), ("from", from)]).unwrap();
            let ended = operator.wait(id).unwrap();
            let step = operator.step_executions(id).unwrap().remove(0);
            let counters = (step.counters.writes, step.counters.rollbacks);
            (ended.status, counters, said(&log))
        };
        let (open, again) = ("open None".to_owned(), "open Some(20)".to_owned());

        let (status, counters, opened) = run(1, "0");
        assert_eq!((status, counters), (BatchStatus::Completed, (35, 1)), "{kind:?}");
        assert_eq!(opened, [open.clone(), again.clone()], "{kind:?}");
        assert_eq!(place.connect().number(SUM), 35_000_630, "{kind:?}");

        place.connect().execute("DELETE FROM written").unwrap();
        let (status, counters, opened) = run(4, "00");
        assert_eq!((status, counters), (BatchStatus::Failed, (20, 4)), "{kind:?}");
        assert_eq!(
            opened,
            [&open, &again, &again, &again].map(String::clone),
            "{kind:?}"
        );
        let (status, counters, opened) = run(0, "00");
        assert_eq!((status, counters), (BatchStatus::Completed, (15, 0)), "{kind:?}");
        assert_eq!(opened, [again], "{kind:?}");
        assert_eq!(place.connect().number(SUM), 35_000_630, "{kind:?}");
        SERVERS.lock().unwrap().as_mut().unwrap().remove(&log);
    }
}
