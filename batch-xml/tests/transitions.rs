//! The choice of the transition: over all kinds of elements, for steps and decisions alike.

use std::collections::BTreeMap;

use batch_xml::model::{Job, Transition, TransitionKind};
use batch_xml::{Dialect, Limits, Resolved, Source, Values, parse, resolve};

const TRANSITIONS: &str =
    "<fail on='*'/><end on='R*'/><stop on='RC?'/><next on='RC??' to='last'/><end on='RC1'/>
    <stop on='RC*' exit-status='second'/><fail on='RC2'/><next on='RC2' to='last'/>";

fn resolved(element: &str) -> Resolved {
    let text = format!("<job id='j'>{element}<step id='last'><batchlet ref='B'/></step></job>");
    let limits = Limits::default();
    let none = BTreeMap::new();
    let values = Values {
        parameters: &none,
        system: &none,
    };
    let document = parse(&Source::new("t.xml", text), &limits).unwrap();
    resolve(&document, &Vec::new(), &values, &limits).unwrap_or_else(|errors| panic!("{errors}"))
}

fn job(element: &str) -> Job {
    resolved(element).job
}

fn acting(transitions: &[Transition], status: &str) -> Option<String> {
    let transition = Dialect::Draft.select(transitions, |transition| &transition.on, status)?;
    let kind = match &transition.kind {
        TransitionKind::Next { .. } => "next",
        TransitionKind::Fail { .. } => "fail",
        TransitionKind::End { .. } => "end",
        TransitionKind::Stop { .. } => "stop",
    };
    Some(format!("{kind} {}", transition.on))
}

/// The order covers all kinds of elements together, and exactly one is chosen; the same for a decision.
///
/// Spec: SEQ-17, SEQ-18, SEQ-19, DEC-10
#[test]
fn the_most_specific_of_all_kinds_acts() {
    let step = job(&format!("<step id='s'><batchlet ref='A'/>{TRANSITIONS}</step>"));
    let decision = job(&format!(
        "<step id='s' next='d'><batchlet ref='A'/></step><decision id='d' decider='D'>{TRANSITIONS}</decision>"
    ));
    let of_step = step.elements[0].transitions();
    let of_decision = decision.elements[1].transitions();
    assert_eq!((of_step.len(), of_decision.len()), (8, 8));
    for (status, expected) in [
        ("RC1", Some("end RC1")),
        // The first of two equal ones.
        ("RC2", Some("fail RC2")),
        ("RC3", Some("stop RC?")),
        ("RC10", Some("next RC??")),
        ("RC100", Some("stop RC*")),
        ("R", Some("fail *")),
        ("Rx", Some("end R*")),
        ("COMPLETED", Some("fail *")),
        ("", None),
    ] {
        assert_eq!(acting(of_step, status).as_deref(), expected, "{status:?}");
        assert_eq!(acting(of_decision, status).as_deref(), expected, "{status:?}");
    }
}

/// A transition back to an element that always ran before is a mistake, unless a restart may begin after that element: at a flow or
/// split, too, if a stop within it stops the job.
///
/// Spec: SEQ-25, D-76
#[test]
fn a_stop_within_a_flow_or_split_lets_an_earlier_element_run() {
    let warnings = |middle: &str, stop: &str| {
        let step = format!("<step id='s'><batchlet ref='B'/>{stop}</step>");
        let resolved = resolved(&format!(
            "<step id='first' next='middle'><batchlet ref='B'/></step>{}
            <step id='after'><batchlet ref='B'/><next on='AGAIN' to='first'/><next on='*' to='last'/></step>",
            middle.replace("STEP", &step)
        ));
        resolved
            .warnings
            .into_iter()
            .map(|one| one.message)
            .collect::<Vec<_>>()
    };
    for middle in [
        "<flow id='middle' next='after'>STEP</flow>",
        "<split id='middle' next='after'><flow id='f'>STEP</flow></split>",
    ] {
        assert_eq!(
            warnings(middle, "<end on='ENOUGH'/>"),
            ["this transition always fails: `first` has run before"],
            "{middle}"
        );
        assert_eq!(warnings(middle, "<stop on='LATER'/>"), [""; 0], "{middle}");
    }
}
