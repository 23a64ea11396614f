//! Notifications whose storage is in doubt.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use batch_runtime::notify::NotificationTarget;
use batch_runtime::{BatchRuntime, BatchStatus, JobParameters};
use batch_test_servers::{Kind, shared};
use batch_tests::database::{Database, Place};
use batch_tests::own_process;
use batch_tests::proxy::Proxy;
use tracing_subscriber::filter::LevelFilter;

/// A step that skips an item. An observer stores notifications of it.
const JOB: &str = r#"<job id="job"><step id="load">
  <chunk reader="Numbers" processor="Unchanged" writer="Rows" commit-interval="4" skip-limit="1">
    <properties><property name="to" value="10"/><property name="fails-at" value="5"/></properties>
    <skippable-exception-classes><include class="test.NoDisk"/></skippable-exception-classes>
  </chunk>
</step></job>"#;

/// The log of this process.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whichever answer to a COMMIT is lost, the notifications that an observer stores are stored once, and none is reported as lost.
///
/// Spec: NOTIFY-02, NOTIFY-04
#[test]
fn a_lost_answer_loses_and_doubles_no_notification() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("job.xml"), JOB).unwrap();
    let test = "notifications::a_lost_answer_loses_and_doubles_no_notification";
    // Errors of observers are only logged.
    own_process::run(test, folder.path(), || {
        let log = Log::default();
        let writer = log.clone();
        tracing_subscriber::fmt()
            .with_max_level(LevelFilter::ERROR)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .init();
        strike_everywhere(Kind::Postgres, Database::Postgres, folder.path());
        strike_everywhere(Kind::Mariadb, Database::Mariadb, folder.path());
        assert_eq!(log.text(), "");
    });
}

/// Runs the job, each time with the answer to another COMMIT lost.
fn strike_everywhere(kind: Kind, database: Database, folder: &Path) {
    let server = shared(kind);
    let place = Place::existing(database, server.new_database());
    let address = place.url().split('?').next().unwrap();
    let (_, name) = address.rsplit_once('/').unwrap();
    let proxy = Proxy::start(kind, server.socket());
    let target = |name| NotificationTarget::queued(name).skipped_more_than(0);
    let runtime = BatchRuntime::builder()
        .repository(proxy.url(name))
        .job_path(folder.display().to_string())
        .notify(target("ops"))
        .notify(target("others"));
    let operator = runtime.build().unwrap().job_operator();
    place
        .connect()
        .execute("CREATE TABLE written (n INTEGER)")
        .unwrap();
    for number in 1.. {
        proxy.cut_commit(number);
        let parameters = JobParameters::from([("run", number.to_string())]);
        let execution = operator.launch("job", parameters).unwrap();
        let ended = operator.wait(execution).unwrap();
        operator.flush_observers();
        assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
        let mut targets: Vec<_> = operator
            .pending_notifications()
            .unwrap()
            .into_iter()
            .filter(|one| one.execution == execution)
            .map(|one| one.target)
            .collect();
        targets.sort();
        assert_eq!(targets, ["ops", "others"], "{kind:?}, COMMIT {number}");
        if proxy.rest() == 0 {
            assert!(number > 5, "{kind:?}: only {number} COMMITs");
            return;
        }
    }
}
