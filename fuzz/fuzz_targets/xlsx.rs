//! Fuzz target: see `batch_items::fuzzing::xlsx`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| batch_items::fuzzing::xlsx(data));
