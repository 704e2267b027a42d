//! The target `http_head` of the harness, for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_bodies::run("http_head", input));
