//! Prints trees as text with full parentheses: the result parses to the same tree.
//!
//! For column defaults, generated columns and views in `SHOW CREATE`, and to compare how others
//! parse a text. Names are in backquotes. Strings that are not UTF-8 are printed as `_binary
//! x'..'`.

mod expr;
mod query;

use crate::ast::{Expr, Ident, Literal, ObjectName, Query, Statement, StatementKind};

/// A statement that reads or changes rows; `None` for others.
#[must_use]
pub fn print(statement: &Statement) -> Option<String> {
    print_with(statement, &[])
}

/// As [`print()`], with literals in place of the parameters; a parameter without one stays a `?`.
#[must_use]
pub fn print_with(statement: &Statement, parameters: &[Option<Literal>]) -> Option<String> {
    let mut printer = Printer {
        out: String::new(),
        parameters,
    };
    match &statement.kind {
        StatementKind::Query(query) => printer.query(query),
        StatementKind::Insert(insert) => printer.insert(insert),
        StatementKind::Update(update) => printer.update(update),
        StatementKind::Delete(delete) => printer.delete(delete),
        _ => return None,
    }
    Some(printer.out)
}

/// An expression.
#[must_use]
pub fn print_expr(expr: &Expr) -> String {
    let mut printer = Printer {
        out: String::new(),
        parameters: &[],
    };
    printer.expr(expr);
    printer.out
}

/// A query.
#[must_use]
pub fn print_query(query: &Query) -> String {
    let mut printer = Printer {
        out: String::new(),
        parameters: &[],
    };
    printer.query(query);
    printer.out
}

/// A name in backquotes.
#[must_use]
pub fn quoted_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A string in quotes, escaped so that it reads back in the default `sql_mode`.
#[must_use]
pub fn quoted_string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for character in text.chars() {
        match character {
            '\'' => quoted.push_str("''"),
            '\\' => quoted.push_str("\\\\"),
            '\0' => quoted.push_str("\\0"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\u{1a}' => quoted.push_str("\\Z"),
            other => quoted.push(other),
        }
    }
    quoted.push('\'');
    quoted
}

/// A list that was left in the text.
///
/// # Panics
/// Always: printed trees come from [`crate::parse()`] and [`crate::parse_expr`], which make trees
/// of all lists.
fn left_in_text() -> ! {
    unreachable!("a list that was left in its text is not printed")
}

struct Printer<'a> {
    out: String,
    parameters: &'a [Option<Literal>],
}

impl Printer<'_> {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn name(&mut self, name: &Ident) {
        let quoted = quoted_name(&name.text);
        self.put(&quoted);
    }

    fn object(&mut self, name: &ObjectName) {
        if let Some(schema) = &name.schema {
            self.name(schema);
            self.put(".");
        }
        self.name(&name.name);
    }

    /// Things with commas between them.
    fn list<T>(&mut self, list: &[T], mut item: impl FnMut(&mut Self, &T)) {
        for (index, one) in list.iter().enumerate() {
            if 0 < index {
                self.put(", ");
            }
            item(self, one);
        }
    }

    /// `(a, b)`, or nothing if the list is empty.
    fn names_if_any(&mut self, names: &[Ident]) {
        if !names.is_empty() {
            self.put(" (");
            self.list(names, Self::name);
            self.put(")");
        }
    }

    fn literal(&mut self, literal: &Literal) {
        let text = match literal {
            Literal::Null => "NULL".to_owned(),
            Literal::Bool(true) => "TRUE".to_owned(),
            Literal::Bool(false) => "FALSE".to_owned(),
            Literal::Integer(value) => value.to_string(),
            Literal::Decimal(text) | Literal::Float(text) => text.clone(),
            Literal::String { value, charset } => {
                let introducer = introducer(charset.as_deref());
                match std::str::from_utf8(value) {
                    Ok(text) => introducer + &quoted_string(text),
                    Err(_) => format!("_binary x'{}'", hexadecimal(value)),
                }
            }
            Literal::Hex {
                value,
                is_number,
                charset,
            } => {
                let digits = hexadecimal(value);
                let introducer = introducer(charset.as_deref());
                if *is_number {
                    format!("{introducer}0x{digits}")
                } else {
                    format!("{introducer}x'{digits}'")
                }
            }
            Literal::Bit { value, charset } => {
                let bits: String = value.iter().map(|byte| format!("{byte:08b}")).collect();
                format!("{}b'{bits}'", introducer(charset.as_deref()))
            }
            Literal::Temporal { kind, text } => {
                let word = match kind {
                    crate::ast::TemporalKind::Date => "DATE",
                    crate::ast::TemporalKind::Time => "TIME",
                    crate::ast::TemporalKind::Timestamp => "TIMESTAMP",
                };
                format!("{word} {}", quoted_string(text))
            }
        };
        self.put(&text);
    }
}

fn introducer(charset: Option<&str>) -> String {
    charset
        .map(|charset| format!("_{charset} "))
        .unwrap_or_default()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}
