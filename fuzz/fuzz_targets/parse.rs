//! Fuzz target: see `batch_xml_fuzz::parse_bytes`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| batch_xml_fuzz::parse_bytes(data));
