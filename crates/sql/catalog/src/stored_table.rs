//! The tables of the server itself that the store keeps: accounts, routines, time zones.

use store::{
    ColumnDefinition, IndexDefinition, IndexPart, TableDefinition, TableId, TableName, Uniqueness,
};
use value::CollationId;

/// The database of these tables.
pub const SYSTEM_DATABASE: &str = "mysql";

/// What is particular to one of them.
pub(crate) struct StoredTable<'a> {
    pub(crate) name: &'a str,
    pub(crate) comment: &'a str,
    pub(crate) columns: Vec<ColumnDefinition>,
    /// The primary key is that many of the first columns.
    pub(crate) key_column_count: usize,
    pub(crate) collation: CollationId,
}

impl StoredTable<'_> {
    /// The definition with which the table is made.
    pub(crate) fn definition(self) -> TableDefinition {
        let part = |column| IndexPart {
            column,
            prefix_length: None,
        };
        TableDefinition {
            id: TableId::default(),
            version: 0,
            name: TableName {
                database: SYSTEM_DATABASE.to_owned(),
                table: self.name.to_owned(),
            },
            columns: self.columns,
            indexes: vec![IndexDefinition {
                name: "PRIMARY".to_owned(),
                uniqueness: Uniqueness::Primary,
                parts: (0..self.key_column_count).map(part).collect(),
                comment: String::new(),
            }],
            collation: self.collation,
            auto_increment_start: 1,
            comment: self.comment.to_owned(),
            options: Vec::new(),
            created_us: 0,
            view: None,
        }
    }
}
