//! Expressions: from syntax to typed trees.

use std::iter;

use errcode::{ER_INVALID_GROUP_FUNC_USE, ER_NON_UNIQ_ERROR, ER_OPERAND_COLUMNS};
use expression::{
    BitOperation, BitOperator, Case, Class, CompareOperator, Expression, ExpressionKind, InList,
    Like, ListMembers, Test,
};
use settings::SqlMode;
use syntax::ast::{self, BinaryOperator, Expr, ExprKind, ExprList, UnaryOperator};
use value::{Charset, CollationId, ColumnType, TypeKind, Value};

use super::compare::constant_for;
use super::literal::{as_compared, as_number, literal_as_number};
use super::{Binder, error};
use crate::{PlanError, not_supported};

/// The result of binding.
pub(crate) type Bound = Result<Expression, PlanError>;

impl Binder<'_> {
    /// An expression with one value.
    pub(crate) fn term(&mut self, expr: &Expr) -> Bound {
        self.spend()?;
        match &expr.kind {
            ExprKind::Literal(literal) => self.literal(literal),
            ExprKind::Parameter(number) => Ok(self.parameter(*number)),
            ExprKind::Column(name) => self.named(name),
            ExprKind::UserVariable(_) | ExprKind::Assign { .. } | ExprKind::SystemVariable(_) => {
                self.variable(&expr.kind)
            }
            ExprKind::Unary { operator, operand } => self.unary(*operator, operand, expr),
            ExprKind::Binary {
                operator,
                left,
                right,
            } => self.binary(*operator, left, right, expr),
            ExprKind::Like { .. } => self.like(&expr.kind),
            ExprKind::Between {
                negated,
                value,
                low,
                high,
            } => self.between(*negated, value, low, high),
            ExprKind::InList {
                negated,
                value,
                list,
            } => match list {
                ExprList::Trees(list) => self.in_trees(*negated, value, list),
                ExprList::Constants(list) => self.in_constants(*negated, value, list),
            },
            ExprKind::Chain { operator, operands } => self.chain(*operator, operands),
            ExprKind::InQuery {
                negated,
                value,
                query,
            } => {
                let operator = if *negated {
                    CompareOperator::NotEqual
                } else {
                    CompareOperator::Equal
                };
                self.quantified(operator, *negated, value, query)
            }
            ExprKind::Quantified {
                operator,
                for_all,
                value,
                query,
            } => {
                let operator = compare_operator(*operator)
                    .ok_or_else(|| not_supported("this operator before ANY or ALL"))?;
                self.quantified(operator, *for_all, value, query)
            }
            ExprKind::Exists(query) => self.exists(query),
            ExprKind::Subquery(query) => self.scalar_subquery(query),
            ExprKind::IsNull { negated, value } => self.test(value, Test::Null, *negated),
            ExprKind::IsTruth {
                negated,
                value,
                truth,
            } => {
                let test = match truth {
                    Some(true) => Test::True,
                    Some(false) => Test::False,
                    None => Test::Null,
                };
                self.test(value, test, *negated)
            }
            _ => self.other_term(expr),
        }
    }

    fn other_term(&mut self, expr: &Expr) -> Bound {
        match &expr.kind {
            ExprKind::Row(_) => Err(error(ER_OPERAND_COLUMNS, &[&1])),
            ExprKind::Case {
                operand,
                branches,
                otherwise,
            } => self.case(operand.as_deref(), branches, otherwise.as_deref()),
            ExprKind::Aggregate(aggregate) => self.aggregate(aggregate),
            ExprKind::InsertedValue(name) => self.inserted_value(name),
            ExprKind::Default(_) => Err(not_supported("DEFAULT in an expression")),
            _ => self.call(expr),
        }
    }

    /// An expression where a number is needed: `0x41` and `b'101'` are numbers there.
    pub(super) fn number(&mut self, expr: &Expr) -> Bound {
        Ok(as_number(self.term(expr)?))
    }

    /// A condition.
    pub(crate) fn condition(&mut self, expr: &Expr) -> Bound {
        self.number(expr)
    }

    /// A column's name; it may be a select item's alias where the clause allows that. In HAVING a
    /// column named in GROUP BY takes precedence over an alias.
    fn named(&mut self, name: &ast::ColumnName) -> Bound {
        use super::Clause;
        let clause = self.block().clause;
        if clause == Clause::Having
            && let Some(key) = self.group_key_of(name)
        {
            // Both the alias's expression and the column may be terms of GROUP BY.
            let alias = self.alias_of(name).filter(|alias| *alias != key);
            return match alias {
                Some(alias) if self.block().group_keys.contains(&alias) => {
                    Err(error(ER_NON_UNIQ_ERROR, &[name, &clause.text()]))
                }
                _ => Ok(key),
            };
        }
        let may_be_alias = match clause {
            Clause::Having => true,
            Clause::Group | Clause::Order => !self.has_column(name),
            _ => false,
        };
        if may_be_alias && let Some(expression) = self.alias_of(name) {
            return Ok(expression);
        }
        self.column(name)
    }

    /// The column of that plain name, if it is a term of GROUP BY.
    fn group_key_of(&mut self, name: &ast::ColumnName) -> Option<Expression> {
        if name.table.is_some() || name.schema.is_some() {
            return None;
        }
        let block = self.block();
        let is_named = |key: &&Expression| {
            let described = key.as_column().and_then(|it| block.scope.described(it));
            described.is_some_and(|(_, column)| column.name.eq_ignore_ascii_case(&name.column.text))
        };
        block.group_keys.iter().find(is_named).cloned()
    }

    /// The select item for a name without a table.
    pub(crate) fn alias_of(&mut self, name: &ast::ColumnName) -> Option<Expression> {
        let is_plain = name.table.is_none() && name.schema.is_none();
        is_plain.then(|| self.block().aliases.find(&name.column.text).cloned())?
    }

    fn unary(&mut self, operator: UnaryOperator, operand: &Expr, whole: &Expr) -> Bound {
        match operator {
            UnaryOperator::Plus => self.term(operand),
            UnaryOperator::Not => {
                let operand = self.condition(operand)?;
                Ok(negated_if(true, operand))
            }
            UnaryOperator::Negate => {
                let operand = self.number(operand)?;
                self.negate(operand, whole)
            }
            UnaryOperator::BitNot => {
                let operand = self.number(operand)?;
                let kind = ExpressionKind::Complement(Box::new(operand));
                Ok(Expression::new(
                    kind,
                    ColumnType::unsigned(TypeKind::BigInt),
                ))
            }
        }
    }

    fn binary(
        &mut self,
        operator: BinaryOperator,
        left: &Expr,
        right: &Expr,
        whole: &Expr,
    ) -> Bound {
        if let Some(operator) = compare_operator(operator) {
            return self.compare_terms(operator, left, right);
        }
        match operator {
            BinaryOperator::And | BinaryOperator::Or => {
                let (left, right) = (self.condition(left)?, self.condition(right)?);
                Ok(join_conditions(
                    operator == BinaryOperator::And,
                    left,
                    right,
                ))
            }
            BinaryOperator::Xor => {
                let (left, right) = (self.condition(left)?, self.condition(right)?);
                let nullable = left.nullable || right.nullable;
                let kind = ExpressionKind::Xor(Box::new([left, right]));
                Ok(Expression::condition(kind, nullable))
            }
            BinaryOperator::BitOr
            | BinaryOperator::BitAnd
            | BinaryOperator::BitXor
            | BinaryOperator::ShiftLeft
            | BinaryOperator::ShiftRight => {
                let (operator, sign) = match operator {
                    BinaryOperator::BitOr => (BitOperator::Or, "|"),
                    BinaryOperator::BitAnd => (BitOperator::And, "&"),
                    BinaryOperator::BitXor => (BitOperator::Xor, "^"),
                    BinaryOperator::ShiftLeft => (BitOperator::ShiftLeft, "<<"),
                    _ => (BitOperator::ShiftRight, ">>"),
                };
                let (left, right) = (self.number(left)?, self.number(right)?);
                for side in [&left, &right] {
                    function::refuse_geometry(&side.column_type, sign)
                        .map_err(expression::failure)?;
                }
                let nullable = left.nullable || right.nullable;
                let kind = ExpressionKind::BitOperation(Box::new(BitOperation {
                    operator,
                    left,
                    right,
                }));
                let column_type = ColumnType::unsigned(TypeKind::BigInt);
                Ok(Expression {
                    kind,
                    column_type,
                    nullable,
                })
            }
            BinaryOperator::Concat | BinaryOperator::Regexp => {
                let (left, right) = (self.term(left)?, self.term(right)?);
                let (left, right) = (literal_as_number(left), literal_as_number(right));
                self.operation(operator, left, right, whole)
            }
            _ => {
                let (left, right) = (self.number(left)?, self.number(right)?);
                self.operation(operator, left, right, whole)
            }
        }
    }

    /// `a AND b AND ..`, `a OR b OR ..`.
    fn chain(&mut self, operator: BinaryOperator, operands: &[Expr]) -> Bound {
        let mut list = Vec::with_capacity(operands.len());
        for operand in operands {
            let bound = self.condition(operand)?;
            match (operator, bound.kind) {
                (BinaryOperator::And, ExpressionKind::And(parts))
                | (BinaryOperator::Or, ExpressionKind::Or(parts)) => list.extend(parts),
                (_, kind) => list.push(Expression { kind, ..bound }),
            }
        }
        let nullable = list.iter().any(|part| part.nullable);
        let kind = match operator {
            BinaryOperator::And => ExpressionKind::And(list),
            _ => ExpressionKind::Or(list),
        };
        Ok(Expression::condition(kind, nullable))
    }

    /// A comparison of values, or of rows part by part.
    pub(super) fn compare_terms(
        &mut self,
        operator: CompareOperator,
        left: &Expr,
        right: &Expr,
    ) -> Bound {
        let (ExprKind::Row(lefts), ExprKind::Row(rights)) = (&left.kind, &right.kind) else {
            let (left, right) = (self.term(left)?, self.term(right)?);
            return self.comparison(operator, left, right);
        };
        if lefts.len() != rights.len() {
            return Err(error(ER_OPERAND_COLUMNS, &[&lefts.len()]));
        }
        let is_equality = matches!(
            operator,
            CompareOperator::Equal | CompareOperator::NullSafeEqual | CompareOperator::NotEqual
        );
        if !is_equality {
            return self.compare_rows_by_order(operator, lefts, rights);
        }
        let part_operator = match operator {
            CompareOperator::NotEqual => CompareOperator::Equal,
            other => other,
        };
        let mut parts = Vec::with_capacity(lefts.len());
        for (left, right) in lefts.iter().zip(rights) {
            parts.push(self.compare_terms(part_operator, left, right)?);
        }
        let all = Expression::all(parts).expect("a row has at least two parts");
        if operator == CompareOperator::NotEqual {
            let nullable = all.nullable;
            return Ok(Expression::condition(
                ExpressionKind::Not(Box::new(all)),
                nullable,
            ));
        }
        Ok(all)
    }

    /// Rows compared by `<` and its like: the first parts that differ decide.
    fn compare_rows_by_order(
        &mut self,
        operator: CompareOperator,
        lefts: &[Expr],
        rights: &[Expr],
    ) -> Bound {
        let (Some((left, lefts)), Some((right, rights))) =
            (lefts.split_first(), rights.split_first())
        else {
            return Err(error(ER_OPERAND_COLUMNS, &[&lefts.len()]));
        };
        if lefts.is_empty() {
            return self.compare_terms(operator, left, right);
        }
        let strictly = match operator {
            CompareOperator::LessOrEqual => CompareOperator::Less,
            CompareOperator::GreaterOrEqual => CompareOperator::Greater,
            other => other,
        };
        let decides = self.compare_terms(strictly, left, right)?;
        let is_equal = self.compare_terms(CompareOperator::Equal, left, right)?;
        let rest = self.compare_rows_by_order(operator, lefts, rights)?;
        Ok(join_conditions(
            false,
            decides,
            join_conditions(true, is_equal, rest),
        ))
    }

    fn like(&mut self, kind: &ExprKind) -> Bound {
        let ExprKind::Like {
            negated,
            value,
            pattern,
            escape,
        } = kind
        else {
            unreachable!("called for LIKE")
        };
        let (operand, pattern) = (self.term(value)?, self.term(pattern)?);
        let escape = match escape {
            // A backslash escapes in a pattern wherever it does in a string.
            None if self.settings.sql_mode.has(SqlMode::NO_BACKSLASH_ESCAPES) => None,
            None => Some(u32::from(b'\\')),
            Some(escape) => self.escape(escape)?,
        };
        let collation = self.texts_collation(&[&operand, &pattern], "like")?;
        let nullable = operand.nullable || pattern.nullable;
        let like = Like {
            operand,
            pattern,
            escape,
            collation,
            negated: *negated,
        };
        Ok(Expression::condition(
            ExpressionKind::Like(Box::new(like)),
            nullable,
        ))
    }

    /// The character of ESCAPE, or `None` if the text is empty.
    fn escape(&mut self, escape: &Expr) -> Result<Option<u32>, PlanError> {
        let escape = self.term(escape)?;
        let charset = match escape.column_type.charset() {
            Charset::Binary => self.settings.collation.charset(),
            charset => charset,
        };
        let text: &[u8] = match &escape.kind {
            ExpressionKind::Constant(Value::Bytes(text)) => text,
            ExpressionKind::Constant(Value::Null) => b"\\",
            _ => return Err(not_supported("ESCAPE of other than a string")),
        };
        match charset.char_count(text) {
            0 | 1 => Ok(charset.decode(text).map(|(code, _)| code)),
            _ => Err(error(errcode::ER_WRONG_ARGUMENTS, &[&"ESCAPE"])),
        }
    }

    fn between(&mut self, negated: bool, value: &Expr, low: &Expr, high: &Expr) -> Bound {
        let value = self.term(value)?;
        let (low, high) = (self.term(low)?, self.term(high)?);
        let (at_least, at_most) = (
            CompareOperator::GreaterOrEqual,
            CompareOperator::LessOrEqual,
        );
        let is_date = |side: &Expression| side.column_type.kind.is_temporal();
        let (low, high) = match is_date(&low) || is_date(&high) {
            true => (low, high),
            false => (constant_for(&value, low), constant_for(&value, high)),
        };
        let is_text = |class| matches!(class, Class::Text(_));
        let is_number = |class| matches!(class, Class::Integer | Class::Decimal | Class::Double);
        let lower_class = self.class_of_types(&value, &low);
        let upper_class = self.class_of_types(&value, &high);
        let is_dated = |class| matches!(class, Class::DateTime | Class::Time);
        if lower_class != upper_class && (is_dated(lower_class) || is_dated(upper_class)) {
            // If one of the three is a date, all are compared as dates.
            let class = match lower_class == Class::DateTime || upper_class == Class::DateTime {
                true => Class::DateTime,
                false => Class::Time,
            };
            let above = Self::comparison_in(class, at_least, value.clone(), low);
            let below = Self::comparison_in(class, at_most, value, high);
            return Ok(negated_if(negated, join_conditions(true, above, below)));
        }
        if lower_class != upper_class && !(is_number(lower_class) && is_number(upper_class)) {
            // All three are compared in their common type.
            let between = self.library(builtin::Function::Between, vec![value, low, high])?;
            return Ok(negated_if(negated, between));
        }
        let (above, below) = if is_text(lower_class) {
            let class = Class::Text(self.texts_collation(&[&value, &low, &high], "between")?);
            (
                Self::comparison_in(class, at_least, value.clone(), low),
                Self::comparison_in(class, at_most, value, high),
            )
        } else {
            (
                self.comparison(at_least, value.clone(), low)?,
                self.comparison(at_most, value, high)?,
            )
        };
        Ok(negated_if(negated, join_conditions(true, above, below)))
    }

    pub(super) fn in_trees(&mut self, negated: bool, value: &Expr, list: &[Expr]) -> Bound {
        if let ExprKind::Row(operands) = &value.kind {
            return self.in_rows(negated, value, operands, list);
        }
        let mut operand = self.term(value)?;
        let list: Result<Vec<_>, _> = list.iter().map(|member| self.term(member)).collect();
        let mut list = list?;
        if operand.column_type.kind.is_number() {
            list = list.into_iter().map(as_compared).collect();
        } else if list
            .iter()
            .all(|member| member.column_type.kind.is_number())
        {
            operand = as_compared(operand);
        }
        if are_alike(&list) {
            list = list
                .into_iter()
                .map(|member| constant_for(&operand, member))
                .collect();
        }
        let collation = self.list_collation(&operand, &list)?;
        for member in &list {
            let types = [&operand.column_type, &member.column_type];
            function::refuse_geometry_with(types, "in").map_err(expression::failure)?;
        }
        let mut class = self.class_of_types(&operand, &list[0]);
        let mut is_uniform = true;
        for member in &list[1..] {
            let other = self.class_of_types(&operand, member);
            is_uniform &= other == class || member.column_type.kind == TypeKind::Null;
            if list[0].column_type.kind == TypeKind::Null {
                class = other;
            }
        }
        if !is_uniform {
            return self.in_mixed_list(negated, &operand, list, collation);
        }
        if let (Class::Text(_), Some(collation)) = (class, collation) {
            class = Class::Text(collation);
        }
        let nullable = operand.nullable || list.iter().any(|member| member.nullable);
        let is_long = LONG_LIST <= list.len() && list.iter().all(Expression::is_given);
        let table = is_long.then(|| {
            self.list_count += 1;
            self.list_count - 1
        });
        let list = ListMembers::Expressions(list);
        let kind = ExpressionKind::In(Box::new(InList {
            operand,
            list,
            class,
            negated,
            table,
        }));
        Ok(Expression::condition(kind, nullable))
    }

    /// The collation in which a list is searched, or `None` if nothing is compared as text.
    fn list_collation(
        &self,
        operand: &Expression,
        list: &[Expression],
    ) -> Result<Option<CollationId>, PlanError> {
        let is_text =
            |member: &Expression| matches!(self.class_of_types(operand, member), Class::Text(_));
        if !list.iter().any(is_text) {
            return Ok(None);
        }
        let texts: Vec<&Expression> = iter::once(operand).chain(list).collect();
        self.texts_collation(&texts, "in").map(Some)
    }

    /// Members of different classes are each compared in their own.
    fn in_mixed_list(
        &mut self,
        negated: bool,
        operand: &Expression,
        list: Vec<Expression>,
        collation: Option<CollationId>,
    ) -> Bound {
        let mut any = Vec::with_capacity(list.len());
        for member in list {
            let equal = CompareOperator::Equal;
            any.push(match (self.class_of_types(operand, &member), collation) {
                (Class::Text(_), Some(collation)) => {
                    Self::comparison_in(Class::Text(collation), equal, operand.clone(), member)
                }
                _ => self.plain_comparison(equal, operand.clone(), member)?,
            });
        }
        Ok(negated_if(negated, any_of(any)))
    }

    fn test(&mut self, value: &Expr, test: Test, negated: bool) -> Bound {
        let operand = match test {
            Test::Null => self.term(value)?,
            Test::True | Test::False => self.condition(value)?,
        };
        let operand = Box::new(operand);
        Ok(Expression::condition(
            ExpressionKind::Is {
                operand,
                test,
                negated,
            },
            false,
        ))
    }

    fn case(
        &mut self,
        operand: Option<&Expr>,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
    ) -> Bound {
        let operand = operand.map(|operand| self.term(operand)).transpose()?;
        let mut bound = Vec::with_capacity(branches.len());
        for (condition, value) in branches {
            let condition = match &operand {
                Some(operand) => {
                    let when = self.term(condition)?;
                    self.plain_comparison(CompareOperator::Equal, operand.clone(), when)?
                }
                None => self.condition(condition)?,
            };
            bound.push((condition, self.term(value)?));
        }
        let otherwise = otherwise
            .map(|otherwise| self.term(otherwise))
            .transpose()?;
        let values = bound.iter().map(|(_, value)| value).chain(&otherwise);
        let (column_type, nullable) = self.union_type(values)?;
        let nullable = nullable || otherwise.is_none();
        let kind = ExpressionKind::Case(Box::new(Case {
            branches: bound,
            otherwise,
        }));
        Ok(Expression {
            kind,
            column_type,
            nullable,
        })
    }

    fn inserted_value(&mut self, name: &ast::ColumnName) -> Bound {
        let Some((slot, table)) = self.new_row else {
            return Ok(Expression::null());
        };
        let definition = self.tables[table].definition.clone();
        let Some(column) = definition.column_position(&name.column.text) else {
            return Err(error(errcode::ER_BAD_FIELD_ERROR, &[name, &"UPDATE"]));
        };
        let place = expression::ColumnPlace { slot, column };
        let column_type = definition.columns[column].column_type.clone();
        Ok(Expression::column(place, column_type, true))
    }

    /// Refuses an aggregate where none is allowed.
    pub(super) fn check_aggregate_allowed(&mut self) -> Result<(), PlanError> {
        if self.block().allows_aggregates {
            return Ok(());
        }
        Err(error(ER_INVALID_GROUP_FUNC_USE, &[]))
    }
}

/// A shorter list is searched as fast without a hash table.
pub(super) const LONG_LIST: usize = 16;

/// True if all values of a list, except NULL, are of one kind: exact numbers and texts, other
/// numbers, dates, times, or dates with times. Only in such a list does MySQL convert the members
/// to their column ([`constant_for`]).
fn are_alike(list: &[Expression]) -> bool {
    let kind = |member: &Expression| match member.column_type.kind {
        TypeKind::Null => None,
        TypeKind::Float => Some(TypeKind::Double),
        TypeKind::Timestamp => Some(TypeKind::DateTime),
        kind if kind.is_temporal() || kind == TypeKind::Double => Some(kind),
        _ => Some(TypeKind::Decimal),
    };
    let mut kinds = list.iter().filter_map(kind);
    let first = kinds.next();
    kinds.all(|kind| Some(kind) == first)
}

/// `OR` of all, flattened.
pub(super) fn any_of(conditions: Vec<Expression>) -> Expression {
    let nullable = conditions.iter().any(|condition| condition.nullable);
    let mut list = Vec::with_capacity(conditions.len());
    for condition in conditions {
        match condition.kind {
            ExpressionKind::Or(parts) => list.extend(parts),
            _ => list.push(condition),
        }
    }
    match list.len() {
        1 => list.swap_remove(0),
        _ => Expression::condition(ExpressionKind::Or(list), nullable),
    }
}

/// The condition, or its `NOT`; of a comparison the opposite one, which an index can answer.
pub(super) fn negated_if(negated: bool, mut condition: Expression) -> Expression {
    if !negated {
        return condition;
    }
    if let ExpressionKind::Compare(compare) = &mut condition.kind
        && let Some(opposite) = compare.operator.opposite()
    {
        compare.operator = opposite;
        return condition;
    }
    let nullable = condition.nullable;
    Expression::condition(ExpressionKind::Not(Box::new(condition)), nullable)
}

/// `AND` or `OR` of two, flattened.
pub(crate) fn join_conditions(is_and: bool, left: Expression, right: Expression) -> Expression {
    let nullable = left.nullable || right.nullable;
    let mut list = Vec::new();
    for side in [left, right] {
        match side.kind {
            ExpressionKind::And(parts) if is_and => list.extend(parts),
            ExpressionKind::Or(parts) if !is_and => list.extend(parts),
            _ => list.push(side),
        }
    }
    let kind = if is_and {
        ExpressionKind::And(list)
    } else {
        ExpressionKind::Or(list)
    };
    Expression::condition(kind, nullable)
}

/// The comparison of an operator, or `None`.
pub(super) fn compare_operator(operator: BinaryOperator) -> Option<CompareOperator> {
    Some(match operator {
        BinaryOperator::Equal => CompareOperator::Equal,
        BinaryOperator::NullSafeEqual => CompareOperator::NullSafeEqual,
        BinaryOperator::NotEqual => CompareOperator::NotEqual,
        BinaryOperator::Less => CompareOperator::Less,
        BinaryOperator::LessEqual => CompareOperator::LessOrEqual,
        BinaryOperator::Greater => CompareOperator::Greater,
        BinaryOperator::GreaterEqual => CompareOperator::GreaterOrEqual,
        _ => return None,
    })
}
