//! Keys compare in the order of their values.

use proptest::prelude::*;

use super::*;
use crate::compare::compare_same;
use crate::temporal::{DAY_MICROS, Date, DateTime};
use crate::{CollationId, Value};

fn pairs() -> impl Strategy<Value = (ColumnType, Value, Value)> {
    let two = |column: ColumnType, value: BoxedStrategy<Value>| {
        let null = prop_oneof![9 => value, 1 => Just(Value::Null)].boxed();
        (Just(column), null.clone(), null).boxed()
    };
    let datetime = |micros: i64| {
        let date = Date::from_day_number(400 + micros.rem_euclid(3_000_000)).unwrap();
        DateTime::new(date, Time::from_micros(micros.rem_euclid(DAY_MICROS)))
    };
    let text = "[ aAb\u{1}\u{e9}]{0,5}";
    prop_oneof![
        two(
            ColumnType::new(TypeKind::BigInt),
            any::<i64>().prop_map(Value::Int).boxed()
        ),
        two(
            ColumnType::new(TypeKind::MediumInt),
            (-0x80_0000..0x7F_FFFFi64).prop_map(Value::Int).boxed()
        ),
        two(
            ColumnType::unsigned(TypeKind::BigInt),
            any::<u64>().prop_map(Value::UInt).boxed()
        ),
        two(
            ColumnType::new(TypeKind::Double),
            any::<f64>()
                .prop_filter("numbers", |number| !number.is_nan())
                .prop_map(Value::Double)
                .boxed()
        ),
        two(
            ColumnType::new(TypeKind::Float),
            any::<f32>()
                .prop_filter("numbers", |number| !number.is_nan())
                .prop_map(Value::Float)
                .boxed()
        ),
        two(
            ColumnType::decimal(30, 10),
            any::<i64>()
                .prop_map(|number| Value::Decimal(Decimal::from(number)))
                .boxed()
        ),
        two(
            ColumnType::temporal(TypeKind::Time, 6),
            any::<i64>()
                .prop_map(|micros| Value::Time(Time::from_micros(micros / 3_000_000)))
                .boxed()
        ),
        two(
            ColumnType::temporal(TypeKind::DateTime, 6),
            any::<i64>()
                .prop_map(move |micros| Value::DateTime(datetime(micros)))
                .boxed()
        ),
        two(
            ColumnType::new(TypeKind::Date),
            any::<i64>()
                .prop_map(move |micros| Value::Date(datetime(micros).date()))
                .boxed()
        ),
        two(
            ColumnType::varchar(10, CollationId::UTF8MB4_GENERAL_CI),
            text.prop_map(Value::bytes).boxed()
        ),
        two(
            ColumnType::varchar(10, CollationId::BINARY),
            any::<[u8; 3]>().prop_map(Value::bytes).boxed()
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn keys_are_in_the_order_of_values((column, left, right) in pairs(), tail in any::<u8>()) {
        let part = KeyPart::whole(column.clone(), true);
        let key = |value: &Value| {
            let mut key = Vec::new();
            part.append(value.as_ref(), &mut key);
            key.push(tail);
            key
        };
        let order = compare_same(left.as_ref(), right.as_ref(), column.collation);
        prop_assert_eq!(key(&left).cmp(&key(&right)), order);
        prop_assert_eq!(part.length_in(&key(&left)), Some(key(&left).len() - 1));
        if part.leads_back() {
            let key = key(&left);
            let mut rest = key.as_slice();
            prop_assert_eq!(part.take(&mut rest), Some(left.as_ref()));
            prop_assert_eq!(rest, [tail]);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(
        (column, ..) in pairs(),
        key in any::<[u8; 12]>(),
        length in 0..12usize,
    ) {
        let part = KeyPart::whole(column, true);
        part.take(&mut &key[..length]);
        part.length_in(&key[..length]);
    }
}

#[test]
fn keys_lead_back_to_values() {
    let names = || vec![Box::from(&b"x"[..]), Box::from(&b"y"[..])];
    let set = ColumnType::named(TypeKind::Set, names(), CollationId::UTF8MB4_BIN);
    let mut bit = ColumnType::new(TypeKind::Bit);
    bit.length = 9;
    let (date, time) = (Date::new(2024, 2, 29), Time::from_micros(-1_500_000));
    for (column, value) in [
        (ColumnType::new(TypeKind::TinyInt), ValueRef::Int(-128)),
        (ColumnType::new(TypeKind::SmallInt), ValueRef::Int(-1)),
        (
            ColumnType::new(TypeKind::Int),
            ValueRef::Int(i64::from(i32::MIN)),
        ),
        (ColumnType::new(TypeKind::BigInt), ValueRef::Int(i64::MIN)),
        (ColumnType::unsigned(TypeKind::TinyInt), ValueRef::UInt(255)),
        (
            ColumnType::unsigned(TypeKind::MediumInt),
            ValueRef::UInt(0xFF_FFFF),
        ),
        (ColumnType::new(TypeKind::Year), ValueRef::UInt(2155)),
        (set, ValueRef::UInt(3)),
        (bit, ValueRef::UInt(511)),
        (ColumnType::new(TypeKind::Date), ValueRef::Date(date)),
        (ColumnType::new(TypeKind::Date), ValueRef::Date(Date::ZERO)),
        (
            ColumnType::temporal(TypeKind::Time, 1),
            ValueRef::Time(time),
        ),
        (
            ColumnType::temporal(TypeKind::Timestamp, 0),
            ValueRef::DateTime(DateTime::new(date, Time::from_micros(3_600_000_000))),
        ),
        (
            ColumnType::temporal(TypeKind::DateTime, 3),
            ValueRef::DateTime(DateTime::new(date, Time::from_micros(1_234_000))),
        ),
    ] {
        for nullable in [false, true] {
            let part = KeyPart::whole(column.clone(), nullable);
            let mut key = Vec::new();
            part.append(value, &mut key);
            let length = key.len();
            key.extend_from_slice(b"behind");
            let mut rest = key.as_slice();
            assert_eq!(part.take(&mut rest), Some(value), "{column:?}");
            assert_eq!(rest, b"behind");
            assert_eq!(part.take(&mut &key[..length - 1]), None);
        }
    }
    let text = KeyPart::whole(ColumnType::varchar(5, CollationId::UTF8MB4_BIN), false);
    assert_eq!(text.take(&mut &b"abc"[..]), None);
}

/// As for those of `keys_are_in_the_order_of_values`, for each collation and width of DECIMAL.
#[test]
fn keys_tell_where_they_end() {
    let check = |part: &KeyPart, value: ValueRef<'_>| {
        let mut key = Vec::new();
        part.append(value, &mut key);
        let length = key.len();
        for short in 0..length {
            assert_eq!(part.length_in(&key[..short]), None, "{part:?} {value:?}");
        }
        key.extend_from_slice(&key.clone());
        assert_eq!(part.length_in(&key), Some(length), "{part:?} {value:?}");
    };
    for collation in CollationId::all() {
        let part = KeyPart::whole(ColumnType::varchar(10, collation), true);
        for text in [
            "",
            " ",
            "a",
            "a b  c ",
            "\0",
            "\0\u{1}",
            "\u{1} \u{1}",
            "Zz9",
        ] {
            check(&part, ValueRef::Bytes(text.as_bytes()));
        }
    }
    for precision in 1..=65 {
        for scale in 0..=precision.min(38) {
            let part = KeyPart::whole(ColumnType::decimal(precision, scale), false);
            for text in ["0", "-0.1", "7"] {
                let number = Decimal::parse_prefix(text.as_bytes()).value;
                check(&part, Value::Decimal(number).as_ref());
            }
        }
    }
}

#[test]
fn prefixes_cut_at_characters() {
    let column = ColumnType::varchar(10, CollationId::UTF8MB4_BIN);
    let part = KeyPart {
        column,
        nullable: false,
        prefix: Some(2),
    };
    let key = |text: &str| {
        let mut key = Vec::new();
        part.append(ValueRef::Bytes(text.as_bytes()), &mut key);
        key
    };
    assert_eq!(key("a\u{e9}xyz"), key("a\u{e9}"));
    assert!(key("a\u{e9}") < key("b"));
}

#[test]
fn the_successor_is_above_all_that_begin_with_a_key() {
    assert_eq!(successor(vec![1, 0xFF]), Some(vec![2]));
    assert_eq!(successor(vec![0xFF]), None);
}
