//! Contenders for one repository at the same moment, in threads and in processes.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::thread;

use batch_runtime::prelude::*;

use crate::deadline;
use batch_runtime::{
    BatchRuntime, JobExecutionId, JobOperator, JobOperatorError, JobParameters, operator::StartError,
};

/// The contended job.
pub const JOB: &str = r#"<job id="job"><step id="one"><batchlet ref="Contended"/></step></job>"#;

/// Fails if its property is set.
#[derive(BatchArtifact)]
struct Contended {
    #[batch_property(name = "fail")]
    fail: Option<String>,
}

#[batchlet("Contended")]
impl Contended {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        match self.fail.as_deref() {
            Some("yes") => Err(BatchError::msg("fails as requested")),
            _ => Ok("DONE".into()),
        }
    }
    #[cancel]
    fn cancel(&self) {}
}

/// The goal of a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// A new instance for each.
    Start,
    /// The same instance for all.
    Launch,
    /// A restart of the same execution.
    Restart(i64),
}

/// The outcome for a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It has run to its end.
    Ran,
    /// Another contender runs it.
    Running,
    /// Another contender has run it.
    Complete,
}

/// Runs this number of threads, with a runtime for every eight of them.
pub fn contend(url: &str, jobs: &Path, wish: Wish, threads: usize, begin: impl FnOnce()) -> Vec<Outcome> {
    deadline::waits_for(move || format!("{threads} threads, of which each wants {wish:?}"));
    let runtimes: Vec<BatchRuntime> = (0..threads.div_ceil(8)).map(|_| runtime(url, jobs)).collect();
    let together = Barrier::new(threads + 1);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|number| {
                let (operator, together) = (runtimes[number / 8].job_operator(), &together);
                scope.spawn(move || {
                    together.wait();
                    fulfil(&operator, wish)
                })
            })
            .collect();
        begin();
        together.wait();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    })
}

/// A runtime on that repository.
pub fn runtime(url: &str, jobs: &Path) -> BatchRuntime {
    BatchRuntime::builder()
        .repository(url)
        .job_path(jobs.display().to_string())
        .build()
        .unwrap_or_else(|error| panic!("{error}"))
}

fn fulfil(operator: &JobOperator, wish: Wish) -> Outcome {
    let started = match wish {
        Wish::Start => operator.start("job", JobParameters::new()),
        Wish::Launch => operator.launch("job", [("day", "1")]),
        Wish::Restart(execution) => operator.restart(JobExecutionId(execution), [("fail", "no")]),
    };
    match started {
        Ok(execution) => {
            let ended = operator.wait(execution).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(ended.exit_status, "COMPLETED", "{}", ended.exit_message);
            Outcome::Ran
        }
        Err(
            JobOperatorError::JobExecutionAlreadyRunning { .. }
            | JobOperatorError::JobRestart {
                cause: StartError::Running { .. },
                ..
            },
        ) => Outcome::Running,
        Err(JobOperatorError::JobInstanceAlreadyComplete { .. }) => Outcome::Complete,
        Err(error) => panic!("{error:?}"),
    }
}

/// Runs the same in processes of eight threads each; `program` calls [`child`].
pub fn contend_in_processes(
    program: &str,
    url: &str,
    jobs: &Path,
    wish: Wish,
    processes: usize,
) -> Vec<Outcome> {
    deadline::waits_for(move || format!("{processes} processes, of which each wants {wish:?}"));
    let mut children: Vec<(Child, BufReader<_>)> = (0..processes)
        .map(|_| {
            let mut command = Command::new(program);
            command.arg(url).arg(jobs);
            match wish {
                Wish::Start => command.arg("start"),
                Wish::Launch => command.arg("launch"),
                Wish::Restart(execution) => command.arg(execution.to_string()),
            };
            let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = piped.spawn().expect("the contender starts");
            let output = BufReader::new(child.stdout.take().expect("piped"));
            (child, output)
        })
        .collect();
    for (_, output) in &mut children {
        let mut line = String::new();
        output.read_line(&mut line).expect("readable");
        assert_eq!(line, "ready\n");
    }
    for (child, _) in &mut children {
        let go = child.stdin.as_mut().expect("piped").write_all(b"go\n");
        go.expect("it waits");
    }
    let mut outcomes = Vec::new();
    for (mut child, mut output) in children {
        let mut text = String::new();
        output.read_to_string(&mut text).expect("readable");
        assert!(child.wait().expect("it ends").success(), "{text}");
        outcomes.extend(text.lines().map(|line| match line {
            "Ran" => Outcome::Ran,
            "Running" => Outcome::Running,
            "Complete" => Outcome::Complete,
            other => panic!("{other}"),
        }));
    }
    outcomes
}

/// Runs the contenders of one process.
pub fn child(arguments: &[String]) {
    let [url, jobs, wish] = arguments else {
        panic!("expected a URL, a folder and a wish, not {arguments:?}");
    };
    let wish = match wish.as_str() {
        "start" => Wish::Start,
        "launch" => Wish::Launch,
        execution => Wish::Restart(execution.parse().expect("an execution")),
    };
    let outcomes = contend(url, Path::new(jobs), wish, 8, || {
        println!("ready");
        std::io::stdin()
            .read_line(&mut String::new())
            .expect("the start signal");
    });
    for outcome in outcomes {
        println!("{outcome:?}");
    }
}
