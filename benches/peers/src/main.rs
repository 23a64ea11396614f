//! Runs the jobs on all programs in turn, compares their results, and prints a table. See README.md.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark")]

mod server;
mod table;

use std::fs;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use peers::Person;
use peers::programs::{JOBS, PROGRAMS, Start, compare_jobs, java_program, reason};
use server::Server;
use table::{Run, Runs};
use wait4::Wait4;

struct Options {
    rounds: usize,
    rows: i64,
    only: Option<String>,
    /// Only compare the jobs that the programs accept.
    check: bool,
}

impl Options {
    fn of_process() -> Self {
        let mut options = Self {
            rounds: 5,
            rows: 200_000,
            only: None,
            check: false,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            if word == "--check" {
                options.check = true;
                continue;
            }
            let value = words.next().unwrap_or_else(|| panic!("`{word}` without a value"));
            match word.as_str() {
                "--rounds" => options.rounds = value.parse().expect("`--rounds` takes a number"),
                "--rows" => options.rows = value.parse().expect("`--rows` takes a number"),
                "--only" => options.only = Some(value),
                _ => panic!("unknown option `{word}`; the options are --rounds, --rows, --only and --check"),
            }
        }
        let known = |only: &String| JOBS.iter().any(|(job, _)| job == only);
        assert!(
            options.only.as_ref().is_none_or(known),
            "the jobs are {:?}",
            JOBS.map(|(job, _)| job)
        );
        assert!(
            options.rounds > 0 && options.rows % 20_000 == 0,
            "a round or more, and a multiple of 20,000 rows"
        );
        options
    }
}

struct Bench {
    folder: PathBuf,
    java: PathBuf,
    server: Server,
    rows: i64,
}

const TABLE: &str = "CREATE TABLE person (id BIGINT, first TEXT, last TEXT, email TEXT, amount FLOAT8 CHECK (amount >= 0), date TEXT)";

/// The rows of a result, and the sum of its amounts in cents.
type Sums = (i64, i64);

impl Bench {
    fn input(&self, job: &str) -> PathBuf {
        self.folder
            .join(if job == "skip" { "bad.csv" } else { "people.csv" })
    }

    /// Writes the input of a job, and returns what the result must be.
    fn write_input(&self, job: &str) -> Sums {
        let rows = if job == "skip" { self.rows / 20 } else { self.rows };
        let mut out = BufWriter::new(fs::File::create(self.input(job)).unwrap());
        writeln!(out, "id,first,last,email,amount,date").unwrap();
        for id in 0..rows {
            let Person {
                id,
                first,
                last,
                email,
                amount,
                date,
            } = Person::number(id);
            let bad = job == "skip" && id % 1000 == 500;
            let amount = if bad { -1.0 } else { amount };
            writeln!(out, "{id},{first},{last},{email},{amount:.2},{date}").unwrap();
        }
        out.flush().unwrap();
        let ids = 0..match job {
            "cold" => 0,
            "partitions" => peers::PARTITIONS * peers::ITEMS,
            _ => rows,
        };
        let good = ids.filter(|id| job != "skip" || id % 1000 != 500);
        good.fold((0, 0), |(rows, cents), id| {
            (
                rows + 1,
                cents + (Person::number(id).processed().amount * 100.0).round() as i64,
            )
        })
    }

    fn command(&self, start: Start, verb: &str) -> Command {
        let mut command = match start {
            Start::Rust(name, pipeline) => {
                let mut command = Command::new(std::env::current_exe().unwrap().with_file_name(name));
                if pipeline {
                    command.env("PEERS_PIPELINE", "1");
                }
                command
            }
            Start::Java(name) => java_program(&self.java, name),
        };
        // The transaction manager of JBeret creates a folder.
        command.arg(verb).current_dir(&self.folder);
        command
    }

    /// Creates an empty target with the tables of the program's repository. Each run gets a copy.
    fn prepare(&self, number: usize, start: Start) {
        let (file, database) = (
            self.folder.join(format!("empty{number}.db")),
            format!("empty{number}"),
        );
        rusqlite::Connection::open(&file)
            .unwrap()
            .execute_batch(&format!("PRAGMA journal_mode = WAL; {TABLE}"))
            .unwrap();
        self.server
            .connect("postgres")
            .batch_execute(&format!("CREATE DATABASE {database}"))
            .unwrap();
        self.server.connect(&database).batch_execute(TABLE).unwrap();
        // spring-batch-rs has no repository, and oxide-batch has none in SQLite.
        if !matches!(start, Start::Rust("spring-batch-rs" | "oxide-batch", _)) {
            let mut sqlite = self.command(start, "prepare-sqlite");
            check(sqlite.arg(format!("file={}", file.display())));
        }
        if !matches!(start, Start::Rust("spring-batch-rs", _)) {
            let mut postgres = self.command(start, "prepare-postgres");
            check(
                postgres
                    .arg(format!("port={}", self.server.port))
                    .arg(format!("database={database}")),
            );
        }
        rusqlite::Connection::open(&file)
            .unwrap()
            .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
            .unwrap();
    }

    /// Runs a job in a separate process, and compares its result with the expected one.
    fn run(&self, number: usize, job: &str, expected: Sums) -> Run {
        let (name, start) = PROGRAMS[number];
        let (file, output) = (self.folder.join("run.db"), self.folder.join("output.csv"));
        for suffix in ["", "-wal", "-shm", "-owners"] {
            let _ = fs::remove_file(self.folder.join(format!("run.db{suffix}")));
        }
        let _ = fs::remove_file(&output);
        fs::copy(self.folder.join(format!("empty{number}.db")), &file).unwrap();
        self.server.copy("run", &format!("empty{number}"));
        let arguments = [
            format!("file={}", file.display()),
            format!("output={}", output.display()),
            format!("input={}", self.input(job).display()),
            format!("port={}", self.server.port),
            "database=run".to_owned(),
        ];
        if job == "restart" {
            let mut failing = self.command(start, "csv-postgres");
            check(
                failing
                    .args(&arguments)
                    .arg(format!("fail={}", self.rows / 10 * 9)),
            );
        }
        let written = if job == "restart" {
            self.rows / 10
        } else {
            expected.0
        };
        let mut command = self.command(start, job);
        command.args(&arguments).arg(format!("expected={written}"));
        let run = measure(&mut command, name);
        let sums = match job {
            "csv-csv" => sums_of_file(&output),
            "csv-sqlite" => sums_of_sqlite(&file),
            _ => {
                let sql = "SELECT COUNT(*), COALESCE(SUM(ROUND(amount * 100)), 0)::bigint, COUNT(DISTINCT id) FROM person";
                let row = self.server.connect("run").query_one(sql, &[]).unwrap();
                assert_eq!(
                    row.get::<_, i64>(0),
                    row.get::<_, i64>(2),
                    "`{name}` wrote rows twice"
                );
                (row.get(0), row.get(1))
            }
        };
        assert_eq!(sums, expected, "`{job}` by `{name}`: rows, and sum in cents");
        run
    }
}

fn check(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, error) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{command:?}\n{out}{error}");
}

fn measure(command: &mut Command, name: &str) -> Run {
    let begin = Instant::now();
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("`{name}`: {error}"));
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    let ended = child.wait4().unwrap();
    let process = begin.elapsed().as_secs_f64();
    assert!(ended.status.success(), "{command:?}\n{out}");
    let job = out.lines().find_map(|line| line.strip_prefix("job-seconds="));
    let job = job
        .unwrap_or_else(|| panic!("`{name}` prints no time:\n{out}"))
        .parse()
        .unwrap();
    Run {
        process,
        job,
        memory: ended.rusage.maxrss as f64 / 1024.0 / 1024.0,
    }
}

/// Reads the rows of a file, after its header if it has one: oxide-batch writes none.
fn sums_of_file(path: &Path) -> Sums {
    let mut file = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_path(path)
        .unwrap();
    let rows = file.records().map(Result::unwrap).filter(|row| &row[0] != "id");
    rows.fold((0, 0), |(rows, cents), row| {
        let person: Person = row.deserialize(None).unwrap();
        (rows + 1, cents + (person.amount * 100.0).round() as i64)
    })
}

fn sums_of_sqlite(path: &Path) -> Sums {
    let sql = "SELECT COUNT(*), CAST(SUM(ROUND(amount * 100)) AS INTEGER) FROM person";
    let connection = rusqlite::Connection::open(path).unwrap();
    connection
        .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
}

fn main() {
    let options = Options::of_process();
    let folder = tempfile::tempdir().unwrap();
    let java = PathBuf::from(std::env::var_os("PEERS_JAVA").expect("`benches/peers/run` sets PEERS_JAVA"));
    let rust = std::env::current_exe().unwrap();
    compare_jobs(rust.parent().unwrap(), Some(&java)).unwrap_or_else(|differences| panic!("{differences}"));
    if options.check {
        println!("the programs accept the same jobs");
        return;
    }
    let bench = Bench {
        folder: folder.path().to_owned(),
        java,
        server: Server::start(),
        rows: options.rows,
    };
    for (number, (_, start)) in PROGRAMS.into_iter().enumerate() {
        bench.prepare(number, start);
    }
    let (rounds, rows) = (options.rounds, options.rows);
    println!(
        "{rows} rows, chunks of 1000; medians of {rounds} rounds, ratios to the first program in the same round"
    );
    for (job, title) in JOBS
        .iter()
        .filter(|(job, _)| options.only.as_deref().is_none_or(|only| only == *job))
    {
        let expected = bench.write_input(job);
        let mut runs = Runs::new();
        // Round 0 warms the files up.
        for round in 0..=rounds {
            for (number, (name, _)) in PROGRAMS
                .iter()
                .enumerate()
                .filter(|(_, (name, _))| reason(name, job).is_none())
            {
                let run = bench.run(number, job, expected);
                eprintln!(
                    "{job}, round {round}: {:.3} s, job {:.3} s, {:.0} MiB, {name}",
                    run.process, run.job, run.memory
                );
                if round > 0 {
                    runs.entry(((*job).to_owned(), (*name).to_owned()))
                        .or_default()
                        .push(run);
                }
            }
        }
        table::print(title, job, &PROGRAMS.map(|(name, _)| name), &runs, &reason);
    }
}
