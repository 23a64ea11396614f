//! `FlowTransitioningTests`, `SplitTransitioningTests` and `SplitFlowTransitionLoopTests`.

use batch_runtime::BatchStatus::Completed;

use crate::case::{Case, case};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case(
            "FlowTransitioningTests.testFlowTransitionToStep",
            "flow_transition_to_step",
        )
        .start("")
        .ends(Completed, "flow1step1, flow1step2, flow1step3, step1"),
        case(
            "FlowTransitioningTests.testFlowTransitionToStepOutOfScope",
            "flow_transition_to_step_out_of_scope",
        )
        .start_fails("JSL0012"),
        case(
            "FlowTransitioningTests.testFlowTransitionToDecision",
            "flow_transition_to_decision",
        )
        .start("")
        .ends(Completed, "ThatsAllFolks"),
        case(
            "FlowTransitioningTests.testFlowTransitionWithinFlow",
            "flow_transition_within_flow",
        )
        .start("")
        .ends(Completed, "flow1step1, flow1step2, flow1step3"),
        case(
            "SplitTransitioningTests.testSplitTransitionToStep",
            "split_transition_to_step",
        )
        .start("")
        .ends(Completed, "step1"),
        case(
            "SplitTransitioningTests.testSplitTransitionToStepOutOfScope",
            "split_transition_to_step_out_of_scope",
        )
        .start_fails("JSL0012"),
        case(
            "SplitTransitioningTests.testSplitTransitionToDecision",
            "split_transition_to_decision",
        )
        .start("")
        .ends(Completed, "ThatsAllFolks"),
        case(
            "SplitFlowTransitionLoopTests.testSplitFlowTransitionLoopSplitFlowSplit",
            "split_flow_transition_loop_splitflowsplit",
        )
        .start("")
        .is(Completed),
    ]
}
