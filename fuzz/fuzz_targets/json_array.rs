//! Fuzz target: see `batch_items::fuzzing::json_array`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| batch_items::fuzzing::json_array(data));
