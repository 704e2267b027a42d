//! Values stored into columns, strict and not; the broad comparison with a server is an integration
//! test.

use proptest::prelude::*;

use super::*;
use crate::temporal::{DAY_MICROS, Time};
use crate::{CollationId, DateTime, Decimal, Level};

fn stored(value: &Value, from: &ColumnType, to: &ColumnType, strict: bool) -> String {
    let rules = StoreRules {
        strict,
        dates: DateRules {
            no_zero_date: strict,
            no_zero_in_date: strict,
            allow_invalid: false,
        },
        today: Date::new(2024, 3, 1),
        zone: &Zone::Utc,
    };
    let place = Place {
        database: "d",
        table: "t",
        column: "a",
        row: 1,
    };
    let mut warnings = Warnings::default();
    match store_value(value.as_ref(), from, to, place, &rules, &mut warnings) {
        Err(condition) => format!("E{} {}", condition.code, condition.message),
        Ok(value) => {
            let text = value.as_ref().to_text(to).unwrap_or_default().into_owned();
            let mut shown = String::from_utf8_lossy(&text).into_owned();
            for (level, condition) in warnings.entries() {
                let mark = if *level == Level::Note { "N" } else { "W" };
                shown.push_str(&format!(" {mark}{}", condition.code));
            }
            shown
        }
    }
}

fn of_text(text: &str, to: &ColumnType, strict: bool) -> String {
    let from = ColumnType::varchar(20, CollationId::UTF8MB4_GENERAL_CI);
    stored(&Value::bytes(text), &from, to, strict)
}

#[test]
fn a_time_that_clocks_never_showed() {
    let zone = Zone::from_posix("EST5EDT,M3.2.0,M11.1.0").unwrap();
    let to = ColumnType::new(TypeKind::Timestamp);
    let from = ColumnType::varchar(20, CollationId::UTF8MB4_GENERAL_CI);
    let place = Place {
        database: "d",
        table: "t",
        column: "a",
        row: 1,
    };
    let store = |text: &str, strict| {
        let rules = StoreRules {
            strict,
            dates: DateRules::default(),
            today: Date::new(2024, 3, 1),
            zone: &zone,
        };
        let mut warnings = Warnings::default();
        let value = Value::bytes(text);
        let stored = store_value(value.as_ref(), &from, &to, place, &rules, &mut warnings);
        let codes = warnings.entries().iter().map(|(_, it)| it.code.number());
        let codes: Vec<u16> = codes.collect();
        let shown = |value: Value| value.as_ref().to_text(&to).unwrap().into_owned();
        (
            stored
                .map(shown)
                .map_err(|condition| condition.code.number()),
            codes,
        )
    };
    let end = b"2024-03-10 07:00:00".to_vec();
    assert_eq!(store("2024-03-10 02:30:00", true), (Err(1292), vec![]));
    assert_eq!(store("2024-03-10 02:30:00", false), (Ok(end), vec![1299]));
    let twice = b"2024-11-03 05:30:00".to_vec();
    assert_eq!(store("2024-11-03 01:30:00", true), (Ok(twice), vec![]));
}

#[test]
fn numbers() {
    let tiny = ColumnType::new(TypeKind::TinyInt);
    assert_eq!(of_text("12abc", &tiny, false), "12 W1265");
    assert_eq!(of_text(" 12 ", &tiny, true), "12 N1265");
    assert_eq!(of_text("300", &tiny, false), "127 W1264");
    assert_eq!(
        of_text("abc", &tiny, true),
        "E1366 Incorrect integer value: 'abc' for column `d`.`t`.`a` at row 1"
    );
    assert_eq!(
        of_text("1.567", &ColumnType::decimal(5, 2), true),
        "1.57 N1265"
    );
    assert_eq!(
        of_text("1e3", &ColumnType::decimal(5, 2), false),
        "999.99 W1264"
    );
    let year = ColumnType::new(TypeKind::Year);
    assert_eq!(
        stored(
            &Value::Int(69),
            &ColumnType::new(TypeKind::Int),
            &year,
            true
        ),
        "2069"
    );
}

#[test]
fn temporal() {
    let date = ColumnType::new(TypeKind::Date);
    assert_eq!(of_text("2024-02-30", &date, false), "0000-00-00 W1265");
    assert_eq!(
        of_text("2024-02-30", &date, true),
        "E1292 Incorrect date value: '2024-02-30' for column `d`.`t`.`a` at row 1"
    );
    let fine = ColumnType::temporal(TypeKind::DateTime, 1);
    assert_eq!(
        of_text("2024-02-29 12:34:56.78", &fine, true),
        "2024-02-29 12:34:56.7"
    );
    let stamp = ColumnType::new(TypeKind::Timestamp);
    assert_eq!(
        of_text("1960-01-01", &stamp, false),
        "0000-00-00 00:00:00 W1264"
    );
    let time = ColumnType::new(TypeKind::Time);
    assert_eq!(of_text("900:00:00", &time, false), "838:59:59 W1264");
}

#[test]
fn text() {
    let latin1 = ColumnType::varchar(3, CollationId::LATIN1_SWEDISH_CI);
    assert_eq!(of_text("abcd", &latin1, false), "abc W1265");
    assert_eq!(
        of_text("abcd", &latin1, true),
        "E1406 Data too long for column 'a' at row 1"
    );
    assert_eq!(of_text("ab  ", &latin1, true), "ab  N1265");
    assert_eq!(
        of_text("\u{65e5}", &latin1, true),
        "E1366 Incorrect string value: '\\xE6\\x97\\xA5' for column `d`.`t`.`a` at row 1"
    );
    let names = || vec![Box::from(&b"a"[..]), Box::from(&b"b"[..])];
    let set = ColumnType::named(TypeKind::Set, names(), CollationId::UTF8MB4_GENERAL_CI);
    assert_eq!(of_text("b,A", &set, true), "a,b");
    assert_eq!(of_text("a,c", &set, false), "a W1265");
    let of_enum = ColumnType::named(TypeKind::Enum, names(), CollationId::UTF8MB4_GENERAL_CI);
    assert_eq!(of_text("2", &of_enum, true), "b");
    assert_eq!(of_text("c", &of_enum, false), " W1265");
}

fn any_value() -> impl Strategy<Value = (Value, ColumnType)> {
    let new = ColumnType::new;
    let text = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..12),
        "[-+0-9eE.: T]{0,24}".prop_map(String::into_bytes),
    ];
    let moment = (366..3_652_424i64, 0..DAY_MICROS).prop_map(|(day, micros)| {
        DateTime::new(
            Date::from_day_number(day).unwrap(),
            Time::from_micros(micros),
        )
    });
    prop_oneof![
        any::<i64>().prop_map(move |number| (Value::Int(number), new(TypeKind::BigInt))),
        any::<u64>()
            .prop_map(|number| (Value::UInt(number), ColumnType::unsigned(TypeKind::BigInt))),
        any::<f64>().prop_map(move |number| (Value::Double(number), new(TypeKind::Double))),
        any::<i64>().prop_map(|number| {
            (
                Value::Decimal(Decimal::from(number)),
                ColumnType::decimal(20, 0),
            )
        }),
        text.prop_map(|text| {
            (
                Value::Bytes(text),
                ColumnType::varchar(24, CollationId::LATIN1_SWEDISH_CI),
            )
        }),
        moment.prop_map(|moment| {
            (
                Value::DateTime(moment),
                ColumnType::temporal(TypeKind::DateTime, 6),
            )
        }),
    ]
}

proptest! {
    /// A stored value is in the column's range: it has a key and a text.
    #[test]
    fn every_value_is_stored_or_refused(
        (value, from) in any_value(), number in 1..29u8, strict in any::<bool>()
    ) {
        let kind = TypeKind::from_number(number).unwrap();
        let names = || vec![Box::from(&b"a"[..]), Box::from(&b"b"[..])];
        let column = match kind {
            TypeKind::Enum | TypeKind::Set => {
                ColumnType::named(kind, names(), CollationId::UTF8MB4_GENERAL_CI)
            }
            kind if kind.is_bytes() => ColumnType::text(kind, 5, CollationId::UTF8MB4_BIN),
            kind => ColumnType::new(kind),
        };
        let rules = StoreRules {
            strict,
            dates: DateRules::default(),
            today: Date::new(2024, 3, 1),
            zone: &Zone::Fixed(-3600),
        };
        let place = Place { database: "d", table: "t", column: "a", row: 1 };
        let mut warnings = Warnings::default();
        let stored = store_value(value.as_ref(), &from, &column, place, &rules, &mut warnings);
        if let Ok(stored) = stored {
            let mut key = Vec::new();
            let part = crate::key::KeyPart::whole(column.clone(), false);
            part.append(stored.as_ref(), &mut key);
            prop_assert!(!key.is_empty());
            let mut again = Warnings::default();
            let same = store_value(stored.as_ref(), &column, &column, place, &rules, &mut again);
            // A TIMESTAMP was converted to UTC, and would be converted again.
            if kind != TypeKind::Timestamp {
                prop_assert_eq!(same, Ok(stored));
            }
        }
    }
}
