//! `runJob`: a job within a job.

use batch_runtime::{BatchStatus, JobParameters, ParameterValue};

use crate::stage::{Stage, step, until};

/// A stage whose job runs `child`, a job with this step.
fn stage(parameters: &str, child: &str) -> Stage {
    let stage = Stage::new("runJob", &[("job", "child"), ("parameters", parameters)]);
    stage.write("child.xml", format!("<job id=\"child\">{child}</job>"));
    stage
}

/// The exit status is that of the other job, which gets the parameters, and names the instance that runs it.
///
/// Spec: NEST-01
#[test]
fn another_job_runs_with_its_parameters() {
    let child = step(
        "wait",
        "waitForFile",
        &[("resource", "${folder}/${name}"), ("poll.interval", "10ms")],
    );
    let stage = stage("name=a.txt n(long)=5", &child);
    stage.write("a.txt", "");
    let ended = stage.run();
    assert_eq!(ended.completed(), "COMPLETED");
    let operator = stage.operator();
    let instance = operator.job_instances("child", 0, 10).unwrap().remove(0);
    let execution = operator.job_executions(instance.id).unwrap().remove(0);
    assert_eq!(execution.status, BatchStatus::Completed);
    let parameters = operator.parameters(execution.id).unwrap();
    let get = |name: &str| parameters.get(name).unwrap();
    assert_eq!(
        ["name", "n", "parent.instance", "parent.step"].map(get),
        ["a.txt", "5", "1", "step"]
    );
}

/// A failure fails the step with its cause; a restart resumes the same instance, with new values; one that is complete does not run again.
///
/// Spec: NEST-01, NEST-02
#[test]
fn a_restart_resumes_the_same_instance() {
    let child = step(
        "copy",
        "copyFiles",
        &[("resource", "${folder}/${name}"), ("target", "${folder}/out/")],
    );
    let stage = stage("name=${file}", &child);
    stage.write("b.txt", "");
    let failed = stage.wait(stage.start([("file", "a.txt")]));
    let message = failed.failed();
    assert!(
        message.contains("job `child` failed (execution 2): "),
        "{message}"
    );
    assert!(message.contains("a.txt"), "{message}");
    let operator = stage.operator();
    let again = operator.restart(failed.id, [("file", "b.txt")]).unwrap();
    assert_eq!(operator.wait(again).unwrap().status, BatchStatus::Completed);
    assert!(stage.path("out/b.txt").exists());
    assert_eq!(operator.job_instance_count("child").unwrap(), 1);
    let instance = operator.job_instances("child", 0, 1).unwrap().remove(0);
    assert_eq!(operator.job_executions(instance.id).unwrap().len(), 2);
}

/// A stop of the job stops the other one; a stop of the other one stops the job. A restart resumes both.
///
/// Spec: NEST-02
#[test]
fn a_stop_reaches_the_other_job() {
    for stops_child in [false, true] {
        let child = step(
            "wait",
            "waitForFile",
            &[("resource", "${folder}/a.txt"), ("poll.interval", "10ms")],
        );
        let stage = stage("", &child);
        let operator = stage.operator();
        let execution = operator.launch("job", [("day", "1")]).unwrap();
        let waiting = || {
            let running = operator.running_executions("child").unwrap_or_default();
            running.into_iter().find(|id| {
                let steps = operator.step_executions(*id).unwrap();
                steps.iter().any(|step| step.status == BatchStatus::Started)
            })
        };
        let child = loop {
            match waiting() {
                Some(child) => break child,
                None => std::thread::yield_now(),
            }
        };
        operator
            .stop(if stops_child { child } else { execution })
            .unwrap();
        for id in [execution, child] {
            assert_eq!(
                operator.wait(id).unwrap().status,
                BatchStatus::Stopped,
                "{stops_child}"
            );
        }
        stage.write("a.txt", "");
        let again = operator.restart(execution, [("day", "1")]).unwrap();
        assert_eq!(operator.wait(again).unwrap().status, BatchStatus::Completed);
        assert_eq!(operator.job_instance_count("child").unwrap(), 1);
    }
}

/// A job that runs itself, or one that does, fails before that starts; so does an unknown job.
///
/// Spec: NEST-03
#[test]
fn a_job_cannot_run_itself() {
    let itself = Stage::new("runJob", &[("job", "job")]);
    let message = itself.run();
    assert!(
        message
            .failed()
            .contains("job `job` would run itself: job runs job"),
        "{}",
        message.failed()
    );
    let back = step("back", "runJob", &[("job", "job")]);
    let ended = stage("", &back).run();
    assert!(
        ended
            .failed()
            .contains("job `job` would run itself: job runs child runs job"),
        "{}",
        ended.failed()
    );
    let unknown = Stage::new("runJob", &[("job", "chld")]).run();
    assert!(unknown.failed().contains("`chld`"), "{}", unknown.failed());
}

/// The step names the execution that it has run, in its persistent user data.
///
/// Spec: NEST-04, OP-37
#[test]
fn the_step_names_the_execution() {
    let stage = stage(
        "",
        &step(
            "copy",
            "copyFiles",
            &[("resource", "${folder}/a"), ("target", "${folder}/b")],
        ),
    );
    let failed = stage.run();
    let steps = stage.operator().step_executions(failed.id).unwrap();
    assert_eq!(
        steps[0].user_data.as_deref(),
        Some(r#"{"nestedJob":"child","execution":2}"#)
    );
}

/// Each step has an instance of its own, also of the same job.
///
/// Spec: NEST-01
#[test]
fn two_steps_run_two_instances() {
    let run = |id: &str, next: &str| {
        let properties = &[("job", "child"), ("parameters", "")];
        step(id, "runJob", properties).replacen(">", next, 1)
    };
    let stage = Stage::of(&format!("{}{}", run("one", " next=\"two\">"), run("two", ">")));
    let child = step(
        "wait",
        "waitForFile",
        &[("resource", "${folder}/a"), ("poll.interval", "10ms")],
    );
    stage.write("child.xml", format!("<job id=\"child\">{child}</job>"));
    stage.write("a", "");
    stage.run().completed();
    assert_eq!(stage.operator().job_instance_count("child").unwrap(), 2);
}

/// An instance that already runs is waited for; a stop ends the wait, and leaves that instance running.
///
/// Spec: NEST-02
#[test]
fn an_instance_that_runs_is_waited_for() {
    for stops in [true, false] {
        let child = step(
            "wait",
            "waitForFile",
            &[("resource", "${folder}/a"), ("poll.interval", "10ms")],
        );
        let stage = stage("", &child);
        let operator = stage.operator();
        // The outer job will have the second instance.
        let parameters = JobParameters::new()
            .with_parameter("parent.instance", ParameterValue::Long(2), true)
            .with("parent.step", "step");
        let running = operator.launch("child", parameters).unwrap();
        let outer = stage.start(());
        until(|| {
            let steps = operator.step_executions(outer).unwrap();
            steps.iter().any(|step| step.status == BatchStatus::Started)
        });
        if stops {
            operator.stop(outer).unwrap();
            assert_eq!(stage.wait(outer).status, BatchStatus::Stopped);
            assert!(operator.is_alive(running).unwrap());
        }
        stage.write("a", "");
        assert_eq!(stage.wait(running).status, BatchStatus::Completed);
        if !stops {
            stage.wait(outer).completed();
        }
        assert_eq!(operator.job_instance_count("child").unwrap(), 1);
    }
}
