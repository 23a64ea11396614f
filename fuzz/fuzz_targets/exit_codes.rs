//! Fuzz target: see `batch_runtime::fuzzing::exit_codes`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| batch_runtime::fuzzing::exit_codes(data));
