//! What every dispatcher has to survive. Each function is a test that `dispatcher_tests!` makes for one dispatcher.
//!
//! The table of the jobs has no key, so a record that is processed twice is a row too many.

use crate::fleet::{Fleet, Process, until};
pub use crate::launching::*;
use crate::random::Random;

/// Makes a module of tests of a dispatcher: its name, and an expression that makes a new fleet.
#[macro_export]
macro_rules! dispatcher_tests {
    ($name:ident, $fleet:expr) => {
        mod $name {
            use super::*;
            use batch_tests::dispatching as cases;

            $crate::dispatcher_tests! { @each $fleet;
                workers_share_the_partitions, each_analyzer_has_its_own_payloads, a_killed_worker_is_replaced, payloads_of_a_killed_worker_are_complete, payloads_of_a_stopped_job_are_complete, a_frozen_worker_is_fenced, a_repeated_ticket_is_claimed_once,
                a_ticket_of_an_ended_execution_is_discarded, a_lost_ticket_is_submitted_again, a_job_is_stopped_in_flight, a_stopped_job_starts_no_partitions, a_job_without_workers_is_stopped, a_failed_partition_stops_the_others,
                a_poisonous_partition_fails, a_poisonous_partition_takes_no_others_along, no_partitions_are_complete_at_once, many_partitions_need_two_workers,
                a_killed_coordinator_is_relaunched, another_version_is_left_to_others, a_drained_worker_hands_its_partitions_over,
                flows_run_on_workers, a_killed_worker_of_a_flow_is_replaced, a_poisonous_flow_fails, a_launch_waits_for_a_worker, racing_launches_run_once, a_killed_worker_loses_no_launch,
                a_drained_worker_hands_its_launches_over, a_launch_waits_until_a_drained_worker_has_stopped_it, launches_are_stopped, a_launch_is_awaited, launches_of_another_version_wait,
            }
        }
    };
    (@each $fleet:expr; $($case:ident,)*) => {
        $(#[test] fn $case() { cases::$case(&$fleet); })*
    };
}

const LOAD: &[&str] = &["launch", "fleet"];

/// Partitions of a job run on several workers, with collectors and an analyzer, and none on the coordinator.
///
/// Spec: DISP-01, PART-26, PART-32, SUBJOB-03, SUBJOB-10
pub fn workers_share_the_partitions(fleet: &Fleet) {
    let workers = [fleet.worker(&[]), fleet.worker(&[])];
    fleet.hold();
    let mut job = fleet.start(&[LOAD, &["parts=8", "holds=0"]].concat());
    let holder = fleet.is_held();
    assert!(
        workers.iter().any(|worker| worker.id() == holder),
        "it runs in a worker"
    );
    let listed = fleet.run(0, &["workers", "--json"]);
    assert_eq!(listed.matches("\"status\": \"ready\"").count(), 2, "{listed}");
    assert!(listed.contains("\"stepExecution\""), "{listed}");
    fleet.release();
    let shown = job.ends(0);
    assert!(shown.contains("400 items, 8 parts"), "{shown}");
    fleet.is_exact(400);
}

/// The collectors of two steps that run at the same time report to the analyzers of their own steps.
///
/// Spec: DISP-01, SUBJOB-03, SUBJOB-10
pub fn each_analyzer_has_its_own_payloads(fleet: &Fleet) {
    let _workers = [fleet.worker(&["--slots", "4"]), fleet.worker(&["--slots", "4"])];
    fleet.start(&["launch", "twins"]).ends(0);
    let ends = fleet
        .connect()
        .rows("SELECT EXIT_CODE AS text FROM BATCH_STEP_EXECUTION WHERE STEP_NAME IN ('large', 'small') ORDER BY STEP_NAME");
    assert_eq!(ends, ["250 items, 5 parts", "100 items, 2 parts"]);
    fleet.is_exact(350);
}

/// `kill -9`: another worker resumes the partitions when the lease has expired.
///
/// Spec: DISP-02, RESTART-09
pub fn a_killed_worker_is_replaced(fleet: &Fleet) {
    fleet.on_other_hosts();
    let mut first = fleet.worker(&["--slots", "4"]);
    fleet.hold();
    let mut job = fleet.start(&[LOAD, &["holds=2"]].concat());
    assert_eq!(fleet.is_held(), first.id());
    first.kill();
    fleet.release();
    let _second = fleet.worker(&[]);
    job.ends(0);
    fleet.is_exact(200);
}

/// A worker dies in its collector: the payload is committed with the checkpoint, or neither is.
///
/// Spec: DISP-02, SUBJOB-09
pub fn payloads_of_a_killed_worker_are_complete(fleet: &Fleet) {
    fleet.on_other_hosts();
    let mut first = fleet.worker(&["--slots", "1"]);
    let mut job = fleet.start(&[LOAD, &["parts=2", "-dies-collecting=1"]].concat());
    until("the worker has died", || first.has_ended().then_some(()));
    assert_eq!(
        fleet.number("SELECT COUNT(*) AS n FROM processed WHERE part = 1"),
        20
    );
    let _second = fleet.worker(&["--slots", "1"]);
    let shown = job.ends(0);
    assert!(shown.contains(" 100 items, 2 parts"), "{shown}");
    fleet.is_exact(100);
}

/// A worker hands its partitions back, and the job is stopped before another one takes them: the analyzer gets what was committed.
///
/// Spec: DISP-06, DISP-11, SUBJOB-09
pub fn payloads_of_a_stopped_job_are_complete(fleet: &Fleet) {
    let mut worker = fleet.worker(&["--slots", "2"]);
    let mut job = fleet.start(&[LOAD, &["parts=2", "items=5000", "-pace=1"]].concat());
    until("both partitions have committed", || {
        (fleet.number("SELECT COUNT(DISTINCT part) AS n FROM processed") == 2).then_some(())
    });
    worker.signal("TERM");
    worker.ends(0);
    fleet.run(0, &["stop", "1"]);
    job.ends(3);
    let committed = fleet.number("SELECT COUNT(*) AS n FROM processed");
    let exits = "SELECT EXIT_CODE AS text FROM BATCH_STEP_EXECUTION WHERE STEP_NAME = 'load'";
    assert_eq!(
        fleet.connect().rows(exits),
        [format!("{committed} items, 2 parts")]
    );
}

/// SIGSTOP for longer than the lease, then SIGCONT: what the first worker still writes is rejected.
///
/// Spec: DISP-03
pub fn a_frozen_worker_is_fenced(fleet: &Fleet) {
    fleet.on_other_hosts();
    let first = fleet.worker(&["--slots", "1"]);
    fleet.hold();
    let mut job = fleet.start(&[LOAD, &["parts=1", "holds=0"]].concat());
    assert_eq!(fleet.is_held(), first.id());
    fleet.freeze(&first);
    fleet.release();
    let _second = fleet.worker(&[]);
    job.ends(0);
    first.signal("CONT");
    // It has noticed, and takes other partitions.
    until("the first worker has no partition", || {
        let workers = fleet.run(0, &["workers", "--json"]);
        (!workers.contains("\"stepExecution\"")).then_some(())
    });
    fleet.run(0, &[LOAD, &["parts=2", "run=1"]].concat());
    fleet.is_exact(150);
}

/// A ticket that arrives twice is claimed once, whether its partition runs or has ended.
///
/// Spec: DISP-04
pub fn a_repeated_ticket_is_claimed_once(fleet: &Fleet) {
    fleet.hold();
    let mut job = fleet.start(&[LOAD, &["holds=0"]].concat());
    fleet.keep_tickets(4);
    let _workers = [fleet.worker(&[]), fleet.worker(&[]), fleet.worker(&[])];
    fleet.is_held();
    fleet.repeat_tickets();
    fleet.repeat_tickets();
    fleet.release();
    job.ends(0);
    fleet.repeat_tickets();
    fleet.is_exact(200);
}

/// A worker discards the tickets of an execution that has ended, also if the job has another version since, and of one that was purged.
///
/// Spec: DISP-04
pub fn a_ticket_of_an_ended_execution_is_discarded(fleet: &Fleet) {
    let mut job = fleet.start(LOAD);
    fleet.keep_tickets(4);
    let mut older = fleet.worker(&[]);
    job.ends(0);
    older.signal("TERM");
    older.ends(0);
    let mut newer = fleet.worker_in(&fleet.other_jobs(), &[]);
    fleet.repeat_tickets();
    fleet.is_exact(200);
    fleet.run(0, &["purge", "--keep", "0"]);
    fleet.repeat_tickets();
    newer.says("discarded a ticket of the unknown job execution 1");
    let log = newer.log();
    assert!(!log.contains("leaving it to other workers"), "{log}");
}

/// The coordinator submits a partition again that no worker claims.
///
/// Spec: DISP-05
pub fn a_lost_ticket_is_submitted_again(fleet: &Fleet) {
    let mut job = fleet.start(LOAD);
    fleet.keep_tickets(4);
    assert_eq!(fleet.lose_tickets(), 4);
    let _worker = fleet.worker(&[]);
    job.ends(0);
    fleet.is_exact(200);
}

/// A stop request reaches the partitions on their workers, which commit what they have.
///
/// Spec: DISP-06, PART-28
pub fn a_job_is_stopped_in_flight(fleet: &Fleet) {
    let _workers = [fleet.worker(&[]), fleet.worker(&[])];
    let slow = ["-pace=20", "items=5000"];
    let mut job = fleet.start(&[LOAD, &slow].concat());
    until("all partitions have committed", || {
        (fleet.number("SELECT COUNT(DISTINCT part) AS n FROM processed") == 4).then_some(())
    });
    fleet.run(0, &["stop", "1"]);
    job.ends(3);
    assert_eq!(fleet.statuses(), ["STOPPED"; 4]);
    let stopped = fleet.number("SELECT COUNT(*) AS n FROM processed");
    assert!(stopped < 20_000, "{stopped}");
    fleet.run(0, &[LOAD, &["-pace=0", "items=5000"]].concat());
    fleet.is_exact(20_000);
}

/// A worker that has a free slot when the job is stopped claims no other partition of it.
///
/// Spec: DISP-06, PART-28
pub fn a_stopped_job_starts_no_partitions(fleet: &Fleet) {
    let _worker = fleet.worker(&["--slots", "1"]);
    let mut job = fleet.start(&[LOAD, &["-pace=20", "items=5000"]].concat());
    until("a partition has committed", || {
        (fleet.number("SELECT COUNT(*) AS n FROM processed") > 0).then_some(())
    });
    fleet.run(0, &["stop", "1"]);
    job.ends(3);
    assert_eq!(fleet.number("SELECT COUNT(DISTINCT part) AS n FROM processed"), 1);
    assert_eq!(fleet.statuses(), ["STOPPED"; 4]);
}

/// Partitions that no worker has claimed end with the job.
///
/// Spec: DISP-06, PART-28
pub fn a_job_without_workers_is_stopped(fleet: &Fleet) {
    let mut job = fleet.start(LOAD);
    fleet.keep_tickets(4);
    fleet.run(0, &["stop", "1"]);
    job.ends(3);
    assert_eq!(fleet.statuses(), ["STOPPED"; 4]);
    fleet.is_exact(0);
    let _worker = fleet.worker(&[]);
    fleet.run(0, LOAD);
    fleet.is_exact(200);
}

/// The partitions that still run are stopped, the job fails, and the next launch resumes all of them.
///
/// Spec: DISP-01, PART-25, PART-29
pub fn a_failed_partition_stops_the_others(fleet: &Fleet) {
    let _workers = [fleet.worker(&[]), fleet.worker(&[])];
    let arguments = ["items=5000", "-fails=3", "-pace=2"];
    let shown = fleet.run(1, &[LOAD, &arguments].concat());
    assert!(shown.contains("25 is not readable"), "{shown}");
    assert_eq!(fleet.statuses(), ["STOPPED", "STOPPED", "STOPPED", "FAILED"]);
    fleet.run(0, &[LOAD, &["items=5000", "-fails=99", "-pace=0"]].concat());
    fleet.is_exact(20_000);
}

/// Runs a job whose partition kills its worker, with one worker after the other. Returns what the job has printed, and the last worker.
fn dies_three_times(fleet: &Fleet, slots: &str, arguments: &[&str]) -> (String, Process) {
    let mut job = fleet.start(arguments);
    let mut worker = fleet.worker(&["--slots", slots]);
    let mut deaths = 0;
    let message = until("the partition has failed", || {
        if worker.has_ended() {
            deaths += 1;
            assert!(deaths <= 3, "{}", fleet.logs());
            worker = fleet.worker(&["--slots", slots]);
        }
        job.has_ended().then(|| job.log())
    });
    assert_eq!(deaths, 3, "{message}");
    (message, worker)
}

/// A partition that kills its workers fails with the history of its deaths; the others are done.
///
/// Spec: DISP-07
pub fn a_poisonous_partition_fails(fleet: &Fleet) {
    let (message, _worker) = dies_three_times(fleet, "1", &[LOAD, &["-dies=1", "parts=2"]].concat());
    assert!(
        message.contains("3 workers died while they ran the partition: "),
        "{message}"
    );
    // It had committed two chunks before 25.
    assert!(message.matches(" after 2 commits").count() >= 3, "{message}");
    fleet.run(0, &[LOAD, &["-dies=99", "parts=2"]].concat());
    fleet.is_exact(100);
}

/// Partitions that ran beside it when their worker died run again, but not beside it.
///
/// Spec: DISP-07
pub fn a_poisonous_partition_takes_no_others_along(fleet: &Fleet) {
    let slow = ["-dies=0", "-pace=10", "items=200"];
    let (message, _worker) = dies_three_times(fleet, "4", &[LOAD, &slow].concat());
    assert!(message.contains("in partition 1 of `load`"), "{message}");
    let statuses = fleet.statuses();
    let failed = statuses.iter().filter(|status| *status == "FAILED");
    assert_eq!(failed.count(), 1, "{statuses:?}");
    fleet.run(0, &[LOAD, &["-dies=99", "-pace=0", "items=200"]].concat());
    fleet.is_exact(800);
}

/// Spec: PART-24
pub fn no_partitions_are_complete_at_once(fleet: &Fleet) {
    fleet.run(0, &[LOAD, &["parts=0"]].concat());
    fleet.is_exact(0);
}

/// More partitions than the workers have slots: 10,000 of them in the slow tier.
///
/// Spec: DISP-08
pub fn many_partitions_need_two_workers(fleet: &Fleet) {
    let _workers = [fleet.worker(&["--slots", "4"]), fleet.worker(&["--slots", "4"])];
    let parts = crate::slow::times(600, 10_000);
    let shown = fleet.run(
        0,
        &["launch", "tiny", &format!("parts={parts}"), "--log", "error"],
    );
    assert!(shown.contains(&format!("0 items, {parts} parts")), "{shown}");
    let complete = "SELECT COUNT(*) AS n FROM BATCH_STEP_EXECUTION WHERE STEP_NAME LIKE 'all:%' AND STATUS = 'COMPLETED'";
    assert_eq!(fleet.number(complete), i64::from(parts));
    fleet.is_exact(0);
}

/// `kill -9` of the coordinator: the workers are fenced, and the same launch resumes what is not complete.
///
/// Spec: DISP-09, RESTART-09
pub fn a_killed_coordinator_is_relaunched(fleet: &Fleet) {
    let _workers = [fleet.worker(&[]), fleet.worker(&[])];
    let arguments = [LOAD, &["items=2000", "-pace=1"]].concat();
    let mut job = fleet.start(&arguments);
    until("all partitions have committed", || {
        (fleet.number("SELECT COUNT(DISTINCT part) AS n FROM processed") == 4).then_some(())
    });
    job.kill();
    // On a server its lease has to expire first.
    until("the launch takes over", || {
        let mut launch = fleet.start(&[LOAD, &["items=2000", "-pace=0"]].concat());
        let is_running = launch.end().log().contains("is running: execution 1");
        (!is_running).then_some(())
    });
    fleet.is_exact(8_000);
}

/// A worker with other Job XML leaves a partition to workers that have the coordinator's Job XML.
///
/// Spec: DISP-10
pub fn another_version_is_left_to_others(fleet: &Fleet) {
    let mut newer = fleet.worker_in(&fleet.other_jobs(), &[]);
    let mut job = fleet.start(LOAD);
    newer.says("run workers with the same Job XML");
    job.says("has the fingerprint");
    let _worker = fleet.worker(&[]);
    job.ends(0);
    fleet.is_exact(200);
}

/// SIGTERM: chunk steps stop at their next checkpoint, and another worker resumes them within the same job execution. The payloads of both
/// workers reach the analyzer.
///
/// Spec: DISP-11, SUBJOB-09
pub fn a_drained_worker_hands_its_partitions_over(fleet: &Fleet) {
    let mut first = fleet.worker(&["--slots", "4"]);
    let mut job = fleet.start(&[LOAD, &["items=5000", "-pace=1"]].concat());
    until("all partitions have committed", || {
        (fleet.number("SELECT COUNT(DISTINCT part) AS n FROM processed") == 4).then_some(())
    });
    first.signal("TERM");
    first.ends(0);
    let committed = fleet.number("SELECT COUNT(*) AS n FROM processed");
    assert!((1..20_000).contains(&committed), "{committed}");
    let _second = fleet.worker(&["--slots", "4"]);
    let shown = job.ends(0);
    assert!(shown.contains(" 20000 items, 4 parts"), "{shown}");
    fleet.is_exact(20_000);
    assert_eq!(fleet.number("SELECT COUNT(*) AS n FROM BATCH_JOB_EXECUTION"), 1);
}

/// Each partition of a flow runs all its steps on one worker, within the logical transaction of the coordinator.
///
/// Spec: FPART-08, FPART-09, LTX-02, DISP-01
pub fn flows_run_on_workers(fleet: &Fleet) {
    let _workers = [fleet.worker(&[]), fleet.worker(&[])];
    let shown = fleet.run(0, &["launch", "flow"]);
    assert!(shown.contains("logical transaction: COMMIT"), "{shown}");
    let tells = "SELECT COUNT(*) AS n FROM BATCH_STEP_EXECUTION WHERE STEP_NAME LIKE 'each:%/tell' AND STATUS = 'COMPLETED'";
    assert_eq!(fleet.number(tells), 4);
    fleet.is_exact(200);
}

/// `kill -9` within the first step of a flow: another worker resumes it at its checkpoint, in the same job execution.
///
/// Spec: DISP-17, FPART-08
pub fn a_killed_worker_of_a_flow_is_replaced(fleet: &Fleet) {
    fleet.on_other_hosts();
    let mut first = fleet.worker(&["--slots", "4"]);
    fleet.hold();
    let mut job = fleet.start(&["launch", "flow", "holds=2"]);
    assert_eq!(fleet.is_held(), first.id());
    first.kill();
    fleet.release();
    let _second = fleet.worker(&["--slots", "4"]);
    let shown = job.ends(0);
    assert!(shown.contains("logical transaction: COMMIT"), "{shown}");
    let complete = "SELECT COUNT(*) AS n FROM BATCH_STEP_EXECUTION WHERE STEP_NAME LIKE 'each:%/%' AND STATUS = 'COMPLETED'";
    assert_eq!(fleet.number(complete), 8);
    assert_eq!(fleet.number("SELECT COUNT(*) AS n FROM BATCH_JOB_EXECUTION"), 1);
    fleet.is_exact(200);
}

/// The steps within a partition that has failed have ended, too.
///
/// Spec: DISP-07, DISP-17
pub fn a_poisonous_flow_fails(fleet: &Fleet) {
    let (message, _worker) = dies_three_times(fleet, "1", &["launch", "flow", "-dies=1", "parts=2"]);
    assert!(
        message.contains("3 workers died while they ran the partition: "),
        "{message}"
    );
    let open = "SELECT COUNT(*) AS n FROM BATCH_STEP_EXECUTION WHERE END_TIME IS NULL";
    assert_eq!(fleet.number(open), 0);
    fleet.run(0, &["launch", "flow", "-dies=99", "parts=2"]);
    fleet.is_exact(100);
}

/// Kills and freezes workers and the coordinator at random, and anything that `disturb` kills, until the job has survived as many faults as
/// ordered; each launch of a job resumes the one before. Records and payloads are neither lost nor doubled.
///
/// Spec: DISP-02, DISP-03, DISP-09, DISP-14, SUBJOB-09
pub fn chaos(fleet: &Fleet, faults: u32, mut disturb: impl FnMut(&mut Random)) {
    fleet.on_other_hosts();
    let mut random = Random::new("chaos of dispatchers");
    let mut workers: Vec<_> = (0..8).map(|_| fleet.worker(&["--slots", "1"])).collect();
    let (mut left, mut run, mut analyzed) = (faults, 0, 0);
    while left > 0 {
        let parameters = [format!("run={run}"), "-pace=1".into()];
        let arguments = [
            "launch",
            "fleet",
            "parts=12",
            "items=400",
            &parameters[0],
            &parameters[1],
        ];
        let mut job = fleet.start(&arguments);
        let mut launches = 1;
        loop {
            let next = std::time::Instant::now() + std::time::Duration::from_millis(random.below(400));
            while std::time::Instant::now() < next && !job.has_ended() {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            if job.has_ended() {
                if job.log().contains("COMPLETED in") {
                    break;
                }
                // Its lease has to expire, or one of its partitions has failed.
                job = fleet.start(&arguments);
                launches += 1;
                continue;
            }
            if left == 0 {
                continue;
            }
            left -= 1;
            match random.below(10) {
                0 => drop(job.kill()),
                1 => disturb(&mut random),
                2 | 3 => {
                    let frozen = usize::try_from(random.below(8)).unwrap();
                    fleet.freeze(&workers[frozen]);
                    let next = (frozen + 1) % 8;
                    workers[next].signal("CONT");
                }
                _ => {
                    let killed = usize::try_from(random.below(8)).unwrap();
                    workers[killed].kill();
                    workers[killed] = fleet.worker(&["--slots", "1"]);
                }
            }
        }
        run += 1;
        fleet.is_exact(run * 12 * 400);
        // The analyzer of a later launch gets the payloads of what was not complete.
        if launches == 1 {
            let exits = fleet.connect().rows("SELECT EXIT_CODE AS text FROM BATCH_STEP_EXECUTION WHERE STEP_NAME = 'load' ORDER BY STEP_EXECUTION_ID DESC");
            assert_eq!(exits[0], "4800 items, 12 parts");
            analyzed += 1;
        }
    }
    println!("{faults} faults in {run} jobs, {analyzed} in one launch");
}

/// The check of all these tests finds a record that is doubled, and one that is lost.
///
/// # Panics
/// If it does not.
pub fn the_check_finds_lost_and_doubled_records(fleet: &Fleet) {
    let _worker = fleet.worker(&[]);
    fleet.run(0, LOAD);
    fleet.is_exact(200);
    let change = |statement: &str| fleet.connect().execute(statement).unwrap();
    change("INSERT INTO processed VALUES (0, 2, 7)");
    assert_eq!(fleet.check(200), Err("1 rows are doubled".into()));
    change("DELETE FROM processed WHERE part = 2 AND item = 7");
    assert_eq!(fleet.check(200), Err("199 of 200 items are processed".into()));
}
