//! The exit code of a launch that the database does not let start: by the class of the error, whichever statement fails.

use std::fs;
use std::path::Path;

use batch_test_servers::{Kind, Server, shared};
use batch_tests::database::{Database, Place};
use batch_tests::operated;
use batch_tests::proxy::{Cut, Proxy};
use batch_tests::slow;

const JOB: &str = r#"<job id="job"><step id="one"><batchlet ref="Result"/></step></job>"#;

/// Launches the job in a new process.
fn launch(folder: &Path, url: &str, run: u64) -> (Option<i32>, String) {
    let run = format!("run={run}");
    let arguments = ["launch", "job", &run, "--repository", url];
    let output = operated::command(env!("CARGO_BIN_EXE_operated"), folder, &arguments)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

fn name_of(url: &str) -> &str {
    let address = url.split('?').next().unwrap();
    address.rsplit_once('/').unwrap().1
}

/// Cuts the connection at each request of a launch, in a repository that exists, and in a new one.
///
/// Spec: CLI-02
#[test]
fn a_connection_lost_at_any_request_of_a_launch_is_no_mistake() {
    std::thread::scope(|scope| {
        for kind in [Kind::Postgres, Kind::Mariadb] {
            for is_new in [false, true] {
                scope.spawn(move || cut_everywhere(shared(kind), kind, is_new));
            }
        }
    });
}

fn cut_everywhere(server: &Server, kind: Kind, is_new: bool) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("job.xml"), JOB).unwrap();
    let database = match kind {
        Kind::Postgres => Database::Postgres,
        Kind::Mariadb => Database::Mariadb,
    };
    let place = Place::existing(database, server.new_database());
    let proxy = Proxy::start(kind, server.socket());
    // MariaDB's library makes three requests for each statement.
    let each = if kind == Kind::Mariadb { 3 } else { 1 };
    let step = usize::try_from(slow::stride(if is_new { 17 } else { 5 }) * each).unwrap();
    for request in (1..).step_by(step) {
        let next;
        let url = match is_new {
            true => {
                next = server.new_database();
                proxy.url(name_of(&next))
            }
            false => proxy.url(name_of(place.url())),
        };
        for cut in [Cut::Request, Cut::Answer] {
            proxy.cut(cut, request);
            let (code, said) = launch(folder.path(), &url, 2 * request + u64::from(cut == Cut::Answer));
            // 1: it had started, and its end could not be recorded.
            assert!(
                matches!(code, Some(0 | 1 | 75)),
                "{kind:?}, {cut:?} at request {request}: {code:?} {said}"
            );
        }
        if proxy.rest() == 0 {
            assert!(request > 20, "only {request} requests");
            return;
        }
    }
}

/// An error that stays until someone corrects it is a mistake, wherever it is found.
///
/// Spec: CLI-02
#[test]
fn a_wrong_database_is_a_mistake() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("job.xml"), JOB).unwrap();
    for kind in [Kind::Postgres, Kind::Mariadb] {
        let url = shared(kind).new_database();
        let name = name_of(&url).to_owned();
        let missing = url.replacen(&format!("/{name}"), "/missing_database", 1);
        let (code, said) = launch(folder.path(), &missing, 1);
        assert_eq!(code, Some(2), "{kind:?}: {said}");
    }
    let place = Place::existing(Database::Postgres, shared(Kind::Postgres).new_database());
    place
        .connect()
        .execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
        .unwrap();
    let latin = place
        .url()
        .replacen(&format!("/{}", name_of(place.url())), "/latin", 1);
    let arguments = ["launch", "job", "price=5 €", "--repository", &latin];
    let output = operated::command(env!("CARGO_BIN_EXE_operated"), folder.path(), &arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("LATIN1"), "{said}");
}
