//! Fuzz target: see `batch_columnar::fuzzing::xlsx`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| batch_columnar::fuzzing::xlsx(data));
