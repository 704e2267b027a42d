//! Result types: type, length and decimals of an expression, as clients see them.

use value::temporal::{parse_datetime, parse_time};
use value::{CollationId, ColumnType, Decimal, SqlCondition, TypeKind};

use crate::bind::{Arg, Binding};

/// The most fractional digits of seconds in a text.
const FSP_MAX: u8 = 6;
/// Most characters of a VARCHAR expression; longer ones are LONGTEXT.
const VARCHAR_CHARS_MAX: u64 = 65_535 / 4;

/// The domain of a calculation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numeric {
    /// 64 bits.
    Integer,
    /// Exact.
    Decimal,
    /// Double precision.
    Double,
}

/// The domain of one argument in a calculation.
pub(crate) fn numeric(column: &ColumnType) -> Numeric {
    match column.kind {
        TypeKind::Decimal => Numeric::Decimal,
        TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp if column.decimals > 0 => {
            Numeric::Decimal
        }
        TypeKind::Float | TypeKind::Double | TypeKind::Null => Numeric::Double,
        kind if kind.is_bytes() => Numeric::Double,
        _ => Numeric::Integer,
    }
}

/// The common domain of two.
pub(crate) fn meet(left: Numeric, right: Numeric) -> Numeric {
    match (left, right) {
        (Numeric::Double, _) | (_, Numeric::Double) => Numeric::Double,
        (Numeric::Decimal, _) | (_, Numeric::Decimal) => Numeric::Decimal,
        _ => Numeric::Integer,
    }
}

/// The digits before and after the point that a type may have.
pub(crate) fn digits(column: &ColumnType) -> (u32, u32) {
    let scale = match column.kind {
        TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp | TypeKind::Decimal => {
            u32::from(column.decimals)
        }
        _ => 0,
    };
    let whole = match column.kind {
        TypeKind::TinyInt => column.length.min(3),
        TypeKind::SmallInt => column.length.min(5),
        TypeKind::MediumInt => column.length.min(8),
        TypeKind::Int => column.length.min(10),
        TypeKind::BigInt if column.unsigned => column.length.min(20),
        TypeKind::BigInt => column.length.min(19),
        TypeKind::Year => column.length,
        TypeKind::Bit => column.length,
        TypeKind::Decimal => {
            let precision = column.length.min(u32::from(Decimal::PRECISION_MAX));
            precision.saturating_sub(scale)
        }
        TypeKind::Date => 8,
        TypeKind::Time => 7,
        TypeKind::DateTime | TypeKind::Timestamp => 14,
        TypeKind::Null => 0,
        TypeKind::Enum => 5,
        _ => 20,
    };
    (whole, scale)
}

/// DECIMAL with this many digits before and after the point, up to the maximum.
pub(crate) fn decimal_type(whole: u32, scale: u32) -> ColumnType {
    let scale = scale.min(u32::from(Decimal::SCALE_MAX));
    let precision = (whole + scale).clamp(1, u32::from(Decimal::PRECISION_MAX));
    let precision = precision.max(scale);
    ColumnType::decimal(
        stdx::low_u8(u64::from(precision)),
        stdx::low_u8(u64::from(scale)),
    )
}

/// An integer with this display width; INT if it surely fits.
pub(crate) fn integer_type(length: u32, unsigned: bool) -> ColumnType {
    let kind = if length < 10 {
        TypeKind::Int
    } else {
        TypeKind::BigInt
    };
    of_length(kind, length, unsigned)
}

/// An integer type with that length.
pub(crate) fn of_length(kind: TypeKind, length: u32, unsigned: bool) -> ColumnType {
    let mut column = ColumnType::new(kind);
    column.length = length;
    column.unsigned = unsigned;
    column
}

/// The DOUBLE type of an expression.
pub(crate) fn double_type() -> ColumnType {
    let mut column = ColumnType::new(TypeKind::Double);
    column.length = 23;
    column
}

/// Text of at most this many characters.
pub(crate) fn text_type(chars: u64, collation: CollationId) -> ColumnType {
    let (kind, chars) = if chars <= VARCHAR_CHARS_MAX {
        (TypeKind::VarChar, stdx::low_u32(chars))
    } else {
        (TypeKind::LongText, u32::try_from(chars).unwrap_or(u32::MAX))
    };
    let mut column = ColumnType::text(kind, chars, collation);
    column.decimals = ColumnType::TEXT_DECIMALS;
    column
}

impl Arg {
    /// The most characters of its text.
    pub fn text_chars(&self) -> u32 {
        text_chars(self)
    }
}

impl Binding<'_> {
    /// The result is text of this many characters, with the mix of some arguments' collations.
    pub(crate) fn text_of(
        &mut self,
        range: std::ops::Range<usize>,
        chars: u64,
    ) -> Result<(), SqlCondition> {
        self.rule = self.mixed(range)?;
        self.texts = self.rule.collation;
        self.column = text_type(chars, self.rule.collation);
        Ok(())
    }
}

/// The most characters of an argument's text.
pub(crate) fn text_chars(arg: &Arg) -> u32 {
    let column = &arg.column;
    match column.kind {
        TypeKind::Decimal => column.length + 1 + u32::from(column.decimals > 0),
        TypeKind::Bit => column.length.div_ceil(8),
        _ => column.length,
    }
}

/// The same as a wide number, for sums.
pub(crate) fn chars(arg: &Arg) -> u64 {
    u64::from(text_chars(arg))
}

/// Fractional digits of an argument as a temporal value.
pub(crate) fn fsp(arg: &Arg) -> u8 {
    match arg.column.kind {
        TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp | TypeKind::Decimal => {
            arg.column.decimals.min(FSP_MAX)
        }
        TypeKind::Float | TypeKind::Double => arg.column.decimals.min(FSP_MAX),
        // Their members are usually not dates.
        TypeKind::Enum | TypeKind::Set => 0,
        kind if kind.is_string() => match &arg.constant {
            Some(value::Value::Bytes(text)) if is_temporal_text(text) => digits_after_point(text),
            _ => FSP_MAX,
        },
        _ => 0,
    }
}

/// Fractional digits of a number of seconds; for a constant text, those that it has.
pub(crate) fn fsp_of_seconds(arg: &Arg) -> u8 {
    match &arg.constant {
        Some(value::Value::Bytes(text)) => digits_after_point(text),
        _ if arg.is_text() => 0,
        _ => fsp(arg),
    }
}

fn digits_after_point(text: &[u8]) -> u8 {
    let point = text.iter().rposition(|byte| *byte == b'.');
    let digits = point.map_or(0, |at| {
        text[at + 1..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    });
    stdx::low_u8(digits.min(6) as u64)
}

/// True if a text is a date or a time, so that its digits are known.
fn is_temporal_text(text: &[u8]) -> bool {
    parse_datetime(text).is_some() || parse_time(text).is_some()
}

pub(crate) type Inferred = Result<(), SqlCondition>;

/// 0, 1 or NULL.
pub(crate) fn boolean(binding: &mut Binding<'_>) -> Inferred {
    binding.column = of_length(TypeKind::Int, 1, false);
    Ok(())
}

/// 0 or 1, never NULL.
pub(crate) fn certain(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = false;
    boolean(binding)
}

/// A double.
pub(crate) fn double(binding: &mut Binding<'_>) -> Inferred {
    binding.column = double_type();
    Ok(())
}

/// A double that is NULL outside of the function's domain.
pub(crate) fn partial_double(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = true;
    double(binding)
}

/// An INT of this display width, computed from texts.
pub(crate) fn integer_of_texts<const LENGTH: u32>(binding: &mut Binding<'_>) -> Inferred {
    let rule = binding.mixed(0..binding.args.len())?;
    binding.texts = rule.collation;
    binding.column = of_length(TypeKind::Int, LENGTH, false);
    Ok(())
}

/// An INT of this display width.
pub(crate) fn integer<const LENGTH: u32>(binding: &mut Binding<'_>) -> Inferred {
    binding.column = of_length(TypeKind::Int, LENGTH, false);
    Ok(())
}

/// The same, NULL if the argument is not a date.
pub(crate) fn partial_integer<const LENGTH: u32>(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = true;
    integer::<LENGTH>(binding)
}

/// ASCII text in the connection's character set.
pub(crate) fn connection_text(binding: &mut Binding<'_>, chars: u64) -> Inferred {
    binding.rule = value::collation::TextRule {
        collation: binding.env.collation,
        coercibility: value::collation::Coercibility::Coercible,
        ascii_only: true,
    };
    binding.column = text_type(chars, binding.env.collation);
    Ok(())
}

/// The common type of several values: for CASE, IF, COALESCE, GREATEST, UNION.
///
/// # Errors
/// 1267 if the collations of texts do not mix.
pub(crate) fn union_type(binding: &mut Binding<'_>, indexes: &[usize]) -> Inferred {
    let args: Vec<&Arg> = indexes.iter().map(|index| &binding.args[*index]).collect();
    let known: Vec<&Arg> = args
        .iter()
        .copied()
        .filter(|arg| arg.column.kind != TypeKind::Null)
        .collect();
    let Some(first) = known.first() else {
        binding.column = ColumnType::new(TypeKind::Null);
        return Ok(());
    };
    if known.iter().all(|arg| arg.column.kind == TypeKind::Bit) {
        // Clients read it as a number, unlike the bytes of a column.
        binding.column = of_length(TypeKind::BigInt, 21, true);
        return Ok(());
    }
    if known
        .iter()
        .all(|arg| arg.column.kind == TypeKind::Geometry)
    {
        let is_same = known.iter().all(|arg| arg.column == first.column);
        let any = ColumnType::new(TypeKind::Geometry);
        binding.column = if is_same { first.column.clone() } else { any };
        binding.rule = first.rule;
        return Ok(());
    }
    if known.iter().all(|arg| arg.column == first.column) {
        binding.column = first.column.clone();
        if binding.column.kind.is_string() {
            return union_text(
                binding,
                indexes,
                &known.into_iter().cloned().collect::<Vec<_>>(),
            );
        }
        return Ok(());
    }
    let kinds = known.iter().map(|arg| arg.column.kind);
    if kinds.clone().all(TypeKind::is_temporal) {
        binding.column = union_temporal(&known);
        return Ok(());
    }
    if kinds.clone().all(TypeKind::is_number) {
        binding.column = union_numeric(&known);
        return Ok(());
    }
    union_text(
        binding,
        indexes,
        &known.into_iter().cloned().collect::<Vec<_>>(),
    )
}

fn union_temporal(known: &[&Arg]) -> ColumnType {
    let all = |kind| known.iter().all(|arg| arg.column.kind == kind);
    let fsp = known
        .iter()
        .map(|arg| arg.column.decimals)
        .max()
        .unwrap_or(0);
    if all(TypeKind::Date) {
        ColumnType::new(TypeKind::Date)
    } else if all(TypeKind::Time) {
        ColumnType::temporal(TypeKind::Time, fsp)
    } else {
        ColumnType::temporal(TypeKind::DateTime, fsp)
    }
}

fn union_numeric(known: &[&Arg]) -> ColumnType {
    let columns = || known.iter().map(|arg| &arg.column);
    let domain = columns().map(numeric).fold(Numeric::Integer, meet);
    let is_unsigned = |column: &ColumnType| column.unsigned || column.kind == TypeKind::Year;
    let all_unsigned = columns().all(is_unsigned);
    let any_unsigned = columns().any(is_unsigned);
    let bits = |column: &&ColumnType| column.kind == TypeKind::Bit;
    let any_bits = columns().any(|column| bits(&column));
    let whole = columns().map(|column| digits(column).0).max().unwrap_or(1);
    let whole = if any_bits { whole.max(20) } else { whole };
    let scale = columns().map(|column| digits(column).1).max().unwrap_or(0);
    match domain {
        Numeric::Double => {
            let float = columns().all(|column| column.kind == TypeKind::Float);
            let mut column = ColumnType::new(if float {
                TypeKind::Float
            } else {
                TypeKind::Double
            });
            column.length = columns().map(|column| column.length).max().unwrap_or(22);
            column
        }
        Numeric::Decimal => decimal_type(whole, scale),
        // A mix of signed and unsigned becomes an exact number.
        Numeric::Integer if any_unsigned && !all_unsigned && !(any_bits && whole < 10) => {
            decimal_type(whole, 0)
        }
        Numeric::Integer => {
            let widest = columns()
                .filter(|column| column.kind.is_integer())
                .max_by_key(|column| column.kind.number())
                .map_or(TypeKind::BigInt, |column| column.kind);
            let length = columns().map(|column| column.length).max().unwrap_or(20);
            of_length(widest, length, all_unsigned)
        }
    }
}

fn union_text(binding: &mut Binding<'_>, indexes: &[usize], known: &[Arg]) -> Inferred {
    let rules: Vec<_> = indexes
        .iter()
        .map(|index| binding.args[*index].rule)
        .collect();
    let rule = value::collation::mix(&rules, &binding.name.to_lowercase())?;
    binding.rule = rule;
    binding.texts = rule.collation;
    let longest = known.iter().map(chars).max().unwrap_or(0);
    binding.column = text_type(longest, rule.collation);
    if known.iter().all(|arg| arg.column.kind == TypeKind::Char) {
        binding.column.kind = TypeKind::Char;
    }
    Ok(())
}
