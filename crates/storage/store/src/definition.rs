//! What a table is: names, columns, indexes, options.
//!
//! A definition is immutable once published (shared by `Arc`); a schema change publishes a new one
//! with a higher `version`. The engine keeps definitions in its dictionary; the catalogue caches
//! them.

use std::fmt;

pub use format::TableId;
use value::{CollationId, ColumnType, Value};

/// An ALTER, or a CREATE TABLE .. SELECT, fills a table before that gets its own name. Until then
/// its name begins like this. A store removes those that a crash has left.
pub const COPY_NAME_PREFIX: &str = "#sql-alter-";

/// Database and table name, as given at creation (the catalogue compares table names by bytes, as
/// `lower_case_table_names = 0` does).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    /// Database ("schema").
    pub database: String,
    /// Table.
    pub table: String,
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.table)
    }
}

/// Everything known about a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableDefinition {
    /// Given by the store at creation; `TableId(0)` before.
    pub id: TableId,
    /// Raised by one with each schema change; given by the store.
    pub version: u64,
    /// Database and table.
    pub name: TableName,
    /// In the order of `SELECT *`.
    pub columns: Vec<ColumnDefinition>,
    /// The key that the rows are kept by first if there is one, then in order of creation.
    pub indexes: Vec<IndexDefinition>,
    /// Default of columns added without one.
    pub collation: CollationId,
    /// First value for a fresh table (`AUTO_INCREMENT = n`), else 1.
    pub auto_increment_start: u64,
    /// `COMMENT = '..'`, at most 2048 characters.
    pub comment: String,
    /// Options kept for `SHOW CREATE TABLE` only, as (name, value).
    pub options: Vec<(String, String)>,
    /// Microseconds since 1970 UTC, for information_schema.
    pub created_us: u64,
    /// Not null for a view or another object without rows of its own: its body as text.
    pub view: Option<String>,
}

impl TableDefinition {
    /// The primary key, if one was declared.
    pub fn primary_key(&self) -> Option<&IndexDefinition> {
        self.indexes
            .first()
            .filter(|index| index.uniqueness == Uniqueness::Primary)
    }

    /// The key that the rows are kept by; `None`: by hidden ids.
    pub fn clustered_key(&self) -> Option<&IndexDefinition> {
        self.indexes.first().filter(|index| index.is_clustered())
    }

    /// Chooses the key that the rows of a new table are kept by, as InnoDB does: the primary key,
    /// or else the first unique key of whole columns without NULL. It comes first.
    pub fn choose_clustered_key(&mut self) {
        let columns = &self.columns;
        let is_whole = |part: &IndexPart| {
            part.prefix_length.is_none() && columns.get(part.column).is_some_and(|it| !it.nullable)
        };
        let is_primary = |index: &IndexDefinition| index.uniqueness == Uniqueness::Primary;
        for index in &mut self.indexes {
            if index.uniqueness == Uniqueness::Clustered {
                index.uniqueness = Uniqueness::Unique;
            }
        }
        if self.indexes.iter().any(is_primary) {
            return;
        }
        let chosen = self.indexes.iter().position(|index| {
            index.uniqueness == Uniqueness::Unique && index.parts.iter().all(is_whole)
        });
        if let Some(chosen) = chosen {
            self.indexes[chosen].uniqueness = Uniqueness::Clustered;
            self.indexes[..=chosen].rotate_right(1);
        }
    }

    /// The position of the AUTO_INCREMENT column.
    pub fn auto_increment_column(&self) -> Option<usize> {
        self.columns.iter().position(|column| column.auto_increment)
    }

    /// The position of the column called `name`, compared without case as SQL does.
    pub fn column_position(&self, name: &str) -> Option<usize> {
        self.columns
            .iter()
            .position(|column| column.name.eq_ignore_ascii_case(name))
    }
}

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDefinition {
    /// As the user wrote it.
    pub name: String,
    /// Type, length, collation.
    pub column_type: ColumnType,
    /// NULL is allowed.
    pub nullable: bool,
    /// The value of a row that does not name the column.
    pub default: ColumnDefault,
    /// `ON UPDATE CURRENT_TIMESTAMP`.
    pub on_update_now: bool,
    /// Takes the table's next number for NULL and 0.
    pub auto_increment: bool,
    /// Left out of `SELECT *`.
    pub invisible: bool,
    /// `CHECK (json_valid(column))`, which is part of the type `JSON`: a text that is no JSON is
    /// refused.
    pub is_json: bool,
    /// At most 1024 characters.
    pub comment: String,
}

impl ColumnDefinition {
    /// A plain column without a default.
    pub fn new(name: &str, column_type: ColumnType, nullable: bool) -> Self {
        Self {
            name: name.to_owned(),
            column_type,
            nullable,
            default: ColumnDefault::None,
            on_update_now: false,
            auto_increment: false,
            invisible: false,
            is_json: false,
            comment: String::new(),
        }
    }
}

/// A column's default.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnDefault {
    /// None: error 1364 in strict mode, the type's zero otherwise.
    None,
    /// This value, already of the column's type.
    Value(Value),
    /// `CURRENT_TIMESTAMP(fsp)`.
    Now,
    /// `DEFAULT (expression)`: canonical SQL text, evaluated for each row.
    Expression(String),
}

/// An index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexDefinition {
    /// Unique within the table; `PRIMARY` for the primary key.
    pub name: String,
    /// What it guarantees, and whether the rows are kept by it.
    pub uniqueness: Uniqueness,
    /// At least one, at most 32.
    pub parts: Vec<IndexPart>,
    /// For people.
    pub comment: String,
}

impl IndexDefinition {
    /// Whether the rows are kept in its order.
    pub fn is_clustered(&self) -> bool {
        matches!(self.uniqueness, Uniqueness::Primary | Uniqueness::Clustered)
    }

    /// Whether it has the same keys as the other, whatever their names.
    pub fn has_keys_of(&self, other: &Self) -> bool {
        self.uniqueness == other.uniqueness && self.parts == other.parts
    }
}

/// For each index of a table's new definition, the position of the old one that it continues
/// without being built. That is one with the same keys, and among several the one of its name. Each
/// old index is used once. The columns must be unchanged.
pub fn kept_indexes(old: &[IndexDefinition], new: &[IndexDefinition]) -> Vec<Option<usize>> {
    let of_same_name = |index: &IndexDefinition| {
        let is_it = |other: &IndexDefinition| other.name == index.name && index.has_keys_of(other);
        old.iter().position(is_it)
    };
    let mut kept: Vec<_> = new.iter().map(of_same_name).collect();
    for (place, index) in new.iter().enumerate() {
        if kept[place].is_none() {
            let mut others = old.iter().enumerate();
            kept[place] = others
                .find(|(at, other)| index.has_keys_of(other) && !kept.contains(&Some(*at)))
                .map(|(at, _)| at);
        }
    }
    kept
}

/// What an index guarantees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uniqueness {
    /// Unique, not null, and the rows are kept in its order.
    Primary,
    /// The same, but not declared as the primary key: the first unique key without NULL of a table
    /// that has no primary key. It is chosen when the table is made, see
    /// [`TableDefinition::choose_clustered_key`]. Tables of early versions have no such key.
    Clustered,
    /// Unique among keys without NULL.
    Unique,
    /// Nothing.
    None,
}

/// A column of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexPart {
    /// Position in the table's columns.
    pub column: usize,
    /// Index only the first characters (bytes for binary types).
    pub prefix_length: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(name: &str, column: usize, comment: &str) -> IndexDefinition {
        IndexDefinition {
            name: name.to_owned(),
            uniqueness: Uniqueness::None,
            parts: vec![IndexPart {
                column,
                prefix_length: None,
            }],
            comment: comment.to_owned(),
        }
    }

    #[test]
    fn rows_are_kept_by_the_primary_key_or_the_first_unique_key_without_nulls() {
        let column = |nullable| {
            let kind = ColumnType::new(value::TypeKind::Int);
            ColumnDefinition::new("c", kind, nullable)
        };
        let unique = |name: &str, column: usize| IndexDefinition {
            uniqueness: Uniqueness::Unique,
            ..index(name, column, "")
        };
        let mut prefix = unique("prefix", 0);
        prefix.parts[0].prefix_length = Some(3);
        let mut table = TableDefinition {
            id: TableId(0),
            version: 0,
            name: TableName {
                database: "test".to_owned(),
                table: "t".to_owned(),
            },
            columns: vec![column(false), column(true), column(false)],
            indexes: vec![
                index("plain", 0, ""),
                unique("null", 1),
                prefix,
                unique("own", 2),
                unique("other", 0),
            ],
            collation: CollationId::BINARY,
            auto_increment_start: 1,
            comment: String::new(),
            options: Vec::new(),
            created_us: 0,
            view: None,
        };
        let names = |table: &TableDefinition| -> Vec<String> {
            table.indexes.iter().map(|it| it.name.clone()).collect()
        };
        assert_eq!(table.clustered_key(), None, "none was chosen");
        table.choose_clustered_key();
        assert_eq!(names(&table), ["own", "plain", "null", "prefix", "other"]);
        assert_eq!(table.indexes[0].uniqueness, Uniqueness::Clustered);
        assert_eq!(table.clustered_key(), table.indexes.first());
        assert_eq!(table.primary_key(), None);
        // Another is chosen if it may be NULL from now on.
        table.columns[2].nullable = true;
        table.choose_clustered_key();
        assert_eq!(names(&table), ["other", "own", "plain", "null", "prefix"]);
        assert_eq!(table.indexes[1].uniqueness, Uniqueness::Unique);
        let mut primary = index("PRIMARY", 0, "");
        primary.uniqueness = Uniqueness::Primary;
        table.indexes.insert(0, primary);
        table.choose_clustered_key();
        assert_eq!(table.clustered_key(), table.primary_key());
        assert_eq!(table.indexes[1].uniqueness, Uniqueness::Unique);
    }

    #[test]
    fn an_index_goes_on_from_one_of_its_keys_and_by_preference_of_its_name() {
        let old = [index("a", 1, ""), index("b", 1, ""), index("c", 2, "")];
        let new = [index("x", 1, ""), index("a", 1, "told"), index("c", 3, "")];
        assert_eq!(kept_indexes(&old, &new), [Some(1), Some(0), None]);
        // Each is used once.
        let new = [index("x", 2, ""), index("y", 2, "")];
        assert_eq!(kept_indexes(&old, &new), [Some(2), None]);
        let mut unique = index("c", 2, "");
        unique.uniqueness = Uniqueness::Unique;
        assert_eq!(kept_indexes(&old, &[unique]), [None]);
    }
}
