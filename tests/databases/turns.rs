//! Jobs whose executions run one at a time, in processes that are killed, on each database.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::process::Output;

use batch_tests::database::{Database, Place};
use batch_tests::fleet::until;
use batch_tests::operated::{self, Operated};
use batch_tests::process::text;
use batch_tests::random::Random;
use batch_tests::slow;
use serde_json::Value;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_operated");

/// A folder with a job, and its repository.
struct Scene {
    folder: TempDir,
    place: Place,
}

impl Scene {
    fn new(database: Database, concurrency: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let job = format!(
            r#"<job id="turns"><properties><property name="batch.job.concurrency" value="{concurrency}"/></properties>
            <step id="one"><batchlet ref="TurnTaker"/></step></job>"#
        );
        fs::write(folder.path().join("turns.xml"), job).unwrap();
        let place = Place::new(database, folder.path());
        let settings = format!("repository = \"{}\"\nlease-time = 2\n", place.url());
        fs::write(folder.path().join("batch.toml"), settings).unwrap();
        Self { folder, place }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        operated::command(PROGRAM, self.path(), arguments)
            .output()
            .unwrap()
    }

    /// Starts a process that launches the instance with this number.
    fn launch(&self, number: usize) -> Operated {
        let parameter = format!("number={number}");
        Operated::run(PROGRAM, self.path(), &["launch", "turns", &parameter])
    }

    /// Launches an instance whose process is killed: on a server the lease has to expire first.
    fn queue_again(&self, number: usize) -> Operated {
        until("the execution waits again", || {
            let mut process = self.launch(number);
            process.says("waits for execution").then_some(process)
        })
    }

    /// Returns the numbers of the executions that have had the turn.
    fn turns(&self) -> Vec<String> {
        let turns = fs::read_to_string(self.path().join("turns")).unwrap_or_default();
        turns.lines().map(str::to_owned).collect()
    }

    /// Waits until this number of executions have had the turn, and checks that the last is the one with `number`.
    fn until_turn(&self, count: usize, number: usize) {
        let turns = until("the next execution has the turn", || {
            Some(self.turns()).filter(|turns| turns.len() >= count)
        });
        assert_eq!(turns.len(), count, "{turns:?}");
        assert_eq!(turns[count - 1], number.to_string(), "{turns:?}");
    }

    /// Lets the execution with this number end.
    fn release(&self, number: usize) {
        fs::write(self.path().join(number.to_string()), "").unwrap();
    }

    fn completed(&self) -> i64 {
        let completed = "SELECT COUNT(*) FROM BATCH_JOB_EXECUTION WHERE STATUS = 'COMPLETED'";
        self.place.connect().number(completed)
    }
}

/// Processes launch an instance each while some of them are killed, with the turn or waiting for it, and launched again: one runs at a
/// time, in the order of arrival, and none is forgotten.
///
/// Spec: TURN-02
#[test]
fn processes_take_turns() {
    let processes = slow::times(6, 64);
    for database in Database::ALL {
        let mut random = Random::new("the kills of executions that run one at a time");
        let scene = Scene::new(database, "queue");
        let mut running = vec![scene.launch(0)];
        scene.until_turn(1, 0);
        for number in 1..processes {
            let mut process = scene.launch(number);
            process.until("waits for execution");
            running.push(process);
        }
        let mut queue: VecDeque<usize> = (0..processes).collect();
        let (mut turns, mut kills) = (1, processes / 2);
        while let Some(number) = queue.pop_front() {
            scene.until_turn(turns, number);
            turns += 1;
            if kills > 0 && !queue.is_empty() && random.below(3) == 0 {
                kills -= 1;
                let place = usize::try_from(random.below(queue.len() as u64)).unwrap();
                let waiting = queue.remove(place).unwrap();
                running[waiting].signal("KILL");
                running[waiting] = scene.queue_again(waiting);
                queue.push_back(waiting);
            }
            if kills > 0 && !queue.is_empty() && random.below(2) == 0 {
                kills -= 1;
                running[number].signal("KILL");
                running[number] = scene.queue_again(number);
                queue.push_back(number);
            } else {
                scene.release(number);
                assert!(running[number].ends().success(), "{database:?}");
            }
        }
        assert_eq!(
            scene.completed(),
            i64::try_from(processes).unwrap(),
            "{database:?}"
        );
        assert!(!scene.turns().contains(&"two at once".to_owned()), "{database:?}");
    }
}

/// An execution whose process is dead is closed before the next one has its turn: nothing else closes it, if it is not launched again.
///
/// Spec: TURN-02
#[test]
fn a_dead_execution_is_closed_first() {
    for database in Database::ALL {
        let scene = Scene::new(database, "queue");
        let mut first = scene.launch(1);
        scene.until_turn(1, 1);
        let mut second = scene.launch(2);
        second.until("waits for execution 1");
        first.signal("KILL");
        first.ends();
        scene.until_turn(2, 2);
        let closed = "SELECT COUNT(*) FROM BATCH_JOB_EXECUTION
                      WHERE STATUS = 'FAILED' AND EXIT_CODE = 'CRASHED' AND END_TIME IS NOT NULL";
        assert_eq!(scene.place.connect().number(closed), 1, "{database:?}");
        scene.release(2);
        assert!(second.ends().success(), "{database:?}");
    }
}

/// With `one`, of processes that launch an instance each at the same time, one runs and the others name its execution. When it is killed,
/// one of the next runs.
///
/// Spec: TURN-01, TURN-02
#[test]
fn one_process_runs() {
    for database in Database::ALL {
        let scene = Scene::new(database, "one");
        let count = slow::times(4, 64);
        let mut processes: Vec<_> = (0..count).map(|number| scene.launch(number)).collect();
        let number = until("an execution has the turn", || scene.turns().pop());
        let number: usize = number.parse().unwrap();
        let mut holder = processes.remove(number);
        for mut rejected in processes {
            let line = rejected.until("one at a time");
            assert!(line.contains("has not ended; stop it first, or wait"), "{line}");
            assert_eq!(rejected.ends().code(), Some(75), "{database:?}");
        }
        assert_eq!(scene.turns().len(), 1, "{database:?}");
        holder.signal("KILL");
        holder.ends();
        let next = count;
        scene.release(next);
        // On a server the lease has to expire first.
        until("another process runs", || {
            scene.launch(next).ends().success().then_some(())
        });
        assert_eq!(scene.completed(), 1, "{database:?}");
        let killed = "SELECT COUNT(*) FROM BATCH_JOB_EXECUTION WHERE EXIT_CODE = 'CRASHED'";
        assert_eq!(scene.place.connect().number(killed), 1, "{database:?}");
        assert!(!scene.turns().contains(&"two at once".to_owned()), "{database:?}");
    }
}

/// With `one`, a remote launch stays in its queue until the execution that runs has ended: it may be one that a worker has to resume.
///
/// Spec: TURN-01, DISP-15
#[test]
fn a_remote_launch_waits_in_its_queue() {
    for database in Database::ALL {
        let scene = Scene::new(database, "one");
        let mut first = scene.launch(1);
        scene.until_turn(1, 1);
        let remote = ["launch", "--remote", "turns", "number=2"];
        assert!(scene.run(&remote).status.success(), "{database:?}");
        let mut worker = Operated::run(PROGRAM, scene.path(), &["worker"]);
        let listed = |what: &str| {
            until(what, || {
                let listed = text(&scene.run(&["launches"]).stdout);
                assert!(!listed.contains("rejected"), "{database:?} {listed}");
                listed.contains(what).then_some(())
            });
        };
        listed("one at a time");
        scene.release(1);
        assert!(first.ends().success(), "{database:?}");
        scene.release(2);
        listed("COMPLETED");
        worker.signal("TERM");
        assert!(worker.ends().success(), "{database:?}");
        assert_eq!(scene.turns(), ["1", "2"], "{database:?}");
    }
}

/// A process that is suspended for longer than its lease loses the turn, and cannot record its end when it resumes. (On SQLite its lock
/// shows that it lives.)
///
/// Spec: TURN-02
#[test]
fn a_suspended_process_loses_its_turn() {
    for database in Database::ALL {
        if database == Database::Sqlite {
            continue;
        }
        let scene = Scene::new(database, "queue");
        let mut suspended = scene.launch(1);
        scene.until_turn(1, 1);
        let mut next = scene.launch(2);
        suspended.signal("STOP");
        until("the next one has the turn", || {
            (scene.turns().len() == 2).then_some(())
        });
        scene.release(1);
        suspended.signal("CONT");
        suspended.until("another runtime has taken this execution over");
        assert!(!suspended.ends().success(), "{database:?}");
        scene.release(2);
        assert!(next.ends().success(), "{database:?}");
        assert_eq!(scene.completed(), 1, "{database:?}");
    }
}

/// `list` and `show` print what an execution waits for, and `stop` ends the wait.
///
/// Spec: TURN-03
#[test]
fn the_wait_is_visible_and_can_be_stopped() {
    for database in Database::ALL {
        let scene = Scene::new(database, "queue");
        let mut first = scene.launch(1);
        scene.until_turn(1, 1);
        let mut second = scene.launch(2);
        let line = second.until("waits for execution");
        assert_eq!(
            line.trim_end(),
            "execution 2 waits for execution 1: one execution of the job runs at a time"
        );
        let listed = text(&scene.run(&["list", "turns"]).stdout);
        assert!(listed.contains("STARTING (waits for 1)"), "{listed}");
        let shown = text(&scene.run(&["show", "2"]).stdout);
        assert!(shown.contains("STARTING, waits for execution 1: "), "{shown}");
        let json = |arguments: &[&str]| -> Value {
            let printed = scene.run(&[arguments, &["--json"]].concat());
            serde_json::from_slice(&printed.stdout).unwrap()
        };
        let waits_for = |at: &str| {
            let printed = ["list turns", "executions", "list", "show 2"].map(|command| {
                let arguments: Vec<&str> = command.split(' ').collect();
                json(&arguments)
            });
            let [list, executions, jobs, shown] = &printed;
            let found = [&list[0], &executions[0], &jobs[0]["lastExecution"], shown];
            assert!(found.iter().all(|one| one["execution"] == 2), "{at}: {printed:?}");
            assert!(
                list[1].get("waitsFor").is_some_and(Value::is_null),
                "{at}: {list}"
            );
            found.map(|one| one["waitsFor"].clone())
        };
        assert_eq!(waits_for("it waits"), [1, 1, 1, 1].map(Value::from));
        assert!(scene.run(&["stop", "2"]).status.success());
        assert_eq!(second.ends().code(), Some(3), "{database:?}");
        let listed = text(&scene.run(&["list", "turns"]).stdout);
        assert!(!listed.contains("waits"), "{listed}");
        assert!(waits_for("it is stopped").iter().all(Value::is_null));
        scene.release(1);
        assert!(first.ends().success(), "{database:?}");
    }
}
