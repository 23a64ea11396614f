//! `runJob`: a job within a job.

use batch_runtime::{BatchStatus, JobExecutionId, JobParameters, ParameterValue};

use crate::stage::{Stage, step, until};

/// A stage whose job runs `child`, a job with this step.
fn stage(parameters: &str, child: &str) -> Stage {
    let stage = Stage::new("runJob", &[("job", "child"), ("parameters", parameters)]);
    stage.write("child.xml", format!("<job id=\"child\">{child}</job>"));
    stage
}

/// The exit status comes from the other job, which gets the parameters, and names the instance that runs it.
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
    ended.completed_as("COMPLETED");
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

/// A job that runs itself through names that are known only at run time fails before that starts.
///
/// Spec: NEST-03
#[test]
fn a_job_does_not_run_itself() {
    let stage = Stage::new(
        "runJob",
        &[("job", "${inner}"), ("parameters", "outer=job inner=child")],
    );
    let back = step("back", "runJob", &[("job", "${outer}")]);
    stage.write("child.xml", format!("<job id=\"child\">{back}</job>"));
    let itself = stage.start([("inner", "child")]);
    let message = stage.wait(itself);
    let expected = "job `job` would run itself: job runs child runs job";
    assert!(message.failed().contains(expected), "{}", message.failed());
    assert_eq!(stage.operator().job_instance_count("job").unwrap(), 1);
}

/// Returns why the job does not start. The check of the job says the same.
#[track_caller]
fn rejected(stage: &Stage) -> String {
    let operator = stage.operator();
    let error = operator.start("job", ()).unwrap_err().to_string();
    let launch = operator.launch("job", ()).unwrap_err().to_string();
    let check = operator.check("job", ()).unwrap_err().to_string();
    assert_eq!([&launch, &check], [&error, &error]);
    assert_eq!(operator.job_instance_count("job").unwrap_or_default(), 0);
    error.replace(&stage.name(""), "")
}

/// An unknown job is an error at its place before the outer job starts, also one that a nested job runs.
///
/// Spec: NEST-05
#[test]
fn an_unknown_job_is_rejected() {
    let properties = [("job", "chlid")];
    let two = [step("a", "runJob", &properties), step("b", "runJob", &properties)];
    let stage = Stage::of(&two.concat().replacen(">", " next=\"b\">", 1));
    let child = step("c", "runJob", &[("job", "missing")]);
    stage.write("child.xml", format!("<job id=\"child\">{child}</job>"));
    let error = rejected(&stage);
    let places: Vec<&str> = error.lines().filter(|line| line.contains("job.xml:1:")).collect();
    assert_eq!(places.len(), 2, "{error}");
    assert!(error.contains("error[ART0024]: unknown job `chlid`"), "{error}");
    assert!(error.contains("help: did you mean `child`?"), "{error}");
    let stage = self::stage("", &child);
    let error = rejected(&stage);
    assert!(error.contains("unknown job `missing`"), "{error}");
    assert!(error.contains("child.xml:1:"), "{error}");
    stage.write("missing.xml", "<job id=\"missing\"><step id=\"x\"/></job>");
    stage.write("missing2.xml", "<job id=\"missing\"><step id=\"x\"/></job>");
    let error = rejected(&stage);
    assert!(error.contains("several files define it: "), "{error}");
    let error = rejected(&Stage::new("runJob", &[("job", "")]));
    assert!(error.contains("expected the id of a job"), "{error}");
}

/// A job that runs itself is rejected before it starts, also through several files, and in each of several partitions.
///
/// Spec: NEST-05
#[test]
fn a_cycle_is_rejected() {
    let run = |id: &str, job: &str| step(id, "runJob", &[("job", job)]);
    let error = rejected(&Stage::of(&run("one", "job")));
    let itself = "error[ART0025]: job `job` would run itself: job runs job";
    assert!(error.contains(itself) && error.contains("job.xml:1:"), "{error}");
    let stage = self::stage("", &run("one", "third"));
    stage.write(
        "third.xml",
        format!("<job id=\"third\">{}</job>", run("one", "job")),
    );
    let error = rejected(&stage);
    // The same, whichever of its jobs is started.
    let chain = "job `child` would run itself: child runs third runs job runs child";
    assert!(error.contains(chain) && error.contains("job.xml:1:"), "{error}");
    // The outer job need not be part of the cycle.
    let stage = self::stage("", &run("one", "third"));
    stage.write(
        "third.xml",
        format!("<job id=\"third\">{}</job>", run("one", "child")),
    );
    let error = rejected(&stage);
    let chain = "job `child` would run itself: child runs third runs child";
    assert!(error.contains(chain), "{error}");
    let parts = r#"<partition instances="3"/></step>"#;
    let stage = Stage::of(&run("one", "job").replace("</step>", parts));
    let error = rejected(&stage);
    assert_eq!(error.matches("ART0025").count(), 1, "{error}");
}

/// Two ways to one job are no cycle; names that parameters decide are left to the run.
///
/// Spec: NEST-05
#[test]
fn what_may_run_is_not_rejected() {
    let run = |id: &str, job: &str| step(id, "runJob", &[("job", job)]);
    let both = [
        run("a", "left").replacen(">", " next=\"b\">", 1),
        run("b", "right"),
    ];
    let stage = Stage::of(&both.concat());
    let shared = step("check", "waitForFile", &[("resource", "${folder}/a")]);
    stage.write("shared.xml", format!("<job id=\"shared\">{shared}</job>"));
    for side in ["left", "right"] {
        stage.write(
            &format!("{side}.xml"),
            format!("<job id=\"{side}\">{}</job>", run("one", "shared")),
        );
    }
    stage.write("a", "");
    stage.run().completed();
    assert_eq!(stage.operator().job_instance_count("shared").unwrap(), 2);
    // Without its parameter, the nested job would run the outer one.
    let default = r#"<properties><property name="which" value="job"/></properties>"#;
    let child = format!("{default}{}", run("one", "${which}"));
    let stage = self::stage("which=other", &child);
    stage.write("other.xml", format!("<job id=\"other\">{shared}</job>"));
    stage.write("a", "");
    stage.run().completed();
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

/// Each step has another instance, also of the same job.
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

/// Launches the instance of `child` that the first step of the outer job will run.
fn launch_nested(stage: &Stage) -> JobExecutionId {
    // The outer job will have the second instance.
    let parameters = JobParameters::new()
        .with_parameter("parent.instance", ParameterValue::Long(2), true)
        .with("parent.step", "step");
    stage.operator().launch("child", parameters).unwrap()
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
        let running = launch_nested(&stage);
        let outer = stage.start(());
        until(|| {
            let steps = operator.step_executions(outer).unwrap();
            // One that has ended without waiting fails below.
            !steps.is_empty()
        });
        if stops {
            assert_eq!(stage.stop(outer).status, BatchStatus::Stopped);
            assert!(operator.is_alive(running).unwrap());
        }
        stage.write("a", "");
        assert_eq!(stage.wait(running).status, BatchStatus::Completed);
        if !stops {
            stage.wait(outer).completed_as("COMPLETED");
        }
        assert_eq!(operator.job_instance_count("child").unwrap(), 1);
    }
}

/// Each line of a command is a heartbeat, and so is each attempt to launch an instance that runs: neither step is silent.
#[cfg(unix)]
#[test]
fn output_and_attempts_are_heartbeats() {
    let heartbeat = r#"<properties><property name="batch.step.heartbeat" value="4"/></properties>"#;
    let busy = "end=$(($(date +%s) + 9)); while [ $(date +%s) -lt $end ]; do echo working; done";
    let command = [("command", busy), ("shell", "true"), ("log.output", "false")];
    let child = step("print", "systemCommand", &command);
    let outer = step("step", "runJob", &[("job", "child")]);
    let stage = Stage::of(&format!("{heartbeat}{outer}"));
    stage.write("child.xml", format!("<job id=\"child\">{heartbeat}{child}</job>"));
    let running = launch_nested(&stage);
    let outer = stage.start(());
    stage.wait(running).completed_as("COMPLETED");
    stage.wait(outer).completed_as("COMPLETED");
    assert_eq!(stage.operator().job_instance_count("child").unwrap(), 1);
}
