//! Statements that change definitions.

use super::{Expr, Ident, ObjectName, Query, Refused};

/// `CREATE TABLE`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTable {
    /// `OR REPLACE`.
    pub or_replace: bool,
    /// `TEMPORARY`.
    pub temporary: bool,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// The table.
    pub name: ObjectName,
    /// `LIKE other`; everything below is then empty.
    pub like: Option<ObjectName>,
    /// The columns in order.
    pub columns: Vec<ColumnDefinition>,
    /// Keys and constraints in order; those written with a column stay there.
    pub constraints: Vec<TableConstraint>,
    /// `PERIOD FOR ..`, skipped.
    pub period: Option<Refused>,
    /// `ENGINE = ..` and so on.
    pub options: Vec<TableOption>,
    /// `PARTITION BY ..`, skipped.
    pub partitioning: Option<Refused>,
    /// `AS SELECT ..`.
    pub query: Option<Box<Query>>,
    /// What the query's rows do with duplicates: `IGNORE`, `REPLACE`.
    pub duplicates: Option<super::LoadDuplicates>,
}

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDefinition {
    /// Its name.
    pub name: Ident,
    /// Its type.
    pub data_type: DataType,
    /// `NULL` (true) and `NOT NULL` (false), if written.
    pub nullable: Option<bool>,
    /// `DEFAULT e`; `CURRENT_TIMESTAMP` is the function.
    pub default: Option<Expr>,
    /// `ON UPDATE CURRENT_TIMESTAMP[(n)]`.
    pub on_update: Option<Expr>,
    /// `AUTO_INCREMENT`.
    pub auto_increment: bool,
    /// `PRIMARY KEY`, or `KEY` alone.
    pub primary_key: bool,
    /// `UNIQUE [KEY]`.
    pub unique: bool,
    /// `COMMENT '..'`.
    pub comment: Option<Vec<u8>>,
    /// `AS (e) VIRTUAL | STORED`.
    pub generated: Option<Generated>,
    /// `CHECK (e)`.
    pub check: Option<Expr>,
    /// `REFERENCES ..`.
    pub references: Option<Reference>,
    /// `INVISIBLE`.
    pub invisible: bool,
    /// `COMPRESSED`, `WITH SYSTEM VERSIONING`, `GENERATED ALWAYS AS ROW START` and such.
    pub refused: Option<Refused>,
    /// Options of engines: name and value.
    pub others: Vec<(Ident, String)>,
}

/// A generated column.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// What it holds.
    pub expr: Expr,
    /// `STORED`, `PERSISTENT`.
    pub stored: bool,
}

/// A type as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataType {
    /// The type; synonyms are resolved.
    pub name: TypeName,
    /// Display width, characters, bytes, bits, precision, or digits of a second.
    pub length: Option<u32>,
    /// Scale.
    pub decimals: Option<u32>,
    /// `UNSIGNED`; `ZEROFILL` sets it too.
    pub unsigned: bool,
    /// `ZEROFILL`.
    pub zerofill: bool,
    /// `CHARACTER SET c`; `NCHAR` has `utf8`.
    pub charset: Option<Ident>,
    /// `COLLATE c`.
    pub collation: Option<Ident>,
    /// `BINARY` after a string type: the binary collation of its character set.
    pub binary: bool,
    /// The members of `ENUM` and `SET`.
    pub members: Vec<Vec<u8>>,
}

/// The types, synonyms resolved: `BOOL` is `TinyInt` of length 1, `SERIAL` a `BigInt` with
/// attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeName {
    Bit,
    TinyInt,
    SmallInt,
    MediumInt,
    Int,
    BigInt,
    Decimal,
    Float,
    Double,
    Char,
    Varchar,
    Binary,
    Varbinary,
    TinyText,
    Text,
    MediumText,
    LongText,
    TinyBlob,
    Blob,
    MediumBlob,
    LongBlob,
    Enum,
    Set,
    Date,
    Time,
    Datetime,
    Timestamp,
    Year,
    Json,
    /// `UUID`, `INET6`, `GEOMETRY`, ...: only the name.
    Other(Ident),
}

/// A key or constraint in a table definition.
#[derive(Debug, Clone, PartialEq)]
pub enum TableConstraint {
    /// `PRIMARY KEY`, `UNIQUE`, `KEY`, `FULLTEXT`, `SPATIAL`.
    Index(IndexDefinition),
    /// `FOREIGN KEY`.
    ForeignKey(ForeignKey),
    /// `CHECK`.
    Check {
        /// Its name.
        name: Option<Ident>,
        /// What must hold.
        expr: Expr,
        /// `IF NOT EXISTS` of `ALTER TABLE`.
        if_not_exists: bool,
    },
}

/// An index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexDefinition {
    /// The kind.
    pub kind: IndexKind,
    /// Its name; `CONSTRAINT`'s when it has none of its own.
    pub name: Option<Ident>,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// Its parts; at least one.
    pub parts: Vec<IndexPart>,
    /// Its other options.
    pub options: IndexOptions,
    /// `p WITHOUT OVERLAPS`, skipped.
    pub refused: Option<Refused>,
}

/// Kinds of indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexKind {
    /// `PRIMARY KEY`.
    Primary,
    /// `UNIQUE`.
    Unique,
    /// `KEY`, `INDEX`.
    Plain,
    /// `FULLTEXT`.
    Fulltext,
    /// `SPATIAL`.
    Spatial,
}

/// A column of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexPart {
    /// The column.
    pub column: Ident,
    /// The length of its indexed prefix, in characters or bytes.
    pub length: Option<u32>,
    /// `DESC`.
    pub descending: bool,
}

/// The options of an index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexOptions {
    /// `USING BTREE`, `HASH`, `RTREE`.
    pub algorithm: Option<Ident>,
    /// `COMMENT`.
    pub comment: Option<Vec<u8>>,
    /// `KEY_BLOCK_SIZE`.
    pub key_block_size: Option<u64>,
    /// `WITH PARSER p`.
    pub parser: Option<Ident>,
    /// `IGNORED`.
    pub ignored: bool,
    /// Options of engines: name and value.
    pub others: Vec<(Ident, String)>,
}

/// `FOREIGN KEY`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// `CONSTRAINT`'s name or the key's.
    pub name: Option<Ident>,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// The columns.
    pub columns: Vec<IndexPart>,
    /// What they refer to.
    pub references: Reference,
}

/// `REFERENCES ..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The parent table.
    pub table: ObjectName,
    /// Its columns, if written.
    pub columns: Vec<IndexPart>,
    /// `ON DELETE`.
    pub on_delete: Option<ReferenceAction>,
    /// `ON UPDATE`.
    pub on_update: Option<ReferenceAction>,
}

/// What happens to rows that refer to a changed row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReferenceAction {
    /// `RESTRICT`.
    Restrict,
    /// `CASCADE`.
    Cascade,
    /// `SET NULL`.
    SetNull,
    /// `NO ACTION`.
    NoAction,
    /// `SET DEFAULT`.
    SetDefault,
}

/// An option of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableOption {
    /// `ENGINE`.
    Engine(Ident),
    /// `AUTO_INCREMENT`.
    AutoIncrement(u64),
    /// `[DEFAULT] CHARACTER SET`; `DEFAULT` is `None`.
    Charset(Option<Ident>),
    /// `COLLATE`.
    Collate(Ident),
    /// `COMMENT`.
    Comment(Vec<u8>),
    /// `ROW_FORMAT`, in capitals.
    RowFormat(String),
    /// `WITH SYSTEM VERSIONING`, `UNION = (..)` and others that change meaning.
    Refused(Refused),
    /// Tuning and the options of engines: the name in capitals and the value as written.
    Other {
        /// The name.
        name: String,
        /// The value, quotes removed.
        value: String,
    },
}

/// `ALTER TABLE`.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterTable {
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// `IGNORE`.
    pub ignore: bool,
    /// The table.
    pub name: ObjectName,
    /// What changes, in order.
    pub actions: Vec<AlterAction>,
}

/// A column by which ALTER TABLE orders rows.
#[derive(Debug, Clone, PartialEq)]
pub struct RowOrder {
    /// The column.
    pub column: super::ColumnName,
    /// `DESC`.
    pub descending: bool,
}

/// One change of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum AlterAction {
    /// `ADD [COLUMN]`.
    AddColumn {
        /// The column.
        column: Box<ColumnDefinition>,
        /// Its position; last when absent.
        position: Option<ColumnPosition>,
        /// `IF NOT EXISTS`.
        if_not_exists: bool,
    },
    /// `ADD INDEX` and so on.
    AddConstraint(TableConstraint),
    /// `CHANGE a b ..` and, with the same name, `MODIFY a ..`.
    ChangeColumn {
        /// The column's old name.
        from: Ident,
        /// Its new definition.
        column: Box<ColumnDefinition>,
        /// Its position; unchanged when absent.
        position: Option<ColumnPosition>,
        /// `IF EXISTS`.
        if_exists: bool,
    },
    /// `ALTER [COLUMN] a SET DEFAULT e`, or `DROP DEFAULT` if `default` is `None`.
    AlterDefault {
        /// The column.
        column: Ident,
        /// The default.
        default: Option<Expr>,
        /// `IF EXISTS`.
        if_exists: bool,
    },
    /// `DROP [COLUMN]`.
    DropColumn {
        /// The column.
        column: Ident,
        /// `IF EXISTS`.
        if_exists: bool,
    },
    /// `DROP INDEX`.
    DropIndex {
        /// The index.
        index: Ident,
        /// `IF EXISTS`.
        if_exists: bool,
    },
    /// `DROP PRIMARY KEY`.
    DropPrimaryKey,
    /// `DROP FOREIGN KEY`.
    DropForeignKey {
        /// The constraint.
        name: Ident,
        /// `IF EXISTS`.
        if_exists: bool,
    },
    /// `DROP CONSTRAINT`.
    DropConstraint {
        /// The constraint.
        name: Ident,
        /// `IF EXISTS`.
        if_exists: bool,
    },
    /// `RENAME COLUMN a TO b`.
    RenameColumn(Renaming),
    /// `RENAME INDEX a TO b`.
    RenameIndex(Renaming),
    /// `ALTER INDEX a IGNORED` (true), `NOT IGNORED`.
    IgnoreIndex(Ident, bool),
    /// `RENAME [TO] t`.
    RenameTable(ObjectName),
    /// `ENGINE = ..` and so on.
    Option(TableOption),
    /// `CONVERT TO CHARACTER SET c [COLLATE d]`; without a set it is `DEFAULT`.
    ConvertCharset {
        /// The character set.
        charset: Option<Ident>,
        /// The collation.
        collation: Option<Ident>,
    },
    /// `ORDER BY a, b DESC`.
    OrderBy(Vec<RowOrder>),
    /// `DISABLE KEYS` (false), `ENABLE KEYS`.
    EnableKeys(bool),
    /// `FORCE`: rebuild the table.
    Force,
    /// `ALGORITHM = ..`, in capitals.
    Algorithm(String),
    /// `LOCK = ..`, in capitals.
    Lock(String),
    /// Partitions, tablespaces, versioning: skipped.
    Refused(Refused),
}

/// The position of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnPosition {
    /// `FIRST`.
    First,
    /// `AFTER a`.
    After(Ident),
}

/// A new name for a part of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renaming {
    /// The old name.
    pub from: Ident,
    /// The new name.
    pub to: Ident,
    /// `IF EXISTS`.
    pub if_exists: bool,
}

/// The kinds of objects that DROP removes by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// Tables.
    Table,
    /// Views.
    View,
    /// Sequences.
    Sequence,
    /// A trigger.
    Trigger,
    /// An event.
    Event,
    /// A server.
    Server,
}

/// `DROP TABLE`, `DROP VIEW` and the like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drop {
    /// Their kind.
    pub what: Dropped,
    /// `TEMPORARY`.
    pub temporary: bool,
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// The names; at least one.
    pub names: Vec<ObjectName>,
}

/// `CREATE INDEX`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateIndex {
    /// `OR REPLACE`.
    pub or_replace: bool,
    /// The table.
    pub table: ObjectName,
    /// The index, with a name.
    pub index: IndexDefinition,
    /// `ALGORITHM` and `LOCK`, as in ALTER TABLE.
    pub asked: Vec<AlterAction>,
}

/// `DROP INDEX`.
#[derive(Debug, Clone, PartialEq)]
pub struct DropIndex {
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// The index.
    pub name: Ident,
    /// The table.
    pub table: ObjectName,
    /// `ALGORITHM` and `LOCK`, as in ALTER TABLE.
    pub asked: Vec<AlterAction>,
}

/// `CREATE DATABASE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateDatabase {
    /// `OR REPLACE`.
    pub or_replace: bool,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// The database.
    pub name: Ident,
    /// Its options.
    pub options: DatabaseOptions,
}

/// Options of a database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DatabaseOptions {
    /// `CHARACTER SET`.
    pub charset: Option<Ident>,
    /// `COLLATE`.
    pub collation: Option<Ident>,
    /// `COMMENT`.
    pub comment: Option<Vec<u8>>,
}

/// `CREATE VIEW` and `ALTER VIEW`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateView {
    /// `OR REPLACE`; set for `ALTER VIEW` too.
    pub or_replace: bool,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// The view.
    pub name: ObjectName,
    /// The names of its columns, if written.
    pub columns: Vec<Ident>,
    /// Its query.
    pub query: Box<Query>,
}
