//! Processors that borrow their items, and that take them by value.
//!
//! Spec: PROC-01, PROC-02, PROC-03, PROC-04, ART-01, ART-06
#![deny(warnings)]

use batch_runtime::prelude::*;

struct Flight {
    minutes: i64,
}

#[derive(Clone)]
struct Delay(i64);

#[derive(BatchArtifact)]
struct Late;

#[item_processor]
impl Late {
    #[process_item]
    fn process_item(&mut self, flight: &Flight) -> Option<Delay> {
        (flight.minutes > 0).then_some(Delay(flight.minutes))
    }
}

#[derive(BatchArtifact)]
struct Hours;

#[item_processor("hours")]
impl Hours {
    #[process_item]
    fn hours(&self, delay: Delay) -> Result<Option<i64>, std::num::TryFromIntError> {
        Ok(Some(delay.0 / 60))
    }
}

#[test]
fn every_artifact_is_registered() {
    assert_eq!(
        super::registered(module_path!()),
        [("item_processor", "Late"), ("item_processor", "hours")]
    );
}
