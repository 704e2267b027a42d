//! What each fuzz target does with its bytes.
//!
//! A target is a function from bytes to nothing that panics where a decoder breaks its word: it
//! panics itself, reads past its input, loops, takes memory that the input does not justify, or
//! gives back something that does not encode to the same again. `fuzz/` hands these functions to
//! libFuzzer; the test of this crate runs them over `fuzz/corpus` and `fuzz/findings`, so that
//! what was found once is tried again by every `cargo test`.
//!
//! [`TARGETS`] is the list. A new target is a function here, a line there and an entry in
//! `fuzz/Cargo.toml`.

#![forbid(unsafe_code)]

mod choices;

mod auth_exchange;
mod configuration;
mod dictionary;
mod log;
mod page;
mod recovery;
mod syntax_stages;
mod value_bytes;
mod wire_commands;
mod wire_replies;
mod wire_stream;

/// A function that takes any bytes.
pub type Target = fn(&[u8]);

/// All targets by name; `fuzz/corpus/NAME` holds a target's inputs.
pub const TARGETS: &[(&str, Target)] = &[
    ("wire_stream", wire_stream::run),
    ("wire_commands", wire_commands::run),
    ("wire_replies", wire_replies::run),
    ("auth", auth_exchange::run),
    ("syntax", syntax_stages::run),
    ("value", value_bytes::run),
    ("page", page::run),
    ("log", log::run),
    ("dictionary", dictionary::run),
    ("configuration", configuration::run),
    ("recovery", recovery::run),
];

/// Runs a target by its name.
///
/// # Panics
/// If there is no such target, or the input breaks it.
pub fn run(name: &str, input: &[u8]) {
    let found = TARGETS.iter().find(|(target, _)| *target == name);
    let (_, target) = found.expect("a target of the list");
    target(input);
}
