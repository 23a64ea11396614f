//! `JobOperatorTests`.

use batch_runtime::BatchStatus::{Abandoned, Completed, Failed, Stopped};

use crate::artifacts::long_running::CREATE_RUNNING;
use crate::case::{Case, case};
use crate::run::{Run, expect, rejected, text};

/// The job of most tests, and its parameters.
const CHUNK: &str = "chunksize5commitinterval5";
const PARAMETERS: &str = "execution.number=1, readrecord.fail=12, app.arraysize=30, \
    app.writepoints=0,5,10,15,20,25,30, app.next.writepoints=10,15,20,25,30, app.commitinterval=5";
/// The same without the write points of a restart.
const NO_RESTART: &str = "execution.number=1, readrecord.fail=12, app.arraysize=30, \
    app.writepoints=0,5,10,15,20,25,30, app.commitinterval=5";
/// A job whose listener waits after the step.
const LISTENED: &str = "job_batchlet_step_listener";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = requests();
    cases.extend(restarts());
    cases.extend(instances());
    cases.extend(running());
    cases
}

fn requests() -> Vec<Case> {
    vec![
        case("JobOperatorTests.testJobOperatorStart", "job_batchlet_1step")
            .start("")
            .is(Completed),
        case(
            "JobOperatorTests.testJobOperatorAbandonJobDuringARestart",
            "abandonActiveRestart",
        )
        .slow()
        .start("execution.number=1, sleep.time=5000")
        .ends(Failed, "FAILED")
        .begin_restart("execution.number=2, sleep.time=5000")
        .abandon_fails("JobExecutionIsRunning"),
        case(
            "JobOperatorTests.testJobOperatorRestartJobAlreadyAbandoned",
            "abandonActiveRestart",
        )
        .start("execution.number=1, sleep.time=1")
        .ends(Failed, "FAILED")
        .abandon()
        .restart_fails(1, "execution.number=2", &["JobRestart", "JobInstanceAbandoned"]),
        case(
            "JobOperatorTests.testInvokeJobWithUserStop",
            "job_batchlet_longrunning",
        )
        .sql(&[CREATE_RUNNING])
        .begin("run.indefinitely=true")
        .stop_when_running(1)
        .is(Stopped),
        case(
            "JobOperatorTests.testJobOperatorGetStepExecutions",
            "job_batchlet_1step",
        )
        .start("")
        .steps(1)
        .every_step(Completed)
        .is(Completed),
        case(
            "JobOperatorTests.testJobOpGetJobNames",
            "job_unique_get_job_names",
        )
        .begin("")
        .check("the job is listed", |run| {
            let names = run.operator.job_names().map_err(text)?;
            expect("listed", names.contains("job_unique_get_job_names"), true)
        }),
        case("JobOperatorTests.testAbandoned", "job_batchlet_4steps")
            .start("")
            .is(Completed)
            .abandon()
            .is(Abandoned),
    ]
}

fn restarts() -> Vec<Case> {
    let restarted = |method| {
        case(method, CHUNK)
            .start(PARAMETERS)
            .ends(Failed, "FAILED")
            .restart(PARAMETERS)
            .ends(Completed, "COMPLETED")
            .same_instance()
    };
    vec![
        restarted("JobOperatorTests.testJobOperatorRestart"),
        restarted("JobOperatorTests.testJobOperatorRestartAlreadyCompleteException").restart_fails(
            2,
            PARAMETERS,
            &["JobInstanceAlreadyComplete"],
        ),
        case("JobOperatorTests.testJobOperatorGetParameters", CHUNK)
            .start(PARAMETERS)
            .ends(Failed, "FAILED")
            .restart_with("extra.parm.name1=extra.parm.value1, extra.parm.name2=extra.parm.value2")
            .ends(Completed, "COMPLETED")
            .same_instance()
            .check("each execution has its parameters", |run| {
                let mut expected = crate::run::parse(PARAMETERS);
                expect("of execution 1", parameters(run, 0)?, expected.clone())?;
                for number in 1..=2 {
                    let (name, value) = ("extra.parm.name", "extra.parm.value");
                    expected.insert(format!("{name}{number}"), format!("{value}{number}"));
                }
                expect("of execution 2", parameters(run, 1)?, expected)
            }),
        restarted("JobOperatorTests.testJobOperatorGetJobExecution").check("the execution is found", |run| {
            expect("id", run.execution()?.id, run.last())
        }),
        restarted("JobOperatorTests.testJobOperatorGetJobExecutions").check(
            "the instance has two executions",
            |run| {
                let instance = run.execution()?.instance_id;
                let mut executions = run.operator.job_executions(instance).map_err(text)?;
                executions.sort_by_key(|execution| execution.id);
                let ids: Vec<_> = executions.iter().map(|execution| execution.id).collect();
                expect("executions", &ids, &run.executions)?;
                let instance = run.operator.job_instance(instance).map_err(text)?;
                expect(
                    "job",
                    instance.map(|instance| instance.job_name),
                    Some(CHUNK.into()),
                )?;
                let of_job = executions.iter().all(|execution| execution.job_name == CHUNK);
                expect("the executions have the name of the job", of_job, true)
            },
        ),
    ]
}

/// Returns the parameters of the execution of this number.
fn parameters(run: &Run, execution: usize) -> Result<crate::run::Parameters, String> {
    let id = run.executions[execution];
    let found = run.operator.parameters(id).map_err(text)?;
    let pairs = found
        .iter()
        .map(|(name, parameter)| (name.to_owned(), parameter.value.to_text()));
    Ok(pairs.collect())
}

fn instances() -> Vec<Case> {
    let begin_ten = |case: Case| (0..10).fold(case, |case, _| case.begin(NO_RESTART));
    let completed = |case: Case| {
        case.start("execution.number=1, readrecord.fail=31, app.arraysize=30, app.writepoints=0,5,10,15,20,25,30, app.commitinterval=5")
            .ends(Completed, "COMPLETED")
    };
    vec![
        case("JobOperatorTests.testJobOpgetJobInstanceCount", CHUNK)
            .check("there is no instance", |run| count(run, 0))
            .start(NO_RESTART)
            .ends(Failed, "FAILED")
            .check("there is an instance", |run| count(run, 1)),
        case("JobOperatorTests.testJobOpgetJobInstanceCountException", CHUNK)
            .start(NO_RESTART)
            .ends(Failed, "FAILED")
            .check("an unknown job is rejected", |run| {
                rejected(run.operator.job_instance_count("NoSuchJob"), &["NoSuchJob"])
            }),
        begin_ten(
            case("JobOperatorTests.testJobOpgetJobInstances", CHUNK)
                .check("there is no instance", |run| count(run, 0)),
        )
        .check("there are ten instances", |run| {
            count(run, 10)?;
            let instances = run.operator.job_instances(CHUNK, 0, 10).map_err(text)?;
            expect("instances", instances.len(), 10)
        }),
        case("JobOperatorTests.testJobOpgetJobInstancesException", CHUNK)
            .start(NO_RESTART)
            .ends(Failed, "FAILED")
            .check("an unknown job is rejected", |run| {
                rejected(run.operator.job_instances("NoSuchJob", 0, 12), &["NoSuchJob"])
            }),
        completed(completed(completed(completed(case(
            "JobOperatorTests.testJobOperatorGetJobInstances",
            CHUNK,
        )))))
        .check("the lists are one apart, and newest first", |run| {
            let list = |start| run.operator.job_instances(CHUNK, start, 3).map_err(text);
            let (from_0, from_1) = (list(0)?, list(1)?);
            expect("sizes", (from_0.len(), from_1.len()), (3, 3))?;
            expect("the second and third", &from_0[1..], &from_1[..2])?;
            expect("the first differ", from_0[0] != from_1[0], true)?;
            expect("the last differ", from_0[2] != from_1[2], true)?;
            expect("newest first", from_0[0].id, run.execution()?.instance_id)
        }),
    ]
}

/// Checks the number of instances.
fn count(run: &Run, expected: i64) -> Result<(), String> {
    let found = run.operator.job_instance_count(CHUNK).map_err(text)?;
    expect("instances", found, expected)
}

fn running() -> Vec<Case> {
    let two = |method| {
        case(method, LISTENED)
            .slow()
            .begin("app.timeinterval=10000")
            .begin("app.timeinterval=10000")
    };
    vec![
        two("JobOperatorTests.testJobOperatorGetRunningJobExecutions").check("both are running", |run| {
            let running = run.operator.running_executions(LISTENED).map_err(text)?;
            expect("running", running.len(), 2)
        }),
        two("JobOperatorTests.testJobOperatorGetRunningJobInstancesException").check(
            "an unknown job is rejected",
            |run| {
                let found = run.operator.running_executions("JOBNAMEDOESNOTEXIST");
                rejected(found, &["NoSuchJob"])
            },
        ),
    ]
}
