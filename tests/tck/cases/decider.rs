//! `DeciderTests`.

use batch_runtime::BatchStatus::{self, Completed, Failed, Stopped};

use crate::case::{Case, case};

const STOPPED_STATUS: &str = "STEP_COMPLETE_BUT_FORCE_JOB_STOPPED_STATUS";
const FAILED_STATUS: &str = "STEP_COMPLETE_BUT_FORCE_JOB_FAILED_STATUS";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = actions();
    cases.extend(transitions());
    cases.extend(restarts());
    cases
}

/// A decision with one action, and the statuses that the job ends with.
fn action(method: &'static str, file: &'static str, action: &str, value: u32, special: &str) -> Case {
    case(method, file).start(format!(
        "action={action}, actualValue={value}, SpecialExitStatus={special}"
    ))
}

fn actions() -> Vec<Case> {
    let row = |method, normal, value, special, status: BatchStatus, exit_status: &str| {
        action(method, "job_decider_incompleterun", normal, value, special).ends(status, exit_status)
    };
    vec![
        row(
            "DeciderTests.testDeciderEndNormal",
            "EndNormal",
            21,
            "EndSpecial",
            Completed,
            "EndNormal",
        ),
        row(
            "DeciderTests.testDeciderEndSpecial",
            "EndNormal",
            25,
            "EndSpecial",
            Completed,
            "EndSpecial",
        ),
        row(
            "DeciderTests.testDeciderStopNormal",
            "StopNormal",
            21,
            "StopSpecial",
            Stopped,
            "StopNormal",
        ),
        row(
            "DeciderTests.testDeciderStopSpecial",
            "StopNormal",
            25,
            "StopSpecial",
            Stopped,
            "StopSpecial",
        ),
        row(
            "DeciderTests.testDeciderFailNormal",
            "FailNormal",
            21,
            "FailSpecial",
            Failed,
            "FailNormal",
        ),
        row(
            "DeciderTests.testDeciderFailSpecial",
            "FailNormal",
            25,
            "FailSpecial",
            Failed,
            "FailSpecial",
        ),
        action(
            "DeciderTests.testDeciderNextNormal",
            "job_decider_completerun",
            "NextNormal",
            21,
            "NextSpecial",
        )
        .ends(Completed, "JOB:ES:Good"),
        action(
            "DeciderTests.testDeciderNextSpecial",
            "job_decider_completerun",
            "NextNormal",
            25,
            "NextSpecial",
        )
        .ends(Completed, "JOB:ES:Good"),
    ]
}

fn transitions() -> Vec<Case> {
    vec![
        case(
            "DeciderTests.testDeciderExitStatusIsSetOnJobContext",
            "decider_transitions_on_restart",
        )
        .start(format!(
            "step.complete.but.force.job.stopped.status={STOPPED_STATUS}, \
             step.complete.but.force.job.failed.status={FAILED_STATUS}, allow.start.if.complete=true, \
             stop.job.after.this.step=None, fail.job.after.this.step=step1"
        ))
        .ends(Failed, format!("1:{FAILED_STATUS}")),
        case(
            "DeciderTests.testDeciderCannotbeFirstElementOnStart",
            "decider_as_first_job_element_fails",
        )
        .start_fails("JSL0039"),
    ]
}

/// A job that a decision stops after a step; a restart runs it to its end.
fn restart(method: &'static str, allow: bool, stop_after: &str, stopped_at: u32, exit_status: &str) -> Case {
    let file = match stop_after.starts_with("split") {
        true => "decider_transitions_from_split_on_restart",
        false => "decider_transitions_on_restart",
    };
    let also = match stop_after {
        "split1flow1step2" => "stop.job.after.this.step2=split1flow2step2",
        _ => "fail.job.after.this.step=None",
    };
    let changes = match (stop_after, allow) {
        (_, false) => "stop.job.after.this.step=None, is.restart=true",
        ("split1flow1step2", true) => "stop.job.after.this.step=None, stop.job.after.this.step2=None",
        (_, true) => "stop.job.after.this.step=None",
    };
    case(method, file)
        .start(format!(
            "step.complete.but.force.job.stopped.status={STOPPED_STATUS}, \
             step.complete.but.force.job.failed.status={FAILED_STATUS}, allow.start.if.complete={allow}, \
             stop.job.after.this.step={stop_after}, {also}"
        ))
        .ends(Stopped, format!("{stopped_at}:{STOPPED_STATUS}"))
        .restart_with(changes)
        .ends(Completed, exit_status)
}

fn restarts() -> Vec<Case> {
    let in_flow = "3:flow1step2_CONTINUE";
    let in_split = "4:split1flow2step2_CONTINUE";
    vec![
        restart(
            "DeciderTests.testDeciderTransitionFromStepAndAllowRestart",
            true,
            "step1",
            1,
            in_flow,
        ),
        restart(
            "DeciderTests.testDeciderTransitionFromStepWithinFlowAndAllowRestart",
            true,
            "flow1step1",
            2,
            in_flow,
        ),
        restart(
            "DeciderTests.testDeciderTransitionFromFlowAndAllowRestart",
            true,
            "flow1step2",
            3,
            in_flow,
        ),
        restart(
            "DeciderTests.testDeciderTransitionFromSplitAndAllowRestart",
            true,
            "split1flow1step2",
            4,
            in_split,
        ),
        restart(
            "DeciderTests.testDeciderTransitionFromStepAndAllowRestartFalse",
            false,
            "step1",
            1,
            in_flow,
        ),
        restart(
            "DeciderTests.testDeciderTransitionFromStepWithinFlowAndAllowRestartFalse",
            false,
            "flow1step1",
            2,
            in_flow,
        ),
        restart(
            "DeciderTests.testDeciderTransitionFromFlowAndAllowRestartFalse",
            false,
            "flow1step2",
            3,
            in_flow,
        ),
        restart(
            "DeciderTests.testDeciderTransitionFromSplitAndAllowRestartFalse",
            false,
            "split1flow1step2",
            4,
            in_split,
        ),
    ]
}
