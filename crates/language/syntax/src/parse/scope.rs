//! The visible names within the body of a stored program.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use super::cursor::{Cursor, Parsed};
use super::error::{Fail, RoutineError, SyntaxErrorKind};
use crate::ast::{
    ConditionValue, DataType, Direction, Ident, LocalUse, ProgramExpr, ProgramStatement,
    ProgramVariable, RoutineKind, RowVariable,
};
use crate::token::Span;

/// The declarations of a body, and which of them are visible at the current place.
pub(super) struct Scope {
    /// The kind of program; `None` for a compound statement outside of a routine.
    pub(super) kind: Option<RoutineKind>,
    /// All variables, by slot.
    pub(super) variables: Vec<ProgramVariable>,
    /// The queries of all cursors, by number.
    pub(super) cursors: Vec<ProgramStatement>,
    /// The parameters of each cursor: variables that only its query sees.
    pub(super) cursor_parameters: Vec<Range<u32>>,
    /// Rows of cursors, by number.
    pub(super) rows: Vec<Row>,
    /// Visible names, the innermost last.
    names: Vec<Name>,
    /// The positions in `names` of each text, the innermost last: bodies may declare a million
    /// names.
    places: HashMap<Rc<str>, Vec<usize>>,
    /// Where the names of the current block begin.
    pub(super) block_start: usize,
    /// Visible labels, the innermost last.
    pub(super) labels: Vec<Label>,
    /// How many labels there have been.
    label_count: u32,
    /// Variables used in the current expression or statement.
    uses: Vec<LocalUse>,
    /// A `RETURN` was seen.
    pub(super) has_return: bool,
}

/// A row of a cursor; its fields become variables at their first use.
pub(super) struct Row {
    pub(super) variable: RowVariable,
    /// The fields by their names in lower case.
    by_name: HashMap<String, u32>,
}

struct Name {
    /// In lower case.
    text: Rc<str>,
    meaning: Meaning,
}

/// What a declared name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A variable, by slot.
    Variable(u32),
    /// A row, by number.
    Row(u32),
    /// A condition.
    Condition(ConditionValue),
    /// A cursor, by number.
    Cursor(u32),
}

/// A visible label.
pub(super) struct Label {
    pub(super) name: Ident,
    pub(super) number: u32,
    pub(super) is_loop: bool,
}

impl Scope {
    pub(super) fn new(kind: Option<RoutineKind>) -> Box<Scope> {
        Box::new(Scope {
            kind,
            variables: Vec::new(),
            cursors: Vec::new(),
            cursor_parameters: Vec::new(),
            rows: Vec::new(),
            names: Vec::new(),
            places: HashMap::new(),
            block_start: 0,
            labels: Vec::new(),
            label_count: 0,
            uses: Vec::new(),
            has_return: false,
        })
    }

    /// How many variables there are: the number of the next.
    pub(super) fn variable_count(&self) -> u32 {
        u32::try_from(self.variables.len()).unwrap_or(u32::MAX)
    }

    /// How many cursors there are: the number of the next.
    pub(super) fn cursor_count(&self) -> u32 {
        u32::try_from(self.cursors.len()).unwrap_or(u32::MAX)
    }

    /// Adds a cursor that has no name yet.
    pub(super) fn add_cursor(&mut self, query: ProgramStatement, parameters: Range<u32>) -> u32 {
        let number = self.cursor_count();
        self.cursors.push(query);
        self.cursor_parameters.push(parameters);
        number
    }

    /// Adds a variable that has no name yet.
    pub(super) fn add_variable(
        &mut self,
        name: Ident,
        data_type: Option<Rc<DataType>>,
        direction: Direction,
    ) -> u32 {
        let slot = self.variable_count();
        self.variables.push(ProgramVariable {
            name,
            data_type,
            direction,
        });
        slot
    }

    /// Declares a name.
    pub(super) fn declare(&mut self, name: &str, meaning: Meaning) {
        let text: Rc<str> = name.to_lowercase().into();
        let places = self.places.entry(Rc::clone(&text)).or_default();
        places.push(self.names.len());
        self.names.push(Name { text, meaning });
    }

    /// Whether the current block has declared a name of this kind.
    pub(super) fn has_declared(&self, name: &str, is_kind: impl Fn(Meaning) -> bool) -> bool {
        self.named(name)
            .take_while(|(at, _)| self.block_start <= *at)
            .any(|(_, meaning)| is_kind(meaning))
    }

    /// The number of visible names, for [`Scope::forget`].
    pub(super) fn name_count(&self) -> usize {
        self.names.len()
    }

    /// Hides the names after the first `name_count`.
    pub(super) fn forget(&mut self, name_count: usize) {
        for name in self.names.drain(name_count.min(self.names.len())..).rev() {
            if let Some(places) = self.places.get_mut(&name.text) {
                places.pop();
                if places.is_empty() {
                    self.places.remove(&name.text);
                }
            }
        }
    }

    /// The meanings of a name, the innermost first, with their positions among the names.
    fn named(&self, name: &str) -> impl Iterator<Item = (usize, Meaning)> {
        let places = match self.names.is_empty() {
            true => None,
            false => self.places.get(name.to_lowercase().as_str()),
        };
        let places = places.map(Vec::as_slice).unwrap_or_default();
        let of = |at: &usize| Some((*at, self.names.get(*at)?.meaning));
        places.iter().rev().filter_map(of)
    }

    fn find<T>(&self, name: &str, pick: impl Fn(Meaning) -> Option<T>) -> Option<T> {
        self.named(name).find_map(|(_, meaning)| pick(meaning))
    }

    /// The variable that a name means.
    pub(super) fn variable(&self, name: &str) -> Option<u32> {
        let found = self.find(name, |meaning| match meaning {
            Meaning::Variable(slot) => Some(Some(slot)),
            Meaning::Row(_) => Some(None),
            _ => None,
        });
        found.flatten()
    }

    /// The variable that `row.field` means.
    pub(super) fn field(&mut self, row: &str, field: &Ident) -> Option<u32> {
        let found = self.find(row, |meaning| match meaning {
            Meaning::Variable(_) => Some(None),
            Meaning::Row(number) => Some(Some(number)),
            _ => None,
        });
        let number = usize::try_from(found.flatten()?).ok()?;
        let key = field.text.to_lowercase();
        if let Some(slot) = self.rows.get(number)?.by_name.get(&key) {
            return Some(*slot);
        }
        let slot = self.add_variable(field.clone(), None, Direction::In);
        let row = self.rows.get_mut(number)?;
        row.by_name.insert(key, slot);
        row.variable.fields.push((field.clone(), slot));
        Some(slot)
    }

    /// Declares a row. Returns its number.
    pub(super) fn add_row(&mut self, name: Ident) -> usize {
        let number = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        let text = name.text.clone();
        self.rows.push(Row {
            variable: RowVariable {
                name,
                fields: Vec::new(),
            },
            by_name: HashMap::new(),
        });
        self.declare(&text, Meaning::Row(number));
        self.rows.len() - 1
    }

    pub(super) fn condition(&self, name: &str) -> Option<ConditionValue> {
        self.find(name, |meaning| match meaning {
            Meaning::Condition(value) => Some(value),
            _ => None,
        })
    }

    pub(super) fn cursor(&self, name: &str) -> Option<u32> {
        self.find(name, |meaning| match meaning {
            Meaning::Cursor(number) => Some(number),
            _ => None,
        })
    }

    /// Declares a label and numbers it.
    pub(super) fn enter_label(&mut self, name: Ident, is_loop: bool) -> u32 {
        let number = self.label_count;
        self.label_count += 1;
        self.labels.push(Label {
            name,
            number,
            is_loop,
        });
        number
    }

    /// The label of that name.
    pub(super) fn label(&self, name: &str) -> Option<&Label> {
        let mut visible = self.labels.iter().rev();
        visible.find(|label| label.name.text.to_lowercase() == name.to_lowercase())
    }

    /// Records the use of a variable. Returns its number among the parameters.
    fn note_use(&mut self, slot: u32, span: Span) -> u32 {
        let number = u32::try_from(self.uses.len()).unwrap_or(u32::MAX);
        self.uses.push(LocalUse { slot, span });
        number
    }
}

impl Cursor<'_> {
    /// The number of the parameter for a name, if it is a variable.
    pub(super) fn local(&mut self, name: &Ident) -> Option<u32> {
        let scope = self.scope.as_mut()?;
        let slot = scope.variable(&name.text)?;
        self.parameter_count += 1;
        Some(scope.note_use(slot, name.span))
    }

    /// The number of the parameter for `row.field`, if there is such a row.
    pub(super) fn local_field(&mut self, row: &Ident, field: &Ident) -> Option<u32> {
        let scope = self.scope.as_mut()?;
        let slot = scope.field(&row.text, field)?;
        self.parameter_count += 1;
        let span = Span {
            start: row.span.start,
            end: field.span.end,
        };
        Some(scope.note_use(slot, span))
    }

    /// The number of the parameter for a variable, whatever its name.
    pub(super) fn use_slot(&mut self, slot: u32, span: Span) -> Parsed<u32> {
        self.parameter_count += 1;
        Ok(self.scope_of()?.note_use(slot, span))
    }

    /// The slot of a variable to which a value is assigned; error 1327 if there is none.
    pub(super) fn local_target(&mut self, name: &Ident) -> Parsed<Option<u32>> {
        let Some(scope) = &self.scope else {
            return Ok(None);
        };
        let slot = scope.variable(&name.text);
        slot.map(Some)
            .ok_or_else(|| routine_fail(RoutineError::UndeclaredVariable, name.span))
    }

    /// Runs a rule. Also returns the variables that it used.
    pub(super) fn fragment<T>(
        &mut self,
        rule: impl FnOnce(&mut Self) -> Parsed<T>,
    ) -> Parsed<(T, Vec<LocalUse>)> {
        let outer_count = std::mem::take(&mut self.parameter_count);
        let outer_uses = self
            .scope_mut()
            .map(|scope| std::mem::take(&mut scope.uses));
        let made = rule(self)?;
        self.parameter_count = outer_count;
        let uses = match (self.scope_mut(), outer_uses) {
            (Some(scope), Some(outer)) => std::mem::replace(&mut scope.uses, outer),
            _ => Vec::new(),
        };
        Ok((made, uses))
    }

    fn scope_mut(&mut self) -> Option<&mut Scope> {
        self.scope.as_deref_mut()
    }

    /// An expression of a body.
    pub(super) fn program_expr(&mut self) -> Parsed<ProgramExpr> {
        let (expr, locals) = self.fragment(Self::expr)?;
        Ok(ProgramExpr { expr, locals })
    }

    /// A statement of a body that could stand alone.
    pub(super) fn program_statement(&mut self) -> Parsed<ProgramStatement> {
        let (statement, locals) = self.fragment(Self::statement)?;
        Ok(ProgramStatement { statement, locals })
    }
}

/// The error for a name or statement of a body.
pub(super) fn routine_fail(error: RoutineError, span: Span) -> Fail {
    Fail {
        kind: SyntaxErrorKind::Routine(error),
        offset: span.start as usize,
    }
}
