//! A parser for the expressions of the comparison, far smaller than SQL's: literals, calls, infix
//! operators, CAST, INTERVAL. It binds and evaluates them with the library under test.

use builtin::{Function, Meaning};
use errcode::ER_SP_DOES_NOT_EXIST;
use function::{Arg, BindEnv, Bound, Context, bind, bind_cast, bind_collate, bind_convert};
use value::{Charset, CollationId, ColumnType, SqlCondition, TypeKind, Value};

/// An expression: a literal, or a call of others.
#[derive(Debug)]
pub(crate) enum Expression {
    Literal(Value),
    Column(usize),
    Call(String, Vec<Expression>),
    Cast(Box<Expression>, ColumnType),
    Collate(Box<Expression>, CollationId),
    Convert(Box<Expression>, Charset),
}

/// A table whose columns expressions may name.
pub(crate) struct Table {
    pub(crate) columns: Vec<(&'static str, &'static str, ColumnType)>,
    pub(crate) row: Vec<Value>,
}

/// An evaluated expression.
#[derive(Debug)]
pub(crate) struct Evaluated {
    pub(crate) arg: Arg,
    pub(crate) value: Value,
}

impl Expression {
    /// Binds and evaluates.
    pub(crate) fn evaluate(
        &self,
        table: &Table,
        env: &BindEnv,
        context: &mut Context<'_>,
    ) -> Result<Evaluated, SqlCondition> {
        let run = |bound: &Bound, args: &[Evaluated], context: &mut Context<'_>| {
            let values: Vec<_> = args.iter().map(|arg| arg.value.as_ref()).collect();
            let value = bound.eval(&values, context)?;
            let mut arg = Arg::result(bound);
            // A call of constants is a constant, as the server folds it.
            if args.iter().all(|arg| arg.arg.constant.is_some()) {
                arg.constant = Some(value.clone());
            }
            Ok(Evaluated { arg, value })
        };
        match self {
            Self::Literal(value) => Ok(Evaluated {
                arg: Arg::literal(value.clone(), env),
                value: value.clone(),
            }),
            Self::Column(index) => Ok(Evaluated {
                arg: Arg::column(table.columns[*index].2.clone(), true, env),
                value: table.row[*index].clone(),
            }),
            Self::Call(name, args) => {
                let args: Vec<Evaluated> = args
                    .iter()
                    .map(|arg| arg.evaluate(table, env, context))
                    .collect::<Result<_, _>>()?;
                let types: Vec<Arg> = args.iter().map(|arg| arg.arg.clone()).collect();
                let bound =
                    named(name).and_then(|(function, name)| bind(function, name, &types, env));
                run(&bound?, &args, context)
            }
            Self::Cast(inner, target) => {
                let arg = inner.evaluate(table, env, context)?;
                run(&bind_cast(&arg.arg, target.clone(), env)?, &[arg], context)
            }
            Self::Collate(inner, collation) => {
                let arg = inner.evaluate(table, env, context)?;
                run(&bind_collate(&arg.arg, *collation, env)?, &[arg], context)
            }
            Self::Convert(inner, charset) => {
                let arg = inner.evaluate(table, env, context)?;
                run(&bind_convert(&arg.arg, *charset, env)?, &[arg], context)
            }
        }
    }
}

/// The function of that name, or error 1305.
fn named(name: &str) -> Result<(Function, &'static str), SqlCondition> {
    let found = builtin::find(name.as_bytes());
    match found.map(|found| (found.builtin.meaning, found.name)) {
        Some((Meaning::Library(function), name)) => Ok((function, name)),
        _ => Err(SqlCondition::new(
            ER_SP_DOES_NOT_EXIST,
            &[&"FUNCTION", &name],
        )),
    }
}

/// Reads one expression; panics on an invalid text, since the corpus is ours.
pub(crate) fn parse(text: &str, table: &Table) -> Expression {
    let mut parser = Parser {
        tokens: tokens(text),
        at: 0,
        text,
        table,
    };
    let expression = parser.expression(0);
    assert!(
        parser.at == parser.tokens.len(),
        "left over in {text}: {:?}",
        parser.peek()
    );
    expression
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Number(String),
    Text(Vec<u8>),
    Hex(Vec<u8>),
    Sign(String),
}

fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b' ' => at += 1,
            b'\'' => {
                let (content, end) = quoted(bytes, at + 1);
                tokens.push(Token::Text(content));
                at = end;
            }
            b'x' if bytes.get(at + 1) == Some(&b'\'') => {
                let end = at + 2 + text[at + 2..].find('\'').expect("a closed literal");
                let digits = &text[at + 2..end];
                let hex = (0..digits.len()).step_by(2).map(|index| {
                    u8::from_str_radix(&digits[index..index + 2], 16).expect("hexadecimal")
                });
                tokens.push(Token::Hex(hex.collect()));
                at = end + 1;
            }
            b'0'..=b'9' => {
                at += bytes[at..]
                    .iter()
                    .take_while(|b| b.is_ascii_digit() || **b == b'.')
                    .count();
                if matches!(bytes.get(at), Some(b'e')) {
                    at += 1 + usize::from(matches!(bytes.get(at + 1), Some(b'-')));
                    at += bytes[at..]
                        .iter()
                        .take_while(|b| b.is_ascii_digit())
                        .count();
                }
                tokens.push(Token::Number(text[start..at].to_owned()));
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let word = |b: &&u8| b.is_ascii_alphanumeric() || **b == b'_';
                at += bytes[at..].iter().take_while(word).count();
                tokens.push(Token::Word(text[start..at].to_owned()));
            }
            _ => {
                let sign = ["<=>", "<<", ">>", "<=", ">=", "<>", "!="];
                let long = sign.iter().find(|sign| text[at..].starts_with(**sign));
                let sign = long.map_or(&text[at..=at], |sign| *sign);
                at += sign.len();
                tokens.push(Token::Sign(sign.to_owned()));
            }
        }
    }
    tokens
}

/// The content of a quoted literal, and its end.
fn quoted(bytes: &[u8], start: usize) -> (Vec<u8>, usize) {
    let mut content = Vec::new();
    let mut at = start;
    loop {
        match (bytes[at], bytes.get(at + 1)) {
            (b'\'', Some(b'\'')) => {
                content.push(b'\'');
                at += 2;
            }
            (b'\'', _) => return (content, at + 1),
            (b'\\', Some(b'n')) => {
                content.push(b'\n');
                at += 2;
            }
            (b'\\', Some(next)) => {
                if matches!(next, b'%' | b'_') {
                    content.push(b'\\');
                }
                content.push(*next);
                at += 2;
            }
            (byte, _) => {
                content.push(byte);
                at += 1;
            }
        }
    }
}

struct Parser<'a> {
    tokens: Vec<Token>,
    at: usize,
    text: &'a str,
    table: &'a Table,
}

/// Binding powers, weakest first; the corpus has brackets where it needs more.
const POWERS: [(&str, u8); 25] = [
    ("OR", 1),
    ("XOR", 2),
    ("AND", 3),
    ("=", 5),
    ("<=>", 5),
    ("<>", 5),
    ("<", 5),
    ("<=", 5),
    (">", 5),
    (">=", 5),
    ("LIKE", 5),
    ("REGEXP", 5),
    ("|", 6),
    ("&", 7),
    ("<<", 8),
    (">>", 8),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("DIV", 10),
    ("%", 10),
    ("MOD", 10),
    ("^", 11),
    ("COLLATE", 12),
];

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Token {
        let token = self
            .peek()
            .unwrap_or_else(|| panic!("{} ends early", self.text))
            .clone();
        self.at += 1;
        token
    }

    fn take(&mut self, wanted: &str) -> bool {
        let found = match self.peek() {
            Some(Token::Word(word)) => word.eq_ignore_ascii_case(wanted),
            Some(Token::Sign(sign)) => sign == wanted,
            _ => false,
        };
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, wanted: &str) {
        assert!(
            self.take(wanted),
            "{} lacks {wanted} at {:?}",
            self.text,
            self.peek()
        );
    }

    fn expression(&mut self, least: u8) -> Expression {
        let mut left = self.prefix();
        loop {
            let name = match self.peek() {
                Some(Token::Word(word)) => word.to_ascii_uppercase(),
                Some(Token::Sign(sign)) => sign.clone(),
                _ => return left,
            };
            if name == "IS" && least <= 4 {
                self.at += 1;
                left = self.is(left);
                continue;
            }
            if name == "IN" && least <= 5 {
                self.at += 1;
                self.expect("(");
                let mut args = vec![left];
                args.extend(self.arguments());
                left = Expression::Call("IN".into(), args);
                continue;
            }
            if name == "BETWEEN" && least <= 4 {
                self.at += 1;
                let from = self.expression(6);
                self.expect("AND");
                let to = self.expression(6);
                left = Expression::Call("BETWEEN".into(), vec![left, from, to]);
                continue;
            }
            let Some((_, power)) = POWERS.iter().find(|(known, _)| *known == name) else {
                return left;
            };
            if *power < least {
                return left;
            }
            self.at += 1;
            if name == "COLLATE" {
                let Token::Word(collation) = self.next() else {
                    panic!("{}", self.text)
                };
                let collation = CollationId::from_name(&collation).expect("a known collation");
                left = Expression::Collate(Box::new(left), collation);
                continue;
            }
            let right = self.expression(power + 1);
            left = Expression::Call(name, vec![left, right]);
        }
    }

    fn is(&mut self, left: Expression) -> Expression {
        let not = if self.take("NOT") { "NOT " } else { "" };
        let Token::Word(what) = self.next() else {
            panic!("{}", self.text)
        };
        Expression::Call(format!("IS {not}{}", what.to_ascii_uppercase()), vec![left])
    }

    fn arguments(&mut self) -> Vec<Expression> {
        let mut args = Vec::new();
        if self.take(")") {
            return args;
        }
        loop {
            args.push(self.expression(0));
            if self.take(")") {
                return args;
            }
            self.expect(",");
        }
    }

    fn prefix(&mut self) -> Expression {
        match self.next() {
            Token::Number(digits) => Expression::Literal(number(&digits)),
            Token::Text(text) => Expression::Literal(Value::Bytes(text)),
            Token::Hex(bytes) => Expression::Call(
                "BINARY".into(),
                vec![Expression::Literal(Value::Bytes(bytes))],
            ),
            Token::Sign(sign) => match sign.as_str() {
                "(" => {
                    let inner = self.expression(0);
                    self.expect(")");
                    inner
                }
                "-" => match self.expression(11) {
                    Expression::Literal(Value::Int(number)) if number != i64::MIN => {
                        Expression::Literal(Value::Int(-number))
                    }
                    Expression::Literal(Value::UInt(9_223_372_036_854_775_808)) => {
                        Expression::Literal(Value::Int(i64::MIN))
                    }
                    Expression::Literal(Value::Decimal(number)) => {
                        Expression::Literal(Value::Decimal(number.negated()))
                    }
                    Expression::Literal(Value::Double(number)) => {
                        Expression::Literal(Value::Double(-number))
                    }
                    other => Expression::Call("-".into(), vec![other]),
                },
                "~" | "!" => Expression::Call(sign, vec![self.expression(11)]),
                _ => panic!("{}: {sign}", self.text),
            },
            Token::Word(word) => self.word(&word.to_ascii_uppercase()),
        }
    }

    fn word(&mut self, word: &str) -> Expression {
        match word {
            "NULL" => Expression::Literal(Value::Null),
            "TRUE" => Expression::Literal(Value::Int(1)),
            "FALSE" => Expression::Literal(Value::Int(0)),
            "NOT" => Expression::Call("NOT".into(), vec![self.expression(4)]),
            "BINARY" => Expression::Call("BINARY".into(), vec![self.expression(11)]),
            "DATE" | "TIME" | "TIMESTAMP" if matches!(self.peek(), Some(Token::Text(_))) => {
                self.temporal(word)
            }
            "CASE" => self.case(),
            "CAST" => {
                self.expect("(");
                let inner = self.expression(0);
                self.expect("AS");
                let target = self.target();
                self.expect(")");
                Expression::Cast(Box::new(inner), target)
            }
            "CONVERT" => {
                self.expect("(");
                let inner = self.expression(0);
                self.expect("USING");
                let Token::Word(charset) = self.next() else {
                    panic!("{}", self.text)
                };
                self.expect(")");
                let charset = Charset::from_name(&charset).expect("a known character set");
                Expression::Convert(Box::new(inner), charset)
            }
            "DATE_ADD" | "DATE_SUB" => {
                self.expect("(");
                let start = self.expression(0);
                self.expect(",");
                self.expect("INTERVAL");
                let amount = self.expression(0);
                let unit = self.unit();
                self.expect(")");
                Expression::Call(word.into(), vec![start, amount, unit])
            }
            "EXTRACT" => {
                self.expect("(");
                let unit = self.unit();
                self.expect("FROM");
                let inner = self.expression(0);
                self.expect(")");
                Expression::Call(word.into(), vec![unit, inner])
            }
            "TIMESTAMPDIFF" | "TIMESTAMPADD" => {
                self.expect("(");
                let unit = self.unit();
                self.expect(",");
                let mut args = vec![unit];
                args.extend(self.arguments());
                Expression::Call(word.into(), args)
            }
            "TRIM" => self.trim(),
            _ => {
                let column = |(name, _, _): &(&str, _, _)| name.eq_ignore_ascii_case(word);
                if let Some(index) = self.table.columns.iter().position(column) {
                    return Expression::Column(index);
                }
                self.expect("(");
                Expression::Call(word.into(), self.arguments())
            }
        }
    }

    fn unit(&mut self) -> Expression {
        let Token::Word(unit) = self.next() else {
            panic!("{}", self.text)
        };
        Expression::Literal(Value::bytes(unit))
    }

    fn trim(&mut self) -> Expression {
        self.expect("(");
        let name = if self.take("LEADING") {
            "TRIM_LEADING"
        } else if self.take("TRAILING") {
            "TRIM_TRAILING"
        } else {
            self.take("BOTH");
            "TRIM"
        };
        let first = self.expression(0);
        if self.take("FROM") {
            let text = self.expression(0);
            self.expect(")");
            return Expression::Call(name.into(), vec![text, first]);
        }
        self.expect(")");
        Expression::Call(name.into(), vec![first])
    }

    fn case(&mut self) -> Expression {
        let mut args = Vec::new();
        while self.take("WHEN") {
            args.push(self.expression(0));
            self.expect("THEN");
            args.push(self.expression(0));
        }
        if self.take("ELSE") {
            args.push(self.expression(0));
        }
        self.expect("END");
        Expression::Call("CASE".into(), args)
    }

    fn temporal(&mut self, word: &str) -> Expression {
        let Token::Text(text) = self.next() else {
            panic!("{}", self.text)
        };
        let point = text.iter().position(|byte| *byte == b'.');
        let fsp = point.map_or(0, |at| {
            u8::try_from(text.len() - at - 1).expect("few digits")
        });
        Expression::Literal(match word {
            "DATE" => Value::Date(
                value::temporal::parse_datetime(&text)
                    .expect("a date")
                    .value
                    .date(),
            ),
            "TIME" => {
                let time = value::temporal::parse_time(&text).expect("a time").value;
                return literal_of(Value::Time(time), TypeKind::Time, fsp);
            }
            _ => {
                let time = value::temporal::parse_datetime(&text)
                    .expect("a moment")
                    .value;
                return literal_of(Value::DateTime(time), TypeKind::DateTime, fsp);
            }
        })
    }

    fn target(&mut self) -> ColumnType {
        let Token::Word(word) = self.next() else {
            panic!("{}", self.text)
        };
        let mut numbers = Vec::new();
        if self.take("(") {
            loop {
                let Token::Number(number) = self.next() else {
                    panic!("{}", self.text)
                };
                numbers.push(number.parse::<u32>().expect("a number"));
                if self.take(")") {
                    break;
                }
                self.expect(",");
            }
        }
        let fsp = numbers
            .first()
            .map_or(0, |fsp| u8::try_from(*fsp).expect("small"));
        match word.to_ascii_uppercase().as_str() {
            "SIGNED" => ColumnType::new(TypeKind::BigInt),
            "UNSIGNED" => ColumnType::unsigned(TypeKind::BigInt),
            "CHAR" => ColumnType::varchar(
                numbers.first().copied().unwrap_or(255),
                CollationId::UTF8MB4_GENERAL_CI,
            ),
            "BINARY" => match numbers.first() {
                Some(length) => ColumnType::text(TypeKind::Binary, *length, CollationId::BINARY),
                None => ColumnType::text(TypeKind::VarBinary, 255, CollationId::BINARY),
            },
            "DATE" => ColumnType::new(TypeKind::Date),
            "TIME" => ColumnType::temporal(TypeKind::Time, fsp),
            "DATETIME" => ColumnType::temporal(TypeKind::DateTime, fsp),
            "DOUBLE" => ColumnType::new(TypeKind::Double),
            "DECIMAL" => ColumnType::decimal(
                numbers
                    .first()
                    .map_or(10, |p| u8::try_from(*p).expect("small")),
                numbers
                    .get(1)
                    .map_or(0, |s| u8::try_from(*s).expect("small")),
            ),
            other => panic!("{}: {other}", self.text),
        }
    }
}

/// A temporal literal has as many fractional digits as were written.
fn literal_of(value: Value, kind: TypeKind, fsp: u8) -> Expression {
    Expression::Cast(
        Box::new(Expression::Literal(value)),
        ColumnType::temporal(kind, fsp),
    )
}

fn number(digits: &str) -> Value {
    if digits.contains('e') {
        return Value::Double(digits.parse().expect("a double"));
    }
    if digits.contains('.') {
        return Value::Decimal(digits.parse().expect("a decimal"));
    }
    match digits.parse::<i64>() {
        Ok(number) => Value::Int(number),
        Err(_) => digits.parse().map_or_else(
            |_| Value::Decimal(digits.parse().expect("a decimal")),
            Value::UInt,
        ),
    }
}
