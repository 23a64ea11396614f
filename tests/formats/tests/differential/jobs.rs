//! Jobs that write and read the documents of a pair, between two runs of the independent program.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use batch_runtime::{BatchRuntime, BatchStatus};
use batch_test_servers::{Kind, shared};
use batch_tests::slow::times;

use super::document::{Document, Options};
use super::pairs::{Pair, pair};

/// The documents of one run of the independent program.
const AT_ONCE: u64 = 300;

/// Checks documents in both directions, if the independent program is there.
pub(crate) fn check(name: &str) {
    let given = std::env::var("BATCH_SEED").ok();
    let (first, count) = match given {
        Some(seed) => (seed.parse().expect("BATCH_SEED is a number"), 1),
        None => (times(1, fresh_seed()), times(300, 10_000)),
    };
    let pair = pair(name);
    for begin in (0_u64..count).step_by(usize::try_from(AT_ONCE).unwrap()) {
        let seeds = (begin..count.min(begin + AT_ONCE)).map(|number| first + number);
        let run = Run::new(pair, seeds.collect());
        if !run.python("prepare") {
            return;
        }
        run.check();
    }
}

/// Returns a number of at most 12 digits.
fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(since.as_micros() % 1_000_000_000_000).expect("12 digits")
}

/// Some documents of a pair, in a folder.
struct Run {
    pair: &'static Pair,
    documents: Vec<Document>,
    folder: PathBuf,
    /// The database of tables and the repository.
    url: String,
}

impl Run {
    fn new(pair: &'static Pair, seeds: Vec<u64>) -> Self {
        // It stays if the test fails.
        let folder = batch_tests::folder::new().keep();
        let url = match pair.name {
            "postgres" => shared(Kind::Postgres).new_database(),
            "sqlite" => format!(
                "sqlite://{}?synchronous=normal",
                folder.join("batch.db").display()
            ),
            _ => "sqlite://:memory:".to_owned(),
        };
        let run = Self {
            pair,
            documents: seeds.into_iter().map(|seed| pair.document(seed)).collect(),
            folder,
            url,
        };
        for name in ["jobs", "ours", "theirs", "found"] {
            fs::create_dir(run.folder.join(name)).unwrap();
        }
        let lines = run
            .documents
            .iter()
            .map(|document| format!("{}\n", document.to_json()));
        fs::write(run.folder.join("documents"), lines.collect::<String>()).unwrap();
        run
    }

    /// Runs the independent program; returns `false` if it is missing, after it was said.
    fn python(&self, verb: &str) -> bool {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential/differential.py");
        let python = std::env::var("BATCH_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let output = Command::new(&python)
            .arg(script)
            .args([verb, self.pair.name])
            .arg(&self.folder)
            .arg(&self.url)
            .output()
            .unwrap_or_else(|error| panic!("cannot run `{python}`: {error}; set BATCH_TEST_PYTHON"));
        let text = String::from_utf8_lossy(&output.stdout);
        if let Some(missing) = text.strip_prefix("MISSING ") {
            // Past the test harness, which would keep it.
            let line = format!(
                "NOT CHECKED: {}, because {}\n",
                self.pair.name,
                missing.trim_end()
            );
            std::io::stderr().write_all(line.as_bytes()).unwrap();
            fs::remove_dir_all(&self.folder).unwrap();
            return false;
        }
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{verb}: {}\n{error}",
            self.folder.display()
        );
        let differences: Vec<_> = text.lines().collect();
        self.report(&differences);
        true
    }

    /// Writes and reads, and lets the independent program compare.
    fn check(self) {
        let mut jobs = Vec::new();
        for document in &self.documents {
            let seed = document.seed;
            let found = self.folder.join("found").join(&document.name);
            let theirs = self.path("theirs", document);
            jobs.push((seed, self.add_reading(document, &theirs, &found)));
            if let Some(writer) = self.pair.writer {
                let ours = self.path("ours", document);
                jobs.push((seed, self.add_writing(document, writer, &ours)));
            }
        }
        let failures = self.launch(&jobs);
        self.report(&failures);
        self.python("check");
        fs::remove_dir_all(&self.folder).unwrap();
    }

    fn path(&self, folder: &str, document: &Document) -> String {
        self.folder
            .join(folder)
            .join(&document.name)
            .display()
            .to_string()
    }

    fn add_writing(&self, document: &Document, writer: &str, output: &str) -> String {
        let mut properties = vec![
            ("reader", "pair", self.pair.name.to_owned()),
            ("reader", "seed", document.seed.to_string()),
        ];
        match self.pair.is_table() {
            true => properties.push(("writer", "table", document.name.clone())),
            false => properties.push(("writer", "output", output.to_owned())),
        }
        properties.extend(addressed("writer", &document.writing));
        self.add(
            &format!("write-{}", document.seed),
            ["givenRecords", "recordProcessor", writer],
            &properties,
        )
    }

    fn add_reading(&self, document: &Document, resource: &str, found: &Path) -> String {
        let mut properties = vec![("writer", "found", found.display().to_string())];
        if self.pair.name == "xml" {
            properties.push(("processor", "names", document.names.join(",")));
        }
        match self.pair.is_table() {
            true => {
                let query = format!("SELECT * FROM theirs_{} ORDER BY n", document.name);
                properties.push(("reader", "query", query));
            }
            false => properties.push(("reader", "resource", resource.to_owned())),
        }
        properties.extend(addressed("reader", &document.reading));
        self.add(
            &format!("read-{}", document.seed),
            [self.pair.reader, self.pair.processor, "foundRecords"],
            &properties,
        )
    }

    /// Adds a job with one chunk, and returns its name. It has checkpoints amid the document.
    fn add(&self, job: &str, chunk: [&str; 3], properties: &[(&str, &str, String)]) -> String {
        let [reader, processor, writer] = chunk;
        let mut xml = format!(
            "<job id=\"{job}\"><step id=\"copy\"><chunk reader=\"{reader}\" processor=\"{processor}\" writer=\"{writer}\" \
             commit-interval=\"4\"><properties>"
        );
        for (target, name, value) in properties {
            let value = escaped(value);
            write!(
                xml,
                "<property target=\"{target}\" name=\"{name}\" value=\"{value}\"/>"
            )
            .unwrap();
        }
        xml.push_str("</properties></chunk></step></job>");
        fs::write(self.folder.join(format!("jobs/{job}.xml")), xml).unwrap();
        job.to_owned()
    }

    /// Runs the jobs, and returns the failures.
    fn launch(&self, jobs: &[(u64, String)]) -> Vec<String> {
        let runtime = BatchRuntime::builder()
            .job_path(self.folder.join("jobs").display().to_string())
            .repository(self.url.clone())
            .build()
            .unwrap();
        let operator = runtime.job_operator();
        let failure = |(seed, job): &(u64, String)| {
            let id = operator.start(job, ()).map_err(|error| error.to_string());
            let ended = id.and_then(|id| operator.wait(id).map_err(|error| error.to_string()));
            let cause = match ended {
                Ok(execution) if execution.status == BatchStatus::Completed => return None,
                Ok(execution) => execution.exit_message,
                Err(error) => error,
            };
            Some(format!("seed {seed}: {job}: {cause}"))
        };
        jobs.iter().filter_map(failure).collect()
    }

    /// Fails if there are differences.
    fn report(&self, differences: &[impl AsRef<str>]) {
        let shown: Vec<_> = differences.iter().take(10).map(AsRef::as_ref).collect();
        assert!(
            differences.is_empty(),
            "{} differences of {}; repeat one with BATCH_SEED; the files are in {}\n{}",
            differences.len(),
            self.pair.name,
            self.folder.display(),
            shown.join("\n")
        );
    }
}

fn addressed<'o>(
    target: &'static str,
    options: &'o Options,
) -> impl Iterator<Item = (&'static str, &'static str, String)> + 'o {
    options
        .iter()
        .map(move |(name, value)| (target, *name, value.clone()))
}

/// Returns a text as the value of an attribute.
fn escaped(text: &str) -> String {
    let special = |c: char| match c {
        '&' | '<' | '"' | '\t' | '\n' | '\r' | '#' | '$' => format!("&#{};", u32::from(c)),
        _ => c.to_string(),
    };
    text.chars().map(special).collect()
}
