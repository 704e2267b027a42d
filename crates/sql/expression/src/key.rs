//! Values as keys: their order, bytes that are equal for equal values, and what an index is asked
//! for.

use std::cmp::Ordering;
use std::iter;

use value::decimal::Rounding;
use value::temporal::{days_in_month, is_timestamp};
use value::{
    CollationId, ColumnType, Date, DateTime, Decimal, Time, TypeKind, Value, ValueRef, Warnings,
    Zone, compare_same,
};

use crate::tree::Class;
use crate::{Failure, Statement, domain};

/// The order of two values of one type; NULL is below all.
#[inline]
pub fn compare_values(a: ValueRef<'_>, b: ValueRef<'_>, column_type: &ColumnType) -> Ordering {
    compare_same(a, b, column_type.collation)
}

/// The order of two values of one class, neither of them NULL.
#[inline]
pub fn compare_in(a: ValueRef<'_>, b: ValueRef<'_>, class: Class) -> Ordering {
    let collation = match class {
        Class::Text(collation) => collation,
        _ => CollationId::BINARY,
    };
    compare_same(a, b, collation)
}

/// The same, counted as work of the statement.
///
/// # Errors
/// If the statement has to end.
#[inline]
pub fn compare_metered(
    a: ValueRef<'_>,
    b: ValueRef<'_>,
    class: Class,
    statement: &Statement<'_>,
) -> Result<Ordering, Failure> {
    match (a, b, class) {
        (ValueRef::Bytes(a), ValueRef::Bytes(b), Class::Text(collation)) => {
            compare_texts(a, b, collation, statement)
        }
        _ => Ok(compare_in(a, b, class)),
    }
}

/// The order of two values of one type, counted as work of the statement; NULL is below all.
///
/// # Errors
/// If the statement has to end.
#[inline]
pub fn compare_values_metered(
    a: ValueRef<'_>,
    b: ValueRef<'_>,
    column_type: &ColumnType,
    statement: &Statement<'_>,
) -> Result<Ordering, Failure> {
    match (a, b) {
        (ValueRef::Bytes(a), ValueRef::Bytes(b)) => {
            compare_texts(a, b, column_type.collation, statement)
        }
        _ => {
            statement.spend(COMPARE_COST)?;
            Ok(compare_values(a, b, column_type))
        }
    }
}

/// The cost of comparing two short values, in bytes read.
pub(crate) const COMPARE_COST: usize = 8;

#[inline]
fn compare_texts(
    a: &[u8],
    b: &[u8],
    collation: CollationId,
    statement: &Statement<'_>,
) -> Result<Ordering, Failure> {
    statement.spend(COMPARE_COST + a.len().min(b.len()) / 8)?;
    collation.compare_metered(a, b, &mut |bytes| statement.spend(bytes))
}

/// Appends bytes that are equal if and only if the values of this type are (NULL equals NULL).
pub fn append_group_key(value: ValueRef<'_>, column_type: &ColumnType, out: &mut Vec<u8>) {
    match value {
        ValueRef::Bytes(bytes) => {
            out.push(TAG_BYTES);
            column_type.collation.append_key(bytes, out);
        }
        other => append_plain_key(other, out),
    }
}

/// Appends bytes that are equal if and only if the values of this class are.
pub fn append_class_key(value: ValueRef<'_>, class: Class, out: &mut Vec<u8>) {
    match (value, class) {
        (ValueRef::Bytes(bytes), Class::Text(collation)) => {
            out.push(TAG_BYTES);
            collation.append_key(bytes, out);
        }
        (other, _) => append_plain_key(other, out),
    }
}

const TAG_NULL: u8 = 0;
const TAG_INTEGER: u8 = 1;
const TAG_DOUBLE: u8 = 2;
const TAG_DECIMAL: u8 = 3;
const TAG_BYTES: u8 = 4;
const TAG_DATE: u8 = 5;
const TAG_TIME: u8 = 6;
const TAG_DATETIME: u8 = 7;

fn append_plain_key(value: ValueRef<'_>, out: &mut Vec<u8>) {
    let mut tagged = |tag: u8, bytes: &[u8]| {
        out.push(tag);
        out.extend_from_slice(bytes);
    };
    match value {
        ValueRef::Null => tagged(TAG_NULL, &[]),
        ValueRef::Int(number) => tagged(TAG_INTEGER, &i128::from(number).to_be_bytes()),
        ValueRef::UInt(number) => tagged(TAG_INTEGER, &i128::from(number).to_be_bytes()),
        // Adding zero turns minus zero into plus zero.
        ValueRef::Float(number) => {
            tagged(
                TAG_DOUBLE,
                &(f64::from(number) + 0.0).to_bits().to_be_bytes(),
            );
        }
        ValueRef::Double(number) => tagged(TAG_DOUBLE, &(number + 0.0).to_bits().to_be_bytes()),
        ValueRef::Decimal(number) => {
            let text = canonical(&number.to_decimal());
            tagged(TAG_DECIMAL, &text);
            out.push(0);
        }
        ValueRef::Bytes(bytes) => {
            tagged(TAG_BYTES, &stdx::to_u64(bytes.len()).to_be_bytes());
            out.extend_from_slice(bytes);
        }
        ValueRef::Date(date) => tagged(TAG_DATE, &date.packed().to_be_bytes()),
        ValueRef::Time(time) => tagged(TAG_TIME, &time.micros().to_be_bytes()),
        ValueRef::DateTime(time) => tagged(TAG_DATETIME, &time.packed().to_be_bytes()),
    }
}

/// The digits of a number, without trailing zeros in its fraction.
fn canonical(number: &Decimal) -> Vec<u8> {
    let mut text = Vec::with_capacity(32);
    number.append_text(&mut text);
    if text.contains(&b'.') {
        while text.last() == Some(&b'0') {
            text.pop();
        }
        if text.last() == Some(&b'.') {
            text.pop();
        }
    }
    text
}

/// The index key for a value of another type.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyValue {
    /// A key of the index's type equals the value.
    Exact(Value),
    /// No key does: the value lies above this key and below the next possible one.
    Above(Value),
    /// The value is below all keys.
    BelowAll,
    /// The value is above all keys.
    AboveAll,
}

/// What a date depends on in addition to its value.
#[derive(Debug, Clone, Copy)]
pub struct KeyClock<'s> {
    /// The session's time zone.
    pub zone: &'s Zone,
    /// The date of the statement; a TIME compared with dates is a time of that day.
    pub today: Date,
}

/// Converts the value, which is not NULL, to a key of a column. The result always says on which
/// side of each key the value lies: a range answers its condition alone, and no filter tests it
/// again.
///
/// The planner ensures that the comparison and the index agree on equality (class and collation).
/// An ENUM or a SET is then a number, except that an ENUM may be compared with a text; for a text
/// without a member the side has no meaning. A TIMESTAMP is compared as local time of the session's
/// zone and stored in UTC.
pub fn key_value(
    value: ValueRef<'_>,
    from: &ColumnType,
    to: &ColumnType,
    clock: &KeyClock<'_>,
) -> KeyValue {
    match to.kind {
        kind if kind.is_integer() => integer_key(value, to),
        TypeKind::Year => year_key(value),
        TypeKind::Bit | TypeKind::Set => {
            integer_key(value, &ColumnType::unsigned(TypeKind::BigInt))
        }
        TypeKind::Enum if from.kind.is_string() => member_key(value, from, to),
        TypeKind::Enum => integer_key(value, &ColumnType::unsigned(TypeKind::SmallInt)),
        TypeKind::Decimal => decimal_key(value, to),
        TypeKind::Double => match value {
            ValueRef::Bytes(bytes) => {
                KeyValue::Exact(Value::Double(value::number::parse_double(bytes).value))
            }
            value => KeyValue::Exact(Value::Double(domain::as_double(value))),
        },
        TypeKind::Time => time_key(&dated(value, from), to, clock),
        TypeKind::Timestamp => timestamp_key(&dated(value, from), to, clock),
        kind if kind.is_temporal() => {
            datetime_key(datetime_or_zero(&dated(value, from), clock), to)
        }
        _ => KeyValue::Exact(Value::Bytes(text_key(value, from, to))),
    }
}

/// The value from which a date is read: the text of an ENUM, SET or BIT, a YEAR as a date, else the
/// value itself.
fn dated(value: ValueRef<'_>, from: &ColumnType) -> Value {
    match from.kind {
        TypeKind::Enum | TypeKind::Set | TypeKind::Bit => {
            Value::Bytes(value.to_text(from).unwrap_or_default().into_owned())
        }
        TypeKind::Year => domain::year_as_date(value, from).to_value(),
        _ => value.to_value(),
    }
}

/// No key of a BIGINT is below its negative; twice as much is above all keys.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

fn integer_key(value: ValueRef<'_>, to: &ColumnType) -> KeyValue {
    let (floor, is_exact) = match value {
        ValueRef::Int(number) => (i128::from(number), true),
        ValueRef::UInt(number) => (i128::from(number), true),
        ValueRef::Double(number) => {
            // The exact integer, not the shortest digits that denote it.
            let floor = number.floor();
            if !(-TWO_TO_63..2.0 * TWO_TO_63).contains(&floor) {
                return beyond(floor);
            }
            let floor = match floor < 0.0 {
                true => i128::from(stdx::f64_to_i64(floor)),
                false => i128::from(stdx::f64_to_u64(floor)),
            };
            (floor, number.fract() == 0.0)
        }
        other => match other.to_decimal(&mut Warnings::new(0)) {
            Some(number) => decimal_floor(&number),
            None => return beyond(domain::as_double(other)),
        },
    };
    if floor < i128::from(to.integer_min()) {
        return KeyValue::BelowAll;
    }
    if floor > i128::from(to.integer_max()) {
        return KeyValue::AboveAll;
    }
    let key = if to.unsigned {
        Value::UInt(u64::try_from(floor).expect("checked against the range"))
    } else {
        Value::Int(i64::try_from(floor).expect("checked against the range"))
    };
    if is_exact {
        KeyValue::Exact(key)
    } else {
        KeyValue::Above(key)
    }
}

/// A key of a YEAR has two bytes.
fn year_key(value: ValueRef<'_>) -> KeyValue {
    match integer_key(value, &ColumnType::unsigned(TypeKind::SmallInt)) {
        KeyValue::Exact(Value::UInt(year)) if year > YEAR_MAX => KeyValue::AboveAll,
        key => key,
    }
}

/// The last year that a YEAR keeps.
const YEAR_MAX: u64 = 2155;

/// The greatest integer not above the number, and whether it equals the number.
fn decimal_floor(number: &Decimal) -> (i128, bool) {
    let beyond = if number.is_negative() {
        i128::MIN
    } else {
        i128::MAX
    };
    let Ok(floor) = number.round(0, Rounding::Floor) else {
        return (beyond, false);
    };
    let whole = floor.to_string().parse::<i128>().unwrap_or(beyond);
    (whole, floor == *number)
}

/// The side on which an infinite number lies.
fn beyond(number: f64) -> KeyValue {
    if number < 0.0 {
        KeyValue::BelowAll
    } else {
        KeyValue::AboveAll
    }
}

fn decimal_key(value: ValueRef<'_>, to: &ColumnType) -> KeyValue {
    let Some(number) = value.to_decimal(&mut Warnings::new(0)) else {
        return beyond(domain::as_double(value));
    };
    let precision = u8::try_from(to.length).unwrap_or(Decimal::PRECISION_MAX);
    let greatest = Decimal::greatest(precision, to.decimals);
    if number > greatest {
        return KeyValue::AboveAll;
    }
    if number < greatest.negated() {
        return KeyValue::BelowAll;
    }
    let floor = number
        .round(i32::from(to.decimals), Rounding::Floor)
        .expect("between the least and the greatest of the column");
    if floor == number {
        KeyValue::Exact(Value::Decimal(floor))
    } else {
        KeyValue::Above(Value::Decimal(floor))
    }
}

/// The text in the form of a comparison in the column's collation
/// ([`Domain::text_in`](crate::domain::Domain::text_in)).
fn text_key(value: ValueRef<'_>, from: &ColumnType, to: &ColumnType) -> Vec<u8> {
    let bytes = match value {
        ValueRef::Bytes(bytes) => bytes.to_vec(),
        other => other.to_text(from).unwrap_or_default().into_owned(),
    };
    domain::converted_text(&bytes, from, to.charset()).unwrap_or(bytes)
}

/// The number of the member whose name equals the text. An empty text equals the number 0, which
/// stands for an invalid member; the planner asks only if no member is empty.
fn member_key(value: ValueRef<'_>, from: &ColumnType, to: &ColumnType) -> KeyValue {
    let text = text_key(value, from, to);
    let mut names = iter::once(&[][..]).chain(to.members().iter().map(|name| &**name));
    match names.position(|name| to.collation.equal(name, &text)) {
        Some(number) => KeyValue::Exact(Value::UInt(stdx::to_u64(number))),
        None => KeyValue::AboveAll,
    }
}

fn time_key(value: &Value, to: &ColumnType, clock: &KeyClock<'_>) -> KeyValue {
    // An invalid time compares as zero ([`Domain::bring`](crate::domain::Domain::bring)).
    let time = match domain::plain_temporal(value.as_ref(), to.kind, clock.today) {
        Some(Value::Time(time)) => time,
        _ => Time::ZERO,
    };
    let key = time.truncated(to.decimals);
    if key == time {
        KeyValue::Exact(Value::Time(key))
    } else if time.is_negative() {
        // Truncated towards zero, so the key is above the time; the previous key is below.
        KeyValue::Above(Value::Time(key.before(to.decimals)))
    } else {
        KeyValue::Above(Value::Time(key))
    }
}

/// An invalid date compares as the zero date ([`Domain::bring`](crate::domain::Domain::bring)).
fn datetime_or_zero(value: &Value, clock: &KeyClock<'_>) -> DateTime {
    match domain::plain_temporal(value.as_ref(), TypeKind::DateTime, clock.today) {
        Some(Value::DateTime(time)) => time,
        _ => DateTime::ZERO,
    }
}

fn timestamp_key(value: &Value, to: &ColumnType, clock: &KeyClock<'_>) -> KeyValue {
    let wall = datetime_or_zero(value, clock);
    if wall == DateTime::ZERO {
        return KeyValue::Exact(Value::DateTime(wall));
    }
    if let Some(first) = first_day_behind(wall.date()) {
        let first = first.at_midnight();
        return match timestamp_key(&Value::DateTime(first), to, clock) {
            KeyValue::Exact(Value::DateTime(key)) => {
                let unit = 10_i64.pow(6 - u32::from(to.decimals.min(6)));
                let before = key.plus_micros(-unit).unwrap_or(DateTime::ZERO);
                KeyValue::Above(Value::DateTime(before))
            }
            key => key,
        };
    }
    match clock.zone.to_utc(wall) {
        Some(utc) if is_timestamp(utc) => datetime_key(utc, to),
        // Before the first second only the zero value can be stored.
        _ if wall.date().year() < 1971 => KeyValue::Above(Value::DateTime(DateTime::ZERO)),
        _ => KeyValue::AboveAll,
    }
}

/// The first day after an invalid date: of that month or year if the day or month is missing, of
/// the next month if the day is too large. `None` for a valid date.
fn first_day_behind(date: Date) -> Option<Date> {
    let (year, month) = (date.year(), date.month());
    if month == 0 || date.day() == 0 {
        return Some(Date::new(year, month.max(1), 1));
    }
    if date.day() <= days_in_month(year, month) {
        return None;
    }
    // Every day of December is valid.
    Some(Date::new(year, month + 1, 1))
}

fn datetime_key(time: DateTime, to: &ColumnType) -> KeyValue {
    let (key, is_exact) = if to.kind == TypeKind::Date {
        (Value::Date(time.date()), time.time().micros() == 0)
    } else {
        let key = time.truncated(to.decimals);
        (Value::DateTime(key), key == time)
    };
    if is_exact {
        KeyValue::Exact(key)
    } else {
        KeyValue::Above(key)
    }
}

/// The range of strings that share a LIKE pattern's prefix up to its first wildcard. It has a lower
/// end and, if the collation has a greatest string, an upper end. `None` if the pattern begins with
/// a wildcard. The range may hold strings that do not match; no match is outside. `from` is the
/// pattern's type; it is read as in a comparison in the column's collation.
pub fn like_prefix(
    pattern: ValueRef<'_>,
    from: &ColumnType,
    column: &ColumnType,
) -> Option<(Value, Option<Value>)> {
    let ValueRef::Bytes(_) = pattern else {
        return None;
    };
    let pattern = text_key(pattern, from, column);
    let mut prefix = Vec::with_capacity(pattern.len());
    let mut bytes = pattern.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'%' | b'_' => break,
            b'\\' => prefix.extend(bytes.next()),
            byte => prefix.push(byte),
        }
    }
    if prefix.is_empty() {
        return None;
    }
    let charset = column.charset();
    let room = stdx::to_usize(column.length).saturating_sub(charset.char_count(&prefix));
    let fill = room.min(TAIL_CHARS_MAX);
    let mut lower = prefix.clone();
    // If trailing blanks do not count, texts below a blank must be included, however many such
    // characters follow: C programs pad their texts with zeros.
    if let Some(lowest) = column.collation.lowest_tail() {
        for _ in 0..room.min(KEY_CHARS_MAX) {
            charset.encode(lowest, &mut lower);
        }
    }
    let mut upper = prefix;
    let is_binary = column.collation == column.collation.binary_twin();
    let highest = if is_binary {
        HIGHEST_CODE
    } else {
        HIGHEST_WEIGHT
    };
    for _ in 0..fill {
        if !charset.encode(highest, &mut upper) {
            return Some((Value::Bytes(lower), None));
        }
    }
    let is_known = is_binary || column.collation == CollationId::UTF8MB4_GENERAL_CI;
    Some((Value::Bytes(lower), is_known.then_some(Value::Bytes(upper))))
}

/// No key has more characters, since it has at most 3072 bytes.
const KEY_CHARS_MAX: usize = 3072;

/// How many greatest characters follow the prefix of an upper bound. Only a text with as many
/// noncharacters there (U+FFFF, U+10FFFF) would need more.
const TAIL_CHARS_MAX: usize = 64;

/// The last code point, the greatest by number.
const HIGHEST_CODE: u32 = 0x10_FFFF;

/// The character with the greatest weight in `general_ci` (those beyond the basic plane share the
/// weight of U+FFFD).
const HIGHEST_WEIGHT: u32 = 0xFFFF;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(zone: &Zone) -> KeyClock<'_> {
        let today = Date::new(2024, 5, 6);
        KeyClock { zone, today }
    }

    #[test]
    fn a_key_between_two_integers_stands_above_the_lower() {
        let int = ColumnType::new(TypeKind::TinyInt);
        let double = ColumnType::new(TypeKind::Double);
        let key = |number| key_value(ValueRef::Double(number), &double, &int, &at(&Zone::Utc));
        assert_eq!(key(1.5), KeyValue::Above(Value::Int(1)));
        assert_eq!(key(-1.5), KeyValue::Above(Value::Int(-2)));
        assert_eq!(key(2.0), KeyValue::Exact(Value::Int(2)));
        assert_eq!(key(128.0), KeyValue::AboveAll);
        assert_eq!(key(-129.0), KeyValue::BelowAll);
        let big = ColumnType::new(TypeKind::BigInt);
        let key = |number| key_value(ValueRef::Double(number), &double, &big, &at(&Zone::Utc));
        assert_eq!(key(-TWO_TO_63), KeyValue::Exact(Value::Int(i64::MIN)));
        assert_eq!(key(-TWO_TO_63 * 1.001), KeyValue::BelowAll);
        assert_eq!(key(TWO_TO_63), KeyValue::AboveAll);
        assert_eq!(key(f64::INFINITY), KeyValue::AboveAll);
        let big = ColumnType::unsigned(TypeKind::BigInt);
        let key = |number| key_value(ValueRef::Double(number), &double, &big, &at(&Zone::Utc));
        assert_eq!(key(TWO_TO_63), KeyValue::Exact(Value::UInt(1 << 63)));
        assert_eq!(key(2.0 * TWO_TO_63), KeyValue::AboveAll);
    }

    #[test]
    fn every_value_has_a_side_of_each_key() {
        let text = ColumnType::varchar(40, CollationId::UTF8MB4_GENERAL_CI);
        let key = |bytes: &'static [u8], to: &ColumnType, clock: &KeyClock<'_>| {
            key_value(ValueRef::Bytes(bytes), &text, to, clock)
        };
        let big = ColumnType::unsigned(TypeKind::BigInt);
        let number = 9_900_000_000_000_000_001;
        let exact = KeyValue::Exact(Value::UInt(number));
        assert_eq!(key(b"9900000000000000001", &big, &at(&Zone::Utc)), exact);
        assert_eq!(key(b"1e30", &big, &at(&Zone::Utc)), KeyValue::AboveAll);
        assert_eq!(key(b"-1e30", &big, &at(&Zone::Utc)), KeyValue::BelowAll);

        let time = ColumnType::new(TypeKind::Time);
        let before = Time::from_micros(-3_601_000_000);
        let above = KeyValue::Above(Value::Time(before));
        assert_eq!(key(b"-01:00:00.5", &time, &at(&Zone::Utc)), above);

        let stamp = ColumnType::new(TypeKind::Timestamp);
        let east = Zone::from_name("+02:00").expect("an offset");
        let noon = DateTime::from_unix_micros(1_577_880_000_000_000).expect("2020-01-01 12:00");
        let exact = KeyValue::Exact(Value::DateTime(noon));
        assert_eq!(key(b"2020-01-01 14:00:00", &stamp, &at(&east)), exact);
        assert_eq!(key(b"2020-01-01 12:00:00", &stamp, &at(&Zone::Utc)), exact);
        assert_eq!(
            key(b"2040-01-01", &stamp, &at(&Zone::Utc)),
            KeyValue::AboveAll
        );
        let none = KeyValue::Above(Value::DateTime(DateTime::ZERO));
        assert_eq!(key(b"1960-01-01", &stamp, &at(&Zone::Utc)), none);

        let latin1 = ColumnType::varchar(40, CollationId::LATIN1_SWEDISH_CI);
        let bytes = KeyValue::Exact(Value::Bytes(b"\xe9".to_vec()));
        assert_eq!(key("\u{e9}".as_bytes(), &latin1, &at(&Zone::Utc)), bytes);
    }

    #[test]
    fn the_key_of_a_member_is_its_number() {
        let names = [&b"a"[..], b"Bc", b"7"].map(Box::from).to_vec();
        let column = ColumnType::named(TypeKind::Enum, names, CollationId::UTF8MB4_GENERAL_CI);
        let text = ColumnType::varchar(40, CollationId::UTF8MB4_GENERAL_CI);
        let number = ColumnType::decimal(10, 2);
        let clock = at(&Zone::Utc);
        let exact = |number| KeyValue::Exact(Value::UInt(number));
        let of_text = |bytes| key_value(ValueRef::Bytes(bytes), &text, &column, &clock);
        assert_eq!(of_text(b"a"), exact(1));
        assert_eq!(of_text(b"bC  "), exact(2));
        assert_eq!(of_text(b"7"), exact(3));
        assert_eq!(of_text(b" "), exact(0));
        assert_eq!(of_text(b"1"), KeyValue::AboveAll);
        let of_member = |value| key_value(ValueRef::UInt(value), &column, &column, &clock);
        assert_eq!(of_member(2), exact(2));
        let of_number = |digits: &str| {
            let value = Value::Decimal(digits.parse().unwrap());
            key_value(value.as_ref(), &number, &column, &clock)
        };
        assert_eq!(of_number("2.00"), exact(2));
        assert_eq!(of_number("1.5"), KeyValue::Above(Value::UInt(1)));
        assert_eq!(of_number("-1"), KeyValue::BelowAll);
        assert_eq!(of_number("65536"), KeyValue::AboveAll);
    }

    #[test]
    fn what_begins_as_a_pattern_does_is_in_its_range_however_long_that_is() {
        for collation in [CollationId::UTF8MB4_GENERAL_CI, CollationId::UTF8MB4_BIN] {
            let column = ColumnType::varchar(200, collation);
            for count in [1, 63, 64, 65, 199, 200] {
                let prefix = "a".repeat(count);
                let pattern = format!("{prefix}%");
                let range = like_prefix(ValueRef::Bytes(pattern.as_bytes()), &column, &column);
                let (lower, upper) = range.expect("it has a prefix");
                let upper = upper.expect("an end that can be named");
                let is_within = |text: &str| {
                    let text = ValueRef::Bytes(text.as_bytes());
                    let is_behind = compare_values(lower.as_ref(), text, &column).is_le();
                    is_behind && compare_values(text, upper.as_ref(), &column).is_le()
                };
                assert!(is_within(&prefix));
                assert!(is_within(&"a".repeat(200)), "{count} characters");
                assert!(is_within(&format!(
                    "{prefix}{}",
                    "\u{1f600}".repeat(200 - count)
                )));
                assert!(!is_within(&format!("{}b", &prefix[1..])));
            }
        }
    }

    #[test]
    fn a_pattern_is_brought_into_the_columns_character_set() {
        let column = ColumnType::varchar(1, CollationId::UTF8MB4_BIN);
        let latin1 = ColumnType::varchar(2, CollationId::LATIN1_SWEDISH_CI);
        let range = like_prefix(ValueRef::Bytes(b"\xe9%"), &latin1, &column);
        let (lower, _) = range.expect("it has a prefix");
        assert_eq!(lower, Value::bytes("\u{e9}"));
    }

    #[test]
    fn equal_values_have_equal_group_keys() {
        let text = ColumnType::varchar(10, CollationId::UTF8MB4_GENERAL_CI);
        let key = |value: ValueRef<'_>, column_type: &ColumnType| {
            let mut key = Vec::new();
            append_group_key(value, column_type, &mut key);
            key
        };
        assert_eq!(
            key(ValueRef::Bytes(b"Ab "), &text),
            key(ValueRef::Bytes(b"aB"), &text)
        );
        let (short, long): (Decimal, Decimal) = ("1.5".parse().unwrap(), "1.500".parse().unwrap());
        let decimal = ColumnType::decimal(10, 3);
        let (short, long) = (Value::Decimal(short), Value::Decimal(long));
        assert_eq!(key(short.as_ref(), &decimal), key(long.as_ref(), &decimal));
        let big = ColumnType::new(TypeKind::BigInt);
        assert_eq!(key(ValueRef::Int(5), &big), key(ValueRef::UInt(5), &big));
    }
}
