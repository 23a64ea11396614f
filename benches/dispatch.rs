//! Partitions on worker processes: the cost beside threads, the gain of a second process, tiny partitions, and the time after which a
//! dead worker is replaced. The programs run in turn on one machine, with PostgreSQL and NATS beside them.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use batch_bench::{Program, head, in_turn, ratio, report};
use batch_nats::NatsTransport;
use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, BatchStatus, JobParameters};
use batch_test_servers::{Kind, NatsServer, Server};

const ROUNDS: usize = 5;
/// Of the worker that is killed.
const LEASE: Duration = Duration::from_secs(5);

#[derive(BatchArtifact)]
struct Parts {
    #[batch_property(name = "parts")]
    parts: i32,
}

#[partition_algorithm]
impl Parts {
    #[calculate_partitions]
    fn parts(&mut self) -> PartitionPlan {
        PartitionPlan::new(self.parts)
    }
}

/// Arithmetic for as long as it takes.
#[derive(BatchArtifact)]
struct Work {
    #[batch_property(name = "rounds", value = "0")]
    rounds: u64,
}

#[batchlet]
impl Work {
    #[process]
    fn process(&self) -> String {
        let mut hash = self.rounds ^ 0x9E37_79B9_7F4A_7C15;
        for _ in 0..self.rounds {
            hash = (hash ^ (hash >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        }
        format!("{hash:x}")
    }
    #[cancel]
    fn cancel(&self) {}
}

/// The variables of a worker process.
const REPOSITORY: &str = "BATCH_BENCH_REPOSITORY";
const DISPATCH: &str = "BATCH_BENCH_DISPATCH";
const SLOTS: &str = "BATCH_BENCH_SLOTS";

fn runtime(repository: &str, dispatch: &str) -> BatchRuntime {
    let builder = BatchRuntime::builder()
        .repository(repository)
        .lease_time(LEASE)
        .job_path(concat!(env!("CARGO_MANIFEST_DIR"), "/jobs"));
    let builder = match dispatch {
        "local" | "repository" => builder.dispatch(dispatch),
        address => {
            let transport = NatsTransport::connect(address).unwrap();
            builder.partition_transport("nats", transport).dispatch("nats")
        }
    };
    builder.build().unwrap()
}

/// Worker processes of this program. Dropped, they are killed.
struct Workers(Vec<Child>);

impl Workers {
    fn start(repository: &str, dispatch: &str, workers: u32, slots: u32) -> Self {
        let start = || {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.env(REPOSITORY, repository).env(DISPATCH, dispatch);
            command.env(SLOTS, slots.to_string()).stdin(Stdio::null());
            command.spawn().unwrap()
        };
        let processes = Self((0..workers).map(|_| start()).collect());
        let operator = runtime(repository, "local").job_operator();
        let registered = || {
            operator
                .workers()
                .unwrap()
                .iter()
                .filter(|worker| worker.is_alive)
                .count()
        };
        wait_until(|| registered() >= workers as usize);
        processes
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for process in &mut self.0 {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }
}

fn wait_until(mut happened: impl FnMut() -> bool) {
    while !happened() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A job from its start to its end.
fn run(runtime: &BatchRuntime, parameters: &[(&str, &str)]) -> Duration {
    let operator = runtime.job_operator();
    let parameters: JobParameters = parameters.iter().copied().collect();
    let begin = Instant::now();
    let execution = operator.start("dispatched", parameters);
    let ended = operator
        .wait(execution.unwrap_or_else(|error| panic!("{error}")))
        .unwrap();
    let time = begin.elapsed();
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
    time
}

fn work(repository: &str, dispatch: &str) {
    let slots = std::env::var(SLOTS).unwrap().parse().unwrap();
    let worker = runtime(repository, dispatch)
        .worker()
        .slots(slots)
        .start()
        .unwrap();
    worker.wait().unwrap();
}

/// A repository, and what carries the partitions.
struct Place<'a> {
    name: &'static str,
    repository: String,
    dispatch: &'a str,
    /// The longest time of a tiny partition, in microseconds.
    tiny: f64,
}

fn main() {
    if let (Ok(repository), Ok(dispatch)) = (std::env::var(REPOSITORY), std::env::var(DISPATCH)) {
        return work(&repository, &dispatch);
    }
    let postgres = Server::start(Kind::Postgres);
    let nats = NatsServer::start("");
    let places = [
        Place {
            name: "PostgreSQL",
            repository: postgres.new_database(),
            dispatch: "repository",
            tiny: 2_000.0,
        },
        Place {
            name: "NATS",
            repository: postgres.new_database(),
            dispatch: nats.url(),
            tiny: 500.0,
        },
    ];
    let second = rounds_of_a_second().to_string();
    for place in &places {
        head(&format!("Partitions on workers, by {}", place.name));
        long(place, &second);
        tiny(place);
    }
    death(&places[0], &second);
}

/// Returns the number of rounds that take about a second on a separate processor.
fn rounds_of_a_second() -> u64 {
    let rounds = 200_000_000;
    let begin = Instant::now();
    std::hint::black_box(Work { rounds }.process());
    (rounds as f64 / begin.elapsed().as_secs_f64()) as u64
}

/// Four partitions of a second: on two threads of this process, on two workers, and on one.
fn long(place: &Place<'_>, second: &str) {
    let parameters = [
        ("parts", "4"),
        ("rounds", second),
        ("batch.partition.threads", "2"),
    ];
    let local = runtime(&place.repository, "local");
    let remote = runtime(&place.repository, place.dispatch);
    let on_workers = |workers: u32| {
        let _workers = Workers::start(&place.repository, place.dispatch, workers, 1);
        run(&remote, &parameters)
    };
    let mut programs: Vec<Program<'_>> = vec![
        ("two threads", Box::new(|| run(&local, &parameters))),
        ("two workers", Box::new(|| on_workers(2))),
        ("one worker", Box::new(|| on_workers(1))),
    ];
    let [threads, two, one] = in_turn(ROUNDS, &mut programs).try_into().unwrap();
    report(
        "partitions of a second: two workers, per two threads",
        ratio(two, threads),
        "x",
        Some(1.05),
    );
    report(
        "the same: two workers, per one worker",
        ratio(two, one),
        "x",
        Some(0.556),
    );
}

/// Partitions that do nothing.
fn tiny(place: &Place<'_>) {
    let _workers = Workers::start(&place.repository, place.dispatch, 2, 4);
    let remote = runtime(&place.repository, place.dispatch);
    let parameters = [("parts", "10000")];
    let mut programs: Vec<Program<'_>> =
        vec![("10,000 tiny partitions", Box::new(|| run(&remote, &parameters)))];
    let [time] = in_turn(3, &mut programs).try_into().unwrap();
    let micros = time.as_secs_f64() * 1e6 / 10_000.0;
    report(
        "one of 10,000 tiny partitions, from its row to its end",
        micros,
        "us",
        Some(place.tiny),
    );
}

/// The time from the death of a worker until another one runs its partition, beyond the lease.
fn death(place: &Place<'_>, second: &str) {
    let remote = runtime(&place.repository, place.dispatch);
    let operator = remote.job_operator();
    let mut programs: Vec<Program<'_>> = vec![(
        "a worker dies",
        Box::new(|| {
            let mut first = Workers::start(&place.repository, place.dispatch, 1, 1);
            let parameters = [("parts", "1"), ("rounds", second)];
            let execution = operator
                .start("dispatched", parameters.into_iter().collect::<JobParameters>())
                .unwrap();
            let holder = || {
                let workers = operator.workers().unwrap();
                let holder = workers.into_iter().find(|worker| !worker.partitions.is_empty());
                holder.map(|worker| worker.name)
            };
            wait_until(|| holder().is_some());
            let dead = holder().unwrap();
            first.0[0].kill().unwrap();
            let begin = Instant::now();
            let _second = Workers::start(&place.repository, place.dispatch, 1, 1);
            wait_until(|| holder().is_some_and(|holder| holder != dead));
            let time = begin.elapsed();
            assert_eq!(operator.wait(execution).unwrap().status, BatchStatus::Completed);
            time.saturating_sub(LEASE)
        }),
    )];
    let [time] = in_turn(3, &mut programs).try_into().unwrap();
    report(
        "after the death of a worker, beyond its lease",
        time.as_secs_f64(),
        "s",
        Some(2.0),
    );
}
