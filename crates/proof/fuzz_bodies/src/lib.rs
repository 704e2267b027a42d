//! The work of each fuzz target.
//!
//! A target is a function from bytes to nothing that panics if a decoder breaks its contract. A
//! decoder must not panic, loop, read past its input, or take memory that the input does not
//! justify. Its result must encode to the same bytes. `fuzz/` passes these functions to libFuzzer.
//! The test of this crate runs them over `fuzz/corpus` and `fuzz/findings`, so every `cargo test`
//! tries earlier findings again.
//!
//! [`TARGETS`] is the list. A new target needs a function here, a line there and an entry in
//! `fuzz/Cargo.toml`.

#![forbid(unsafe_code)]

mod choices;

mod auth_exchange;
mod backend_replies;
mod configuration;
mod dictionary;
mod gateway_parts;
mod gtid_positions;
mod http_head;
mod link_channels;
mod log;
mod page;
mod proxy_header;
mod recovery;
mod statement_class;
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
    ("proxy_header", proxy_header::run),
    ("auth", auth_exchange::run),
    ("link", link_channels::run),
    ("backend", backend_replies::run),
    ("gtid", gtid_positions::run),
    ("syntax", syntax_stages::run),
    ("statement_class", statement_class::run),
    ("http_head", http_head::run),
    ("value", value_bytes::run),
    ("page", page::run),
    ("log", log::run),
    ("dictionary", dictionary::run),
    ("configuration", configuration::run),
    ("maxscale", gateway_parts::other_gateways::run_maxscale),
    ("proxysql", gateway_parts::other_gateways::run_proxysql),
    ("kept_reply", gateway_parts::kept_results::run_reply),
    ("cache_key", gateway_parts::kept_results::run_key),
    ("query_log", gateway_parts::query_log_line::run),
    ("traceparent", gateway_parts::tracing::run_traceparent),
    ("collector_reply", gateway_parts::tracing::run_reply),
    ("binary_log", gateway_parts::binary_log_events::run),
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
