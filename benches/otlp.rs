//! The cost of traces and metrics over OTLP: at most 1.03 of a job without, at chunks of 1000.
//!
//! Each run is a separate process, since a process cannot take its recorder of metrics back. The collector is this process, which reads
//! and forgets.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use batch_bench::{closed, head, opened, report, run_job, run_observed_job};
use batch_otel::OpenTelemetry;
use batch_runtime::prelude::*;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;

const IN_MEMORY: u64 = 10_000_000;
const ROWS: u64 = 500_000;
const ROUNDS: usize = 31;

table! {
    row (number) {
        number -> BigInt,
    }
}

#[derive(BatchArtifact)]
struct Numbers {
    #[batch_property(name = "items")]
    items: u64,
    next: u64,
}

#[item_reader]
impl Numbers {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.next = checkpoint.unwrap_or(0);
        opened();
    }
    #[read_item]
    fn read(&mut self) -> Option<u64> {
        if self.next == self.items {
            return None;
        }
        self.next = black_box(self.next + 1);
        Some(self.next)
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.next
    }
    #[close]
    fn close(&mut self) {
        closed();
    }
}

#[derive(BatchArtifact)]
struct Same {}

#[item_processor]
impl Same {
    #[process_item]
    fn process(&mut self, item: u64) -> Option<u64> {
        Some(item)
    }
}

#[derive(BatchArtifact)]
struct Nowhere {}

#[item_writer]
impl Nowhere {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, items: &[u64]) {
        black_box(items);
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

#[derive(BatchArtifact)]
struct Rows {}

#[item_writer]
impl Rows {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, items: &[u64], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let connection = tx.sqlite()?;
        for item in items {
            diesel::insert_into(row::table)
                .values(row::number.eq(i64::try_from(*item)?))
                .execute(connection)?;
        }
        Ok(())
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// The work of a child: a chunk step. Returns the time it took.
fn work(of: &str) -> Duration {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db").display().to_string();
    let table = "PRAGMA journal_mode = WAL; CREATE TABLE row (number BIGINT NOT NULL)";
    let made = SqliteConnection::establish(&file).unwrap().batch_execute(table);
    made.unwrap();
    let on_disk = format!("sqlite://{file}?synchronous=normal");
    let (writer, items, interval, database) = match of {
        "engine" => ("Nowhere", IN_MEMORY, IN_MEMORY, "sqlite://:memory:"),
        "commits" => ("Nowhere", IN_MEMORY, 1_000, "sqlite://:memory:"),
        _ => ("Rows", ROWS, 1_000, &*on_disk),
    };
    let (items, interval) = (items.to_string(), interval.to_string());
    let parameters = [
        ("reader", "Numbers"),
        ("processor", "Same"),
        ("writer", writer),
        ("commit.interval", &interval),
        ("chunk.size", "1000"),
        ("items", &items),
    ];
    let telemetry = OpenTelemetry::from_env();
    if !telemetry.is_active() {
        return run_job("bench", database, &parameters);
    }
    telemetry.install_metrics().unwrap();
    let time = run_observed_job("bench", database, &parameters, telemetry.clone());
    telemetry.shutdown(Duration::from_secs(5));
    time
}

/// Runs a child.
fn child(of: &str, collector: Option<&str>) -> Duration {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["child", of])
        .env_remove("OTEL_EXPORTER_OTLP_ENDPOINT");
    if let Some(collector) = collector {
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
    }
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    let nanos = String::from_utf8(output.stdout).unwrap();
    Duration::from_nanos(nanos.trim().parse().unwrap())
}

/// Starts a collector.
fn collector() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || while respond(&client).is_some() {});
        }
    });
    format!("http://{address}")
}

fn respond(mut client: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(client);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        (reader.read_line(&mut head).ok()? > 0).then_some(())?;
    }
    let head = head.to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))?;
    let mut body = vec![0; length.trim().parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    client
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .ok()
}

fn per(time: Duration, items: u64) -> f64 {
    time.as_secs_f64() * 1e9 / items as f64
}

/// Runs a job without and with OTLP in turn. Reports the median times, and the median of the ratios of neighbours: other processes of the
/// machine disturb both of a pair alike.
fn compare(what: &str, of: &str, (items, unit): (u64, &str), collector: &str, gate: Option<f64>) {
    let (mut off, mut on, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let pair = if round % 2 == 0 {
            [None, Some(collector)].map(|collector| child(of, collector))
        } else {
            let [on, off] = [Some(collector), None].map(|collector| child(of, collector));
            [off, on]
        };
        // The first one warms up.
        if round > 0 {
            eprintln!(
                "  round {round} {what}: {:.2?} without, {:.2?} with",
                pair[0], pair[1]
            );
            off.push(per(pair[0], items));
            on.push(per(pair[1], items));
            ratios.push(pair[1].as_secs_f64() / pair[0].as_secs_f64());
        }
    }
    report(&format!("{what}, without"), median(off), unit, None);
    report(&format!("{what}, with OTLP"), median(on), unit, None);
    report(&format!("{what}, with / without"), median(ratios), "x", gate);
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(of) = arguments.iter().skip_while(|word| *word != "child").nth(1) {
        println!("{}", work(of).as_nanos());
        return;
    }
    let collector = collector();
    head("Traces and metrics over OTLP, chunks of 1000");
    let in_memory = (IN_MEMORY, "ns/item");
    compare("u64, engine", "engine", in_memory, &collector, Some(1.03));
    compare(
        "rows into SQLite, a commit per 1000",
        "rows",
        (ROWS, "ns/row"),
        &collector,
        Some(1.03),
    );
    compare(
        "u64, a commit in memory per 1000",
        "commits",
        in_memory,
        &collector,
        None,
    );
}
