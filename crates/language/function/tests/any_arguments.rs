//! Every function accepts every value: it returns a value or an error, and never panics.

#![forbid(unsafe_code)]

use builtin::{Function, Meaning, TABLE};
use function::{Arg, BindEnv, Context, DivisionByZero, Patterns, Seeds, SessionFacts};
use proptest::prelude::*;
use proptest::sample::select;
use value::temporal::{DAY_MICROS, DateRules};
use value::{
    CollationId, ColumnType, Date, DateTime, Decimal, Time, TypeKind, Value, Warnings, Zone,
};

/// A value of any type, with extremes, ill-formed text and partial dates.
fn values() -> impl Strategy<Value = (Value, ColumnType)> {
    let text = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..12),
        "[-+0-9eE.: ,/T%_a-z]{0,20}".prop_map(String::into_bytes),
        select(vec![
            "DAY",
            "SECOND",
            "YEAR_MONTH",
            "DAY_MICROSECOND",
            "WEEK",
            "%Y-%m-%d %H",
            "\u{e9}"
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}( [0-9:.]{1,15})?".prop_map(String::into_bytes),
    ];
    let collation = select(CollationId::all().collect::<Vec<_>>());
    let date = (0..=9999u16, 0..=12u8, 0..=31u8).prop_map(|(y, m, d)| Date::new(y, m, d));
    let moment = (date.clone(), 0..DAY_MICROS)
        .prop_map(|(date, micros)| DateTime::new(date, Time::from_micros(micros)));
    let new = ColumnType::new;
    let decimal = (any::<i64>(), any::<i64>(), 0..38u32).prop_map(|(left, right, scale)| {
        let text = format!("{left}{}e-{scale}", right.unsigned_abs());
        Decimal::parse_prefix(text.as_bytes()).value
    });
    prop_oneof![
        1 => Just((Value::Null, new(TypeKind::Null))),
        2 => prop_oneof![any::<i64>(), -100..100i64, Just(i64::MIN), Just(i64::MAX)]
            .prop_map(move |number| (Value::Int(number), new(TypeKind::BigInt))),
        1 => any::<u64>()
            .prop_map(|number| (Value::UInt(number), ColumnType::unsigned(TypeKind::BigInt))),
        1 => (0..2200u64).prop_map(move |number| (Value::UInt(number), new(TypeKind::Year))),
        1 => any::<u64>().prop_map(move |number| {
            let mut column = new(TypeKind::Bit);
            column.length = 64;
            (Value::UInt(number), column)
        }),
        1 => any::<f64>().prop_filter("finite", |number| number.is_finite())
            .prop_map(move |number| (Value::Double(number), new(TypeKind::Double))),
        1 => any::<f32>().prop_filter("finite", |number| number.is_finite())
            .prop_map(move |number| (Value::Float(number), new(TypeKind::Float))),
        2 => decimal.prop_map(|number| {
            (Value::Decimal(number), ColumnType::decimal(65, number.scale()))
        }),
        5 => (text, collation).prop_map(|(text, collation)| {
            (Value::Bytes(text), ColumnType::varchar(20, collation))
        }),
        1 => date.prop_map(move |date| (Value::Date(date), new(TypeKind::Date))),
        1 => any::<i64>().prop_map(|micros| {
            (Value::Time(Time::from_micros(micros)), ColumnType::temporal(TypeKind::Time, 6))
        }),
        1 => moment.prop_map(|moment| {
            (Value::DateTime(moment), ColumnType::temporal(TypeKind::DateTime, 6))
        }),
    ]
}

fn env() -> BindEnv {
    BindEnv {
        collation: CollationId::UTF8MB4_GENERAL_CI,
        div_precision_increment: 4,
        no_unsigned_subtraction: false,
        today: Date::new(2024, 3, 1),
    }
}

/// All functions of the library.
fn functions() -> Vec<Function> {
    let of_library = |builtin: &builtin::Builtin| match builtin.meaning {
        // CAST is bound with a type.
        Meaning::Library(function) if function != Function::Cast => Some(function),
        _ => None,
    };
    TABLE.iter().filter_map(of_library).collect()
}

fn called(function: Function, args: &[(Value, ColumnType)], constant: bool) {
    let env = env();
    let types: Vec<Arg> = args
        .iter()
        .map(|(value, column)| Arg {
            constant: constant.then(|| value.clone()),
            ..Arg::column(column.clone(), true, &env)
        })
        .collect();
    let Ok(bound) = function::bind(function, function.name(), &types, &env) else {
        return;
    };
    let mut warnings = Warnings::default();
    let mut session = SessionFacts::default();
    let now = Date::new(2024, 3, 1).at_midnight();
    let mut bits = || 0x0123_4567_89AB_CDEF;
    let mut context = Context {
        warnings: &mut warnings,
        now,
        utc_now: now,
        clock: &|| now,
        zone: &Zone::Fixed(3600),
        dates: DateRules::default(),
        division_by_zero: DivisionByZero::Warn,
        default_week_format: 0,
        result_bytes_max: 1 << 16,
        random: &mut bits,
        seeds: Seeds::default(),
        patterns: Patterns::default(),
        session: &mut session,
        meter: &|_| Ok(()),
    };
    let values: Vec<_> = args.iter().map(|(value, _)| value.as_ref()).collect();
    if let Ok(value) = bound.eval(&values, &mut context) {
        let mut text = Vec::new();
        value.as_ref().append_text(&bound.column, &mut text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn no_function_panics(
        function in select(functions()),
        args in prop::collection::vec(values(), 0..5),
        constant in any::<bool>(),
    ) {
        called(function, &args, constant);
    }
}

/// A statement may name a million arguments. With work for each pair of them this test would take
/// hours.
#[test]
fn a_million_arguments_are_bound_in_one_pass() {
    let env = env();
    let kinds = [
        TypeKind::BigInt,
        TypeKind::VarChar,
        TypeKind::Null,
        TypeKind::Double,
        TypeKind::Time,
        TypeKind::Year,
    ];
    let mixed: Vec<Arg> = (kinds.iter().cycle().take(1_000_000))
        .map(|kind| Arg::column(ColumnType::new(*kind), true, &env))
        .collect();
    let bound =
        |function: &Function| function::bind(*function, function.name(), &mixed, &env).is_ok();
    let takes_all: Vec<Function> = functions().into_iter().filter(bound).collect();
    for function in [Function::Field, Function::Coalesce, Function::Greatest] {
        assert!(takes_all.contains(&function), "{function:?}");
    }
}
