//! The target `link` of the harness, for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| harness::run("link", input));
