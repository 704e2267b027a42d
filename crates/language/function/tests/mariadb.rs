//! Every expression of a corpus, evaluated here and by MariaDB: value, NULL and error number must
//! be the same, and the type that a client sees. What differs on purpose or is not yet right
//! stands in `mariadb/known.txt`, which must be exact: a line that no longer differs fails too.
//!
//! Needs Debian's `mariadbd`; `cargo xtask setup` installs it.

#[path = "mariadb/corpus.rs"]
mod corpus;
#[path = "mariadb/expression.rs"]
mod expression;

use std::collections::BTreeSet;

use function::{BindEnv, Context, DivisionByZero, Patterns, Seeds, SessionFacts};
use testkit::client::{Client, Outcome};
use testkit::server::{Launch, ServerKind};
use value::temporal::{DateRules, parse_datetime};
use value::{CollationId, Date, Trouble, Warnings, Zone};

/// The clock of both sides.
const NOW: &str = "2024-03-01 12:34:56";

#[test]
fn expressions_give_what_mariadb_gives() {
    let server = Launch::new(ServerKind::MariaDb)
        .start()
        .unwrap_or_else(|error| {
            panic!(
                "MariaDB is the reference of this test; run `cargo xtask setup` first: {error:#}"
            )
        });
    let mut client = server.connect().expect("the server takes connections");
    for statement in [
        "SET NAMES utf8mb4",
        "SET time_zone = '+00:00', sql_mode = ''",
        "SET timestamp = 1709296496",
    ] {
        client.run(statement).expect("a session setting");
    }
    let known: BTreeSet<&str> = include_str!("mariadb/known.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    let expressions: BTreeSet<String> = corpus::expressions().into_iter().collect();
    let mut report = Vec::new();
    let mut differing = BTreeSet::new();
    for text in &expressions {
        let (ours, theirs) = (ours(text), theirs(&mut client, text));
        if !same(&ours, &theirs) {
            differing.insert(text.as_str());
            if !known.contains(text.as_str()) {
                report.push(format!("{text}\n    here    {ours}\n    MariaDB {theirs}"));
            }
        }
    }
    if let Ok(path) = std::env::var("UPDATE_KNOWN") {
        let lines: Vec<&str> = differing.iter().copied().collect();
        std::fs::write(path, lines.join("\n") + "\n").expect("the file is writable");
    }
    let healed: Vec<_> = known
        .difference(&differing)
        .filter(|line| !line.is_empty())
        .collect();
    assert!(
        report.is_empty() && healed.is_empty(),
        "{} of {} differ:\n{}\nno longer differing: {healed:#?}",
        report.len(),
        expressions.len(),
        report.join("\n")
    );
}

/// `value : type`, `NULL : type` or `error number`.
fn ours(text: &str) -> String {
    let mut warnings = Warnings::default();
    let mut session = SessionFacts::default();
    let now = parse_datetime(NOW.as_bytes()).expect("a moment").value;
    let mut bits = || 0;
    let mut context = Context {
        warnings: &mut warnings,
        now,
        utc_now: now,
        zone: &Zone::Utc,
        dates: DateRules::default(),
        division_by_zero: DivisionByZero::Silent,
        result_bytes_max: 16 << 20,
        random: &mut bits,
        seeds: Seeds::default(),
        patterns: Patterns::default(),
        session: &mut session,
    };
    let env = BindEnv {
        collation: CollationId::UTF8MB4_GENERAL_CI,
        div_precision_increment: 4,
        no_unsigned_subtraction: false,
        today: Date::new(2024, 3, 1),
    };
    match expression::parse(text).evaluate(&env, &mut context) {
        Err(Trouble { code, .. }) => format!("error {code}"),
        Ok(evaluated) => {
            let column = &evaluated.arg.column;
            let kind = kind_name(column.protocol_type());
            match evaluated.value.as_ref().to_text(column) {
                None => format!("NULL : {kind}"),
                Some(text) => format!("{} : {kind}", shown(&text)),
            }
        }
    }
}

fn theirs(client: &mut Client, text: &str) -> String {
    match client
        .query(&format!("SELECT {text}"))
        .expect("the connection holds")
    {
        Outcome::Error(error) => format!("error {}", error.number),
        Outcome::Done(_) => "no rows".to_owned(),
        Outcome::Rows(set) => {
            let kind = kind_name(set.columns[0].kind);
            match &set.rows[0][0] {
                None => format!("NULL : {kind}"),
                Some(text) => format!("{} : {kind}", shown(text)),
            }
        }
    }
}

fn shown(text: &[u8]) -> String {
    match std::str::from_utf8(text) {
        Ok(text) => text.escape_debug().to_string(),
        Err(_) => format!("{text:02x?}"),
    }
}

/// Types as a client tells them apart; sizes of one kind are one.
fn kind_name(kind: u8) -> &'static str {
    match kind {
        1 | 2 | 3 | 8 | 9 => "integer",
        4 | 5 => "double",
        6 => "null",
        246 => "decimal",
        10 => "date",
        11 => "time",
        12 | 7 => "datetime",
        _ => "text",
    }
}

/// The same text and type; doubles may differ in their last digits, as mathematics libraries do.
fn same(ours: &str, theirs: &str) -> bool {
    if ours == theirs {
        return true;
    }
    let double = |text: &str| -> Option<f64> { text.strip_suffix(" : double")?.parse().ok() };
    match (double(ours), double(theirs)) {
        (Some(ours), Some(theirs)) => (ours - theirs).abs() <= theirs.abs() * 1e-14,
        _ => false,
    }
}
