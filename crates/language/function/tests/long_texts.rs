//! Functions that read every character of a long text report their work on the way. So others are
//! served meanwhile, and the function can be stopped.

#![forbid(unsafe_code)]

use std::cell::Cell;

use builtin::Function;
use errcode::ER_QUERY_INTERRUPTED;
use function::{Arg, BindEnv, Context, DivisionByZero, Patterns, Seeds, SessionFacts};
use value::collation::CollationId;
use value::temporal::{Date, DateRules, Zone};
use value::{ColumnType, SqlCondition, TypeKind, Value, Warnings};

/// Calls a function of texts; the meter fails beyond `limit`. Returns the result, and the reported
/// work.
fn called(
    function: Function,
    texts: &[&str],
    limit: usize,
) -> (Result<Value, SqlCondition>, usize) {
    let env = BindEnv {
        collation: CollationId::UTF8MB4_GENERAL_CI,
        div_precision_increment: 4,
        no_unsigned_subtraction: false,
        today: Date::new(2024, 3, 1),
    };
    let column = ColumnType {
        collation: env.collation,
        ..ColumnType::new(TypeKind::LongText)
    };
    let types: Vec<Arg> = texts
        .iter()
        .map(|_| Arg::column(column.clone(), true, &env))
        .collect();
    let bound = function::bind(function, function.name(), &types, &env).expect("it takes texts");
    let now = Date::new(2024, 3, 1).at_midnight();
    let spent = Cell::new(0);
    let mut context = Context {
        warnings: &mut Warnings::default(),
        now,
        utc_now: now,
        clock: &|| now,
        zone: &Zone::Fixed(0),
        dates: DateRules::default(),
        division_by_zero: DivisionByZero::Warn,
        default_week_format: 0,
        result_bytes_max: 64 << 20,
        random: &mut || 0,
        seeds: Seeds::default(),
        patterns: Patterns::default(),
        session: &mut SessionFacts::default(),
        meter: &|bytes| {
            spent.set(spent.get() + bytes);
            match spent.get() <= limit {
                true => Ok(()),
                false => Err(SqlCondition::new(ER_QUERY_INTERRUPTED, &[])),
            }
        },
    };
    let values: Vec<Value> = texts
        .iter()
        .map(|text| Value::Bytes(text.as_bytes().to_vec()))
        .collect();
    let values: Vec<_> = values.iter().map(Value::as_ref).collect();
    let value = bound.eval(&values, &mut context);
    (value, spent.get())
}

#[test]
fn strcmp_of_long_texts_gives_way() {
    let (small, large) = ("\u{e4}".repeat(1 << 20), "\u{c4}".repeat(1 << 20));
    let (equal, spent) = called(Function::Strcmp, &[&small, &large], usize::MAX);
    assert_eq!(equal.ok(), Some(Value::Int(0)));
    assert!((1 << 19) < spent, "{spent} is what it said");
    let (ended, spent) = called(Function::Strcmp, &[&small, &large], 1 << 18);
    assert!(ended.is_err_and(|condition| condition.code == ER_QUERY_INTERRUPTED));
    assert!(spent < 1 << 19, "it went on to {spent}");
}
