//! The console in a program on axum: its place in URLs, its users, and the statements that a page takes.

use std::fs;
use std::net::SocketAddr;
use std::sync::Mutex;

use axum::{Extension, Router};
use batch_console::{Console, Role, User};
use batch_runtime::BatchRuntime;
use diesel::connection::{Instrumentation, InstrumentationEvent, set_default_instrumentation};
use diesel::prelude::*;
use tempfile::TempDir;

/// The statements on one database of this process.
static COUNTED: Mutex<(String, Vec<String>)> = Mutex::new((String::new(), Vec::new()));

/// One for each connection.
#[derive(Default)]
struct Recorder {
    url: String,
}

impl Instrumentation for Recorder {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        match event {
            InstrumentationEvent::StartEstablishConnection { url, .. } => url.clone_into(&mut self.url),
            InstrumentationEvent::StartQuery { query, .. } => {
                let (database, statements) = &mut *COUNTED.lock().unwrap();
                if !database.is_empty() && self.url.contains(&*database) {
                    statements.push(query.to_string());
                }
            }
            _ => {}
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "diesel asks for it")]
fn recorder() -> Option<Box<dyn Instrumentation>> {
    Some(Box::new(Recorder::default()))
}

/// Serves a router on a separate thread, until the test program ends.
fn serve(router: Router) -> String {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            sender.send(listener.local_addr().unwrap()).unwrap();
            let service = router.into_make_service_with_connect_info::<SocketAddr>();
            axum::serve(listener, service).await.unwrap();
        });
    });
    format!("http://{}", receiver.recv().unwrap())
}

fn get(url: &str) -> (u16, String) {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .build()
        .into();
    let mut response = agent.get(url).call().unwrap();
    (
        response.status().as_u16(),
        response.body_mut().read_to_string().unwrap(),
    )
}

fn runtime(folder: &TempDir) -> BatchRuntime {
    let database = folder.path().join("batch.db").display().to_string();
    let runtime = BatchRuntime::builder()
        .repository(format!("sqlite://{database}"))
        .job_path(folder.path().display().to_string());
    runtime.build().unwrap()
}

/// Adds executions as another program writes them.
fn add(folder: &TempDir, numbers: std::ops::Range<u32>) {
    let database = folder.path().join("batch.db").display().to_string();
    let mut connection = SqliteConnection::establish(&database).unwrap();
    connection
        .transaction(|connection| {
            for number in numbers {
                let status = if number % 7 == 0 { "STARTED" } else { "FAILED" };
                for statement in [
                    format!("INSERT INTO BATCH_JOB_INSTANCE VALUES ({number}, 0, 'job', '{number:032}')"),
                    format!(
                        "INSERT INTO BATCH_JOB_EXECUTION VALUES ({number}, 1, {number}, 1795651200000, 1795651200000, NULL, \
                         '{status}', '{status}', '', 1795651201000, NULL)"
                    ),
                    format!(
                        "INSERT INTO BATCH_STEP_EXECUTION (STEP_EXECUTION_ID, VERSION, STEP_NAME, JOB_EXECUTION_ID, START_TIME, STATUS, \
                         COMMIT_COUNT, READ_COUNT, FILTER_COUNT, WRITE_COUNT, READ_SKIP_COUNT, WRITE_SKIP_COUNT, PROCESS_SKIP_COUNT, \
                         ROLLBACK_COUNT, EXIT_CODE, EXIT_MESSAGE, LAST_UPDATED) VALUES ({number}, 1, 'load', {number}, \
                         1795651200000, '{status}', 1, 2, 0, 2, 0, 0, 0, 0, '', '', 1795651200000)"
                    ),
                ] {
                    diesel::sql_query(statement).execute(connection)?;
                }
            }
            QueryResult::Ok(())
        })
        .unwrap();
}

/// A page takes as many statements for 3 executions as for 300, and nearly as many for 100,000.
///
/// Spec: CON-01
#[test]
fn pages_take_a_constant_number_of_statements() {
    set_default_instrumentation(recorder).unwrap();
    let folder = tempfile::tempdir().unwrap();
    COUNTED.lock().unwrap().0 = folder.path().display().to_string();
    let url = serve(batch_console::router(&runtime(&folder)));
    let counts = || {
        let count = |page: &str| {
            COUNTED.lock().unwrap().1.clear();
            let (status, text) = get(&format!("{url}{page}"));
            assert_eq!(status, 200, "{page}: {text}");
            let counted = COUNTED.lock().unwrap();
            let own = counted
                .1
                .iter()
                .filter(|statement| !statement.contains("INSERT INTO"));
            (page.to_owned(), own.count())
        };
        [
            "/",
            "/jobs",
            "/jobs/job",
            "/executions",
            "/executions?before=200",
            "/executions?after=200",
            "/executions?after=2",
            "/repository",
            "/api/v1/executions",
            "/api/v1/jobs",
        ]
        .map(count)
    };
    add(&folder, 1..4);
    // The connections are open, and every statement is prepared.
    counts();
    let few = counts();
    add(&folder, 4..301);
    assert_eq!(counts(), few);
    assert!(few.iter().all(|(_, count)| *count > 0 && *count < 50), "{few:?}");
}

/// The links of a console below a path lead to it, also through a proxy that removes another path.
///
/// Spec: CON-02
#[test]
fn a_console_is_mounted_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("own.xml"),
        r#"<job id="own"><step id="one"><batchlet ref="None"/></step></job>"#,
    )
    .unwrap();
    let runtime = runtime(&folder);
    let router = Router::new()
        .route("/", axum::routing::get(async || "the program"))
        .nest("/ops/batch", batch_console::router(&runtime));
    let url = serve(router);
    assert_eq!(get(&url).1, "the program");
    let (status, text) = get(&format!("{url}/ops/batch"));
    assert_eq!(status, 200);
    for link in [
        "href=\"/ops/batch\"",
        "href=\"/ops/batch/jobs\"",
        "href=\"/ops/batch/assets/",
        "content=\"10; url=/ops/batch\"",
    ] {
        assert!(text.contains(link), "{link}: {text}");
    }
    let (_, text) = get(&format!("{url}/ops/batch?a=1"));
    assert!(text.contains("content=\"10; url=/ops/batch?a=1\""), "{text}");
    let (status, text) = get(&format!("{url}/ops/batch/jobs/own"));
    assert_eq!(status, 200);
    assert!(
        text.contains("action=\"/ops/batch/jobs/own/launch#launch\""),
        "{text}"
    );
    let proxied = serve(Console::new(&runtime).base_path("/shop/batch/").router());
    let (_, text) = get(&proxied);
    for link in ["href=\"/shop/batch/jobs\"", "content=\"10; url=/shop/batch\""] {
        assert!(text.contains(link), "{link}: {text}");
    }
}

/// Spec: CON-04, CON-05
#[test]
fn a_program_says_who_the_user_is() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = runtime(&folder);
    let mallory = User::new("<mallory>", Role::Read);
    let url = serve(batch_console::router(&runtime).layer(Extension(mallory)));
    let (status, page) = get(&url);
    assert_eq!(status, 200);
    assert!(
        page.contains("&#60;mallory&#62;") || page.contains("&lt;mallory&gt;"),
        "{page}"
    );
    assert_eq!(get(&format!("{url}/recover")).0, 403);
}

/// A path of the program around the console may have its own parameters.
///
/// Spec: CON-02
#[test]
fn a_console_is_mounted_below_a_path_with_parts() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = runtime(&folder);
    let url = serve(Router::new().nest("/tenants/{tenant}/batch", batch_console::router(&runtime)));
    add(&folder, 1..2);
    for page in [
        "/executions/1",
        "/jobs/job",
        "/executions/1/do/abandon",
        "/api/v1/executions/1",
    ] {
        let (status, text) = get(&format!("{url}/tenants/a/batch{page}"));
        assert_eq!(status, 200, "{page}: {text}");
    }
}
