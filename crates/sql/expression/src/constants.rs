//! [`Constants`]: many values known at plan time, side by side.
//!
//! The members of a long `IN` and the rows of a long `VALUES`. An expression takes more than a
//! hundred bytes. Here a value takes eight bytes, two for its type, and its text. Equal types are
//! stored once.
//!
//! ```text
//! words: the value by its form: a number, a moment, or the position of its bytes
//! types: the index in `kinds` of the value's form and type
//! bytes: of texts and exact numbers: four bytes of length, the bytes; chunk after chunk
//! ```
//!
//! (I1) `words` and `types` have the same length.
//! (I2) A word for bytes has the number of their chunk in its upper half, the offset in its lower.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use stdx::{ChunkedVec, DeferredDropVec};
use value::decimal::{DecimalRef, append_binary, binary_bytes};
use value::{ColumnType, Date, DateTime, Time, ValueRef};

/// The allocation unit for bytes.
const CHUNK_BYTES: usize = 256 << 10;

/// The length field before the bytes.
const LENGTH_BYTES: usize = 4;

/// Values side by side.
#[derive(Debug, Clone, Default)]
pub struct Constants {
    words: ChunkedVec<u64>,
    types: ChunkedVec<u16>,
    bytes: DeferredDropVec<Vec<u8>>,
    /// In the order of first insertion.
    kinds: Vec<Kind>,
    /// Indexes into `kinds`.
    places: HashMap<Key, u16, RandomState>,
}

/// A form and a type that some of the values have.
#[derive(Debug, Clone, PartialEq)]
struct Kind {
    form: Form,
    column_type: ColumnType,
    /// How many of the values have it.
    count: usize,
}

/// The variant of [`ValueRef`] of a value; `DEFAULT` is not a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Form {
    Default,
    Null,
    Int,
    UInt,
    Float,
    Double,
    Decimal,
    Bytes,
    Date,
    Time,
    DateTime,
}

/// What distinguishes kinds. Constants have no members of an ENUM.
type Key = (Form, value::TypeKind, bool, u32, u8, value::CollationId);

/// Two lists are equal if they hold the same values of the same types in the same order.
impl PartialEq for Constants {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && (0..self.len()).all(|place| self.get(place) == other.get(place))
    }
}

impl Constants {
    /// How many values there are.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// True if there are no values.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Bytes that are allocated.
    pub fn memory_bytes(&self) -> usize {
        let chunks = self.bytes.iter().map(Vec::capacity);
        self.words.memory_bytes()
            + self.types.memory_bytes()
            + chunks.sum::<usize>()
            + self.kinds.capacity() * size_of::<Kind>()
    }

    /// Appends a value. Returns false, and appends nothing, if there is no room for another type.
    pub fn push(&mut self, value: ValueRef<'_>, column_type: &ColumnType) -> bool {
        let Some(kind) = self.kind(form_of(value), column_type) else {
            return false;
        };
        let word = match value {
            ValueRef::Null => 0,
            ValueRef::Int(number) => number.cast_unsigned(),
            ValueRef::UInt(number) => number,
            ValueRef::Float(number) => u64::from(number.to_bits()),
            ValueRef::Double(number) => number.to_bits(),
            ValueRef::Decimal(number) => {
                let number = number.to_decimal();
                let scale = column_type.decimals;
                let precision = precision_of(column_type);
                let mut packed = Vec::with_capacity(binary_bytes(precision, scale));
                if number.scale() != scale
                    || append_binary(&number, precision, scale, &mut packed).is_err()
                {
                    return false;
                }
                self.push_bytes(&packed)
            }
            ValueRef::Bytes(bytes) => self.push_bytes(bytes),
            ValueRef::Date(date) => u64::from(date.packed()),
            ValueRef::Time(time) => time.micros().cast_unsigned(),
            ValueRef::DateTime(moment) => moment.packed(),
        };
        self.add(word, kind);
        true
    }

    /// Appends `DEFAULT`. Returns false as [`Constants::push`] does.
    pub fn push_default(&mut self) -> bool {
        let column_type = ColumnType::new(value::TypeKind::Null);
        let Some(kind) = self.kind(Form::Default, &column_type) else {
            return false;
        };
        self.add(0, kind);
        true
    }

    fn add(&mut self, word: u64, kind: u16) {
        self.words.push(word);
        self.types.push(kind);
        self.kinds[usize::from(kind)].count += 1;
        assert_eq!(self.words.len(), self.types.len(), "(I1)");
    }

    /// The index of a kind, which is added if it is missing; `None` if there are too many.
    fn kind(&mut self, form: Form, column_type: &ColumnType) -> Option<u16> {
        assert!(column_type.members.is_none(), "a constant is of no ENUM");
        let key = (
            form,
            column_type.kind,
            column_type.unsigned,
            column_type.length,
            column_type.decimals,
            column_type.collation,
        );
        if let Some(place) = self.places.get(&key) {
            return Some(*place);
        }
        let place = u16::try_from(self.kinds.len()).ok()?;
        self.kinds.push(Kind {
            form,
            column_type: column_type.clone(),
            count: 0,
        });
        self.places.insert(key, place);
        Some(place)
    }

    fn push_bytes(&mut self, bytes: &[u8]) -> u64 {
        let needed = LENGTH_BYTES + bytes.len();
        let has_room = |chunk: &Vec<u8>| needed <= chunk.capacity() - chunk.len();
        if !self.bytes.last().is_some_and(has_room) {
            self.bytes.push(Vec::with_capacity(needed.max(CHUNK_BYTES)));
        }
        let chunk_number = stdx::to_u64(self.bytes.len() - 1);
        let chunk = self.bytes.last_mut().expect("one was made if need be");
        let start = stdx::to_u64(chunk.len());
        chunk.extend_from_slice(&stdx::to_u32(bytes.len()).to_le_bytes());
        chunk.extend_from_slice(bytes);
        (chunk_number << 32) | start
    }

    fn bytes(&self, word: u64) -> &[u8] {
        let chunk = &self.bytes[stdx::to_usize(word >> 32)];
        let at = stdx::to_usize(word & u64::from(u32::MAX));
        let (length, rest) = chunk[at..]
            .split_first_chunk::<LENGTH_BYTES>()
            .expect("a length stands before its bytes");
        &rest[..stdx::to_usize(u32::from_le_bytes(*length))]
    }

    /// A value and its type; `None` is `DEFAULT`.
    ///
    /// # Panics
    /// If there is no such value.
    #[inline]
    pub fn get(&self, place: usize) -> Option<(ValueRef<'_>, &ColumnType)> {
        let Kind {
            form, column_type, ..
        } = &self.kinds[usize::from(self.types[place])];
        let word = self.words[place];
        let value = match form {
            Form::Default => return None,
            Form::Null => ValueRef::Null,
            Form::Int => ValueRef::Int(word.cast_signed()),
            Form::UInt => ValueRef::UInt(word),
            Form::Float => ValueRef::Float(f32::from_bits(stdx::low_u32(word))),
            Form::Double => ValueRef::Double(f64::from_bits(word)),
            Form::Decimal => ValueRef::Decimal(DecimalRef::Packed {
                precision: precision_of(column_type),
                scale: column_type.decimals,
                bytes: self.bytes(word),
            }),
            Form::Bytes => ValueRef::Bytes(self.bytes(word)),
            Form::Date => {
                ValueRef::Date(Date::from_packed(stdx::low_u32(word)).expect("it was a date"))
            }
            Form::Time => ValueRef::Time(Time::from_micros(word.cast_signed())),
            Form::DateTime => {
                ValueRef::DateTime(DateTime::from_packed(word).expect("it was a moment"))
            }
        };
        Some((value, column_type))
    }

    /// A value that is not `DEFAULT`.
    ///
    /// # Panics
    /// If it is, or if there is no such value.
    pub fn value(&self, place: usize) -> (ValueRef<'_>, &ColumnType) {
        self.get(place).expect("a list has no DEFAULT")
    }

    /// The index of a value's type in the order of [`Constants::column_types`].
    pub fn type_number(&self, place: usize) -> usize {
        usize::from(self.types[place])
    }

    /// The types of the values, each once, in the order of first insertion.
    pub fn column_types(&self) -> impl Iterator<Item = &ColumnType> {
        self.kinds.iter().map(|kind| &kind.column_type)
    }

    /// True if one of the values is NULL.
    pub fn has_null(&self) -> bool {
        let mut kinds = self.kinds.iter();
        kinds.any(|kind| kind.form == Form::Null)
    }
}

/// The digits that a DECIMAL of the type may have, in its storage form.
fn precision_of(column_type: &ColumnType) -> u8 {
    u8::try_from(column_type.length).unwrap_or(u8::MAX)
}

fn form_of(value: ValueRef<'_>) -> Form {
    match value {
        ValueRef::Null => Form::Null,
        ValueRef::Int(_) => Form::Int,
        ValueRef::UInt(_) => Form::UInt,
        ValueRef::Float(_) => Form::Float,
        ValueRef::Double(_) => Form::Double,
        ValueRef::Decimal(_) => Form::Decimal,
        ValueRef::Bytes(_) => Form::Bytes,
        ValueRef::Date(_) => Form::Date,
        ValueRef::Time(_) => Form::Time,
        ValueRef::DateTime(_) => Form::DateTime,
    }
}

#[cfg(test)]
mod tests {
    use value::{CollationId, Decimal, TypeKind, Value};

    use super::*;

    fn text(length: usize) -> (Value, ColumnType) {
        let column_type = ColumnType::varchar(stdx::to_u32(length), CollationId::BINARY);
        (Value::Bytes(vec![b'x'; length]), column_type)
    }

    fn number(number: i64) -> (Value, ColumnType) {
        (Value::Int(number), ColumnType::new(TypeKind::BigInt))
    }

    #[test]
    fn values_come_back_as_they_went_in() {
        let decimal = |text: &str| {
            let number: Decimal = text.parse().unwrap();
            let column_type = ColumnType::decimal(10, number.scale());
            (Value::Decimal(number), column_type)
        };
        let moment = DateTime::from_packed(0).unwrap();
        let mut values = vec![
            (Value::Null, ColumnType::new(TypeKind::Null)),
            number(-1),
            number(i64::MIN),
            (
                Value::UInt(u64::MAX),
                ColumnType::unsigned(TypeKind::BigInt),
            ),
            (Value::Double(-0.5), ColumnType::new(TypeKind::Double)),
            (Value::Float(0.25), ColumnType::new(TypeKind::Float)),
            decimal("1.50"),
            decimal("-12345.6"),
            (
                Value::Date(Date::default()),
                ColumnType::new(TypeKind::Date),
            ),
            (
                Value::Time(Time::from_micros(-5)),
                ColumnType::temporal(TypeKind::Time, 6),
            ),
            (
                Value::DateTime(moment),
                ColumnType::temporal(TypeKind::DateTime, 0),
            ),
        ];
        values.extend((0..300).map(text));
        values.push(text(CHUNK_BYTES + 1));
        values.extend((0..70_000).map(number));
        let mut constants = Constants::default();
        for (value, column_type) in &values {
            assert!(constants.push(value.as_ref(), column_type));
        }
        assert!(constants.push_default());
        assert_eq!(constants.len(), values.len() + 1);
        for (place, (value, column_type)) in values.iter().enumerate() {
            let (found, its_type) = constants.value(place);
            assert_eq!((&found.to_value(), its_type), (value, column_type));
        }
        assert_eq!(constants.get(values.len()), None);
        assert!(constants.has_null());
        assert_eq!(constants, constants.clone());
    }

    #[test]
    fn a_number_takes_ten_bytes_and_a_text_four_more() {
        let mut numbers = Constants::default();
        for it in 0..1_000_000 {
            assert!(numbers.push(ValueRef::Int(it), &ColumnType::new(TypeKind::BigInt)));
        }
        assert!(
            numbers.memory_bytes() < 11 * 1_000_000,
            "{}",
            numbers.memory_bytes()
        );
        let mut texts = Constants::default();
        for _ in 0..1_000_000 {
            assert!(texts.push(
                ValueRef::Bytes(b"x"),
                &ColumnType::varchar(1, CollationId::BINARY)
            ));
        }
        assert!(
            texts.memory_bytes() < 16 * 1_000_000,
            "{}",
            texts.memory_bytes()
        );
    }

    #[test]
    fn too_many_types_are_refused() {
        let mut constants = Constants::default();
        let bound = usize::from(u16::MAX) + 1;
        let typed = |length| ColumnType::varchar(stdx::to_u32(length), CollationId::BINARY);
        assert!((0..bound).all(|length| constants.push(ValueRef::Bytes(b""), &typed(length))));
        assert!(!constants.push(ValueRef::Bytes(b""), &typed(bound)));
        assert!(constants.push(ValueRef::Bytes(b""), &typed(bound - 1)));
        assert_eq!(constants.len(), bound + 1);
    }
}
