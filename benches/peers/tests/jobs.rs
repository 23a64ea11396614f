//! The programs of the comparison accept the same jobs.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;

use peers::programs::{JOBS, PROGRAMS, compare_jobs, reason};

#[test]
fn programs_accept_the_same_jobs() {
    let rust = Path::new(env!("CARGO_BIN_EXE_by-hand")).parent().unwrap();
    // `benches/peers/run --check` builds the Java programs too, and sets the variable.
    let java = std::env::var_os("PEERS_JAVA");
    compare_jobs(rust, java.as_deref().map(Path::new)).unwrap_or_else(|differences| panic!("{differences}"));
}

#[test]
fn this_runtime_does_every_job() {
    for (job, _) in JOBS {
        assert_eq!(reason(PROGRAMS[0].0, job), None, "{job}");
    }
}
