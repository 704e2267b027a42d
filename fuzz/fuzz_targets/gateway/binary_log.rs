//! The target `binary_log` of the harness, for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_bodies::run("binary_log", input));
