//! The table against its generated page, and against the message source of an installed MariaDB.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use errcode::{EE_WRITE, ER_SECURE_TRANSPORT_REQUIRED, ErrorCode, Origin, Retry};

/// `docs/errors.md` is the table as a page. `UPDATE_EXPECT=1` rewrites it.
#[test]
fn page_is_in_step_with_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/errors.md");
    let page = page();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "docs/errors.md is stale: run this test with UPDATE_EXPECT=1"
    );
}

fn page() -> String {
    let mut page = String::from(
        "# Errors\n\n\
         Every known error number, generated from `crates/protocol/errcode`; not all are sent.\n\
         Numbers, SQLSTATEs and texts are MariaDB 10.11's. Origin: who causes the error. Again:\n\
         whether the same statement may be tried again at once (now), or once more on\n\
         another connection if it changes nothing (if it reads).\n\n\
         | number | SQLSTATE | name | origin | again | text |\n|---|---|---|---|---|---|\n",
    );
    for code in ErrorCode::all() {
        let (state, symbol) = (
            code.sqlstate(),
            code.symbol().expect("every line has a name"),
        );
        let text = code
            .format()
            .replace('|', "\\|")
            .replace('`', "\\`")
            .replace('\n', " ");
        let (origin, again) = (origin(code.origin()), again(code.retry()));
        let line = format!("| {code} | {state} | `{symbol}` | {origin} | {again} | {text} |");
        writeln!(page, "{line}").expect("a String takes it");
    }
    page
}

fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Client => "client",
        Origin::Server => "server",
        Origin::Ourselves => "Plateau",
    }
}

fn again(retry: Retry) -> &'static str {
    match retry {
        Retry::Never => "",
        Retry::Now => "now",
        Retry::IfRead => "if it reads",
    }
}

/// Numbers that the reference has elsewhere (3, of its file library), or not at all (3159 is of
/// MySQL 8).
const NOT_IN_REFERENCE: [ErrorCode; 2] = [EE_WRITE, ER_SECURE_TRANSPORT_REQUIRED];

/// The source of messages in Debian's server package. Without that package there is nothing to
/// compare with, and the table stays as last compared.
const REFERENCE: &str = "/usr/share/mysql/errmsg-utf8.txt";

#[test]
fn table_says_what_the_reference_says() {
    let Ok(text) = std::fs::read_to_string(PathBuf::from(REFERENCE)) else {
        return;
    };
    let reference = parse(&text);
    assert!(reference.len() > 1000, "the reference was not understood");
    for code in ErrorCode::all().filter(|code| !NOT_IN_REFERENCE.contains(code)) {
        let (symbol, state, format) = reference.get(&code.number()).unwrap();
        assert_eq!(code.symbol().unwrap(), symbol, "symbol of {code}");
        assert_eq!(code.sqlstate().as_str(), state, "SQLSTATE of {symbol}");
        assert_eq!(code.format(), format, "format of {symbol}");
    }
}

/// Number to (symbol, SQLSTATE, English format). A line that starts with a name begins an error.
/// Its number follows the one before, or comes from a `start-error-number` or
/// `skip-to-error-number`.
fn parse(text: &str) -> BTreeMap<u16, (String, String, String)> {
    let mut errors = BTreeMap::new();
    let mut next = 0;
    let mut current = (0, String::new(), String::new());
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (first, second) = (words.next().unwrap_or(""), words.next());
        if matches!(first, "start-error-number" | "skip-to-error-number") {
            next = second
                .and_then(|word| word.parse().ok())
                .expect("a number follows");
        } else if line.starts_with(|c: char| c.is_ascii_uppercase()) {
            let state = second.unwrap_or("HY000").to_owned();
            current = (next, first.to_owned(), state);
            next += 1;
        } else if first == "eng" {
            let quoted = line.trim().trim_start_matches("eng").trim_start();
            let inner = quoted
                .strip_prefix('"')
                .and_then(|text| text.strip_suffix('"'));
            let format = inner.expect("the text is quoted").replace("\\\"", "\"");
            let format = format.replace("\\n", "\n");
            errors.insert(current.0, (current.1.clone(), current.2.clone(), format));
        }
    }
    errors
}
