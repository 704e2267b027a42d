//! Definitions of tables in a line or two.

use store::{
    ColumnDefault, ColumnDefinition, IndexDefinition, IndexPart, TableDefinition, TableId,
    TableName, Uniqueness,
};
use value::{CollationId, ColumnType, Value};

/// A column. A nullable column has the default NULL.
pub fn column(name: &str, column_type: ColumnType, nullable: bool) -> ColumnDefinition {
    let mut column = ColumnDefinition::new(name, column_type, nullable);
    if nullable {
        column.default = ColumnDefault::Value(Value::Null);
    }
    column
}

/// An index over whole columns.
pub fn index(name: &str, uniqueness: Uniqueness, columns: &[usize]) -> IndexDefinition {
    let part = |&column: &usize| IndexPart {
        column,
        prefix_length: None,
    };
    IndexDefinition {
        name: name.to_owned(),
        uniqueness,
        parts: columns.iter().map(part).collect(),
        comment: String::new(),
    }
}

/// A table in database `test`.
pub fn table(
    name: &str,
    columns: Vec<ColumnDefinition>,
    indexes: Vec<IndexDefinition>,
) -> TableDefinition {
    TableDefinition {
        id: TableId(0),
        version: 0,
        name: TableName {
            database: "test".to_owned(),
            table: name.to_owned(),
        },
        columns,
        indexes,
        collation: CollationId::UTF8MB4_GENERAL_CI,
        auto_increment_start: 1,
        comment: String::new(),
        options: Vec::new(),
        created_us: 0,
        view: None,
    }
}
