//! Restarts: `BatchletRestartStateMachineTests`, `StartLimitTests`, `JobAttributeRestartTests`,
//! `RestartNotMostRecentTests` and `StopOrFailOnExitStatusWithRestartTests`.

use batch_runtime::BatchStatus::{Completed, Failed, Stopped};

use crate::artifacts::long_running::CREATE_RUNNING;
use crate::case::{Case, case};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = state_machines();
    cases.extend([start_limit_1(), start_limit_2(), start_limit_3()]);
    cases.extend(others());
    cases
}

fn state_machines() -> Vec<Case> {
    vec![
        case(
            "BatchletRestartStateMachineTests.testTransitionElementOnAttrValuesWithRestartJobParamOverrides",
            "overrideOnAttributeValuesUponRestartBatchlet",
        )
        .start("execution.number=1, step1.stop=ES.STEP1, step1.next=ES.XXX, step2.fail=ES.STEP2, step2.next=ES.XXX")
        .ends(Stopped, "STOPPED")
        .restart("execution.number=2, step1.stop=ES.STOP, step1.next=ES.STEP1, step2.fail=ES.STEP2, step2.next=ES.STEP2")
        .ends(Failed, "EXPECTED_FAILURE")
        .restart("execution.number=3, step1.stop=ES.STOP, step1.next=ES.STEP1, step2.fail=ES.FAIL, step2.next=ES.STEP2")
        .ends(Completed, "COMPLETED"),
        case(
            "BatchletRestartStateMachineTests.testAllowStartIfCompleteRestartExecution",
            "batchletRestartStateMachine",
        )
        .start("execution.number=1")
        .ends(Stopped, "EXECUTION.1")
        .restart("execution.number=2")
        .ends(Stopped, "EXECUTION.2")
        .restart("execution.number=3")
        .ends(Stopped, "EXECUTION.3")
        .restart("execution.number=4")
        .ends(Stopped, "EXECUTION.4")
        .restart("execution.number=5")
        .ends(Stopped, "EXECUTION.5")
        .restart("execution.number=6")
        .ends(Completed, "EXECUTION.6"),
    ]
}

const VARIATION_1: &str = "batchlet.ref=startLimitStateMachineVariation1Batchlet";
const VARIATION_2: &str = "batchlet.ref=startLimitStateMachineVariation2Batchlet";
const VARIATION_3: &str = "batchlet.ref=startLimitStateMachineVariation3Batchlet";

fn start_limit_1() -> Case {
    let failed = |case: Case| {
        case.ends(Failed, "c1,c2,x3")
            .steps(3)
            .step("step1", Completed)
            .step("step2", Completed)
            .step("step3", Failed)
    };
    let case = case("StartLimitTests.testStartLimitVariation1", "startLimitTests");
    let case = failed(case.start(format!("execution.number=1, {VARIATION_1}")));
    let case = failed(case.restart(format!("execution.number=2, {VARIATION_1}")));
    let case = failed(case.restart(format!("execution.number=3, {VARIATION_1}")));
    case.restart(format!("execution.number=4, {VARIATION_1}"))
        .ends(Failed, "c1,c2")
        .steps(2)
        .step("step1", Completed)
        .step("step2", Completed)
}

fn start_limit_2() -> Case {
    let begin = |case: Case| case.step("step1", Completed).step("step2", Completed);
    let no_stop_3 = format!("stop.after.step.3=DON'T_MATCH_ME, {VARIATION_2}");
    let no_stop = format!("stop.after.step.4=DON'T_MATCH_ME, {no_stop_3}");
    let case = case("StartLimitTests.testStartLimitVariation2", "startLimitTests")
        .start(format!("execution.number=1, {VARIATION_2}"))
        .ends(Failed, "c1,c2,x3")
        .steps(3);
    let case = begin(case)
        .step("step3", Failed)
        .restart(format!("execution.number=2, {VARIATION_2}"))
        .ends(Failed, "c1,c2,x3")
        .steps(3);
    let case = begin(case)
        .step("step3", Failed)
        .restart(format!("execution.number=3, {VARIATION_2}"))
        .ends(Stopped, "c1,c2,s3")
        .steps(3);
    let case = begin(case)
        .step("step3", Completed)
        .restart(format!("execution.number=4, {no_stop_3}"))
        .ends(Stopped, "c1,c2,s4")
        .steps(3);
    let case = begin(case)
        .step("step4", Completed)
        .restart(format!("execution.number=5, {no_stop}"))
        .ends(Failed, "f4")
        .steps(1)
        .step("step4", Completed)
        .restart(format!("execution.number=6, {no_stop}"))
        .ends(Failed, "c1,c2,c4,f5")
        .steps(4);
    let case = begin(case)
        .step("step4", Completed)
        .step("step5", Completed)
        .restart(format!("execution.number=7, {no_stop}"))
        .ends(Failed, "c1,c2")
        .steps(2);
    begin(case)
}

fn start_limit_3() -> Case {
    case("StartLimitTests.testStartLimitVariation3", "startLimitTests")
        .start(format!("execution.number=1, {VARIATION_3}"))
        .ends(Stopped, "c1,c2,c3,c4,s5")
        .steps(5)
        .every_step(Completed)
        .restart(format!("execution.number=2, {VARIATION_3}"))
        .ends(Failed, "f5")
        .steps(1)
        .every_step(Completed)
        .restart(format!("execution.number=3, {VARIATION_3}"))
        .ends(Completed, "c1,c2,c4,c5")
        .steps(4)
        .every_step(Completed)
}

fn others() -> Vec<Case> {
    vec![
        case(
            "JobAttributeRestartTests.testJobAttributeRestartableTrue",
            "job_attributes_restart_true_test",
        )
        .start("execution.number=1")
        .is(Failed)
        .restart("execution.number=2")
        .is(Completed),
        case(
            "RestartNotMostRecentTests.testRestartNotMostRecentException",
            "job_attributes_restart_true_test",
        )
        .start("execution.number=1")
        .restart("execution.number=2")
        .restart_fails(1, "execution.number=2", &["JobExecutionNotMostRecent"]),
        case(
            "StopOrFailOnExitStatusWithRestartTests.testInvokeJobWithUserStopAndRestart",
            "job_batchlet_longrunning",
        )
        .sql(&[CREATE_RUNNING])
        .begin("run.indefinitely=true")
        .stop_when_running(1)
        .ends(Stopped, "BATCHLET CANCELED BEFORE COMPLETION")
        .restart("run.indefinitely=false")
        .ends(Completed, "GOOD.STEP.GOOD.STEP"),
        case(
            "StopOrFailOnExitStatusWithRestartTests.testInvokeJobWithUncaughtExceptionFailAndRestart",
            "job_batchlet_longrunning",
        )
        .start("throw.exc.on.number.3=true")
        .ends(Failed, "FAILED")
        .restart("throw.exc.on.number.3=false, run.indefinitely=false")
        .ends(Completed, "GOOD.STEP.GOOD.STEP"),
    ]
}
