//! Descriptions of result columns for the client.

use store::{ColumnDefault, TableDefinition, Uniqueness};

use crate::plan::{KeyFlag, OutputColumn};

/// A table's column.
pub(crate) fn table_output(
    definition: &TableDefinition,
    place: usize,
    alias: &str,
) -> OutputColumn {
    let column = &definition.columns[place];
    let is_null = matches!(&column.default, ColumnDefault::Value(value) if value.is_null());
    let has_default = !matches!(column.default, ColumnDefault::None) && !is_null;
    OutputColumn {
        name: column.name.clone(),
        original_name: column.name.clone(),
        table: alias.to_owned(),
        original_table: definition.name.table.clone(),
        database: definition.name.database.clone(),
        column_type: column.column_type.clone(),
        nullable: column.nullable,
        key: key_flag(definition, place),
        auto_increment: column.auto_increment,
        no_default: !column.nullable && !has_default && !column.auto_increment,
        on_update_now: column.on_update_now,
        is_derived: false,
        is_json: column.is_json,
    }
}

fn key_flag(definition: &TableDefinition, place: usize) -> KeyFlag {
    let mut flag = KeyFlag::None;
    for index in &definition.indexes {
        let Some(part) = index.parts.iter().position(|part| part.column == place) else {
            continue;
        };
        let found = match index.uniqueness {
            Uniqueness::Primary | Uniqueness::Clustered => KeyFlag::Primary,
            Uniqueness::Unique if index.parts.len() == 1 => KeyFlag::Unique,
            _ if part == 0 => KeyFlag::Multiple,
            _ => KeyFlag::Part,
        };
        let rank = |flag: KeyFlag| match flag {
            KeyFlag::None => 0,
            KeyFlag::Part => 1,
            KeyFlag::Multiple => 2,
            KeyFlag::Unique => 3,
            KeyFlag::Primary => 4,
        };
        if rank(flag) < rank(found) {
            flag = found;
        }
    }
    flag
}

/// A column of a derived table: its origin is kept, its table is the alias.
pub(crate) fn derived_output(column: &OutputColumn, name: &str, alias: &str) -> OutputColumn {
    OutputColumn {
        name: name.to_owned(),
        table: alias.to_owned(),
        is_derived: true,
        ..column.clone()
    }
}
