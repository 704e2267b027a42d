//! Expressions as text.

use super::{Printer, left_in_text, quoted_name};
use crate::ast::{
    Aggregate, AggregateFunction, BinaryOperator, CastType, ColumnName, Expr, ExprKind, ExprList,
    Frame, FrameBound, Function, Ident, MatchMode, Over, SystemVariable, TrimSide, UnaryOperator,
    VariableScope, Window,
};
use crate::keyword::{Class, Keyword};

impl Printer<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Literal(literal) => self.literal(literal),
            ExprKind::Parameter(number) => self.parameter(*number),
            ExprKind::Column(column) => self.column(column),
            ExprKind::UserVariable(name) => self.variable(name),
            ExprKind::Assign { variable, value } => {
                self.put("(");
                self.variable(variable);
                self.put(" := ");
                self.expr(value);
                self.put(")");
            }
            ExprKind::SystemVariable(variable) => self.system_variable(variable),
            ExprKind::Unary { operator, operand } => {
                self.put(match operator {
                    UnaryOperator::Negate => "(- ",
                    UnaryOperator::Plus => "(+ ",
                    UnaryOperator::Not => "(NOT ",
                    UnaryOperator::BitNot => "(~ ",
                });
                self.expr(operand);
                self.put(")");
            }
            ExprKind::Binary {
                operator,
                left,
                right,
            } => {
                // `||` means OR when the text is read in the default `sql_mode`.
                let is_concat = *operator == BinaryOperator::Concat;
                self.put(if is_concat { "concat(" } else { "(" });
                self.expr(left);
                self.put(operator_text(*operator));
                self.expr(right);
                self.put(")");
            }
            ExprKind::Chain { operator, operands } => {
                self.put("(");
                for (place, operand) in operands.iter().enumerate() {
                    if 0 < place {
                        self.put(operator_text(*operator));
                    }
                    self.expr(operand);
                }
                self.put(")");
            }
            ExprKind::Row(list) => {
                self.put("ROW(");
                self.list(list, Self::expr);
                self.put(")");
            }
            ExprKind::Function(function) => self.function(function),
            ExprKind::Aggregate(aggregate) => self.aggregate(aggregate),
            _ => self.predicate(expr),
        }
    }

    fn parameter(&mut self, number: u32) {
        let literal = self
            .parameters
            .get(number as usize)
            .and_then(Option::as_ref);
        match literal.cloned() {
            Some(literal) => self.literal(&literal),
            None => self.put("?"),
        }
    }

    fn column(&mut self, column: &ColumnName) {
        if let Some(schema) = &column.schema {
            self.name(schema);
            self.put(".");
        }
        if let Some(table) = &column.table {
            self.name(table);
            self.put(".");
        }
        self.name(&column.column);
    }

    fn variable(&mut self, name: &str) {
        let text = format!("@{}", quoted_name(name));
        self.put(&text);
    }

    fn system_variable(&mut self, variable: &SystemVariable) {
        self.put(match variable.scope {
            Some(VariableScope::Global) => "@@global.",
            Some(VariableScope::Session) => "@@session.",
            None => "@@",
        });
        if let Some(instance) = &variable.instance {
            if instance.is("default") {
                self.put("default");
            } else {
                self.name(instance);
            }
            self.put(".");
        }
        self.name(&variable.name);
    }

    fn predicate(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Like {
                negated,
                value,
                pattern,
                escape,
            } => {
                self.put("(");
                self.expr(value);
                self.put(if *negated { " NOT LIKE " } else { " LIKE " });
                self.expr(pattern);
                if let Some(escape) = escape {
                    self.put(" ESCAPE ");
                    self.expr(escape);
                }
                self.put(")");
            }
            ExprKind::Between {
                negated,
                value,
                low,
                high,
            } => {
                self.put("(");
                self.expr(value);
                self.put(if *negated {
                    " NOT BETWEEN "
                } else {
                    " BETWEEN "
                });
                self.expr(low);
                self.put(" AND ");
                self.expr(high);
                self.put(")");
            }
            ExprKind::InList {
                negated,
                value,
                list,
            } => {
                self.put("(");
                self.expr(value);
                self.put(if *negated { " NOT IN (" } else { " IN (" });
                match list {
                    ExprList::Trees(list) => self.list(list, Self::expr),
                    ExprList::Constants(_) => left_in_text(),
                }
                self.put("))");
            }
            ExprKind::InQuery {
                negated,
                value,
                query,
            } => {
                self.put("(");
                self.expr(value);
                self.put(if *negated { " NOT IN (" } else { " IN (" });
                self.query(query);
                self.put("))");
            }
            _ => self.truth(expr),
        }
    }

    fn truth(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::IsNull { negated, value } => {
                self.put("(");
                self.expr(value);
                self.put(if *negated {
                    " IS NOT NULL)"
                } else {
                    " IS NULL)"
                });
            }
            ExprKind::IsTruth {
                negated,
                value,
                truth,
            } => {
                self.put("(");
                self.expr(value);
                self.put(if *negated { " IS NOT " } else { " IS " });
                self.put(match truth {
                    Some(true) => "TRUE)",
                    Some(false) => "FALSE)",
                    None => "UNKNOWN)",
                });
            }
            _ => self.subquery(expr),
        }
    }

    fn subquery(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Quantified {
                operator,
                for_all,
                value,
                query,
            } => {
                self.put("(");
                self.expr(value);
                self.put(operator_text(*operator));
                self.put(if *for_all { "ALL (" } else { "ANY (" });
                self.query(query);
                self.put("))");
            }
            ExprKind::Exists(query) => {
                self.put("EXISTS (");
                self.query(query);
                self.put(")");
            }
            ExprKind::Subquery(query) => {
                self.put("(");
                self.query(query);
                self.put(")");
            }
            ExprKind::Case {
                operand,
                branches,
                otherwise,
            } => {
                self.put("CASE");
                if let Some(operand) = operand {
                    self.put(" ");
                    self.expr(operand);
                }
                for (when, then) in branches {
                    self.put(" WHEN ");
                    self.expr(when);
                    self.put(" THEN ");
                    self.expr(then);
                }
                if let Some(otherwise) = otherwise {
                    self.put(" ELSE ");
                    self.expr(otherwise);
                }
                self.put(" END");
            }
            _ => self.conversion(expr),
        }
    }

    fn conversion(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Cast { value, to } => {
                self.put("CAST(");
                self.expr(value);
                self.put(" AS ");
                self.cast_type(to);
                self.put(")");
            }
            ExprKind::ConvertUsing { value, charset } => {
                self.put("CONVERT(");
                self.expr(value);
                self.put(" USING ");
                match charset {
                    Some(charset) => self.name(charset),
                    None => self.put("DEFAULT"),
                }
                self.put(")");
            }
            ExprKind::Collate { value, collation } => {
                self.put("(");
                self.expr(value);
                self.put(" COLLATE ");
                self.name(collation);
                self.put(")");
            }
            ExprKind::Char { codes, charset } => {
                self.put("CHAR(");
                self.list(codes, Self::expr);
                if let Some(charset) = charset {
                    self.put(" USING ");
                    self.name(charset);
                }
                self.put(")");
            }
            ExprKind::WeightString { value, length } => {
                self.put("WEIGHT_STRING(");
                self.expr(value);
                if let Some((is_bytes, length)) = length {
                    let word = if *is_bytes { "BINARY" } else { "CHAR" };
                    self.put(&format!(" AS {word}({length})"));
                }
                self.put(")");
            }
            _ => self.temporal(expr),
        }
    }

    fn cast_type(&mut self, to: &CastType) {
        let text = match to {
            CastType::Binary(length) => format!("BINARY{}", parens(*length)),
            CastType::Char {
                length,
                charset,
                collation,
            } => {
                self.put(&format!("CHAR{}", parens(*length)));
                if let Some(charset) = charset {
                    self.put(" CHARACTER SET ");
                    self.name(charset);
                }
                if let Some(collation) = collation {
                    self.put(" COLLATE ");
                    self.name(collation);
                }
                return;
            }
            CastType::Date => "DATE".to_owned(),
            CastType::Time(digits) => format!("TIME{}", parens(*digits)),
            CastType::Datetime(digits) => format!("DATETIME{}", parens(*digits)),
            CastType::Signed => "SIGNED".to_owned(),
            CastType::Unsigned => "UNSIGNED".to_owned(),
            CastType::Decimal(Some((precision, scale))) => format!("DECIMAL({precision}, {scale})"),
            CastType::Decimal(None) => "DECIMAL".to_owned(),
            CastType::Float => "FLOAT".to_owned(),
            CastType::Double(Some((precision, scale))) => format!("DOUBLE({precision}, {scale})"),
            CastType::Double(None) => "DOUBLE".to_owned(),
            CastType::Other(name) => name.text.clone(),
        };
        self.put(&text);
    }

    fn temporal(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::DateAdd {
                subtract,
                value,
                interval,
                unit,
            } => {
                self.put("(");
                self.expr(value);
                self.put(if *subtract {
                    " - INTERVAL "
                } else {
                    " + INTERVAL "
                });
                self.expr(interval);
                self.put(&format!(" {})", unit.text()));
            }
            ExprKind::Extract { unit, value } => {
                self.put(&format!("EXTRACT({} FROM ", unit.text()));
                self.expr(value);
                self.put(")");
            }
            ExprKind::TimestampAdd {
                unit,
                interval,
                value,
            } => {
                self.put(&format!("TIMESTAMPADD({}, ", unit.text()));
                self.expr(interval);
                self.put(", ");
                self.expr(value);
                self.put(")");
            }
            ExprKind::TimestampDiff { unit, from, to } => {
                self.put(&format!("TIMESTAMPDIFF({}, ", unit.text()));
                self.expr(from);
                self.put(", ");
                self.expr(to);
                self.put(")");
            }
            ExprKind::GetFormat { of, value } => {
                self.put(&format!("GET_FORMAT({of}, "));
                self.expr(value);
                self.put(")");
            }
            _ => self.named(expr),
        }
    }

    fn named(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Trim {
                side,
                removed,
                value,
            } => {
                self.put("TRIM(");
                let word = match side {
                    TrimSide::Both => "BOTH ",
                    TrimSide::Leading => "LEADING ",
                    TrimSide::Trailing => "TRAILING ",
                };
                self.put(word);
                if let Some(removed) = removed {
                    self.expr(removed);
                    self.put(" ");
                }
                self.put("FROM ");
                self.expr(value);
                self.put(")");
            }
            ExprKind::Match {
                columns,
                against,
                mode,
            } => {
                self.put("MATCH (");
                self.list(columns, Self::column);
                self.put(") AGAINST (");
                self.expr(against);
                self.put(match mode {
                    MatchMode::Natural => ")",
                    MatchMode::NaturalExpanded => " WITH QUERY EXPANSION)",
                    MatchMode::Boolean => " IN BOOLEAN MODE)",
                });
            }
            ExprKind::Default(None) => self.put("DEFAULT"),
            ExprKind::Default(Some(column)) => {
                self.put("DEFAULT(");
                self.column(column);
                self.put(")");
            }
            ExprKind::InsertedValue(column) => {
                self.put("VALUES(");
                self.column(column);
                self.put(")");
            }
            ExprKind::NextValue(name) => {
                self.put("NEXT VALUE FOR ");
                self.object(name);
            }
            ExprKind::PreviousValue(name) => {
                self.put("PREVIOUS VALUE FOR ");
                self.object(name);
            }
            _ => {}
        }
    }

    fn function(&mut self, function: &Function) {
        if let Some(schema) = &function.schema {
            self.name(schema);
            self.put(".");
            self.name(&function.name);
        } else if function.is_detached {
            self.put(&function.name.text);
            self.put(" ");
        } else {
            self.function_name(&function.name);
        }
        self.put("(");
        self.list(&function.arguments, Self::expr);
        self.put(")");
        self.over(function.over.as_ref());
    }

    /// Plain words stay plain: a quoted name never has a built-in function's special syntax.
    fn function_name(&mut self, name: &Ident) {
        let text = name.text.as_str();
        let is_word = text.bytes().all(crate::token::is_word_byte)
            && text
                .bytes()
                .next()
                .is_some_and(|byte| !byte.is_ascii_digit());
        let is_plain_call = match builtin::find(text.as_bytes()) {
            Some(found) => found.grammar.is_plain_call(),
            None => {
                !Keyword::of(text.as_bytes()).is_some_and(|word| word.class() == Class::NeverCalled)
            }
        };
        if is_word && is_plain_call {
            self.put(text);
        } else {
            self.name(name);
        }
    }

    fn aggregate(&mut self, aggregate: &Aggregate) {
        self.put(aggregate.function.name());
        self.put(if aggregate.distinct {
            "(DISTINCT "
        } else {
            "("
        });
        let is_count = aggregate.function == AggregateFunction::Count;
        if is_count && aggregate.arguments.is_empty() {
            self.put("*");
        }
        self.list(&aggregate.arguments, Self::expr);
        let is_percentile = matches!(
            aggregate.function,
            AggregateFunction::PercentileCont | AggregateFunction::PercentileDisc
        );
        if is_percentile {
            self.put(") WITHIN GROUP (");
        }
        self.order_by(&aggregate.order_by);
        if let Some(separator) = &aggregate.separator {
            self.put(" SEPARATOR ");
            let text = String::from_utf8_lossy(separator);
            self.put(&super::quoted_string(&text));
        }
        self.limit(aggregate.limit.as_ref());
        self.put(")");
        self.over(aggregate.over.as_ref());
    }

    fn over(&mut self, over: Option<&Over>) {
        match over {
            None => {}
            Some(Over::Named(name)) => {
                self.put(" OVER ");
                self.name(name);
            }
            Some(Over::Window(window)) => {
                self.put(" OVER ");
                self.window(window);
            }
        }
    }

    pub(super) fn window(&mut self, window: &Window) {
        self.put("(");
        if let Some(base) = &window.base {
            self.name(base);
        }
        if !window.partition_by.is_empty() {
            self.put(" PARTITION BY ");
            self.list(&window.partition_by, Self::expr);
        }
        self.order_by(&window.order_by);
        if let Some(frame) = &window.frame {
            self.frame(frame);
        }
        self.put(")");
    }

    fn frame(&mut self, frame: &Frame) {
        self.put(if frame.is_rows { " ROWS " } else { " RANGE " });
        if let Some(end) = &frame.end {
            self.put("BETWEEN ");
            self.frame_bound(&frame.start);
            self.put(" AND ");
            self.frame_bound(end);
        } else {
            self.frame_bound(&frame.start);
        }
        if let Some(exclude) = &frame.exclude {
            self.put(" EXCLUDE ");
            self.put(exclude);
        }
    }

    fn frame_bound(&mut self, bound: &FrameBound) {
        let (distance, word) = match bound {
            FrameBound::CurrentRow => return self.put("CURRENT ROW"),
            FrameBound::Preceding(distance) => (distance, " PRECEDING"),
            FrameBound::Following(distance) => (distance, " FOLLOWING"),
        };
        match distance {
            Some(distance) => self.expr(distance),
            None => self.put("UNBOUNDED"),
        }
        self.put(word);
    }
}

fn parens(length: Option<u32>) -> String {
    length
        .map(|length| format!("({length})"))
        .unwrap_or_default()
}

fn operator_text(operator: BinaryOperator) -> &'static str {
    match operator {
        BinaryOperator::Or => " OR ",
        BinaryOperator::Xor => " XOR ",
        BinaryOperator::And => " AND ",
        BinaryOperator::Equal => " = ",
        BinaryOperator::NullSafeEqual => " <=> ",
        BinaryOperator::NotEqual => " <> ",
        BinaryOperator::Less => " < ",
        BinaryOperator::LessEqual => " <= ",
        BinaryOperator::Greater => " > ",
        BinaryOperator::GreaterEqual => " >= ",
        BinaryOperator::Regexp => " REGEXP ",
        BinaryOperator::BitOr => " | ",
        BinaryOperator::BitAnd => " & ",
        BinaryOperator::ShiftLeft => " << ",
        BinaryOperator::ShiftRight => " >> ",
        BinaryOperator::Concat => ", ",
        BinaryOperator::Add => " + ",
        BinaryOperator::Subtract => " - ",
        BinaryOperator::Multiply => " * ",
        BinaryOperator::Divide => " / ",
        BinaryOperator::IntegerDivide => " DIV ",
        BinaryOperator::Modulo => " % ",
        BinaryOperator::BitXor => " ^ ",
    }
}
