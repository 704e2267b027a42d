//! FOR loops: the next integer, the next row.
//!
//! A row's fields are variables. The first row decides which columns they are. A field without a
//! column is an error only where it is used, as in MariaDB.

use std::collections::HashMap;
use std::rc::Rc;

use errcode::{
    ClientError, ER_DATA_OUT_OF_RANGE, ER_DUP_FIELDNAME, ER_ROW_VARIABLE_DOES_NOT_HAVE_FIELD,
    ER_SP_CURSOR_NOT_OPEN,
};
use value::Value;

use crate::connection::frame::CursorState;
use crate::connection::session::Session;
use crate::worker::program::{CounterRange, RowOf};

impl Session {
    /// True while a FOR loop has not passed its limit.
    pub(crate) fn is_in_range(&mut self, range: CounterRange) -> bool {
        let values = &self.frame().values;
        let (Value::Int(index), Value::Int(limit)) = (&values[range.index], &values[range.limit])
        else {
            return false;
        };
        match range.is_reverse {
            true => limit <= index,
            false => index <= limit,
        }
    }

    /// The next integer of a FOR loop.
    pub(crate) fn go_on_in_range(&mut self, range: CounterRange) -> Result<(), ClientError> {
        let frame = self.frame();
        let Value::Int(index) = &mut frame.values[range.index] else {
            return Ok(());
        };
        let (step, sign) = if range.is_reverse {
            (-1, '-')
        } else {
            (1, '+')
        };
        let Some(next) = index.checked_add(step) else {
            let name = &frame.program.variables[range.index].name;
            let text = format!("({name}@{} {sign} 1)", range.index);
            return Err(ClientError::new(ER_DATA_OUT_OF_RANGE, &[&"BIGINT", &text]));
        };
        *index = next;
        Ok(())
    }

    /// Takes the next row of a FOR loop. Returns false after the last.
    pub(crate) fn next_row(&mut self, row: &RowOf) -> Result<bool, ClientError> {
        let state = Rc::clone(&self.state);
        let frame = self.frame();
        let Some(CursorState { rows, places }) = &mut frame.cursors[row.cursor] else {
            return Err(ClientError::new(ER_SP_CURSOR_NOT_OPEN, &[]));
        };
        let Some((mut values, columns)) = rows.next_row() else {
            return Ok(false);
        };
        let is_first = places.is_none();
        let places = match places {
            Some(known) => Rc::clone(known),
            None => Rc::clone(places.insert(places_of(row, columns)?)),
        };
        // No two fields belong to one column.
        let fields = row.fields.iter().zip(&*places);
        let fields = fields.filter_map(|((_, slot), place)| Some((*slot, (*place)?)));
        let fields = fields.map(|(slot, place)| {
            let column_type = columns[place].column_type.clone();
            (slot, std::mem::take(&mut values[place]), column_type)
        });
        for (slot, value, column_type) in fields.collect::<Vec<_>>() {
            frame.set(slot, value, &state)?;
            frame.types[slot] = column_type;
        }
        if is_first {
            for ((name, slot), place) in row.fields.iter().zip(&*places) {
                match place {
                    Some(_) => frame.absent.remove(slot),
                    None => frame.absent.insert(*slot, no_field(row, name)),
                };
            }
        }
        Ok(true)
    }
}

/// The columns of a row's fields; error 1060 for two columns of one name.
fn places_of(
    row: &RowOf,
    columns: &[planner::OutputColumn],
) -> Result<Rc<[Option<usize>]>, ClientError> {
    let mut by_name = HashMap::with_capacity(columns.len());
    for (place, column) in columns.iter().enumerate() {
        if by_name.insert(column.name.to_lowercase(), place).is_some() {
            return Err(ClientError::new(ER_DUP_FIELDNAME, &[&column.name]));
        }
    }
    let fields = row.fields.iter();
    Ok(fields
        .map(|(name, _)| by_name.get(&name.to_lowercase()).copied())
        .collect())
}

fn no_field(row: &RowOf, name: &str) -> ClientError {
    let code = ER_ROW_VARIABLE_DOES_NOT_HAVE_FIELD;
    ClientError::new(code, &[&row.name, &name])
}
