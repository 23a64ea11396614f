//! Processes that are killed at random moments.

use std::env;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use batch_runtime::{BatchStatus, JobOperatorError};

use super::broker::{Kind, Queue};
use super::items;
use super::stage::{Stage, Step, loading, runtime};

/// The variable that holds the folder of the killed process.
const FOLDER: &str = "BATCH_ITEMS_KILLED_IN";
/// What a process prints when its job has completed.
const COMPLETED: &str = "the job has completed";
const MESSAGES: i64 = 400;

/// The process that is killed: launches the job of a folder. As a test it does nothing.
#[test]
fn the_killed_process() {
    let Ok(folder) = env::var(FOLDER) else { return };
    let runtime = runtime(Path::new(&folder));
    let operator = runtime.job_operator();
    let execution = match operator.launch("job", ()) {
        Ok(execution) => execution,
        // The kill came after the last commit and before the end of the process.
        Err(JobOperatorError::JobInstanceAlreadyComplete { .. }) => return eprintln!("{COMPLETED}"),
        Err(error) => panic!("{error}"),
    };
    let ended = operator.wait(execution).unwrap();
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
    eprintln!("{COMPLETED}");
}

/// A small generator of random numbers (xorshift64). Set `BATCH_SEED` to repeat a run.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let seed = env::var("BATCH_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or(time);
        println!("BATCH_SEED={seed}");
        Self(seed | 1)
    }

    fn below(&mut self, limit: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let limit = u64::try_from(limit.as_micros()).unwrap();
        Duration::from_micros(self.0 % limit.max(1))
    }
}

/// Starts the process, and kills it after a time. Returns whether the job has completed.
fn launch(stage: &Stage, killed_after: Option<Duration>) -> bool {
    let mut process = Command::new(env::current_exe().unwrap())
        .args(["--exact", "killed::the_killed_process", "--nocapture"])
        .env(FOLDER, stage.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = process.stderr.take().unwrap();
    let (send, ended) = mpsc::channel();
    // Its standard error closes when it ends.
    let errors = thread::spawn(move || {
        let mut text = String::new();
        errors.read_to_string(&mut text).unwrap();
        let _ = send.send(());
        text
    });
    if let Some(time) = killed_after {
        let _ = ended.recv_timeout(time);
        process.kill().unwrap();
    }
    let (status, errors) = (process.wait().unwrap(), errors.join().unwrap());
    let is_completed = errors.contains(COMPLETED);
    assert!(is_completed || status.code().is_none(), "{errors}");
    is_completed
}

/// Kills the process of a job at random moments until it has completed. Calls `killed` after each kill.
fn kill(stage: &Stage, random: &mut Random, whole: Duration, mut killed: impl FnMut()) {
    while !launch(stage, Some(random.below(whole))) {
        killed();
    }
}

fn slowly(step: Step<'_>) -> Stage {
    Stage::new(&Step {
        attributes: "commit-interval=\"2\"",
        ..step
    })
}

/// Whenever the process dies, each message is a row once.
///
/// Spec: QUEUE-01
#[test]
fn a_killed_reader_loses_and_doubles_nothing() {
    let mut random = Random::new();
    for kind in Kind::ALL {
        let queue = Queue::new(kind);
        queue.send(1..=MESSAGES);
        let job = || slowly(loading(queue.reader(&[])));
        let undisturbed = job();
        let begin = Instant::now();
        assert!(launch(&undisturbed, None));
        let whole = begin.elapsed();
        // Kills, and those that struck between two commits.
        let (mut kills, mut between) = (0, 0);
        while kills < wanted() {
            let stage = job();
            kill(&stage, &mut random, whole, || {
                kills += 1;
                between += u32::from((1..MESSAGES as usize).contains(&stage.rows().len()));
            });
            assert_eq!(stage.rows(), items(1..=MESSAGES), "{kind:?}");
        }
        println!("{kind:?}: {kills} kills, {between} between two commits, a whole run takes {whole:?}");
        assert!(
            between * 4 >= kills,
            "only {between} of {kills} kills struck between two commits"
        );
    }
}

/// Whenever the process dies, no message of a writer is lost. With ids, NATS stores none twice.
///
/// Spec: QUEUE-07, QUEUE-10
#[test]
fn a_killed_writer_loses_nothing() {
    let mut random = Random::new();
    for (kind, further) in [
        (Kind::Kafka, &[][..]),
        (Kind::Nats, &[("message.id", "position")]),
        (Kind::Nats, &[("message.id", "{id}")]),
    ] {
        let job = |queue: &Queue| {
            slowly(Step {
                reader: ("Items", vec![("items", MESSAGES.to_string())]),
                writer: queue.writer(further),
                attributes: "",
                children: "",
            })
        };
        let undisturbed = job(&Queue::new(kind));
        let begin = Instant::now();
        assert!(launch(&undisturbed, None));
        let whole = begin.elapsed();
        let (mut kills, mut doubled) = (0, 0);
        while kills < wanted() {
            let queue = Queue::new(kind);
            kill(&job(&queue), &mut random, whole, || kills += 1);
            let mut stored = queue.stored();
            doubled += stored.len() - MESSAGES as usize;
            if kind == Kind::Kafka {
                stored.dedup();
            }
            assert_eq!(stored, items(1..=MESSAGES), "{kind:?}");
        }
        println!(
            "{kind:?} {further:?}: {kills} kills, {doubled} messages twice, a whole run takes {whole:?}"
        );
    }
}

/// Returns the number of kills of a job.
fn wanted() -> u32 {
    let is_slow = env::var("BATCH_TEST_SLOW").is_ok_and(|value| value == "1");
    if is_slow { 200 } else { 12 }
}
