//! Calls: arithmetic, functions, aggregates, and the types of their results.

use builtin::{Function, Grammar, Meaning, SessionFunction, is_of_missing_family};
use errcode::ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT;
use expression::{
    AggregateCall, AggregateKind, Arithmetic, ArithmeticOperator, Call, Case, Class, Expression,
    ExpressionKind, SessionCall, failure,
};
use function::{Arg, BindEnv};
use settings::SqlMode;
use syntax::ast::{self, BinaryOperator, Expr, ExprKind};
use value::{CollationId, ColumnType, Decimal, TypeKind, Value};

use super::dated;
use super::dependents::varies;
use super::literal::{charset_named, text_constant};
use super::term::Bound;
use super::variable::read_in_domain;
use super::{Binder, Clause, error};
use crate::{PlanError, not_supported};

impl Binder<'_> {
    /// `+ - * / DIV %`, `||`, `REGEXP`.
    pub(super) fn operation(
        &mut self,
        operator: BinaryOperator,
        left: Expression,
        right: Expression,
        whole: &Expr,
    ) -> Bound {
        let function = match operator {
            BinaryOperator::Add => Function::Add,
            BinaryOperator::Subtract => Function::Subtract,
            BinaryOperator::Multiply => Function::Multiply,
            BinaryOperator::Divide => Function::Divide,
            BinaryOperator::IntegerDivide => Function::IntegerDivide,
            BinaryOperator::Modulo => Function::Modulo,
            BinaryOperator::Regexp => Function::Regexp,
            BinaryOperator::Concat => Function::Concat,
            _ => return Err(not_supported("this operator")),
        };
        let mut call = self.library(function, vec![left, right])?;
        let text = self.text(whole.span);
        let ExpressionKind::Function(function) = &mut call.kind else {
            unreachable!("the library gives calls")
        };
        function.bound.text = text.into();
        read_in_domain(&mut function.arguments, &call.column_type);
        Ok(self.plain_arithmetic(call, operator))
    }

    /// Sums and products of integers become nodes of their own, which need no context.
    fn plain_arithmetic(&self, call: Expression, operator: BinaryOperator) -> Expression {
        let operator = match operator {
            BinaryOperator::Add => ArithmeticOperator::Add,
            BinaryOperator::Subtract => ArithmeticOperator::Subtract,
            BinaryOperator::Multiply => ArithmeticOperator::Multiply,
            _ => return call,
        };
        let ExpressionKind::Function(function) = call.kind else {
            unreachable!("the library gives calls")
        };
        let is_integer = |argument: &Expression| argument.column_type.kind.is_integer();
        if !function.arguments.iter().all(is_integer) || !call.column_type.kind.is_integer() {
            return Expression {
                kind: ExpressionKind::Function(function),
                ..call
            };
        }
        let text = function.bound.text.clone();
        let [left, right] =
            <[Expression; 2]>::try_from(function.arguments).expect("an operator has two sides");
        let class = Class::Integer;
        let arithmetic = Box::new(Arithmetic {
            operator,
            class,
            left,
            right,
            text,
        });
        Expression {
            kind: ExpressionKind::Arithmetic(arithmetic),
            ..call
        }
    }

    pub(super) fn negate(&mut self, operand: Expression, whole: &Expr) -> Bound {
        if let ExpressionKind::Constant(value) = &operand.kind
            && let Some(negated) = negated(value, &operand.column_type)
        {
            return Ok(negated);
        }
        let mut call = self.library(Function::Subtract, vec![operand])?;
        let text = self.text(whole.span);
        if let ExpressionKind::Function(function) = &mut call.kind {
            function.bound.text = text.into();
            read_in_domain(&mut function.arguments, &call.column_type);
        }
        Ok(call)
    }

    /// A call of the function library.
    pub(crate) fn library(&self, function: Function, arguments: Vec<Expression>) -> Bound {
        self.library_named(function, function.name(), arguments)
    }

    /// A call of the function library by one of the function's names.
    fn library_named(
        &self,
        function: Function,
        name: &'static str,
        arguments: Vec<Expression>,
    ) -> Bound {
        let described: Vec<Arg> = arguments.iter().map(|arg| self.argument(arg)).collect();
        let bound = function::bind(function, name, &described, &self.bind_env());
        Ok(called(bound.map_err(failure)?, arguments))
    }

    /// What is known of an argument when a call is bound.
    pub(super) fn argument(&self, expression: &Expression) -> Arg {
        Arg {
            column: expression.column_type.clone(),
            rule: self.text_rule(expression),
            nullable: expression.nullable,
            constant: match &expression.kind {
                ExpressionKind::Constant(value) => Some(value.clone()),
                _ => None,
            },
        }
    }

    pub(super) fn bind_env(&self) -> BindEnv {
        BindEnv {
            collation: self.settings.collation,
            div_precision_increment: self.settings.division_increment,
            no_unsigned_subtraction: self.settings.sql_mode.has(SqlMode::NO_UNSIGNED_SUBTRACTION),
            today: self.settings.today,
        }
    }

    /// The common type of several values: CASE, COALESCE, UNION.
    pub(crate) fn union_type<'e>(
        &self,
        values: impl IntoIterator<Item = &'e Expression>,
    ) -> Result<(ColumnType, bool), PlanError> {
        let arguments: Vec<Arg> = values
            .into_iter()
            .map(|value| self.argument(value))
            .collect();
        function::type_of_union(&arguments, &self.bind_env()).map_err(failure)
    }

    /// An aggregate call: registered in the block, and referred to by its number.
    pub(super) fn aggregate(&mut self, aggregate: &ast::Aggregate) -> Bound {
        self.check_aggregate_allowed()?;
        if aggregate.over.is_some() {
            return Err(not_supported("window functions"));
        }
        self.block().allows_aggregates = false;
        let arguments: Result<Vec<_>, _> = aggregate
            .arguments
            .iter()
            .map(|argument| {
                if is_number_wanted(aggregate.function) {
                    self.number(argument)
                } else {
                    self.term(argument)
                }
            })
            .collect();
        let mut arguments = arguments?;
        let order = self.aggregate_order(aggregate, &arguments)?;
        self.block().allows_aggregates = true;
        let function = aggregate_function(aggregate.function)?;
        if matches!(function, AggregateKind::Min | AggregateKind::Max) {
            arguments = arguments.into_iter().map(by_name).collect();
        }
        let own = self.block().scope.slots();
        let read: Vec<usize> = arguments.iter().flat_map(Expression::slots).collect();
        if !read.is_empty() && !read.iter().any(|slot| own.contains(slot)) {
            return Err(not_supported("an aggregate over an outer query's columns"));
        }
        refuse_geometries(function, &arguments)?;
        let column_type = self.aggregate_type(function, &arguments);
        let limit = match &aggregate.limit {
            None => None,
            Some(limit) => Some(constant_limit(limit)?),
        };
        let separator = self.separator(aggregate, &column_type);
        let call = AggregateCall {
            function,
            arguments,
            is_distinct: aggregate.distinct,
            order,
            separator,
            limit,
            column_type: column_type.clone(),
        };
        let number = self.block().calls.place_of(&call);
        let nullable = function != AggregateKind::Count;
        Ok(Expression {
            kind: ExpressionKind::Aggregate(number),
            column_type,
            nullable,
        })
    }

    /// `ORDER BY` of an aggregate; a number is the position of an argument.
    fn aggregate_order(
        &mut self,
        aggregate: &ast::Aggregate,
        arguments: &[Expression],
    ) -> Result<Vec<(Expression, bool)>, PlanError> {
        let mut order = Vec::with_capacity(aggregate.order_by.len());
        for item in &aggregate.order_by {
            let key = match Clause::Order.at_position(&item.expr, arguments)? {
                Some(argument) => argument,
                None => self.term(&item.expr)?,
            };
            order.push((key, item.descending));
        }
        Ok(order)
    }

    /// The separator of GROUP_CONCAT, in the character set of the texts.
    fn separator(&self, aggregate: &ast::Aggregate, column_type: &ColumnType) -> Box<[u8]> {
        let written = aggregate.separator.as_deref().unwrap_or(b",");
        let rules = self.settings.strings;
        let value = rules.value(written);
        let mut separator = Vec::with_capacity(value.len());
        let from = rules.collation.charset();
        column_type
            .charset()
            .append_converted(from, &value, &mut separator);
        separator.into()
    }

    fn aggregate_type(&self, function: AggregateKind, arguments: &[Expression]) -> ColumnType {
        use AggregateKind as F;
        let argument = arguments.first().map(|argument| &argument.column_type);
        match function {
            F::Count => {
                let mut count = ColumnType::new(TypeKind::BigInt);
                count.length = 21;
                count
            }
            F::Sum | F::Avg => sum_type(function, argument, self.settings.division_increment),
            F::Min | F::Max => argument
                .cloned()
                .map_or_else(|| ColumnType::new(TypeKind::Null), ColumnType::bounded),
            F::First => argument
                .cloned()
                .unwrap_or_else(|| ColumnType::new(TypeKind::Null)),
            F::BitAnd | F::BitOr | F::BitXor => {
                let mut bits = ColumnType::unsigned(TypeKind::BigInt);
                bits.length = 21;
                bits
            }
            F::StddevPop | F::StddevSamp | F::VarPop | F::VarSamp => {
                spread_type(argument, self.settings.division_increment)
            }
            F::GroupConcat => {
                let collation = match argument {
                    Some(argument) if argument.kind.is_string() => argument.collation,
                    _ => self.settings.collation,
                };
                ColumnType::text(TypeKind::MediumText, 1 << 20, collation)
            }
        }
    }

    /// Keeps a call apart from others that look the same, if it may give another value.
    fn number_occurrence(&mut self, call: &mut Expression) {
        let occurrence = match &mut call.kind {
            ExpressionKind::Function(call) if call.is_volatile() => &mut call.occurrence,
            ExpressionKind::Session(call) => &mut call.occurrence,
            _ => return,
        };
        self.occurrence_count += 1;
        *occurrence = self.occurrence_count;
    }

    /// A call in the statement's text.
    pub(super) fn call(&mut self, expr: &Expr) -> Bound {
        match &expr.kind {
            ExprKind::Function(function) => {
                let mut call = self.function(function)?;
                self.has_varied |= varies(&call);
                self.number_occurrence(&mut call);
                if let ExpressionKind::Function(function) = &mut call.kind
                    && function.bound.text.is_empty()
                {
                    function.bound.text = self.text(expr.span).into();
                }
                Ok(call)
            }
            ExprKind::Cast { value, to } => self.cast(value, to),
            ExprKind::ConvertUsing { value, charset } => {
                let value = self.term(value)?;
                let charset = match charset {
                    Some(name) => charset_named(&name.text)?,
                    None => self.settings.collation.charset(),
                };
                let argument = self.argument(&value);
                let bound = function::bind_convert(&argument, charset, &self.bind_env());
                Ok(called(bound.map_err(failure)?, vec![value]))
            }
            ExprKind::Collate { value, collation } => {
                let value = self.term(value)?;
                let collation = collation_named(&collation.text)?;
                let argument = self.argument(&value);
                let bound = function::bind_collate(&argument, collation, &self.bind_env());
                Ok(called(bound.map_err(failure)?, vec![value]))
            }
            ExprKind::DateAdd {
                subtract,
                value,
                interval,
                unit,
            } => {
                let function = match subtract {
                    true => Function::DateSub,
                    false => Function::DateAdd,
                };
                let arguments = vec![self.term(value)?, self.term(interval)?, self.unit(*unit)];
                self.library(function, arguments)
            }
            ExprKind::Extract { unit, value } => {
                let arguments = vec![self.unit(*unit), self.term(value)?];
                self.library(Function::Extract, arguments)
            }
            ExprKind::TimestampAdd {
                unit,
                interval,
                value,
            } => {
                let arguments = vec![self.unit(*unit), self.term(interval)?, self.term(value)?];
                self.library(Function::TimestampAdd, arguments)
            }
            ExprKind::TimestampDiff { unit, from, to } => {
                let arguments = vec![self.unit(*unit), self.term(from)?, self.term(to)?];
                self.library(Function::TimestampDiff, arguments)
            }
            _ => self.special_call(expr),
        }
    }

    fn special_call(&mut self, expr: &Expr) -> Bound {
        match &expr.kind {
            ExprKind::Trim {
                side,
                removed,
                value,
            } => {
                let mut arguments = vec![self.term(value)?];
                if let Some(removed) = removed {
                    arguments.push(self.term(removed)?);
                }
                let function = match (side, removed.is_some()) {
                    (ast::TrimSide::Both, _) => Function::Trim,
                    (ast::TrimSide::Leading, true) => Function::TrimLeading,
                    (ast::TrimSide::Trailing, true) => Function::TrimTrailing,
                    (ast::TrimSide::Leading, false) => Function::Ltrim,
                    (ast::TrimSide::Trailing, false) => Function::Rtrim,
                };
                self.library(function, arguments)
            }
            ExprKind::Char { codes, charset } => {
                let codes: Result<Vec<_>, _> = codes.iter().map(|code| self.number(code)).collect();
                let call = self.library(Function::Char, codes?)?;
                let Some(charset) = charset else {
                    return Ok(call);
                };
                let charset = charset_named(&charset.text)?;
                let argument = self.argument(&call);
                let bound = function::bind_convert(&argument, charset, &self.bind_env());
                Ok(called(bound.map_err(failure)?, vec![call]))
            }
            ExprKind::WeightString {
                value,
                length: None,
            } => {
                let arguments = vec![self.term(value)?];
                self.library(Function::WeightString, arguments)
            }
            ExprKind::WeightString { .. } => Err(not_supported("WEIGHT_STRING(.. AS ..)")),
            ExprKind::Match { .. } => Err(not_supported("MATCH .. AGAINST")),
            ExprKind::NextValue(_) | ExprKind::PreviousValue(_) => Err(not_supported("sequences")),
            ExprKind::GetFormat { .. } => Err(not_supported("GET_FORMAT")),
            _ => Err(not_supported("this expression")),
        }
    }

    fn function(&mut self, call: &ast::Function) -> Bound {
        if call.over.is_some() {
            return Err(not_supported("window functions"));
        }
        let found = match call.schema {
            Some(_) => None,
            None => builtin::find(call.name.text.as_bytes()),
        };
        let meaning = found.map(|found| found.builtin.meaning);
        let grammar = found.map(|found| found.grammar);
        if let (Some(Meaning::NameConst), Some(found)) = (meaning, found) {
            return self.name_const(found.name, call);
        }
        if let (Some(Meaning::Missing), Some(Grammar::Sequence)) = (meaning, grammar) {
            // The first argument names no column.
            return Err(not_supported("sequences"));
        }
        let arguments: Result<Vec<_>, _> = call
            .arguments
            .iter()
            .map(|argument| self.term(argument))
            .collect();
        let arguments = arguments?;
        match (meaning, found) {
            (Some(Meaning::Session(function)), Some(found)) => {
                session_call(function, found.builtin.least, arguments, call)
            }
            (Some(Meaning::Missing), Some(found)) => Err(not_supported(found.name)),
            (Some(Meaning::Library(function)), Some(found)) if found.grammar.is_plain_call() => {
                self.library_call(function, found.name, arguments)
                    .map_err(|it| as_written(it, call))
            }
            _ if call.schema.is_none() && is_of_missing_family(&call.name.text) => {
                Err(not_supported(&call.name.text.to_uppercase()))
            }
            _ => self.stored(call, arguments),
        }
    }

    /// A call of the function library in the statement's text. Some have expressions of their own.
    fn library_call(
        &mut self,
        function: Function,
        name: &'static str,
        arguments: Vec<Expression>,
    ) -> Bound {
        if function == Function::NullIf
            && let Some(of_dated) = self.nullif_of_dated(&arguments)
        {
            return of_dated;
        }
        let mut arguments = dated::arguments_of(function.builtin(), arguments);
        match (function, arguments.len()) {
            (Function::If, 3) => {
                let otherwise = arguments.pop();
                let value = arguments.pop().expect("there are three");
                let condition = arguments.pop().expect("there are three");
                let values = otherwise.iter().chain(std::iter::once(&value));
                let (column_type, nullable) = self.union_type(values)?;
                let case = Case {
                    branches: vec![(condition, value)],
                    otherwise,
                };
                Ok(Expression {
                    kind: ExpressionKind::Case(Box::new(case)),
                    column_type,
                    nullable,
                })
            }
            (Function::IfNull, 2) | (Function::Coalesce, 1..) => {
                let (column_type, _) = self.union_type(&arguments)?;
                let nullable = arguments.iter().all(|argument| argument.nullable);
                Ok(Expression {
                    kind: ExpressionKind::Coalesce(arguments),
                    column_type,
                    nullable,
                })
            }
            _ => self.library_named(function, name, arguments),
        }
    }

    fn unit(&self, unit: ast::IntervalUnit) -> Expression {
        text_constant(unit.text().as_bytes(), self.settings.collation)
    }
}

/// An ENUM or SET as its text: the least and the greatest are found by name, not by number. A BIT
/// is shown as a number.
fn by_name(expression: Expression) -> Expression {
    let column_type = &expression.column_type;
    let text = match column_type.kind {
        TypeKind::Enum | TypeKind::Set => {
            ColumnType::varchar(column_type.length, column_type.collation)
        }
        TypeKind::Bit => ColumnType::unsigned(TypeKind::BigInt),
        _ => return expression,
    };
    let nullable = expression.nullable;
    Expression {
        kind: ExpressionKind::Cast(Box::new(expression)),
        column_type: text,
        nullable,
    }
}

/// A bound call as an expression.
pub(super) fn called(bound: function::Bound, arguments: Vec<Expression>) -> Expression {
    let column_type = bound.column.clone();
    let nullable = bound.nullable;
    let call = Call {
        bound,
        arguments,
        occurrence: 0,
    };
    let kind = ExpressionKind::Function(Box::new(call));
    Expression {
        kind,
        column_type,
        nullable,
    }
}

/// Error 1582 names the function as the statement writes it.
fn as_written(refused: PlanError, call: &ast::Function) -> PlanError {
    let code = ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT;
    if refused.code == code {
        return error(code, &[&call.name.text]);
    }
    refused
}

/// A call of a function that the session answers.
fn session_call(
    function: SessionFunction,
    count: usize,
    arguments: Vec<Expression>,
    call: &ast::Function,
) -> Bound {
    if arguments.len() != count {
        let code = ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT;
        return Err(error(code, &[&call.name.text]));
    }
    for argument in &arguments {
        let name = call.name.text.to_lowercase();
        function::refuse_geometry(&argument.column_type, &name).map_err(failure)?;
    }
    let mut column_type = ColumnType::new(TypeKind::Int);
    column_type.length = 1;
    if function == SessionFunction::IsUsedLock {
        column_type = ColumnType::unsigned(TypeKind::BigInt);
    }
    let nullable = !matches!(
        function,
        SessionFunction::Sleep | SessionFunction::ReleaseAllLocks
    );
    let call = SessionCall {
        function,
        arguments,
        occurrence: 0,
    };
    Ok(Expression {
        kind: ExpressionKind::Session(Box::new(call)),
        column_type,
        nullable,
    })
}

/// Minus a literal is a literal.
fn negated(value: &Value, column_type: &ColumnType) -> Option<Expression> {
    let mut column_type = column_type.clone();
    let value = match value {
        Value::Int(number) => Value::Int(number.checked_neg()?),
        Value::UInt(number) if *number == 1 << 63 => {
            column_type = ColumnType::new(TypeKind::BigInt);
            Value::Int(i64::MIN)
        }
        Value::Double(number) => Value::Double(-number),
        Value::Decimal(number) => Value::Decimal(number.negated()),
        _ => return None,
    };
    if column_type.kind.is_integer() {
        column_type.length += 1;
    }
    Some(Expression::constant(value, column_type))
}

/// Geometries can be counted, sorted and concatenated, and nothing else.
fn refuse_geometries(of: AggregateKind, arguments: &[Expression]) -> Result<(), PlanError> {
    use AggregateKind as F;
    let operation = match of {
        F::Sum => "sum",
        F::Avg => "avg",
        F::BitAnd => "bit_and(",
        F::BitOr => "bit_or(",
        F::BitXor => "bit_xor(",
        F::StddevPop => "std(",
        F::StddevSamp => "stddev_samp(",
        F::VarPop => "variance(",
        F::VarSamp => "var_samp(",
        F::Count | F::Min | F::Max | F::First | F::GroupConcat => return Ok(()),
    };
    arguments.iter().try_for_each(|argument| {
        function::refuse_geometry(&argument.column_type, operation).map_err(failure)
    })
}

/// The collation with this name.
pub(super) fn collation_named(name: &str) -> Result<CollationId, PlanError> {
    CollationId::from_name(name).ok_or_else(|| error(errcode::ER_UNKNOWN_COLLATION, &[&name]))
}

/// The class in which values of a type are computed.
pub(crate) fn class_of(column_type: &ColumnType) -> Class {
    match column_type.kind {
        kind if kind.is_integer() => Class::Integer,
        TypeKind::Year | TypeKind::Bit | TypeKind::Null => Class::Integer,
        TypeKind::Decimal => Class::Decimal,
        TypeKind::Date => Class::Integer,
        TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp => {
            if column_type.decimals > 0 {
                Class::Decimal
            } else {
                Class::Integer
            }
        }
        _ => Class::Double,
    }
}

fn sum_type(function: AggregateKind, argument: Option<&ColumnType>, increment: u8) -> ColumnType {
    let Some(argument) = argument else {
        return ColumnType::new(TypeKind::Double);
    };
    let (precision, scale) = match class_of(argument) {
        Class::Integer => (argument.length.min(20), 0),
        Class::Decimal => (argument.length, argument.decimals),
        _ => {
            let more = match function {
                AggregateKind::Avg => increment,
                _ => 0,
            };
            return fixed_double(argument, more).unwrap_or_else(|| {
                let mut double = ColumnType::new(TypeKind::Double);
                double.length = 23;
                double
            });
        }
    };
    let is_average = function == AggregateKind::Avg;
    let (more, scale) = if is_average {
        (
            u32::from(increment),
            scale.saturating_add(increment).min(Decimal::SCALE_MAX),
        )
    } else {
        (22, scale)
    };
    let precision = (precision + more).min(u32::from(Decimal::PRECISION_MAX));
    ColumnType::decimal(
        u8::try_from(precision).unwrap_or(Decimal::PRECISION_MAX),
        scale,
    )
}

/// A double with `more` digits after the point than the argument. `None` if the argument does not
/// fix its digits, or there would be too many.
fn fixed_double(argument: &ColumnType, more: u8) -> Option<ColumnType> {
    let digits = argument.decimals.saturating_add(more);
    if !argument.has_fixed_digits() || ColumnType::NOT_FIXED <= digits {
        return None;
    }
    let mut double = ColumnType::new(TypeKind::Double);
    double.fix_digits(digits);
    Some(double)
}

/// The deviation of exact numbers has `increment` more digits after the point than they have.
fn spread_type(argument: Option<&ColumnType>, increment: u8) -> ColumnType {
    let mut double = ColumnType::new(TypeKind::Double);
    match argument {
        Some(argument) if matches!(class_of(argument), Class::Double) => {
            return fixed_double(argument, increment).unwrap_or(double);
        }
        Some(argument) => {
            double.decimals = argument.decimals.saturating_add(increment).min(30);
            double.length = 23;
        }
        None => {}
    }
    double
}

fn aggregate_function(function: ast::AggregateFunction) -> Result<AggregateKind, PlanError> {
    use ast::AggregateFunction as F;
    Ok(match function {
        F::Avg => AggregateKind::Avg,
        F::BitAnd => AggregateKind::BitAnd,
        F::BitOr => AggregateKind::BitOr,
        F::BitXor => AggregateKind::BitXor,
        F::Count => AggregateKind::Count,
        F::GroupConcat => AggregateKind::GroupConcat,
        F::Max => AggregateKind::Max,
        F::Min => AggregateKind::Min,
        F::StddevPop => AggregateKind::StddevPop,
        F::StddevSamp => AggregateKind::StddevSamp,
        F::Sum => AggregateKind::Sum,
        F::VarPop => AggregateKind::VarPop,
        F::VarSamp => AggregateKind::VarSamp,
        F::JsonArrayAgg | F::JsonObjectAgg => return Err(not_supported(function.name())),
        F::PercentileCont | F::PercentileDisc | F::Median => {
            return Err(not_supported("percentiles"));
        }
    })
}

/// True of aggregates that compute with numbers.
fn is_number_wanted(function: ast::AggregateFunction) -> bool {
    use ast::AggregateFunction as F;
    !matches!(
        function,
        F::Count | F::GroupConcat | F::Max | F::Min | F::JsonArrayAgg | F::JsonObjectAgg
    )
}

/// (count, offset) of a LIMIT inside an aggregate.
fn constant_limit(limit: &ast::Limit) -> Result<(u64, u64), PlanError> {
    let number = |expr: &Option<Expr>, absent| match expr.as_ref().map(|expr| &expr.kind) {
        None => Ok(absent),
        Some(ExprKind::Literal(ast::Literal::Integer(number))) => Ok(*number),
        Some(_) => Err(not_supported(
            "LIMIT of other than a number in an aggregate",
        )),
    };
    Ok((number(&limit.count, u64::MAX)?, number(&limit.offset, 0)?))
}
