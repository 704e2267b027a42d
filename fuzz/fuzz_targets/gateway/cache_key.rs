//! The target `cache_key` of the harness, for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_bodies::run("cache_key", input));
