//! The definitions of result columns, as the command-line client shows them. `REFERENCE=mariadb`
//! asks MariaDB instead.

use std::process::Command;

use testkit::{Launch, Server};

/// Each column of the statements' results: name, type, length, decimals and flags.
fn columns(server: &Server, statements: &str) -> Vec<String> {
    let port = format!("--port={}", server.port());
    let output = Command::new("mariadb")
        .args(["--no-defaults", "--host=127.0.0.1", "--user=root", &port])
        .args(["--table", "--column-type-info", "-vv"])
        .args(["--execute", statements])
        .output()
        .expect("the client runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("names are ASCII");
    let mut columns: Vec<String> = Vec::new();
    for line in text.lines() {
        let Some((label, shown)) = line.split_once(':') else {
            continue;
        };
        let shown = shown.trim();
        if label.starts_with("Field ") {
            columns.push(shown.trim_matches('`').to_owned());
        } else if let Some(column) = columns.last_mut()
            && ["Type", "Length", "Decimals", "Flags"].contains(&label)
        {
            column.push(' ');
            column.push_str(shown);
        }
    }
    columns
}

#[test]
fn explain_describes_its_columns_as_mariadb_does() {
    let server = Launch::asked_for(env!("CARGO_BIN_EXE_plateau"));
    let server = server.start().expect("a server");
    let described = columns(&server, "EXPLAIN SELECT 1");
    let expected = [
        "id LONGLONG 3 0 UNSIGNED BINARY NUM",
        "select_type VAR_STRING 57 39 NOT_NULL",
        "table VAR_STRING 192 39 ",
        "type VAR_STRING 30 39 ",
        "possible_keys VAR_STRING 12288 39 ",
        "key VAR_STRING 192 39 ",
        "key_len VAR_STRING 12288 39 ",
        "ref VAR_STRING 6144 39 ",
        "rows VAR_STRING 192 39 ",
        "Extra VAR_STRING 765 39 NOT_NULL",
    ];
    assert_eq!(described, expected);
}

/// The packet has GEOMETRY for all of them. The kind is in the extended metadata.
#[test]
fn a_geometry_column_says_its_kind() {
    let server = Launch::asked_for(env!("CARGO_BIN_EXE_plateau"));
    let server = server.start().expect("a server");
    let kinds = [
        "point",
        "linestring",
        "polygon",
        "multipoint",
        "multilinestring",
        "multipolygon",
        "geometrycollection",
    ];
    let definitions = kinds.map(|kind| format!("a_{kind} {kind}")).join(", ");
    let described = columns(
        &server,
        &format!(
            "CREATE DATABASE d; CREATE TABLE d.g (any_kind geometry, {definitions}); \
             SELECT * FROM d.g"
        ),
    );
    let (any, others) = described.split_first().expect("columns");
    assert!(any.starts_with("any_kind GEOMETRY 4294967295"), "{any}");
    assert_eq!(others.len(), kinds.len());
    for (column, kind) in others.iter().zip(kinds) {
        let start = format!("a_{kind} GEOMETRY (type={kind}) ");
        assert!(column.starts_with(&start), "{column}");
    }
}
