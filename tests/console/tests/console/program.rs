//! The program `consoled` in its own folder, and requests to its console.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use batch_tests::deadline;
use batch_tests::process;
use tempfile::TempDir;
use ureq::http::{Request, Response};

const PROGRAM: &str = env!("CARGO_BIN_EXE_consoled");
/// Longer than anything takes that has to happen.
const PATIENCE: Duration = Duration::from_secs(60);
/// The polling interval for a condition.
const POLL: Duration = Duration::from_millis(20);

/// A folder with the jobs, and their repository.
pub(crate) struct Scene {
    folder: TempDir,
}

/// A running console. It ends when it is dropped.
pub(crate) struct Served {
    child: Child,
    /// `http://127.0.0.1:PORT`
    pub(crate) url: String,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let jobs = Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs");
        fs::create_dir(folder.path().join("jobs")).unwrap();
        for job in fs::read_dir(jobs).unwrap() {
            let job = job.unwrap();
            fs::copy(job.path(), folder.path().join("jobs").join(job.file_name())).unwrap();
        }
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Appends to the settings.
    pub(crate) fn configure(&self, settings: &str) {
        let file = self.path().join("batch.toml");
        let before = fs::read_to_string(&file).unwrap_or_default();
        fs::write(file, before + settings).unwrap();
    }

    /// Returns a command of the program, in the folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = process::configured_alone(PROGRAM, self.path(), &["--job-path", "jobs"]);
        command.args(arguments);
        command
    }

    /// Runs a command to its end, with any exit code.
    pub(crate) fn run(&self, arguments: &[&str]) {
        self.command(arguments).output().unwrap();
    }

    /// Starts a command and kills it once the file `gate` would let it continue.
    pub(crate) fn kill_at_gate(&self, day: &str) {
        let mut child = self
            .command(&["launch", "nightly", day, "gate=never", "gate.at=25"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.until("two chunks are committed", || {
            let shown = self
                .command(&["executions", "--status", "STARTED", "--json"])
                .output()
                .unwrap();
            let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
            (shown.contains("\"STARTED\"") && self.commits() >= 2).then_some(())
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Returns the number of commits of the newest step.
    fn commits(&self) -> i64 {
        use diesel::prelude::*;
        let mut connection = self.connect();
        let newest =
            "SELECT COMMIT_COUNT AS value FROM BATCH_STEP_EXECUTION ORDER BY STEP_EXECUTION_ID DESC LIMIT 1";
        #[derive(diesel::QueryableByName)]
        struct Row {
            #[diesel(sql_type = diesel::sql_types::BigInt)]
            value: i64,
        }
        let row: Option<Row> = diesel::sql_query(newest)
            .get_result(&mut connection)
            .optional()
            .unwrap();
        row.map_or(0, |row| row.value)
    }

    /// Opens the repository beside the program.
    pub(crate) fn connect(&self) -> diesel::SqliteConnection {
        use diesel::prelude::*;
        let file = self.path().join("batch.db");
        let mut connection = diesel::SqliteConnection::establish(&file.display().to_string()).unwrap();
        diesel::sql_query("PRAGMA busy_timeout = 30000")
            .execute(&mut connection)
            .unwrap();
        connection
    }

    /// Adds the running execution 70 as Spring Batch writes it: without a lease.
    pub(crate) fn add_execution_of_spring_batch(&self) {
        use diesel::prelude::*;
        let mut connection = self.connect();
        for statement in [
            "INSERT INTO BATCH_JOB_INSTANCE VALUES (70, 0, 'springJob', 'a')",
            "INSERT INTO BATCH_JOB_EXECUTION VALUES (70, 1, 70, 1767225600000, 1767225600000, NULL, 'STARTED', 'UNKNOWN', '', \
             1767225601000, NULL)",
        ] {
            diesel::sql_query(statement).execute(&mut connection).unwrap();
        }
    }

    /// Starts the console.
    pub(crate) fn serve(&self, arguments: &[&str]) -> Served {
        self.serve_with(arguments, &[])
    }

    /// Starts the console with variables of the environment.
    pub(crate) fn serve_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Served {
        let all = [&["console", "--port", "0", "--log", "info"], arguments].concat();
        let mut command = self.command(&all);
        command.envs(variables.iter().copied());
        command.stdout(Stdio::piped());
        let (child, line) = started(command);
        let url = line
            .trim()
            .strip_prefix("console at ")
            .unwrap()
            .trim_end_matches('/');
        let url = url.to_owned();
        Served { child, url }
    }

    /// Waits for a condition.
    pub(crate) fn until<T>(&self, what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
        until(what, &mut condition)
    }
}

/// Waits for a condition.
pub(crate) fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    deadline::waits_for({
        let what = what.to_owned();
        move || what.clone()
    });
    let begin = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        thread::sleep(POLL);
    }
}

/// Starts a command, and returns its first line.
fn started(mut command: Command) -> (Child, String) {
    use std::io::{BufRead, BufReader, Read};
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.starts_with("console at "), "{line:?}");
    // Nothing more is printed; a full pipe would block it.
    thread::spawn(move || output.read_to_string(&mut String::new()));
    (child, line)
}

impl Served {
    /// Returns the id of the process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Asks the process to end, and returns its exit code.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        process::signal(&self.child, "TERM");
        self.child.wait().unwrap().code()
    }

    /// Sends a request, and returns status and body.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String) {
        let mut response = self.response(method, path, headers, body);
        let text = response.body_mut().read_to_string().unwrap();
        (response.status().as_u16(), text)
    }

    /// Sends a request. Redirects are not followed.
    pub(crate) fn response(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response<ureq::Body> {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_global(Some(PATIENCE))
            .build()
            .into();
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        agent.run(request.body(body.to_owned()).unwrap()).unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        self.send("GET", path, &[], "")
    }

    /// Sends a form as its own pages do.
    pub(crate) fn post(&self, path: &str, page: &str, fields: &[(&str, &str)]) -> (u16, String) {
        let (_, text) = self.get(page);
        let token = form_token(&text);
        let mut body = format!("form={token}");
        for (name, value) in fields {
            body += &format!(
                "&{name}={}",
                value.replace('%', "%25").replace('&', "%26").replace('+', "%2B")
            );
        }
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        self.send("POST", path, &headers, &body)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the token of the forms on a page.
pub(crate) fn form_token(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"form\" value=\"").expect("a form");
    rest.split('"').next().unwrap().to_owned()
}
