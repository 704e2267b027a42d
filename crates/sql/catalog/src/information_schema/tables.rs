//! The tables' columns, as in MariaDB 10.11.
//!
//! One line for each table: its name, then its columns as `NAME:type`. The type is `v` and a length
//! for VARCHAR, `i` and a display width for a signed BIGINT, `b` for BIGINT UNSIGNED, `s` for
//! INT(1), `u` for INT UNSIGNED, `t` for LONGTEXT, `d` for DATETIME, `n` and a precision for
//! DECIMAL with three decimals. A `?` after it allows NULL.

use std::sync::Arc;

use store::{
    ColumnDefinition, IndexDefinition, IndexPart, TableDefinition, TableId, TableName, Uniqueness,
};
use value::{CollationId, ColumnType, TypeKind};

use super::{INFORMATION_SCHEMA, TABLE_ID_MIN};

const TABLES: &[(&str, &str)] = &[
    (
        "CHARACTER_SETS",
        "CHARACTER_SET_NAME:v32 DEFAULT_COLLATE_NAME:v64 DESCRIPTION:v60 MAXLEN:i3",
    ),
    (
        "CHECK_CONSTRAINTS",
        "CONSTRAINT_CATALOG:v512 CONSTRAINT_SCHEMA:v64 TABLE_NAME:v64 \
      CONSTRAINT_NAME:v64 LEVEL:v6 CHECK_CLAUSE:t",
    ),
    (
        "COLLATIONS",
        "COLLATION_NAME:v64 CHARACTER_SET_NAME:v32? ID:i11? IS_DEFAULT:v3? IS_COMPILED:v3 \
         SORTLEN:i3",
    ),
    (
        "COLLATION_CHARACTER_SET_APPLICABILITY",
        "COLLATION_NAME:v64 CHARACTER_SET_NAME:v32 FULL_COLLATION_NAME:v64 ID:i11 IS_DEFAULT:v3",
    ),
    (
        "COLUMNS",
        "TABLE_CATALOG:v512 TABLE_SCHEMA:v64 TABLE_NAME:v64 COLUMN_NAME:v64 ORDINAL_POSITION:b \
         COLUMN_DEFAULT:t? IS_NULLABLE:v3 DATA_TYPE:v64 CHARACTER_MAXIMUM_LENGTH:b? \
         CHARACTER_OCTET_LENGTH:b? NUMERIC_PRECISION:b? NUMERIC_SCALE:b? DATETIME_PRECISION:b? \
         CHARACTER_SET_NAME:v32? COLLATION_NAME:v64? COLUMN_TYPE:t COLUMN_KEY:v3 EXTRA:v80 \
         PRIVILEGES:v80 COLUMN_COMMENT:v1024 IS_GENERATED:v6 GENERATION_EXPRESSION:t?",
    ),
    (
        "COLUMN_PRIVILEGES",
        "GRANTEE:v385 TABLE_CATALOG:v512 TABLE_SCHEMA:v64 TABLE_NAME:v64 COLUMN_NAME:v64 \
         PRIVILEGE_TYPE:v64 IS_GRANTABLE:v3",
    ),
    (
        "ENGINES",
        "ENGINE:v64 SUPPORT:v8 COMMENT:v160 TRANSACTIONS:v3? XA:v3? SAVEPOINTS:v3?",
    ),
    (
        "EVENTS",
        "EVENT_CATALOG:v64 EVENT_SCHEMA:v64 EVENT_NAME:v64 DEFINER:v384 TIME_ZONE:v64 \
         EVENT_BODY:v8 EVENT_DEFINITION:t EVENT_TYPE:v9 EXECUTE_AT:d? INTERVAL_VALUE:v256? \
         INTERVAL_FIELD:v18? SQL_MODE:v8192 STARTS:d? ENDS:d? STATUS:v18 ON_COMPLETION:v12 \
         CREATED:d LAST_ALTERED:d LAST_EXECUTED:d? EVENT_COMMENT:v64 ORIGINATOR:i10 \
         CHARACTER_SET_CLIENT:v32 COLLATION_CONNECTION:v64 DATABASE_COLLATION:v64",
    ),
    (
        "FILES",
        "FILE_ID:i4 FILE_NAME:v512? FILE_TYPE:v20 TABLESPACE_NAME:v64? \
      TABLE_CATALOG:v64 TABLE_SCHEMA:v64? TABLE_NAME:v64? LOGFILE_GROUP_NAME:v64? \
      LOGFILE_GROUP_NUMBER:i4? ENGINE:v64 FULLTEXT_KEYS:v64? DELETED_ROWS:i4? UPDATE_COUNT:i4? \
      FREE_EXTENTS:i4? TOTAL_EXTENTS:i4? EXTENT_SIZE:i4 INITIAL_SIZE:b? MAXIMUM_SIZE:b? \
      AUTOEXTEND_SIZE:b? CREATION_TIME:d? LAST_UPDATE_TIME:d? LAST_ACCESS_TIME:d? \
      RECOVER_TIME:i4? TRANSACTION_COUNTER:i4? VERSION:b? ROW_FORMAT:v10? TABLE_ROWS:b? \
      AVG_ROW_LENGTH:b? DATA_LENGTH:b? MAX_DATA_LENGTH:b? INDEX_LENGTH:b? DATA_FREE:b? \
      CREATE_TIME:d? UPDATE_TIME:d? CHECK_TIME:d? CHECKSUM:b? STATUS:v20 EXTRA:v255?",
    ),
    ("GLOBAL_STATUS", "VARIABLE_NAME:v64 VARIABLE_VALUE:v2048"),
    ("GLOBAL_VARIABLES", "VARIABLE_NAME:v64 VARIABLE_VALUE:v2048"),
    (
        "INNODB_LOCKS",
        "lock_id:v81 lock_trx_id:b lock_mode:v8 lock_type:v6 lock_table:v1024 lock_index:v1024? \
         lock_space:u? lock_page:u? lock_rec:u? lock_data:v8192?",
    ),
    (
        "INNODB_LOCK_WAITS",
        "requesting_trx_id:b requested_lock_id:v81 blocking_trx_id:b blocking_lock_id:v81",
    ),
    (
        "INNODB_TRX",
        "trx_id:b trx_state:v13 trx_started:d trx_requested_lock_id:v81? trx_wait_started:d? \
         trx_weight:b trx_mysql_thread_id:b trx_query:v1024? trx_operation_state:v64? \
         trx_tables_in_use:b trx_tables_locked:b trx_lock_structs:b trx_lock_memory_bytes:b \
         trx_rows_locked:b trx_rows_modified:b trx_concurrency_tickets:b \
         trx_isolation_level:v16 trx_unique_checks:s trx_foreign_key_checks:s \
         trx_last_foreign_key_error:v256? trx_is_read_only:s trx_autocommit_non_locking:s",
    ),
    (
        "KEY_COLUMN_USAGE",
        "CONSTRAINT_CATALOG:v512 CONSTRAINT_SCHEMA:v64 CONSTRAINT_NAME:v64 TABLE_CATALOG:v512 \
         TABLE_SCHEMA:v64 TABLE_NAME:v64 COLUMN_NAME:v64 ORDINAL_POSITION:i10 \
         POSITION_IN_UNIQUE_CONSTRAINT:i10? REFERENCED_TABLE_SCHEMA:v64? \
         REFERENCED_TABLE_NAME:v64? REFERENCED_COLUMN_NAME:v64?",
    ),
    (
        "PARAMETERS",
        "SPECIFIC_CATALOG:v512 SPECIFIC_SCHEMA:v64 SPECIFIC_NAME:v64 ORDINAL_POSITION:i21 \
         PARAMETER_MODE:v5? PARAMETER_NAME:v64? DATA_TYPE:v64 CHARACTER_MAXIMUM_LENGTH:i21? \
         CHARACTER_OCTET_LENGTH:i21? NUMERIC_PRECISION:i21? NUMERIC_SCALE:i21? \
         DATETIME_PRECISION:b? CHARACTER_SET_NAME:v64? COLLATION_NAME:v64? DTD_IDENTIFIER:t \
         ROUTINE_TYPE:v9",
    ),
    (
        "PARTITIONS",
        "TABLE_CATALOG:v512 TABLE_SCHEMA:v64 TABLE_NAME:v64 PARTITION_NAME:v64? \
         SUBPARTITION_NAME:v64? PARTITION_ORDINAL_POSITION:b? SUBPARTITION_ORDINAL_POSITION:b? \
         PARTITION_METHOD:v18? SUBPARTITION_METHOD:v12? PARTITION_EXPRESSION:t? \
         SUBPARTITION_EXPRESSION:t? PARTITION_DESCRIPTION:t? TABLE_ROWS:b AVG_ROW_LENGTH:b \
         DATA_LENGTH:b MAX_DATA_LENGTH:b? INDEX_LENGTH:b DATA_FREE:b CREATE_TIME:d? \
         UPDATE_TIME:d? CHECK_TIME:d? CHECKSUM:b? PARTITION_COMMENT:v80 NODEGROUP:v12 \
         TABLESPACE_NAME:v64?",
    ),
    (
        "PLUGINS",
        "PLUGIN_NAME:v64 PLUGIN_VERSION:v20 PLUGIN_STATUS:v16 PLUGIN_TYPE:v80 \
         PLUGIN_TYPE_VERSION:v20 PLUGIN_LIBRARY:v64? PLUGIN_LIBRARY_VERSION:v20? \
         PLUGIN_AUTHOR:v64? PLUGIN_DESCRIPTION:t? PLUGIN_LICENSE:v80 LOAD_OPTION:v64 \
         PLUGIN_MATURITY:v12 PLUGIN_AUTH_VERSION:v80?",
    ),
    (
        "PROCESSLIST",
        "ID:i4 USER:v128 HOST:v64 DB:v64? COMMAND:v16 TIME:i7 STATE:v64? INFO:t? TIME_MS:n22 \
         STAGE:i2 MAX_STAGE:i2 PROGRESS:n7 MEMORY_USED:i7 MAX_MEMORY_USED:i7 EXAMINED_ROWS:i7 \
         QUERY_ID:i4 INFO_BINARY:t? TID:i4",
    ),
    (
        "REFERENTIAL_CONSTRAINTS",
        "CONSTRAINT_CATALOG:v512 CONSTRAINT_SCHEMA:v64 CONSTRAINT_NAME:v64 \
         UNIQUE_CONSTRAINT_CATALOG:v512 UNIQUE_CONSTRAINT_SCHEMA:v64 \
         UNIQUE_CONSTRAINT_NAME:v64? MATCH_OPTION:v64 UPDATE_RULE:v64 DELETE_RULE:v64 \
         TABLE_NAME:v64 REFERENCED_TABLE_NAME:v64",
    ),
    (
        "ROUTINES",
        "SPECIFIC_NAME:v64 ROUTINE_CATALOG:v512 ROUTINE_SCHEMA:v64 ROUTINE_NAME:v64 \
         ROUTINE_TYPE:v13 DATA_TYPE:v64 CHARACTER_MAXIMUM_LENGTH:i21? \
         CHARACTER_OCTET_LENGTH:i21? NUMERIC_PRECISION:i21? NUMERIC_SCALE:i21? \
         DATETIME_PRECISION:b? CHARACTER_SET_NAME:v64? COLLATION_NAME:v64? DTD_IDENTIFIER:t? \
         ROUTINE_BODY:v8 ROUTINE_DEFINITION:t? EXTERNAL_NAME:v64? EXTERNAL_LANGUAGE:v64 \
         PARAMETER_STYLE:v8 IS_DETERMINISTIC:v3 SQL_DATA_ACCESS:v64 SQL_PATH:v64? \
         SECURITY_TYPE:v7 CREATED:d LAST_ALTERED:d SQL_MODE:v8192 ROUTINE_COMMENT:t \
         DEFINER:v384 CHARACTER_SET_CLIENT:v32 COLLATION_CONNECTION:v64 DATABASE_COLLATION:v64",
    ),
    (
        "SCHEMATA",
        "CATALOG_NAME:v512 SCHEMA_NAME:v64 DEFAULT_CHARACTER_SET_NAME:v32 \
         DEFAULT_COLLATION_NAME:v64 SQL_PATH:v512? SCHEMA_COMMENT:v1024",
    ),
    (
        "SCHEMA_PRIVILEGES",
        "GRANTEE:v385 TABLE_CATALOG:v512 TABLE_SCHEMA:v64 PRIVILEGE_TYPE:v64 IS_GRANTABLE:v3",
    ),
    ("SESSION_STATUS", "VARIABLE_NAME:v64 VARIABLE_VALUE:v2048"),
    (
        "SESSION_VARIABLES",
        "VARIABLE_NAME:v64 VARIABLE_VALUE:v2048",
    ),
    (
        "STATISTICS",
        "TABLE_CATALOG:v512 TABLE_SCHEMA:v64 TABLE_NAME:v64 NON_UNIQUE:i1 INDEX_SCHEMA:v64 \
         INDEX_NAME:v64 SEQ_IN_INDEX:i2 COLUMN_NAME:v64 COLLATION:v1? CARDINALITY:i21? \
         SUB_PART:i3? PACKED:v10? NULLABLE:v3 INDEX_TYPE:v16 COMMENT:v16? INDEX_COMMENT:v1024 \
         IGNORED:v3",
    ),
    (
        "SYSTEM_VARIABLES",
        "VARIABLE_NAME:v64 SESSION_VALUE:v2048? GLOBAL_VALUE:v2048? GLOBAL_VALUE_ORIGIN:v64 \
         DEFAULT_VALUE:v2048? VARIABLE_SCOPE:v64 VARIABLE_TYPE:v64 VARIABLE_COMMENT:v2048 \
         NUMERIC_MIN_VALUE:v21? NUMERIC_MAX_VALUE:v21? NUMERIC_BLOCK_SIZE:v21? \
         ENUM_VALUE_LIST:t? READ_ONLY:v3 COMMAND_LINE_ARGUMENT:v64? GLOBAL_VALUE_PATH:v2048?",
    ),
    (
        "TABLES",
        "TABLE_CATALOG:v512 TABLE_SCHEMA:v64 TABLE_NAME:v64 TABLE_TYPE:v64 ENGINE:v64? \
         VERSION:b? ROW_FORMAT:v10? TABLE_ROWS:b? AVG_ROW_LENGTH:b? DATA_LENGTH:b? \
         MAX_DATA_LENGTH:b? INDEX_LENGTH:b? DATA_FREE:b? AUTO_INCREMENT:b? CREATE_TIME:d? \
         UPDATE_TIME:d? CHECK_TIME:d? TABLE_COLLATION:v64? CHECKSUM:b? CREATE_OPTIONS:v2048? \
         TABLE_COMMENT:v2048 MAX_INDEX_LENGTH:b? TEMPORARY:v1?",
    ),
    (
        "TABLE_CONSTRAINTS",
        "CONSTRAINT_CATALOG:v512 CONSTRAINT_SCHEMA:v64 CONSTRAINT_NAME:v64 TABLE_SCHEMA:v64 \
         TABLE_NAME:v64 CONSTRAINT_TYPE:v64",
    ),
    (
        "TABLE_PRIVILEGES",
        "GRANTEE:v385 TABLE_CATALOG:v512 TABLE_SCHEMA:v64 TABLE_NAME:v64 PRIVILEGE_TYPE:v64 \
         IS_GRANTABLE:v3",
    ),
    (
        "TRIGGERS",
        "TRIGGER_CATALOG:v512 TRIGGER_SCHEMA:v64 TRIGGER_NAME:v64 EVENT_MANIPULATION:v6 \
         EVENT_OBJECT_CATALOG:v512 EVENT_OBJECT_SCHEMA:v64 EVENT_OBJECT_TABLE:v64 \
         ACTION_ORDER:i4 ACTION_CONDITION:t? ACTION_STATEMENT:t ACTION_ORIENTATION:v9 \
         ACTION_TIMING:v6 ACTION_REFERENCE_OLD_TABLE:v64? ACTION_REFERENCE_NEW_TABLE:v64? \
         ACTION_REFERENCE_OLD_ROW:v3 ACTION_REFERENCE_NEW_ROW:v3 CREATED:d? SQL_MODE:v8192 \
         DEFINER:v384 CHARACTER_SET_CLIENT:v32 COLLATION_CONNECTION:v64 DATABASE_COLLATION:v64",
    ),
    (
        "USER_PRIVILEGES",
        "GRANTEE:v385 TABLE_CATALOG:v512 PRIVILEGE_TYPE:v64 IS_GRANTABLE:v3",
    ),
    (
        "VIEWS",
        "TABLE_CATALOG:v512 TABLE_SCHEMA:v64 TABLE_NAME:v64 VIEW_DEFINITION:t CHECK_OPTION:v8 \
         IS_UPDATABLE:v3 DEFINER:v384 SECURITY_TYPE:v7 CHARACTER_SET_CLIENT:v32 \
         COLLATION_CONNECTION:v64 ALGORITHM:v10",
    ),
];

/// Tables with rows about each table, which have an index over its name.
const FOUND_BY_NAME: &[&str] = &[
    "COLUMNS",
    "KEY_COLUMN_USAGE",
    "STATISTICS",
    "TABLES",
    "TABLE_CONSTRAINTS",
];

/// The columns of their index, which EXPLAIN names as in MariaDB.
const NAME_COLUMNS: [&str; 2] = ["TABLE_SCHEMA", "TABLE_NAME"];

/// All definitions, in the order of the table above.
pub(super) fn all() -> Vec<Arc<TableDefinition>> {
    let ids = (TABLE_ID_MIN..).map(TableId);
    let definition =
        |((name, columns), id): (&(&str, &str), _)| Arc::new(definition(id, name, columns));
    TABLES.iter().zip(ids).map(definition).collect()
}

fn definition(id: TableId, name: &str, columns: &str) -> TableDefinition {
    let columns: Vec<_> = columns.split_whitespace().map(column).collect();
    let indexes = match FOUND_BY_NAME.contains(&name) {
        true => vec![name_index(&columns)],
        false => Vec::new(),
    };
    TableDefinition {
        id,
        version: 0,
        name: TableName {
            database: INFORMATION_SCHEMA.to_owned(),
            table: name.to_owned(),
        },
        columns,
        indexes,
        collation: CollationId::UTF8MB3_GENERAL_CI,
        auto_increment_start: 1,
        comment: String::new(),
        options: Vec::new(),
        created_us: 0,
        view: None,
    }
}

fn name_index(columns: &[ColumnDefinition]) -> IndexDefinition {
    let part = |name| IndexPart {
        column: columns
            .iter()
            .position(|column| column.name == name)
            .expect("the columns are the table's"),
        prefix_length: None,
    };
    IndexDefinition {
        name: NAME_COLUMNS.join(","),
        uniqueness: Uniqueness::None,
        parts: NAME_COLUMNS.map(part).to_vec(),
        comment: String::new(),
    }
}

fn column(text: &str) -> ColumnDefinition {
    let (name, kind) = text.split_once(':').expect("a column has a type");
    let nullable = kind.ends_with('?');
    let column_type = column_type(kind.trim_end_matches('?'));
    ColumnDefinition::new(name, column_type, nullable)
}

fn column_type(text: &str) -> ColumnType {
    let (letter, length) = text.split_at(1);
    let length = || length.parse().expect("the letter has a length");
    match letter {
        "v" => ColumnType::varchar(length(), CollationId::UTF8MB3_GENERAL_CI),
        "i" => ColumnType {
            length: length(),
            ..ColumnType::new(TypeKind::BigInt)
        },
        "s" => ColumnType {
            length: 1,
            ..ColumnType::new(TypeKind::Int)
        },
        "u" => ColumnType::unsigned(TypeKind::Int),
        "b" => ColumnType {
            length: 21,
            ..ColumnType::unsigned(TypeKind::BigInt)
        },
        "t" => ColumnType::text(
            TypeKind::LongText,
            u32::MAX,
            CollationId::UTF8MB3_GENERAL_CI,
        ),
        "d" => ColumnType::new(TypeKind::DateTime),
        "n" => ColumnType {
            length: length(),
            decimals: 3,
            ..ColumnType::new(TypeKind::Decimal)
        },
        other => panic!("no column type has the letter {other}"),
    }
}
