//! Batchlets: with every method, and with the required ones.
//!
//! Spec: BLET-01, BLET-02, BLET-03, BLET-06, BLET-10, ART-06
#![deny(warnings)]

use std::sync::atomic::{AtomicBool, Ordering};

use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Download {
    stop: AtomicBool,
}

#[batchlet("download")]
impl Download {
    #[begin_step]
    fn begin(&self) -> Result<(), std::io::Error> {
        Ok(())
    }

    #[process]
    fn process(&self) -> Result<String, std::io::Error> {
        Ok(if self.stop.load(Ordering::Relaxed) {
            "STOPPED"
        } else {
            "DONE"
        }
        .into())
    }

    #[cancel]
    fn cancel(&self) -> Result<(), BatchError> {
        self.stop.store(true, Ordering::Relaxed);
        Ok(())
    }

    #[end_step]
    fn end(&self) {}
}

#[derive(BatchArtifact)]
struct Short;

#[batchlet]
impl Short {
    #[process]
    fn run(&self) -> String {
        "DONE".into()
    }

    #[cancel]
    fn cancel(&self) {}
}

#[test]
fn every_artifact_is_registered() {
    assert_eq!(
        super::registered(module_path!()),
        [("batchlet", "download"), ("batchlet", "Short")]
    );
}
