//! Every table can be read, and the rows about a known table are right.

use format::TableId;
use store::{ColumnDefault, ColumnDefinition, IndexDefinition, IndexPart, TableName, Uniqueness};
use value::{CollationId, ColumnType, TypeKind};

use super::*;
use crate::account_record::first_accounts;

fn column(name: &str, column_type: ColumnType) -> ColumnDefinition {
    ColumnDefinition::new(name, column_type, true)
}

fn orders() -> TableDefinition {
    let collation = CollationId::UTF8MB4_GENERAL_CI;
    let mut id = column("id", ColumnType::unsigned(TypeKind::BigInt));
    (id.nullable, id.auto_increment) = (false, true);
    let mut state = column(
        "state",
        ColumnType::text(TypeKind::Char, 10, CollationId::ASCII_BIN),
    );
    state.default = ColumnDefault::Value(Value::bytes(*b"it's"));
    state.comment = "where it is".to_owned();
    let mut changed = column("changed", ColumnType::temporal(TypeKind::Timestamp, 3));
    (changed.nullable, changed.default, changed.on_update_now) = (false, ColumnDefault::Now, true);
    let part = |column, prefix_length| IndexPart {
        column,
        prefix_length,
    };
    let index = |name: &str, uniqueness, parts| IndexDefinition {
        name: name.to_owned(),
        uniqueness,
        parts,
        comment: String::new(),
    };
    TableDefinition {
        id: TableId(7),
        version: 1,
        name: TableName {
            database: "shop".to_owned(),
            table: "orders".to_owned(),
        },
        columns: vec![
            id,
            state,
            changed,
            column("note", ColumnType::new(TypeKind::Blob)),
        ],
        indexes: vec![
            index("PRIMARY", Uniqueness::Primary, vec![part(0, None)]),
            index(
                "by_state",
                Uniqueness::None,
                vec![part(1, None), part(3, Some(5))],
            ),
        ],
        collation,
        auto_increment_start: 1,
        comment: "all of them".to_owned(),
        options: Vec::new(),
        created_us: 0,
        view: None,
    }
}

#[test]
fn show_create_table_could_be_run_again() {
    assert_eq!(
        show_create_table(&orders(), 5),
        "CREATE TABLE `orders` (\n  \
         `id` bigint(20) unsigned NOT NULL AUTO_INCREMENT,\n  \
         `state` char(10) CHARACTER SET ascii COLLATE ascii_bin DEFAULT 'it''s' \
         COMMENT 'where it is',\n  \
         `changed` timestamp(3) NOT NULL DEFAULT current_timestamp(3) \
         ON UPDATE current_timestamp(3),\n  \
         `note` blob DEFAULT NULL,\n  \
         PRIMARY KEY (`id`),\n  \
         KEY `by_state` (`state`,`note`(5))\n\
         ) ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4 \
         COLLATE=utf8mb4_general_ci COMMENT='all of them'"
    );
}

#[test]
fn a_column_is_marked_by_the_index_that_it_begins() {
    let table = orders();
    let keys: Vec<_> = (0..4).map(|column| column_key(&table, column)).collect();
    assert_eq!(keys, ["PRI", "MUL", "", ""]);
}

#[test]
fn each_table_gives_rows_of_its_columns() {
    let root = first_accounts().remove(0);
    let none = || Vec::new();
    let routines = Routines::default();
    let facts = Facts {
        routines: &routines,
        sees_bodies: true,
        about: None,
        parameters: &|_| Vec::new(),
        names: &NameSpace::default(),
        accounts: &Accounts::new(first_accounts()),
        privileges: &SessionPrivileges::of_account(Arc::new(root)),
        table_facts: &|_| TableFacts::default(),
        session_variables: &|| vec![("autocommit".to_owned(), "ON".to_owned())],
        global_variables: &none,
        system_variables: &|| {
            vec![SystemVariable {
                name: "autocommit",
                session_value: Some("OFF".to_owned()),
                global_value: "ON".to_owned(),
                origin: "COMPILE-TIME",
                default: "ON".to_owned(),
                kind: "BOOLEAN",
                comment: "Whether each statement is a transaction.",
                range: None,
                words: Some(&["OFF", "ON"]),
                is_read_only: false,
                is_argument: true,
            }]
        },
        status: &none,
        activity: &store::Activity::default,
        processes: &|| {
            vec![Process {
                id: 3,
                user: "root".to_owned(),
                host: "localhost".to_owned(),
                database: None,
                command: "Query".to_owned(),
                time_ms: 1234,
                state: String::new(),
                info: None,
            }]
        },
    };
    for definition in definitions() {
        let rows = rows(definition, &facts);
        assert!(rows.iter().all(|row| row.len() == definition.columns.len()));
        let layout = format::row::RowLayout::new(
            definition.columns.iter().map(|column| &column.column_type),
        );
        for row in rows {
            let values: Vec<_> = row.iter().map(Value::as_ref).collect();
            let encoded = layout.encode(&values, &mut Vec::new());
            assert_eq!(encoded, Ok(()), "{}", definition.name);
        }
    }
    let described = rows(definition("columns").unwrap(), &facts).len();
    let columns: usize = definitions().iter().map(|table| table.columns.len()).sum();
    assert_eq!(described, columns);
}
