//! Fuzz target: see `batch_runtime::fuzzing::import`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| batch_runtime::fuzzing::import(data));
