//! Fuzz target: see `batch_columnar::fuzzing::sheet`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| batch_columnar::fuzzing::sheet(data));
