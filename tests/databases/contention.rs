//! Many contenders for one repository at the same moment: one wins, on each database.

use batch_runtime::{BatchStatus, JobExecutionId, JobParameters};
use batch_tests::contender::{JOB, Outcome, Wish, contend, contend_in_processes, runtime};
use batch_tests::database::{Database, Place};

const MANY: usize = 64;
const PROCESSES: usize = 8;

/// A repository with one execution that has failed.
struct Scene {
    folder: tempfile::TempDir,
    place: Place,
    failed: JobExecutionId,
}

impl Scene {
    fn new(database: Database) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("job.xml"), JOB).unwrap();
        let place = Place::new(database, folder.path());
        let operator = runtime(place.url(), folder.path()).job_operator();
        place.connect().reject_wrong_rows();
        let parameters = JobParameters::new().with_non_identifying("fail", "yes");
        let failed = operator.start("job", parameters).unwrap();
        assert_eq!(operator.wait(failed).unwrap().status, BatchStatus::Failed);
        Self {
            folder,
            place,
            failed,
        }
    }

    fn number(&self, query: &str) -> i64 {
        self.place.connect().number(query)
    }

    /// Returns how often, in threads and in processes, each outcome occurred, and the number of executions afterwards.
    fn check(&self, wish: Wish, ran: usize, outcomes: &[Outcome]) {
        let database = self.place.database();
        assert_eq!(outcomes.len(), MANY, "{database:?} {wish:?}");
        let winners = outcomes
            .iter()
            .filter(|outcome| **outcome == Outcome::Ran)
            .count();
        assert_eq!(winners, ran, "{database:?} {wish:?}: {outcomes:?}");
        let open = "SELECT COUNT(*) FROM BATCH_JOB_EXECUTION WHERE STATUS NOT IN ('COMPLETED', 'FAILED')";
        assert_eq!(self.number(open), 0);
        let executions = self.number("SELECT COUNT(*) FROM BATCH_JOB_EXECUTION");
        assert_eq!(
            usize::try_from(executions).unwrap(),
            1 + ran,
            "{database:?} {wish:?}"
        );
        let steps = self.number("SELECT COUNT(*) FROM BATCH_STEP_EXECUTION");
        assert_eq!(steps, executions);
    }
}

fn check(wish: impl Fn(&Scene) -> Wish, ran: usize) {
    for database in Database::ALL {
        let scene = Scene::new(database);
        let in_threads = contend(scene.place.url(), scene.folder.path(), wish(&scene), MANY, || {});
        scene.check(wish(&scene), ran, &in_threads);

        let scene = Scene::new(database);
        let program = env!("CARGO_BIN_EXE_contender");
        let (url, jobs) = (scene.place.url(), scene.folder.path());
        let in_processes = contend_in_processes(program, url, jobs, wish(&scene), PROCESSES);
        scene.check(wish(&scene), ran, &in_processes);
    }
}

/// Spec: OP-34, OP-36, REPO-16, REPO-27
#[test]
fn one_of_many_launches_runs() {
    check(|_| Wish::Launch, 1);
}

/// Spec: OP-12, OP-34, REPO-16
#[test]
fn one_of_many_restarts_runs() {
    check(|scene| Wish::Restart(scene.failed.0), 1);
}

/// Spec: ID-03, ID-04, REPO-18, REPO-22
#[test]
fn all_of_many_starts_run() {
    check(|_| Wish::Start, MANY);
}

/// A user of the server who may have ten connections.
#[cfg(feature = "servers")]
fn with_ten_connections(database: Database, place: &Place) -> String {
    let url = place.url();
    let (statements, limited): (&[&str], String) = match database {
        Database::Sqlite => return url.to_owned(),
        Database::Postgres => (
            &[
                "DO $$ BEGIN CREATE ROLE ten LOGIN CONNECTION LIMIT 10; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
                "GRANT ALL ON SCHEMA public TO ten",
            ],
            url.replace("user=postgres", "user=ten"),
        ),
        Database::Mariadb => (
            &[
                "CREATE USER IF NOT EXISTS ten@localhost WITH MAX_USER_CONNECTIONS 10",
                "GRANT ALL ON *.* TO ten@localhost",
            ],
            url.replace("root@", "ten@"),
        ),
    };
    for statement in statements {
        place.connect().execute(statement).unwrap();
    }
    limited
}

/// Flows, however many there are, wait for connections instead of failing, and the ends are recorded.
///
/// Spec: LOSS-15
#[cfg(feature = "servers")]
#[test]
fn a_hundred_flows_share_ten_connections() {
    let flows: String = (0..100)
        .map(|number| {
            format!(
                r#"<flow id="f{number}"><step id="s{number}"><chunk reader="Numbers" processor="Unchanged" writer="Rows" commit-interval="1"/></step></flow>"#
            )
        })
        .collect();
    let xml = format!(r#"<job id="job"><split id="all">{flows}</split></job>"#);
    for database in Database::ALL {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("job.xml"), &xml).unwrap();
        let place = Place::new(database, folder.path());
        let url = with_ten_connections(database, &place);
        let operator = runtime(&url, folder.path()).job_operator();
        place
            .connect()
            .execute("CREATE TABLE IF NOT EXISTS written (n INTEGER)")
            .unwrap();
        if database == Database::Postgres {
            place.connect().execute("GRANT ALL ON written TO ten").unwrap();
        }
        let execution = operator.start("job", JobParameters::from([("to", "5")])).unwrap();
        let ended = operator.wait(execution).unwrap();
        assert_eq!(
            ended.status,
            BatchStatus::Completed,
            "{database:?}: {}",
            ended.exit_message
        );
        assert_eq!(
            place.connect().number("SELECT COUNT(*) FROM written"),
            500,
            "{database:?}"
        );
    }
}
