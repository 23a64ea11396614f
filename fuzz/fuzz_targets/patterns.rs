//! Fuzz target: see `batch_xml_fuzz::patterns`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| batch_xml_fuzz::patterns(data));
