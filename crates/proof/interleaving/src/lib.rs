//! Storage crates between threads, each of whose steps the checker `shuttle` draws: the tests.
//!
//! Atomics and mutexes are the checker's in a build with `--cfg shuttle`, as all of them come from
//! `sync`; in other builds there is nothing here. The checker knows one order of all steps, so it
//! finds what is wrong with a protocol, and no ordering that is too weak. `sync` has loom for them.
//! Run it with `RUSTFLAGS="--cfg shuttle" cargo test -p interleaving --profile model`.

#![forbid(unsafe_code)]
