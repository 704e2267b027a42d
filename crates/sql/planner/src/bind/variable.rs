//! Variables of the session: `@name`, `@name := value` and `@@name`.
//!
//! A user variable has the type of its last assigned value. A plan uses the types at planning time
//! and lists them ([`crate::Plan::user_variables`]); it is valid while they are unchanged. A value
//! that the statement itself assigns is converted to the plan's type when it is read.

use std::collections::{BTreeMap, BTreeSet};

use expression::{Expression, ExpressionKind, UserVariable};
use syntax::ast::{self, ExprKind};
use value::collation::Coercibility;
use value::{CollationId, ColumnType, TypeKind};

use super::Binder;
use super::term::Bound;

/// How a statement uses user variables.
#[derive(Debug, Default)]
pub(crate) struct UserVariableUses<'a> {
    /// The statement's text.
    text: &'a [u8],
    /// The variables that the text assigns, once that was needed.
    assigned: Option<Assigned>,
    /// Variables that are read, with their types in the session.
    types: BTreeMap<Box<str>, ColumnType>,
    /// The collations of values assigned before the current place.
    collations: BTreeMap<Box<str>, CollationId>,
    /// Variables that take fields of LOAD DATA, and the collation of these.
    loaded: BTreeMap<Box<str>, CollationId>,
}

/// The variables that a text assigns.
#[derive(Debug, Default, PartialEq, Eq)]
struct Assigned {
    /// Their names, in lower case.
    names: BTreeSet<String>,
    /// There may be others: a name is quoted, or not directly before its `:=`.
    has_others: bool,
}

impl Assigned {
    /// Looks at what precedes each `:=`, also in strings and comments. A name too many costs an
    /// index lookup; a name too few would make results wrong.
    fn of(text: &[u8]) -> Self {
        let mut assigned = Self::default();
        for (place, pair) in text.windows(2).enumerate() {
            if pair != b":=" {
                continue;
            }
            let before = text[..place].trim_ascii_end();
            let is_in_name = |byte: &u8| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | 0x80..)
            };
            let start = before.iter().rposition(|byte| !is_in_name(byte));
            match start.map(|start| (before[start], &before[start + 1..])) {
                Some((b'@', name)) if !name.is_empty() => {
                    let name = String::from_utf8_lossy(name).to_lowercase();
                    assigned.names.insert(name);
                }
                _ => assigned.has_others = true,
            }
        }
        assigned
    }
}

impl<'a> UserVariableUses<'a> {
    /// The variables of a statement's text.
    pub(crate) fn of(text: &'a [u8]) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }

    /// The types that the plan depends on.
    pub(crate) fn into_types(self) -> Box<[(Box<str>, ColumnType)]> {
        self.types.into_iter().collect()
    }

    /// A variable takes fields of LOAD DATA: when it is read, it is a text of that collation.
    pub(crate) fn load(&mut self, name: &str, collation: CollationId) {
        self.loaded.insert(name.to_lowercase().into(), collation);
    }

    fn is_assigned(&mut self, name: &str) -> bool {
        let assigned = self.assigned.get_or_insert_with(|| Assigned::of(self.text));
        assigned.has_others || assigned.names.contains(name)
    }
}

impl Binder<'_> {
    /// A variable, or an assignment.
    pub(super) fn variable(&mut self, kind: &ExprKind) -> Bound {
        match kind {
            ExprKind::UserVariable(name) => Ok(self.user_variable(name)),
            ExprKind::Assign { variable, value } => {
                let value = self.term(value)?;
                Ok(self.assignment(variable, value))
            }
            ExprKind::SystemVariable(variable) => self.system_variable(variable),
            _ => unreachable!("called for variables"),
        }
    }

    fn user_variable(&mut self, name: &str) -> Expression {
        let name: Box<str> = name.to_lowercase().into();
        let names = self.names;
        let variables = &mut self.user_variables;
        let in_session = variables.types.entry(name.clone());
        let in_session = in_session.or_insert_with(|| names.user_variable_type(&name));
        // A text takes the collation of the statement's earlier assignment.
        let assigned = variables.collations.get(&name);
        let assigned = assigned.filter(|_| in_session.kind.is_bytes());
        let column_type = match variables.loaded.get(&name).or(assigned) {
            Some(collation) => ColumnType::any_text(*collation),
            None => in_session.clone(),
        };
        let is_assigned = variables.is_assigned(&name);
        self.has_varied |= is_assigned;
        self.occurrence_count += usize::from(is_assigned);
        let variable = Box::new(UserVariable {
            name,
            is_assigned,
            occurrence: match is_assigned {
                true => self.occurrence_count,
                false => 0,
            },
        });
        Expression::new(ExpressionKind::UserVariable(variable), column_type)
    }

    fn assignment(&mut self, name: &str, value: Expression) -> Expression {
        let name: Box<str> = name.to_lowercase().into();
        let rule = self.text_rule(&value);
        let collation = match rule.coercibility {
            Coercibility::Numeric => self.settings.collation,
            _ => rule.collation,
        };
        let collations = &mut self.user_variables.collations;
        if value.column_type.kind != TypeKind::Null || !collations.contains_key(&name) {
            collations.insert(name.clone(), collation);
        }
        let mut column_type = value.column_type.clone();
        let is_constant = matches!(value.kind, ExpressionKind::Constant(_));
        if column_type.kind.is_integer() && !is_constant {
            // The type that the variable will have.
            column_type.kind = TypeKind::BigInt;
        }
        self.has_varied = true;
        let assignment = Box::new((name, value));
        Expression::new(ExpressionKind::AssignUserVariable(assignment), column_type)
    }

    fn system_variable(&self, variable: &ast::SystemVariable) -> Bound {
        let scope = variable.scope;
        let name: Box<str> = variable.name.text.to_lowercase().into();
        let column_type = self.names.system_variable_type(scope, &name)?;
        let variable = expression::SystemVariable { scope, name };
        let kind = ExpressionKind::SystemVariable(Box::new(variable));
        Ok(Expression::new(kind, column_type))
    }
}

/// Arithmetic reads user variables in the domain of its result. So a text is a number without a
/// warning, and a DECIMAL that the statement assigned to an integer variable keeps its digits.
pub(super) fn read_in_domain(arguments: &mut [Expression], result: &ColumnType) {
    let as_type = match result.kind {
        TypeKind::Decimal => ColumnType::any_decimal(),
        TypeKind::Double => ColumnType::new(TypeKind::Double),
        _ => return,
    };
    for argument in arguments {
        if matches!(argument.kind, ExpressionKind::UserVariable(_)) {
            argument.column_type = as_type.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(text: &str) -> (Vec<String>, bool) {
        let assigned = Assigned::of(text.as_bytes());
        (assigned.names.into_iter().collect(), assigned.has_others)
    }

    #[test]
    fn a_text_tells_what_it_assigns() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(assigned("SELECT @a, a = @b"), (Vec::new(), false));
        let text = "SELECT @Row := @row + 1, @a.b$\u{e4}:=2 FROM t WHERE id = @id";
        assert_eq!(assigned(text), (names(&["a.b$\u{e4}", "row"]), false));
        for text in [
            "SELECT @`a b` := 1",
            "SELECT @a /* so */ := 1",
            "@:=1",
            ":=",
        ] {
            assert_eq!(assigned(text), (Vec::new(), true), "{text}");
        }
    }
}
