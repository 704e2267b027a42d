//! Statements do not depend on the storage engine: sessions over a naive store, each call of which
//! takes a millisecond, give the answers that `plateau/tests/statements` says.
//!
//! The naive store has no isolation, no locks, no statistics and no files. Files that ask for these
//! are named in [`OF_THE_ENGINE`], each with its reason. [`failures`] has calls that fail, and
//! [`routed`] a naive store beside the engine.

#![forbid(unsafe_code)]

mod failures;
mod routed;
mod server;

use std::path::{Path, PathBuf};
use std::time::Duration;

use testkit::naive_store::NaiveStore;
use testkit::statement_file::{answer, difference};

use server::TestServer;

/// What a call of the store takes.
const ROUND_TRIP: Duration = Duration::from_millis(1);

/// Files that need more than rows and tables, and what they need.
const OF_THE_ENGINE: &[(&str, &str)] = &[
    ("account_locks", "waits for row locks"),
    ("anti_join_plans", "kept statistics"),
    ("derived_condition_plans", "kept statistics"),
    ("enum_key_plans", "SKIP LOCKED"),
    ("explain_plans", "kept statistics"),
    ("extreme_rows", "isolation"),
    ("functions", "a lock wait that ends by its time limit"),
    ("group_order", "kept statistics"),
    ("index_union_plans", "kept statistics"),
    ("join_order", "kept statistics"),
    ("kept_tables", "kept statistics"),
    ("merged_table_plans", "kept statistics"),
    ("queues", "SKIP LOCKED"),
    ("semi_join_plans", "kept statistics"),
    ("set_reads", "row locks and deadlocks"),
];

/// Files whose answers show which rows the server itself reads and tests. The store does nothing in
/// its place there.
const OF_OWN_WORK: &[&str] = &[
    "explain_keys",
    "extreme_plans",
    "handler_counts",
    "sorted_subquery_reads",
];

#[test]
fn files_get_their_answers_from_a_store_that_is_far_away() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../program/plateau/tests/statements");
    let entries = std::fs::read_dir(folder).expect("the statements");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let only = std::env::var("ONLY").unwrap_or_default();
    let server = TestServer::over_naive(ROUND_TRIP);
    let plain = TestServer::over_naive(ROUND_TRIP);
    plain.with_naive(NaiveStore::take_nothing);
    let mut failures = Vec::new();
    for file in files {
        let name = file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let is_of_engine = OF_THE_ENGINE.iter().any(|(known, _)| *known == name);
        if is_of_engine || !name.contains(&only) {
            continue;
        }
        let server = match OF_OWN_WORK.contains(&&*name) {
            true => &plain,
            false => &server,
        };
        let connect = || server.connect();
        let expected = std::fs::read_to_string(&file).expect("a text");
        let answered = answer(&connect, &expected).expect("the server answers");
        if answered != expected {
            failures.push(format!("{name}:\n{}", difference(&expected, &answered)));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
