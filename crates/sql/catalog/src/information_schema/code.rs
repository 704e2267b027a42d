//! The rows of ROUTINES and PARAMETERS.

use std::sync::Arc;

use syntax::ast::RoutineKind;
use value::{ColumnType, Value};

use super::Facts;
use super::rows::{Row, count, def, int, text, type_facts};
use crate::privilege::PrivilegeSet;
use crate::routine::{Routine, access_text};

/// A parameter of a routine, or a function's result.
#[derive(Debug, Clone)]
pub struct ParameterFacts {
    /// `IN` and so on; `None` for a function's result.
    pub mode: Option<&'static str>,
    /// Its name; `None` for a function's result.
    pub name: Option<String>,
    /// Its type.
    pub column_type: ColumnType,
}

/// The routines that the account may know of: its own, and those of databases where it has a
/// privilege on routines.
fn visible<'f>(facts: &'f Facts<'_>) -> impl Iterator<Item = &'f Arc<Routine>> {
    facts.routines.iter().filter(|routine| {
        routine.definer == facts.privileges.account().name
            || facts.sees_bodies
            || !(facts.privileges.on_routine(&routine.key()) & PrivilegeSet::ROUTINE).is_empty()
    })
}

pub(super) fn routines(facts: &Facts<'_>) -> Vec<Row> {
    visible(facts).map(|it| routine(it, facts)).collect()
}

fn routine(routine: &Routine, facts: &Facts<'_>) -> Row {
    let sees_body = facts.sees_bodies || routine.definer == facts.privileges.account().name;
    let returned = match routine.kind {
        RoutineKind::Function => (facts.parameters)(routine).into_iter().next(),
        RoutineKind::Procedure => None,
    };
    let mut row = vec![
        text(&routine.name),
        def(),
        text(&routine.database),
        text(&routine.name),
        text(routine.kind.text()),
    ];
    match &returned {
        Some(of) => {
            row.push(text(of.column_type.kind.name()));
            row.extend(signed_facts(&of.column_type));
            row.push(text(of.column_type.sql_text()));
        }
        None => {
            row.push(text(""));
            row.extend([const { Value::Null }; 8]);
        }
    }
    row.extend([
        text("SQL"),
        if sees_body {
            text(&routine.body)
        } else {
            Value::Null
        },
        Value::Null,
        text("SQL"),
        text("SQL"),
        text(if routine.is_deterministic {
            "YES"
        } else {
            "NO"
        }),
        text(access_text(routine.data_access)),
        Value::Null,
        text(routine.security()),
        Value::DateTime(routine.created),
        Value::DateTime(routine.modified),
        text(&routine.sql_mode),
        text(&routine.comment),
        text(routine.definer_text()),
        text(&routine.client_charset),
        text(&routine.connection_collation),
        text(&routine.database_collation),
    ]);
    row
}

/// As COLUMNS shows them, except for the types of the numbers.
fn signed_facts(column_type: &ColumnType) -> [Value; 7] {
    let mut facts = type_facts(column_type);
    for fact in &mut facts[..4] {
        if let Value::UInt(number) = *fact {
            *fact = int(number);
        }
    }
    facts
}

pub(super) fn parameters(facts: &Facts<'_>) -> Vec<Row> {
    let of = |routine: &Arc<Routine>| {
        let all = (facts.parameters)(routine).into_iter().enumerate();
        let first = u64::from(routine.kind == RoutineKind::Procedure);
        let row = |(place, of): (usize, ParameterFacts)| {
            let mut row = vec![
                def(),
                text(&routine.database),
                text(&routine.name),
                int(first + count(place)),
                of.mode.map_or(Value::Null, text),
                of.name.as_ref().map_or(Value::Null, text),
                text(of.column_type.kind.name()),
            ];
            row.extend(signed_facts(&of.column_type));
            row.extend([text(of.column_type.sql_text()), text(routine.kind.text())]);
            row
        };
        all.map(row).collect::<Vec<_>>()
    };
    visible(facts).flat_map(of).collect()
}
