//! Stored procedures and functions, as all workers share them and as rows of `mysql.proc`.
//!
//! The table has MariaDB's columns in MariaDB's order; its ENUM and SET columns are text here. A
//! routine is kept as the text of its definition, and is parsed again with the `sql_mode` of that
//! time. Names of routines are compared without case.

use std::collections::BTreeMap;
use std::sync::Arc;

use store::{ColumnDefinition, TableDefinition};
use syntax::ast::{DataAccess, RoutineKind};
use syntax::print::{quoted_name, quoted_string};
use value::{CollationId, ColumnType, DateTime, TypeKind, Value};

use crate::routine_key::RoutineKey;
use crate::stored_table::StoredTable;
use auth::AccountName;

/// The table of routines.
pub const ROUTINE_TABLE: &str = "proc";

/// Its columns that this crate fills, in order.
const COLUMNS: [(&str, Shape); 21] = [
    ("db", Shape::Name),
    ("name", Shape::Name),
    ("type", Shape::Word),
    ("specific_name", Shape::Name),
    ("language", Shape::Word),
    ("sql_data_access", Shape::Word),
    ("is_deterministic", Shape::Word),
    ("security_type", Shape::Word),
    ("param_list", Shape::Text),
    ("returns", Shape::Text),
    ("body", Shape::Text),
    ("definer", Shape::Definer),
    ("created", Shape::Time),
    ("modified", Shape::Time),
    ("sql_mode", Shape::Text),
    ("comment", Shape::Text),
    ("character_set_client", Shape::Word),
    ("collation_connection", Shape::Word),
    ("db_collation", Shape::Word),
    ("body_utf8", Shape::Text),
    ("aggregate", Shape::Word),
];

#[derive(Debug, Clone, Copy)]
enum Shape {
    Name,
    Word,
    Definer,
    Text,
    Time,
}

/// A stored procedure or function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routine {
    /// Its database.
    pub database: String,
    /// Its name as written.
    pub name: String,
    /// Which of the two.
    pub kind: RoutineKind,
    /// Its declared data access.
    pub data_access: DataAccess,
    /// `DETERMINISTIC`.
    pub is_deterministic: bool,
    /// `SQL SECURITY INVOKER`: it runs with the caller's privileges.
    pub is_invoker: bool,
    /// The text between the parentheses.
    pub parameters: String,
    /// A function's type, as text; empty for a procedure.
    pub returns: String,
    /// The body's text.
    pub body: String,
    /// The account with whose privileges it runs, unless those are the invoker's.
    pub definer: AccountName,
    /// When it was created, as local time of that session.
    pub created: DateTime,
    /// When it was last changed, likewise.
    pub modified: DateTime,
    /// `sql_mode` at that time: the text is parsed and run with it.
    pub sql_mode: String,
    /// `COMMENT`.
    pub comment: String,
    /// `character_set_client` at that time.
    pub client_charset: String,
    /// `collation_connection` at that time, for its literals.
    pub connection_collation: String,
    /// The database's collation at that time, for its variables.
    pub database_collation: String,
}

/// All routines at one moment. A change publishes a new value, which shares the unchanged routines.
/// So what was derived from a routine is valid as long as its address is unchanged.
#[derive(Debug, Default)]
pub struct Routines {
    by_key: BTreeMap<RoutineKey, Arc<Routine>>,
    /// How many versions there were before.
    version: u64,
}

impl Routines {
    /// These.
    pub fn new(all: Vec<Routine>) -> Self {
        let keyed = all.into_iter().map(|it| (it.key(), Arc::new(it)));
        Self {
            by_key: keyed.collect(),
            version: 0,
        }
    }

    /// The routines after changes: the new routine of each key, or `None` if it is removed.
    pub fn after(&self, changes: impl IntoIterator<Item = (RoutineKey, Option<Routine>)>) -> Self {
        let mut by_key = self.by_key.clone();
        for (key, routine) in changes {
            match routine {
                Some(routine) => by_key.insert(key, Arc::new(routine)),
                None => by_key.remove(&key),
            };
        }
        Self { by_key, version: 0 }
    }

    /// These routines, which were read again; unchanged ones are shared with `before`.
    pub fn sharing(mut self, before: &Self) -> Self {
        for (key, routine) in &mut self.by_key {
            if let Some(known) = before.find(key)
                && **known == **routine
            {
                *routine = Arc::clone(known);
            }
        }
        self
    }

    /// The version that was set: plans that call functions are valid for one.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Sets the version.
    pub fn set_version(&mut self, version: u64) {
        self.version = version;
    }

    /// The routine of a key.
    pub fn find(&self, key: &RoutineKey) -> Option<&Arc<Routine>> {
        self.by_key.get(key)
    }

    /// All of them: by database, then by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Routine>> {
        self.by_key.values()
    }

    /// All routines of a database.
    pub fn of_database<'r>(&'r self, database: &'r str) -> impl Iterator<Item = &'r Arc<Routine>> {
        self.iter().filter(move |it| it.database == database)
    }
}

impl Routine {
    /// The key by which it is found.
    pub fn key(&self) -> RoutineKey {
        RoutineKey::new(self.kind, &self.database, &self.name)
    }

    /// `PROCEDURE name(parameters)`, and what a function returns.
    fn head(&self) -> String {
        let (kind, name) = (self.kind.text(), quoted_name(&self.name));
        let mut head = format!("CREATE {kind} {name}({})", self.parameters);
        if self.kind == RoutineKind::Function {
            head.push_str(" RETURNS ");
            head.push_str(&self.returns);
        }
        head
    }

    /// The statement that SHOW CREATE returns, and that is parsed to run it: lines are counted in
    /// it.
    pub fn show_create(&self) -> String {
        let definer = format!(
            "CREATE DEFINER={}@{} ",
            quoted_name(&self.definer.user),
            quoted_name(&self.definer.host)
        );
        let mut text = self.head().replacen("CREATE ", &definer, 1);
        text.push('\n');
        let access = match self.data_access {
            DataAccess::ContainsSql => "",
            DataAccess::NoSql => "    NO SQL\n",
            DataAccess::ReadsSqlData => "    READS SQL DATA\n",
            DataAccess::ModifiesSqlData => "    MODIFIES SQL DATA\n",
        };
        text.push_str(access);
        if self.is_deterministic {
            text.push_str("    DETERMINISTIC\n");
        }
        if self.is_invoker {
            text.push_str("    SQL SECURITY INVOKER\n");
        }
        if !self.comment.is_empty() {
            text.push_str(&format!("    COMMENT {}\n", quoted_string(&self.comment)));
        }
        text.push_str(&self.body);
        text
    }

    /// Its row.
    pub fn to_row(&self) -> Vec<Value> {
        let text = |text: &str| Value::bytes(text.as_bytes());
        let access = access_text(self.data_access);
        vec![
            text(&self.database),
            text(&self.name),
            text(self.kind.text()),
            text(&self.name),
            text("SQL"),
            text(&access.replace(' ', "_")),
            text(if self.is_deterministic { "YES" } else { "NO" }),
            text(self.security()),
            text(&self.parameters),
            text(&self.returns),
            text(&self.body),
            text(&self.definer_text()),
            Value::DateTime(self.created),
            Value::DateTime(self.modified),
            text(&self.sql_mode),
            text(&self.comment),
            text(&self.client_charset),
            text(&self.connection_collation),
            text(&self.database_collation),
            text(&self.body),
            text("NONE"),
        ]
    }

    /// The routine of a row, or `None` if it is damaged.
    pub fn from_row(row: &[Value]) -> Option<Self> {
        let text = |column: usize| match row.get(column) {
            Some(Value::Bytes(bytes)) => String::from_utf8(bytes.clone()).ok(),
            _ => None,
        };
        let time = |column: usize| match row.get(column) {
            Some(Value::DateTime(time)) => Some(*time),
            _ => None,
        };
        let definer = text(11)?;
        let (user, host) = definer.rsplit_once('@')?;
        let data_access = match text(5)?.as_str() {
            "CONTAINS_SQL" => DataAccess::ContainsSql,
            "NO_SQL" => DataAccess::NoSql,
            "READS_SQL_DATA" => DataAccess::ReadsSqlData,
            "MODIFIES_SQL_DATA" => DataAccess::ModifiesSqlData,
            _ => return None,
        };
        Some(Self {
            database: text(0)?,
            name: text(1)?,
            kind: match text(2)?.as_str() {
                "PROCEDURE" => RoutineKind::Procedure,
                "FUNCTION" => RoutineKind::Function,
                _ => return None,
            },
            data_access,
            is_deterministic: text(6)? == "YES",
            is_invoker: text(7)? == "INVOKER",
            parameters: text(8)?,
            returns: text(9)?,
            body: text(10)?,
            definer: AccountName {
                user: user.to_owned(),
                host: host.to_owned(),
            },
            created: time(12)?,
            modified: time(13)?,
            sql_mode: text(14)?,
            comment: text(15)?,
            client_charset: text(16)?,
            connection_collation: text(17)?,
            database_collation: text(18)?,
        })
    }

    /// `user@host` of its definer.
    pub fn definer_text(&self) -> String {
        format!("{}@{}", self.definer.user, self.definer.host)
    }

    /// `DEFINER` or `INVOKER`.
    pub fn security(&self) -> &'static str {
        if self.is_invoker {
            "INVOKER"
        } else {
            "DEFINER"
        }
    }
}

/// The data access of a routine, as it is written.
pub fn access_text(access: DataAccess) -> &'static str {
    match access {
        DataAccess::ContainsSql => "CONTAINS SQL",
        DataAccess::NoSql => "NO SQL",
        DataAccess::ReadsSqlData => "READS SQL DATA",
        DataAccess::ModifiesSqlData => "MODIFIES SQL DATA",
    }
}

/// The definition of the table of routines.
pub fn routine_table() -> TableDefinition {
    let column = |(name, shape): (&str, Shape)| {
        let (bin, names) = (CollationId::UTF8MB4_BIN, CollationId::UTF8MB4_GENERAL_CI);
        let column_type = match shape {
            // Names of routines are compared without case, those of databases are not.
            Shape::Name if name == "db" => ColumnType::varchar(64, bin),
            Shape::Name => ColumnType::varchar(64, names),
            Shape::Word => ColumnType::varchar(64, bin),
            Shape::Definer => ColumnType::varchar(384, bin),
            Shape::Text => ColumnType::text(TypeKind::LongText, u32::MAX, bin),
            Shape::Time => ColumnType::temporal(TypeKind::DateTime, 0),
        };
        ColumnDefinition::new(name, column_type, false)
    };
    StoredTable {
        name: ROUTINE_TABLE,
        comment: "Stored Procedures",
        columns: COLUMNS.into_iter().map(column).collect(),
        key_column_count: 3,
        collation: CollationId::UTF8MB4_BIN,
    }
    .definition()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routine() -> Routine {
        Routine {
            database: "shop".to_owned(),
            name: "Add".to_owned(),
            kind: RoutineKind::Procedure,
            data_access: DataAccess::NoSql,
            is_deterministic: true,
            is_invoker: true,
            parameters: "IN a INT".to_owned(),
            returns: String::new(),
            body: "BEGIN END".to_owned(),
            definer: AccountName {
                user: "a@b".to_owned(),
                host: "%".to_owned(),
            },
            created: DateTime::from_unix_micros(1_000_000).unwrap(),
            modified: DateTime::from_unix_micros(2_000_000).unwrap(),
            sql_mode: "ANSI_QUOTES".to_owned(),
            comment: "it's".to_owned(),
            client_charset: "utf8mb4".to_owned(),
            connection_collation: "utf8mb4_general_ci".to_owned(),
            database_collation: "utf8mb4_bin".to_owned(),
        }
    }

    #[test]
    fn a_routine_is_read_as_it_was_written() {
        let row = routine().to_row();
        assert_eq!(row.len(), routine_table().columns.len());
        assert_eq!(Routine::from_row(&row), Some(routine()));
        for column in 0..row.len() {
            let mut damaged = row.clone();
            damaged[column] = Value::Int(5);
            let read = Routine::from_row(&damaged);
            assert!(read.is_none() || read == Some(routine()), "column {column}");
        }
    }

    #[test]
    fn a_routine_is_shown_as_the_reference_shows_it() {
        assert_eq!(
            routine().show_create(),
            "CREATE DEFINER=`a@b`@`%` PROCEDURE `Add`(IN a INT)\n    NO SQL\n    \
             DETERMINISTIC\n    SQL SECURITY INVOKER\n    COMMENT 'it''s'\nBEGIN END"
        );
        let function = Routine {
            kind: RoutineKind::Function,
            returns: "int(11)".to_owned(),
            data_access: DataAccess::ContainsSql,
            is_deterministic: false,
            is_invoker: false,
            comment: String::new(),
            ..routine()
        };
        assert_eq!(
            function.show_create(),
            "CREATE DEFINER=`a@b`@`%` FUNCTION `Add`(IN a INT) RETURNS int(11)\nBEGIN END"
        );
    }

    #[test]
    fn what_a_change_leaves_is_shared_with_what_was() {
        let named = |name: &str| Routine {
            name: name.to_owned(),
            ..routine()
        };
        let before = Routines::new(vec![named("a"), named("b")]);
        let changed = Routine {
            comment: "other".to_owned(),
            ..named("b")
        };
        let after = before.after([(changed.key(), Some(changed)), (named("c").key(), None)]);
        let same = |left: &Routines, right: &Routines, name| {
            let find = |routines: &Routines| routines.find(&named(name).key()).cloned().unwrap();
            Arc::ptr_eq(&find(left), &find(right))
        };
        assert!(same(&before, &after, "a") && !same(&before, &after, "b"));
        let read = Routines::new(vec![named("a"), named("b")]).sharing(&after);
        assert!(same(&read, &after, "a") && !same(&read, &after, "b"));
        let gone = after.after([(named("A").key(), None)]);
        assert_eq!(gone.iter().count(), 1);
    }

    #[test]
    fn names_are_found_in_any_case_and_databases_in_theirs() {
        let routines = Routines::new(vec![routine()]);
        let find = |database, name| {
            let key = RoutineKey::new(RoutineKind::Procedure, database, name);
            routines.find(&key).is_some()
        };
        assert!(find("shop", "ADD"));
        assert!(!find("Shop", "Add"));
        assert_eq!(routines.of_database("shop").count(), 1);
    }
}
