//! A repository that goes away while a page is open, and the end of the console.

use std::fs;

#[cfg(feature = "servers")]
use diesel::prelude::*;

use crate::program::Scene;

/// The page reports the outage, and recovers by itself.
///
/// Spec: CON-11
#[cfg(feature = "servers")]
#[test]
fn a_page_survives_an_outage() {
    use crate::browser::browse;
    use batch_test_servers::{Kind, Server};

    let server = Server::start(Kind::Postgres);
    let (socket, away) = (server.socket(), server.socket().with_file_name("away"));
    let scene = Scene::new();
    scene.configure(&format!("repository = \"{}\"\n", server.new_database()));
    scene.run(&["launch", "nightly", "day=1"]);
    let served = scene.serve(&[]);
    let url = served.url.clone();
    browse(&url, true, async |browser| {
        browser.open("/").await;
        browser.until("#latest", "COMPLETED").await;
        browser.script("window.isFirst = true").await;
        fs::rename(&socket, &away).unwrap();
        // Those that are connected lose their connections, as by the end of the server.
        terminate(&server, &away);
        browser.until("#offline", "The repository cannot be used").await;
        let (status, page) = served.get("/");
        assert_eq!(status, 503, "{page}");
        assert!(
            page.contains("The repository cannot be used") && page.contains("http-equiv=\"refresh\""),
            "{page}"
        );
        assert_eq!(served.get("/health").0, 503);
        assert_eq!(served.get("/health/live").0, 200);
        fs::rename(&away, &socket).unwrap();
        scene.run(&["launch", "nightly", "day=2", "fail.at=3"]);
        browser.until("#latest", "FAILED").await;
        assert_eq!(browser.text("#offline").await, "");
        assert_eq!(browser.script("return window.isFirst").await, true);
        // The console itself ends.
        drop(served);
        browser.until("#offline", "does not answer").await;
    });
}

/// Ends all connections of a server whose socket has another name.
#[cfg(feature = "servers")]
fn terminate(server: &batch_test_servers::Server, socket: &std::path::Path) {
    let folder = tempfile::tempdir().unwrap();
    let usual = folder.path().join(server.socket().file_name().unwrap());
    std::os::unix::fs::symlink(socket, usual).unwrap();
    let url = format!(
        "postgres:///postgres?host={}&user=postgres",
        folder.path().display()
    );
    let mut connection = diesel::PgConnection::establish(&url).unwrap();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()";
    diesel::sql_query(end).execute(&mut connection).unwrap();
}

/// A job that the console runs stops at its next checkpoint when the console ends.
///
/// Spec: CON-03
#[test]
fn its_end_stops_its_jobs() {
    let scene = Scene::new();
    let served = scene.serve(&[]);
    let gate = scene.path().join("gate");
    served.post(
        "/jobs/nightly/launch",
        "/jobs/nightly",
        &[
            ("p.gate", gate.to_str().unwrap()),
            ("p.gate.at", "25"),
            ("action", "launch"),
        ],
    );
    crate::program::until("two chunks are committed", || {
        served.get("/executions/1").1.contains(">20<").then_some(())
    });
    let end = std::thread::spawn(move || served.terminate());
    crate::program::until("the stop is requested", || {
        let shown = scene.command(&["show", "1"]).output().unwrap();
        String::from_utf8_lossy(&shown.stdout)
            .contains("STOPPING")
            .then_some(())
    });
    fs::write(&gate, "").unwrap();
    assert_eq!(end.join().unwrap(), Some(0));
    let shown = scene.command(&["show", "1"]).output().unwrap();
    assert!(
        String::from_utf8_lossy(&shown.stdout).contains("STOPPED"),
        "{shown:?}"
    );
}
