//! A job that runs another one twice, in processes that are killed, on each database.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use batch_runtime::execution::JobExecution;
use batch_runtime::{BatchRuntime, BatchStatus, JobOperator};
use batch_tests::database::{Database, Place};
use batch_tests::operated;
use batch_tests::random::Random;
use batch_tests::slow;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_operated");
/// The numbers that each nested job writes.
const NUMBERS: i64 = 500;

/// The message that the nested job has started.
const STARTED: &str = "runs a nested job";

const OUTER: &str = r#"<job id="outer">
  <step id="one" next="two"><batchlet ref="runJob"><properties><property name="job" value="child"/></properties></batchlet></step>
  <step id="two"><batchlet ref="runJob"><properties><property name="job" value="child"/></properties></batchlet></step>
</job>"#;
const CHILD: &str = r#"<job id="child">
  <step id="load" next="close"><chunk reader="Gated" processor="Same" writer="RowsUntil" commit-interval="1">
    <properties><property name="count" value="500"/><property name="then" value="wait"/></properties>
  </chunk></step>
  <step id="close"><batchlet ref="Result"/></step>
</job>"#;

/// A folder with both jobs, and their repository.
struct Scene {
    folder: TempDir,
    place: Place,
}

impl Scene {
    fn new(database: Database) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(database, folder.path());
        let settings = format!("repository = \"{}\"\nlease-time = 2\n", place.url());
        // With the file `go`, the writer does not wait.
        for (name, content) in [
            ("outer.xml", OUTER),
            ("child.xml", CHILD),
            ("batch.toml", &settings),
            ("go", ""),
        ] {
            fs::write(folder.path().join(name), content).unwrap();
        }
        let scene = Self { folder, place };
        scene.operator();
        let mut outside = scene.place.connect();
        outside
            .execute("CREATE TABLE written (n INTEGER NOT NULL)")
            .unwrap();
        outside.reject_wrong_rows();
        outside.reject_second_live_execution();
        scene
    }

    fn operator(&self) -> JobOperator {
        let runtime = BatchRuntime::builder()
            .repository(self.place.url())
            .job_path(self.folder.path().display().to_string());
        runtime.build().unwrap().job_operator()
    }

    /// Launches a run, and kills the process that long after a line with this text, if there is one.
    fn launch(&self, run: i64, kill: Option<(&str, Duration)>) -> Launched {
        let parameter = format!("run={run}");
        let mut child = operated::command(
            PROGRAM,
            self.folder.path(),
            &["--log", "info", "launch", "outer", &parameter],
        )
        // A process that is killed at random may die several times without progress.
        .env("BATCH_CRASH_LIMIT", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
        let (send, said) = channel();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let errors = thread::spawn(move || {
            let lines: Vec<String> = errors
                .lines()
                .map(Result::unwrap)
                .inspect(|line| drop(send.send(line.clone())))
                .collect();
            lines.join("\n")
        });
        if let Some((line, after)) = kill {
            until_line(&said, line);
            await_end(&said, after);
            child.kill().unwrap();
        }
        let (status, errors) = (child.wait().unwrap(), errors.join().unwrap());
        match status.code() {
            Some(0) => Launched::Completed,
            // The kill came after the last commit and before the end of the process.
            Some(10) if errors.contains("ended COMPLETED") => Launched::Completed,
            // On a server the lease of the killed process has to expire first.
            Some(11) if errors.contains("is running") => Launched::Rejected,
            None => Launched::Killed,
            Some(code) => panic!("exit code {code}: {errors}"),
        }
    }

    /// Checks rows, instances and executions of this number of complete runs. Returns the number of nested executions that were killed.
    fn verify(&self, runs: i64) -> usize {
        let mut outside = self.place.connect();
        let wrong = format!(
            "SELECT COUNT(*) FROM (SELECT n FROM written GROUP BY n HAVING COUNT(*) <> {}) wrong",
            2 * runs
        );
        assert_eq!(outside.number("SELECT COUNT(*) FROM written"), 2 * runs * NUMBERS);
        assert_eq!(outside.number("SELECT COUNT(DISTINCT n) FROM written"), NUMBERS);
        assert_eq!(outside.number(&wrong), 0);
        let open = "SELECT COUNT(*) FROM BATCH_JOB_EXECUTION WHERE END_TIME IS NULL";
        assert_eq!(outside.number(open), 0);
        let operator = self.operator();
        let mut nested = nested_executions(&operator);
        let outer = operator.job_instances("outer", 0, 1_000).unwrap();
        assert_eq!(outer.len(), usize::try_from(runs).unwrap());
        let mut killed = 0;
        for instance in outer {
            let executions = operator.job_executions(instance.id).unwrap();
            for step in ["one", "two"] {
                let nested = nested.remove(&(instance.id.0, step.to_owned()));
                let nested = nested.unwrap_or_else(|| panic!("{step} of instance {}", instance.id));
                killed += complete(&operator, &nested);
                is_named(&operator, &executions, step, &nested);
            }
        }
        assert!(nested.is_empty(), "{nested:?}");
        killed
    }
}

/// The end of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Launched {
    Completed,
    Killed,
    Rejected,
}

fn until_line(said: &Receiver<String>, text: &str) {
    // An error: it has ended.
    while said.recv().is_ok_and(|line| !line.contains(text)) {}
}

/// Waits for the end of the process, no longer than this.
fn await_end(said: &Receiver<String>, longest: Duration) {
    let until = Instant::now() + longest;
    while said
        .recv_timeout(until.saturating_duration_since(Instant::now()))
        .is_ok()
    {}
}

/// Returns the executions of each instance of the nested job, by the instance and the step that run it, as each of them names both.
fn nested_executions(operator: &JobOperator) -> BTreeMap<(i64, String), Vec<JobExecution>> {
    let mut all = BTreeMap::new();
    for instance in operator.job_instances("child", 0, 1_000).unwrap() {
        let executions = operator.job_executions(instance.id).unwrap();
        let mut parents: Vec<_> = executions
            .iter()
            .map(|execution| {
                let parameters = operator.parameters(execution.id).unwrap();
                let get = |name: &str| parameters.get(name).unwrap().to_owned();
                (get("parent.instance").parse().unwrap(), get("parent.step"))
            })
            .collect();
        parents.dedup();
        assert_eq!(parents.len(), 1, "{parents:?}");
        let former = all.insert(parents.remove(0), executions);
        assert!(former.is_none(), "two instances of one step: {former:?}");
    }
    all
}

/// Checks the executions of a nested instance: one has completed, and their counts add up. Returns the number of those that were killed.
fn complete(operator: &JobOperator, executions: &[JobExecution]) -> usize {
    let is_complete = |execution: &&JobExecution| execution.status == BatchStatus::Completed;
    assert_eq!(executions.iter().filter(is_complete).count(), 1);
    let steps = executions
        .iter()
        .flat_map(|execution| operator.step_executions(execution.id).unwrap());
    let written: i64 = steps.map(|step| step.counters.writes).sum();
    assert_eq!(written, NUMBERS);
    let killed = |execution: &&JobExecution| execution.exit_status == "CRASHED";
    executions.iter().filter(killed).count()
}

/// Checks that each execution of the step names an execution of its nested instance, and the complete one the complete one.
fn is_named(operator: &JobOperator, executions: &[JobExecution], step: &str, nested: &[JobExecution]) {
    let steps = executions
        .iter()
        .flat_map(|execution| operator.step_executions(execution.id).unwrap());
    for execution in steps.filter(|execution| execution.step_name == step) {
        let named = |nested: &&JobExecution| {
            let name = format!(r#"{{"nestedJob":"child","execution":{}}}"#, nested.id);
            execution.user_data.as_ref() == Some(&name)
        };
        let found = nested.iter().find(named);
        match execution.status {
            BatchStatus::Completed => {
                assert_eq!(found.map(|nested| nested.status), Some(BatchStatus::Completed))
            }
            // Killed before it knew the execution.
            _ => assert!(found.is_some() || execution.user_data.is_none(), "{execution:?}"),
        }
    }
}

/// The process that runs a job within a job is killed at random, and launched again, until the
/// outer job is complete: each number is written once by each nested instance, one for each step.
///
/// Spec: NEST-01, NEST-02, NEST-04, OP-35, OP-36
#[test]
fn kills_of_nested_jobs_lose_and_double_nothing() {
    for database in Database::ALL {
        let mut random = Random::new("the kills of nested jobs");
        let scene = Scene::new(database);
        let begin = Instant::now();
        assert_eq!(scene.launch(0, None), Launched::Completed);
        let whole = u64::try_from(begin.elapsed().as_micros()).unwrap();
        let kills = slow::times(5, 40);
        let (mut killed, mut runs) = (0, 1);
        // On a server a step waits until the lease of the killed nested job has expired, so it is killed then, too.
        let mut next = || match random.below(2) {
            0 => ("step ", Duration::from_micros(random.below(whole))),
            _ => (STARTED, Duration::from_micros(random.below(whole / 3))),
        };
        let mut kill = (STARTED, Duration::ZERO);
        while killed < kills {
            match scene.launch(runs, Some(kill)) {
                Launched::Killed => killed += 1,
                Launched::Rejected => continue,
                Launched::Completed => runs += 1,
            }
            kill = next();
        }
        while scene.launch(runs, None) != Launched::Completed {}
        runs += 1;
        let nested = scene.verify(runs);
        println!("{database:?}: {kills} kills in {runs} runs, of which {nested} struck a nested job");
        assert!(nested > 0, "{database:?}: no nested job was killed");
    }
}
