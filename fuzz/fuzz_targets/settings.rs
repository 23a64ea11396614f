//! Fuzz target: see `batch_cli::fuzzing::settings`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| batch_cli::fuzzing::settings(data));
