//! [`Bound`]: a call with known types, which can be evaluated; and what is known before.

use std::borrow::Cow;

use builtin::Function;
use value::collation::{TextRule, mix};
use value::{
    Charset, CollationId, ColumnType, Comparison, Date, SqlCondition, TypeKind, Value, ValueRef,
};

use crate::context::Context;

/// Infers a result's type.
pub(crate) type Infer = fn(&mut Binding<'_>) -> Result<(), SqlCondition>;
/// Computes a value.
pub(crate) type Eval = fn(&Bound, &[ValueRef<'_>], &mut Context<'_>) -> Result<Value, SqlCondition>;

/// What is known of an argument when a call is bound.
#[derive(Debug, Clone)]
pub struct Arg {
    /// Its type.
    pub column: ColumnType,
    /// Its collation and coercibility.
    pub rule: TextRule,
    /// It may be NULL.
    pub nullable: bool,
    /// Its value if it is a constant; some result types depend on it.
    pub constant: Option<Value>,
}

impl Arg {
    /// A column of a table.
    pub fn column(column: ColumnType, nullable: bool, env: &BindEnv) -> Self {
        // The bytes of a BIT are a binary string.
        let rule = if column.kind.is_string() || column.kind == TypeKind::Bit {
            TextRule::column(column.collation)
        } else {
            TextRule::numeric(env.collation)
        };
        Self {
            column,
            rule,
            nullable,
            constant: None,
        }
    }

    /// A literal, or a parameter's value: the type follows from the value.
    pub fn literal(value: Value, env: &BindEnv) -> Self {
        let (column, rule) = literal_type(&value, env);
        Self {
            column,
            rule,
            nullable: value.is_null(),
            constant: Some(value),
        }
    }

    /// The result of a bound call as an argument of another call.
    pub fn result(bound: &Bound) -> Self {
        Self {
            column: bound.column.clone(),
            rule: bound.rule,
            nullable: bound.nullable,
            constant: None,
        }
    }

    /// True if the type is text or binary (ENUM and SET, too).
    pub(crate) fn is_text(&self) -> bool {
        self.column.kind.is_string()
    }
}

fn literal_type(value: &Value, env: &BindEnv) -> (ColumnType, TextRule) {
    let numeric = TextRule::numeric(env.collation);
    let mut text = Vec::new();
    match value {
        Value::Null => (ColumnType::new(TypeKind::Null), TextRule::NULL),
        Value::Int(number) => {
            let kind = if i32::try_from(*number).is_ok() {
                TypeKind::Int
            } else {
                TypeKind::BigInt
            };
            value::digits::append_int(*number, &mut text);
            let mut column = ColumnType::new(kind);
            column.length = stdx::to_u32(text.len());
            (column, numeric)
        }
        Value::UInt(number) => {
            value::digits::append_uint(*number, &mut text);
            let mut column = ColumnType::unsigned(TypeKind::BigInt);
            column.length = stdx::to_u32(text.len());
            (column, numeric)
        }
        Value::Float(_) | Value::Double(_) => (ColumnType::new(TypeKind::Double), numeric),
        Value::Decimal(number) => {
            let digits = number.integer_digits().max(1) + usize::from(number.scale());
            let precision = stdx::low_u8(digits.min(81) as u64);
            (ColumnType::decimal(precision, number.scale()), numeric)
        }
        Value::Bytes(bytes) => {
            let chars = stdx::to_u32(env.collation.charset().char_count(bytes));
            let column = ColumnType::varchar(chars, env.collation);
            (column, TextRule::literal(env.collation, bytes))
        }
        Value::Date(_) => (ColumnType::new(TypeKind::Date), numeric),
        Value::Time(time) => {
            let fsp = if time.microsecond() > 0 { 6 } else { 0 };
            (ColumnType::temporal(TypeKind::Time, fsp), numeric)
        }
        Value::DateTime(time) => {
            let fsp = if time.microsecond() > 0 { 6 } else { 0 };
            (ColumnType::temporal(TypeKind::DateTime, fsp), numeric)
        }
    }
}

/// What binding needs of the session.
#[derive(Debug, Clone)]
pub struct BindEnv {
    /// `collation_connection`: for literals, and for numbers as text.
    pub collation: CollationId,
    /// `div_precision_increment`
    pub div_precision_increment: u8,
    /// `NO_UNSIGNED_SUBTRACTION`
    pub no_unsigned_subtraction: bool,
    /// The current date; a TIME that is compared with a DATETIME gets it.
    pub today: Date,
}

/// A call with known types.
#[derive(Debug, Clone)]
pub struct Bound {
    /// The type of the result.
    pub column: ColumnType,
    /// The result may be NULL.
    pub nullable: bool,
    /// The result's collation and coercibility.
    pub rule: TextRule,
    /// The text of the whole expression, for errors like 1690; set by the caller of the binder.
    pub text: Box<str>,
    pub(crate) function: Function,
    /// The name by which it was called.
    pub(crate) name: &'static str,
    pub(crate) eval: Eval,
    /// The types of the arguments.
    pub(crate) args: Box<[ColumnType]>,
    /// The domain of a comparison.
    pub(crate) comparison: Comparison,
    /// The collation to which the arguments' texts are converted (mostly the result's).
    pub(crate) texts: CollationId,
    /// A number that a function determined when it was bound (a unit, an increment, a flag).
    pub(crate) choice: u32,
    /// A temporal function has arguments whose values mean nothing without their types.
    pub(crate) resolves: bool,
    /// See [`Bound::give_moments`].
    pub(crate) gives_moments: bool,
}

/// A call whose types are being inferred.
pub(crate) struct Binding<'a> {
    pub(crate) function: Function,
    pub(crate) name: &'static str,
    pub(crate) args: &'a [Arg],
    pub(crate) env: &'a BindEnv,
    pub(crate) column: ColumnType,
    pub(crate) nullable: bool,
    pub(crate) rule: TextRule,
    pub(crate) comparison: Comparison,
    pub(crate) texts: CollationId,
    pub(crate) choice: u32,
}

impl Binding<'_> {
    /// The mix of the collations of some arguments.
    pub(crate) fn mixed(&self, range: std::ops::Range<usize>) -> Result<TextRule, SqlCondition> {
        let rules: Vec<TextRule> = self.args[range].iter().map(|arg| arg.rule).collect();
        mix(&rules, &self.name.to_lowercase())
    }

    /// A constant argument as a number.
    pub(crate) fn constant_integer(&self, index: usize) -> Option<i64> {
        let constant = self.args.get(index)?.constant.as_ref()?;
        constant.as_ref().to_i64(&mut value::Warnings::new(0))
    }
}

impl Bound {
    /// The value of the call; `args` must have the number and types that were bound.
    ///
    /// # Errors
    /// Errors of the statement: 1690 (out of range), 1365 (division by zero, if that is an error).
    #[inline]
    pub fn eval(
        &self,
        args: &[ValueRef<'_>],
        context: &mut Context<'_>,
    ) -> Result<Value, SqlCondition> {
        assert!(
            args.len() == self.args.len(),
            "a call is evaluated as it was bound"
        );
        if self.resolves {
            return self.eval_resolved(args, context);
        }
        (self.eval)(self, args, context)
    }

    /// If a function made its result longer than `max_allowed_packet`, it is NULL with warning
    /// 1301. Otherwise nested calls would double a text without end.
    pub fn bounded(&self, value: Value, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Value {
        let Value::Bytes(bytes) = &value else {
            return value;
        };
        let longest = args.iter().map(|argument| match argument {
            ValueRef::Bytes(bytes) => bytes.len(),
            _ => 0,
        });
        if bytes.len() <= longest.max().unwrap_or(0) || context.fits(bytes.len(), self.name()) {
            return value;
        }
        Value::Null
    }

    /// See [`resolve`].
    fn eval_resolved(
        &self,
        args: &[ValueRef<'_>],
        context: &mut Context<'_>,
    ) -> Result<Value, SqlCondition> {
        let resolved: Vec<Value> = args
            .iter()
            .zip(&self.args)
            .map(|(value, column)| resolve(*value, column))
            .collect();
        let values: Vec<ValueRef<'_>> = resolved.iter().map(Value::as_ref).collect();
        (self.eval)(self, &values, context)
    }

    /// True for a call whose text is a date or a time. As a number it counts with all its digits,
    /// where another text counts by its numeric prefix.
    pub fn is_dated_text(&self) -> bool {
        self.column.kind == TypeKind::Char && self.function.builtin().makes_dated_texts
    }

    /// Makes such a call return the date or time itself instead of its text.
    pub fn give_moments(&mut self) {
        assert!(self.is_dated_text(), "another call has no moment");
        self.gives_moments = true;
    }

    /// True if the values are dates and times, though the type is text.
    pub fn gives_moments(&self) -> bool {
        self.gives_moments
    }

    /// The function or operator.
    pub fn function(&self) -> Function {
        self.function
    }

    /// The name by which it was called, in upper case.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// An argument as text in the character set of the call; `None` for NULL.
    pub(crate) fn text_arg<'v>(
        &self,
        args: &[ValueRef<'v>],
        index: usize,
    ) -> Option<Cow<'v, [u8]>> {
        text_in(args[index], &self.args[index], self.texts.charset())
    }
}

/// A value as functions of dates read it: names of ENUM and SET, bytes of BIT and dates of YEAR
/// instead of their numbers.
pub(crate) fn resolve(value: ValueRef<'_>, from: &ColumnType) -> Value {
    match (value, from.kind) {
        (ValueRef::UInt(year), TypeKind::Year) => {
            Value::Date(Date::new(from.whole_year(stdx::low_u16(year)), 0, 0))
        }
        (_, TypeKind::Enum | TypeKind::Set | TypeKind::Bit) => {
            value.to_text(from).map_or(Value::Null, Value::bytes)
        }
        _ => value.to_value(),
    }
}

/// A value as text in the given character set; `None` for NULL.
pub(crate) fn text_in<'v>(
    value: ValueRef<'v>,
    column: &ColumnType,
    to: Charset,
) -> Option<Cow<'v, [u8]>> {
    let text = value.to_text(column)?;
    let from = column.charset();
    if !column.kind.is_string() || from == to || to == Charset::Binary || from == Charset::Binary {
        return Some(text);
    }
    if text.is_ascii() {
        return Some(text);
    }
    let mut converted = Vec::with_capacity(text.len());
    to.append_converted(from, &text, &mut converted);
    Some(Cow::Owned(converted))
}
