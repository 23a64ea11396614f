//! Fuzz target: see `batch_items::fuzzing::parquet`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| batch_items::fuzzing::parquet(data));
