//! The runtime properties for skips and retries: back-off, attempts and limits of classes, an extension.

use batch_runtime::execution::StepExecution;
use batch_runtime::prelude::*;
use batch_runtime::{BatchStatus, FailedItem};
use batch_tests::stage::{Stage, say};
use insta::assert_snapshot;

use super::artifacts::{
    assert_contains, calls, first_step_execution, refused, restart_with, tree, without_lines,
};
use super::faults::{RETRIES, RULES, faulty, faulty_job, faulty_stage, lines, listener, run, tree_and_calls};
use super::parallel;
use super::s4_2_1_pipeline::with_properties;

/// Returns a stage for the copy with properties of its step.
fn stage_with(properties: &[(&str, &str)], attributes: &str) -> Stage {
    let job = faulty_job("", "TableOut", attributes, RULES);
    faulty_stage(&with_properties(&job, properties))
}

/// Runs the copy with these faults, and returns its only step.
fn step_of(stage: &Stage, faults: &str, items: &str) -> StepExecution {
    let execution = stage.start("job", [("faults", faults), ("items", items)]);
    first_step_execution(stage, execution)
}

/// Returns the messages of the check.
fn warnings(stage: &Stage) -> Vec<String> {
    let warnings = stage.operator().check("job", ()).unwrap();
    warnings.into_iter().map(|one| one.message).collect()
}

/// An item is tried as often as the property allows, also if it could be skipped; then it is skipped, or the step fails.
///
/// Spec: FAULT-02
#[test]
fn attempts_at_an_item_are_limited() {
    let mut text = String::new();
    for (attempts, faults) in [
        ("3", "has n2: @Both x2"),
        ("2", "has n2: @Both x2"),
        ("3", "has n2: @Retry x2"),
        ("2", "has n2: @Retry x2"),
        ("1", "has n2: @Retry x1"),
        ("2", "has n1: @Retry x1; has n3: @Retry x1"),
        // The list is an attempt at each of its items.
        ("2", "has n2: Retry x2"),
        ("3", "has n2: Retry x2"),
        // Without a rollback it is written again as a whole.
        ("3", "has n2: SoftSkip"),
        ("3", "has n2: Soft"),
    ] {
        let stage = stage_with(&[("batch.retry.max-attempts", attempts)], "commit-interval=\"3\"");
        let outcome = run(&stage, faults, "4", &["nothing"]);
        text += &format!("== {attempts} {faults}\n{outcome}\ntable: {}\n", lines(&stage));
    }
    assert_snapshot!(without_lines(&text));
}

/// With `batch.retry.input`, the attempts of a reader or processor are limited too.
///
/// Spec: FAULT-02
#[test]
fn attempts_at_a_read_are_limited() {
    for (faults, status) in [
        ("read 2: Both x2", BatchStatus::Completed),
        ("process 2: Retry x2", BatchStatus::Completed),
        ("process 2: Retry x3", BatchStatus::Failed),
    ] {
        let properties = [("batch.retry.max-attempts", "3"), ("batch.retry.input", "true")];
        let step = step_of(&stage_with(&properties, "commit-interval=\"3\""), faults, "3");
        assert_eq!((step.status, step.counters.skips()), (status, 0), "{faults}");
    }
}

/// Skips of a class are counted over the executions of the instance, skips of other classes are not limited.
///
/// Spec: FAULT-03
#[test]
fn skips_are_limited_by_class() {
    let mut text = String::new();
    let stage = stage_with(
        &[("batch.skip.limits", "Skip=2, Both=0")],
        "commit-interval=\"1\"",
    );
    let faults = "read 2: Skip; process 3: SoftSkip; read 4: Skip; has n6: Fatal";
    let first = stage.start("job", [("faults", faults), ("items", "8")]);
    text += &tree_and_calls(&stage, first, &["nothing"]);
    let second = restart_with(&stage, first, [("faults", "read 7: Skip")]);
    text += &tree_and_calls(&stage, second, &["nothing"]);
    assert_snapshot!(without_lines(&text));
}

/// Spec: FAULT-03
#[test]
fn the_first_limit_that_matches_counts() {
    for (limits, status) in [
        ("Both=1, test.Trouble=5", BatchStatus::Failed),
        ("test.Trouble=5, Both=1", BatchStatus::Completed),
    ] {
        let stage = stage_with(&[("batch.skip.limits", limits)], "commit-interval=\"3\"");
        let step = step_of(&stage, "read 2: Both; read 4: Both", "5");
        assert_eq!(step.status, status, "{limits}: {}", step.exit_message);
    }
}

/// The limits of a job apply to its steps.
///
/// Spec: FAULT-02, FAULT-03
#[test]
fn a_step_inherits_the_limits_of_its_job() {
    let retries = "has n1: @Retry x1; has n3: @Retry x1";
    for (name, low, high, faults) in [
        (
            "batch.skip.limits",
            "Skip=1",
            "Skip=2",
            "read 2: Skip; read 4: Skip",
        ),
        ("batch.retry.limits", "Retry=1", "Retry=2", retries),
        ("batch.retry.max-attempts", "2", "3", "has n1: @Retry x2"),
    ] {
        for (limit, status) in [(low, BatchStatus::Failed), (high, BatchStatus::Completed)] {
            let job = faulty_job("", "TableOut", "commit-interval=\"1\"", RULES);
            let of_job = parallel::properties(&format!("{name}={limit}"));
            let stage = faulty_stage(&job.replacen("<step", &format!("{of_job}<step"), 1));
            let step = step_of(&stage, faults, "5");
            assert_eq!(step.status, status, "{name} {limit}: {}", step.exit_message);
        }
    }
}

/// Retries of a class are counted for a step execution.
///
/// Spec: FAULT-03
#[test]
fn retries_are_limited_by_class() {
    let stage = stage_with(&[("batch.retry.limits", "Retry=1")], "commit-interval=\"1\"");
    let faults = "has n1: @Both x1; has n2: @Retry x1; has n3: @Retry x1";
    assert_snapshot!(without_lines(&run(&stage, faults, "4", &["nothing"])));
}

/// Skips results with these texts, and records what it is asked.
#[skip_policy("Chosen")]
fn chosen(
    failed: &FailedItem<'_>,
    #[batch_property] chosen: &str,
    #[batch_property] log: &str,
) -> Result<bool, BatchError> {
    let read = failed.item::<u64>().map(u64::to_string);
    let item = read.or_else(|| failed.item::<String>().cloned());
    let (phase, error, skips) = (failed.phase(), failed.error(), failed.skips());
    say(log, format!("asked {phase:?} {error} {item:?} {skips}"));
    if error.to_string().contains("Fatal") {
        return Err(BatchError::msg("the policy failed"));
    }
    let is_chosen = |item: String| chosen.split(' ').any(|chosen| chosen == item);
    // A list, or a read.
    Ok(item.is_none_or(is_chosen))
}

/// A policy decides with the item in place of classes; the skip-limit applies; its error fails the step.
///
/// Spec: FAULT-04
#[test]
fn a_policy_decides_what_is_skipped() {
    let mut text = String::new();
    for (writer, attributes, faults) in [
        ("TableOut", "", "read 1: Skip; process 2: Skip; has n4: @Skip"),
        ("Out", "", "has n4: Skip"),
        ("TableOut", "", "process 3: Skip"),
        ("TableOut", "skip-limit=\"1\"", "process 2: Skip; process 5: Skip"),
        ("TableOut", "", "process 2: Fatal"),
    ] {
        let sizes = format!("commit-interval=\"6\" chunk-size=\"6\" {attributes}");
        let properties = [("batch.skip.policy", "Chosen"), ("chosen", "2 n4 5")];
        let job = faulty_job("", writer, &sizes, "");
        let stage = faulty_stage(&with_properties(&job, &properties));
        let execution = stage.start("job", [("faults", faults), ("items", "6")]);
        let (tree, asked) = (tree(&stage, execution), calls(&stage, &["asked"]));
        text += &format!("== {writer} {attributes} {faults}\n{tree}{asked}\n");
        text += &format!("table: {}\n", lines(&stage));
    }
    assert_snapshot!(without_lines(&text));
}

/// An error that is not the fault of an item is never skipped or retried, and no policy is asked about it.
///
/// Spec: D-106
#[test]
fn a_configuration_error_is_no_bad_item() {
    let policy = [("batch.skip.policy", "Chosen"), ("chosen", "2")];
    let classes = RULES.replace("SoftSkip", "Misfit");
    for (properties, rules) in [(&policy[..], ""), (&[], &classes)] {
        for call in [
            "process 2",
            "read 2",
            "has n2",
            "write n1 n2 n3 n4: Skip; write n1 n2",
        ] {
            let xml = faulty_job(&listener("", RETRIES), "TableOut", "", rules);
            let stage = faulty_stage(&with_properties(&xml, properties));
            let step = step_of(&stage, &format!("{call}: Misfit x1"), "4");
            assert_eq!(step.status, BatchStatus::Failed, "{rules} {call}");
            assert_eq!(calls(&stage, &["asked", "L on skip"]), "", "{rules} {call}");
        }
    }
}

/// A listener of retries that throws one does not have the chunk retried.
///
/// Spec: D-106
#[test]
fn a_configuration_error_of_a_retry_listener_fails_the_step() {
    for (class, status) in [("Fatal", BatchStatus::Completed), ("Misfit", BatchStatus::Failed)] {
        let stage = faulty(&listener("", RETRIES), "TableOut", "", RULES);
        let faults = format!("has n2: @Retry x1; L on retry exception Retry n2: {class} x1");
        assert_eq!(step_of(&stage, &faults, "3").status, status, "{class}");
    }
}

/// Classes have no meaning beside a policy.
///
/// Spec: FAULT-04
#[test]
fn a_policy_has_no_classes() {
    let stage = stage_with(&[("batch.skip.policy", "Chosen")], "");
    assert_snapshot!(refused(&stage, "job", ()));
    let job = faulty_job("", "TableOut", "", "");
    let unknown = with_properties(&job, &[("batch.skip.policy", "Chosn")]);
    let error = refused(&faulty_stage(&unknown), "job", ());
    assert_contains(&error, "unknown skip policy `Chosn`");
    assert_contains(&error, "`Chosen`");
}

/// Classes of a step win against a policy of its job; a limit beside a policy has a meaning.
///
/// Spec: FAULT-04
#[test]
fn classes_of_a_step_win_against_a_policy_of_the_job() {
    let policy = parallel::properties("batch.skip.policy=Chosen");
    let of_job = |xml: &str| xml.replacen("<step", &format!("{policy}<step"), 1);
    let stage = faulty_stage(&of_job(&faulty_job("", "TableOut", "", RULES)));
    let step = step_of(&stage, "read 1: Skip", "3");
    assert_eq!(
        (step.status, step.counters.read_skips),
        (BatchStatus::Completed, 1)
    );
    assert_eq!(calls(&stage, &["asked"]), "");

    let limited = faulty_job("", "TableOut", "skip-limit=\"5\"", "");
    let nothing_is_skipped = faulty_job("", "TableOut", "skip-limit=\"0\" retry-limit=\"0\"", "");
    let excluded = r#"<skippable-exception-classes><exclude class="Skip"/></skippable-exception-classes>"#;
    let excluded = faulty_job("", "TableOut", "skip-limit=\"5\"", excluded);
    let useless = &["`skip-limit` limits nothing"][..];
    // A policy of the job, or a parameter, decides for its steps, unless they have classes.
    for (xml, expected) in [
        (&limited, useless),
        (&nothing_is_skipped, &[]),
        (&limited.replace("<chunk", &format!("{policy}<chunk")), &[]),
        (&of_job(&limited), &[]),
        (&of_job(&excluded), useless),
    ] {
        assert_eq!(warnings(&faulty_stage(xml)), expected, "{xml}");
    }
    let parameter = [("batch.skip.policy", "Chosen")];
    let of_parameter = faulty_stage(&limited).operator().check("job", parameter);
    assert!(of_parameter.unwrap().is_empty());
}

/// A limit of skips or retries that cannot happen is a warning.
///
/// Spec: FAULT-02, FAULT-03
#[test]
fn limits_without_classes_are_reported() {
    let idle = [
        ("batch.skip.limits", "Skip=1"),
        ("batch.retry.limits", "Retry=1"),
        ("batch.retry.max-attempts", "3"),
    ];
    let stage = stage_with(&idle, "");
    assert_eq!(warnings(&stage), [""; 0]);
    stage.rewrite(&with_properties(&faulty_job("", "TableOut", "", ""), &idle));
    let warnings = stage.another_runtime().job_operator().check("job", ()).unwrap();
    let messages = warnings.into_iter().map(|one| one.message);
    assert!(messages.eq(idle.map(|(name, _)| format!("`{name}` limits nothing"))));
}

/// A pause ends when the job is stopped.
///
/// Spec: FAULT-01
#[test]
fn a_stop_ends_a_pause() {
    let hour = [
        ("batch.retry.backoff.initial", "3600000"),
        ("batch.retry.backoff.max", "3600000"),
    ];
    let stage = stage_with(&hour, "commit-interval=\"1\"");
    let operator = stage.operator();
    let parameters = [("faults", "has n2: @Retry x1"), ("items", "3")];
    let execution = operator.start("job", parameters).unwrap();
    let is_paused = || {
        let steps = operator.step_executions(execution).unwrap();
        steps.first().is_some_and(|step| step.counters.commits == 1)
    };
    while !is_paused() {
        std::thread::yield_now();
    }
    operator.stop(execution).unwrap();
    assert_eq!(operator.wait(execution).unwrap().status, BatchStatus::Stopped);
}

/// Invalid values are errors with their places; a misspelt class is a warning.
///
/// Spec: FAULT-01, FAULT-02, FAULT-03
#[test]
fn invalid_values_are_rejected() {
    let properties = [
        ("batch.retry.backoff.initial", "1s"),
        ("batch.retry.backoff.multiplier", "0.5"),
        ("batch.retry.backoff.jitter", "2"),
        ("batch.retry.max-attempts", "0"),
        ("batch.retry.limits", "Retry"),
        ("batch.skip.limits", "Skip=many"),
    ];
    assert_snapshot!(refused(&stage_with(&properties, ""), "job", ()));
    let misspelt = warnings(&stage_with(&[("batch.skip.limits", "Skop=1")], ""));
    assert!(
        misspelt.iter().any(|message| message.contains("`Skop`")),
        "{misspelt:?}"
    );
}

/// The properties mean the same in a pipeline, with several processors, and if items are read again instead of kept.
///
/// Spec: FAULT-01 to FAULT-04
#[test]
fn the_properties_mean_the_same_in_each_kind_of_chunk() {
    let backoff = ("batch.retry.backoff.initial", "1");
    let (retries, skips) = (
        "has n1: @Retry x1; has n3: @Retry x1",
        "read 2: Skip; process 4: Skip",
    );
    let scenarios: [(&str, &[(&str, &str)]); _] = [
        ("has n2: @Retry x2", &[("batch.retry.max-attempts", "3"), backoff]),
        ("has n2: @Retry x2", &[("batch.retry.max-attempts", "2")]),
        ("has n2: @Both x2", &[("batch.retry.max-attempts", "2")]),
        (retries, &[("batch.retry.limits", "Retry=2"), backoff]),
        (retries, &[("batch.retry.limits", "Retry=1")]),
        (skips, &[("batch.skip.limits", "Skip=2")]),
        (skips, &[("batch.skip.limits", "Skip=1")]),
    ];
    let outcome = |attributes: &str, kind: &[(&str, &str)], faults: &str, properties: &[(&str, &str)]| {
        let attributes = format!("commit-interval=\"1\" {attributes}");
        let stage = stage_with(&[kind, properties].concat(), &attributes);
        let step = step_of(&stage, faults, "6");
        (
            step.status,
            step.counters.writes,
            step.counters.skips(),
            lines(&stage),
        )
    };
    for (faults, properties) in scenarios {
        let plain = outcome("", &[], faults, properties);
        for (attributes, kind) in [
            ("", [("batch.chunk.pipeline", "true")]),
            ("", [("batch.chunk.processors", "2")]),
            ("buffer-reads=\"false\"", [("batch.chunk.processors", "1")]),
        ] {
            let other = outcome(attributes, &kind, faults, properties);
            assert_eq!(other, plain, "{attributes} {kind:?} {faults} {properties:?}");
        }
    }
}
