//! The server's results as text: each file of `tests/statements` is one or several sessions
//! (`testkit::statement_file`).
//!
//! Each file is a test of its own, on a server of its own, so the tests run side by side:
//! `cargo test --package plateau --test statements file::alter`. `UPDATE_EXPECT=1` rewrites the
//! results; with `REFERENCE=mariadb` it writes MariaDB's. A file says in a comment where we differ
//! from MariaDB on purpose.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use testkit::Launch;
use testkit::statement_file::{answer, difference};

/// Declares a test for each file. The list is written out so that the tests are the standard
/// harness's, with its filters and its threads; a test holds it against the folder.
macro_rules! files {
    ($($name:ident)*) => {
        const FILES: &[&str] = &[$(stringify!($name)),*];

        mod file {
            $(
                #[test]
                fn $name() {
                    super::check(stringify!($name));
                }
            )*
        }
    };
}

files! {
    absent_by_name
    account_locks
    account_notes
    accounts_as_tables
    alter
    alter_copies
    alter_if_exists
    alter_mistakes
    alter_renames
    anti_join_plans
    anti_joins
    client_character_sets
    clock_and_role
    clustered_keys
    collations
    computed_defaults
    create_select
    dated_texts
    definition_clauses
    derived_condition_plans
    derived_conditions
    derived_updates
    drop_if_exists
    engine_options
    enum_defaults
    enum_key_plans
    enum_keys
    execute_default
    explain_aliases
    explain_keys
    explain_plans
    extreme_plans
    extreme_rows
    failed_definitions
    for_loops
    functions
    geometry_texts
    group_concat_order
    group_order
    grouped_subqueries
    handler_counts
    index_bounds
    index_union_plans
    index_unions
    insert_ids
    insert_subqueries
    join_order
    joined_columns
    json_columns
    kept_tables
    key_constants
    key_lengths
    key_ranges
    late_columns
    lock_tables
    lone_steps
    long_common_keys
    looking_after
    looking_after_commits
    merged_table_plans
    merged_tables
    mixed_types
    named_rows
    names_of_tables
    narrowed_joins
    negations
    outer_aliases
    password
    plan_literals
    prepared
    prepared_elsewhere
    procedure_errors
    procedure_kill
    procedure_privileges
    procedures
    queues
    read_only
    refused
    rename
    rename_index
    replace_table
    returning
    rollup_keys
    routine_grants
    row_order
    rows_and_warnings
    select_limit
    self_joins
    semi_join_plans
    semi_joins
    set_or_not
    set_reads
    show_in_modes
    shown_definitions
    small_functions
    small_messages
    sorted_subqueries
    sorted_subquery_reads
    time_zone_tables
    time_zones
    tracking
    unique_parts
    unreached_subqueries
    update_reads
    user_variables
    variable_levels
    variables
    varying_items
    varying_subqueries
    waits
    years
    zero_defaults
}

#[test]
fn every_file_has_its_test() {
    let entries = std::fs::read_dir(folder()).unwrap();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.sort();
    let listed: Vec<PathBuf> = FILES.iter().map(|name| path(name)).collect();
    assert_eq!(found, listed, "the list of this test, and the folder");
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/statements")
}

fn path(name: &str) -> PathBuf {
    folder().join(name).with_extension("test")
}

/// Runs a file on a fresh server, and compares or rewrites its results.
fn check(name: &str) {
    let file = path(name);
    let expected = std::fs::read_to_string(&file).expect("a file");
    let server = Launch::asked_for(env!("CARGO_BIN_EXE_plateau"))
        .start()
        .expect("the server starts");
    let answered = answer(&|| server.connect(), &expected).expect("connections");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&file, &answered).expect("a file");
        return;
    }
    let difference = difference(&expected, &answered);
    assert!(answered == expected, "{}:\n{difference}", file.display());
}
