//! The successor of an element of a job: by its transition elements, or by its attribute `next`.
// Spec: SEQ-02 to SEQ-24, TERM-01 to TERM-12, DEC-05 to DEC-10, DEC-15

use batch_xml::{Dialect, Pattern};
use serde::{Deserialize, Serialize};

use crate::status::BatchStatus;

/// The transitions of an element of a job, flow or split. Targets are positions among its siblings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transitions {
    pub(crate) elements: Vec<Transition>,
    /// The attribute `next`.
    pub(crate) next: Option<usize>,
}

/// A transition element.
#[derive(Clone, Debug)]
pub(crate) struct Transition {
    pub(crate) on: Pattern,
    pub(crate) then: TransitionAction,
}

/// The action of a transition element.
#[derive(Clone, Debug)]
pub(crate) enum TransitionAction {
    /// `next`
    Next(usize),
    /// `fail`, `end`, `stop`
    Terminate(Termination),
}

/// The end of a job by a `fail`, `end` or `stop` element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Termination {
    /// FAILED, COMPLETED or STOPPED.
    pub(crate) status: BatchStatus,
    /// The exit status of the job, if the element sets one.
    // Spec: TERM-05
    pub(crate) exit_status: Option<String>,
    /// The element that a restart starts with after `stop`, if set.
    // Spec: TERM-09
    pub(crate) restart: Option<String>,
}

/// The continuation after an element has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Follow {
    /// The sibling at this position.
    Element(usize),
    /// The sequence ends with the status of the element.
    Nothing,
    /// The job ends.
    Terminate(Termination),
    /// The element has `next` elements, and its exit status matches no transition element.
    // Spec: SEQ-21, DEC-15
    Unmatched,
}

impl Transitions {
    /// Returns the continuation after a step, flow or split.
    // Spec: SEQ-17 to SEQ-24
    pub(crate) fn after(&self, dialect: Dialect, status: BatchStatus, exit_status: &str) -> Follow {
        // Transitions are not evaluated after a stop request. Spec: SEQ-24
        if status == BatchStatus::Stopped {
            return Follow::Nothing;
        }
        if let Some(transition) = self.select(dialect, exit_status) {
            return transition.then.follow();
        }
        // Only a transition element can continue after a failure. Spec: SEQ-23
        if status == BatchStatus::Failed {
            return Follow::Nothing;
        }
        let leads_on = |transition: &Transition| matches!(transition.then, TransitionAction::Next(_));
        if self.elements.iter().any(leads_on) && dialect.unmatched_step_fails() {
            return Follow::Unmatched;
        }
        self.next.map_or(Follow::Nothing, Follow::Element)
    }

    /// Returns the siblings that may follow.
    pub(crate) fn targets(&self) -> impl Iterator<Item = usize> {
        let next = self
            .elements
            .iter()
            .filter_map(|transition| match transition.then {
                TransitionAction::Next(position) => Some(position),
                TransitionAction::Terminate(_) => None,
            });
        next.chain(self.next)
    }

    fn select(&self, dialect: Dialect, exit_status: &str) -> Option<&Transition> {
        dialect.select(&self.elements, |transition| &transition.on, exit_status)
    }

    /// Returns the continuation after a decision.
    // Spec: DEC-05, DEC-15
    pub(crate) fn after_decision(&self, dialect: Dialect, decided: &str) -> Follow {
        let unmatched = match dialect.unmatched_step_fails() {
            true => Follow::Unmatched,
            false => Follow::Nothing,
        };
        self.select(dialect, decided)
            .map_or(unmatched, |transition| transition.then.follow())
    }
}

impl TransitionAction {
    fn follow(&self) -> Follow {
        match self {
            Self::Next(position) => Follow::Element(*position),
            Self::Terminate(termination) => Follow::Terminate(termination.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use BatchStatus::{Completed, Failed, Stopped};
    use TransitionAction::Next;

    fn terminate(status: BatchStatus) -> TransitionAction {
        TransitionAction::Terminate(Termination {
            status,
            exit_status: None,
            restart: None,
        })
    }

    fn transitions(elements: &[(&str, TransitionAction)], next: Option<usize>) -> Transitions {
        let elements = elements.iter().map(|(on, then)| Transition {
            on: Dialect::Draft.pattern(*on),
            then: then.clone(),
        });
        Transitions {
            elements: elements.collect(),
            next,
        }
    }

    fn check(transitions: &Transitions, status: BatchStatus, exit_status: &str, expected: Follow) {
        let follow = transitions.after(Dialect::Draft, status, exit_status);
        assert_eq!(follow, expected, "{status} {exit_status}");
    }

    // Spec: SEQ-17, SEQ-18, SEQ-19, D-19
    #[test]
    fn the_most_specific_transition_acts_whatever_its_place() {
        let mut elements = vec![
            ("*", Next(1)),
            ("FAIL*", terminate(Failed)),
            ("FAILED", terminate(Completed)),
        ];
        for _ in 0..3 {
            elements.rotate_left(1);
            let transitions = transitions(&elements, None);
            check(&transitions, Failed, "FAILED", terminate(Completed).follow());
            check(&transitions, Failed, "FAILURE", terminate(Failed).follow());
            check(&transitions, Failed, "OTHER", Follow::Element(1));
        }
    }

    /// Among equally specific transitions, the first in the document is taken.
    // Spec: SEQ-18
    #[test]
    fn document_order_decides_between_equals() {
        let transitions = transitions(&[("A*", Next(1)), ("*A", Next(2))], None);
        check(&transitions, Completed, "AAA", Follow::Element(1));
    }

    // Spec: SEQ-08, SEQ-21, SEQ-22, SEQ-23, SEQ-24, D-18, D-21, D-22
    #[test]
    fn what_follows_when_nothing_matches() {
        let leading = transitions(&[("X", Next(1)), ("Y", terminate(Failed))], None);
        let ending = transitions(&[("X", terminate(Failed))], Some(2));
        let last = transitions(&[("X", terminate(Failed))], None);
        check(&leading, Completed, "Z", Follow::Unmatched);
        check(&leading, Failed, "Z", Follow::Nothing);
        check(&leading, Stopped, "Z", Follow::Nothing);
        check(&ending, Completed, "Z", Follow::Element(2));
        check(&ending, Failed, "Z", Follow::Nothing);
        check(&ending, Stopped, "Z", Follow::Nothing);
        check(&last, Completed, "Z", Follow::Nothing);
        check(&leading, Stopped, "X", Follow::Nothing);
        check(&leading, Failed, "X", Follow::Element(1));
        check(&ending, Completed, "X", terminate(Failed).follow());
    }

    // Spec: DEC-05, DEC-10, DEC-15
    #[test]
    fn a_decision_has_to_account_for_every_value() {
        let transitions = transitions(&[("LOAD", Next(3)), ("L*", terminate(Stopped))], None);
        let check = |decided, expected| {
            let follow = transitions.after_decision(Dialect::Draft, decided);
            assert_eq!(follow, expected, "{decided}");
        };
        check("LOAD", Follow::Element(3));
        check("LATE", terminate(Stopped).follow());
        check("L", Follow::Unmatched);
    }
}
