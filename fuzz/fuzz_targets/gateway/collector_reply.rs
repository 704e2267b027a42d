//! The target `collector_reply` of the harness, for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_bodies::run("collector_reply", input));
