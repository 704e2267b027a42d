//! [`Names`]: how the planner looks up names.

use std::rc::Rc;
use std::sync::Arc;

use errcode::{ClientError, ER_NO_SUCH_TABLE, ER_UNKNOWN_SYSTEM_VARIABLE, ER_UNKNOWN_TABLE};
use expression::StoredFunction;
use settings::VariableScope;
use store::{KeyRange, Table, TableDefinition, TableStatistics};
use value::{CollationId, ColumnType, Value};

use crate::PlanError;

/// The error for a missing table: 1146, and in `information_schema` 1109, or 1235 if MariaDB has
/// the table.
pub fn missing_table(database: &str, table: &str) -> ClientError {
    if !database.eq_ignore_ascii_case("information_schema") {
        return ClientError::new(ER_NO_SUCH_TABLE, &[&database, &table]);
    }
    let name = table.to_ascii_uppercase();
    if is_reference_view(&name) {
        return ClientError::not_supported(&format!("information_schema.{name}"));
    }
    ClientError::new(ER_UNKNOWN_TABLE, &[&table, &database])
}

/// Types of MariaDB that are not built.
pub fn is_reference_type(name: &str) -> bool {
    const TYPES: [&str; 4] = ["UUID", "INET4", "INET6", "XMLTYPE"];
    TYPES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Tables of MariaDB's `information_schema` that are not built.
fn is_reference_view(name: &str) -> bool {
    const NAMES: [&str; 16] = [
        "ALL_PLUGINS",
        "APPLICABLE_ROLES",
        "ENABLED_ROLES",
        "GEOMETRY_COLUMNS",
        "KEYWORDS",
        "KEY_CACHES",
        "OPTIMIZER_TRACE",
        "PROFILING",
        "SPATIAL_REF_SYS",
        "SQL_FUNCTIONS",
        "TABLESPACES",
        "USER_VARIABLES",
        "CLIENT_STATISTICS",
        "INDEX_STATISTICS",
        "TABLE_STATISTICS",
        "USER_STATISTICS",
    ];
    NAMES.contains(&name)
        || ["INNODB_", "THREAD_POOL_"]
            .iter()
            .any(|start| name.starts_with(start))
}

/// The values that a statement is planned for.
#[derive(Debug, Clone, Copy)]
pub struct GivenValues<'g> {
    /// Of its parameters.
    pub parameters: &'g [Value],
    /// The session's time zone.
    pub zone: &'g value::temporal::Zone,
}

/// The tables that statements may name.
pub trait Names {
    /// The definition of a table; `None` if there is none.
    fn table(&self, database: &str, table: &str) -> Option<Arc<TableDefinition>>;

    /// True if there is such a database.
    fn has_database(&self, database: &str) -> bool;

    /// Yields if planning has taken long; nothing that others use is borrowed meanwhile. The
    /// default does nothing.
    ///
    /// # Errors
    /// If the statement has to end; then each later call fails, too.
    fn give_way(&self) -> Result<(), PlanError> {
        Ok(())
    }

    /// The error for a table that `table` does not find: 1146, or one that reveals less.
    fn no_table(&self, database: &str, table: &str) -> PlanError {
        Box::new(missing_table(database, table))
    }

    /// The current type of `@@name` (its value is read when the plan runs). The default knows no
    /// variables: error 1193.
    fn system_variable_type(
        &self,
        _scope: Option<VariableScope>,
        name: &str,
    ) -> Result<ColumnType, PlanError> {
        Err(Box::new(ClientError::new(
            ER_UNKNOWN_SYSTEM_VARIABLE,
            &[&name],
        )))
    }

    /// The current type of `@name` (in lower case). The plan is valid while it is unchanged
    /// ([`crate::Plan::user_variables`]). By default each may be any text.
    fn user_variable_type(&self, _name: &str) -> ColumnType {
        ColumnType::any_text(CollationId::UTF8MB4_GENERAL_CI)
    }

    /// A stored function; `None` if there is none.
    ///
    /// # Errors
    /// If its text cannot be read.
    fn stored_function(
        &self,
        _database: &str,
        _name: &str,
    ) -> Result<Option<Rc<StoredFunction>>, PlanError> {
        Ok(None)
    }

    /// The values that the statement is planned for, if it runs with some; they serve estimates
    /// alone.
    fn given_values(&self) -> Option<GivenValues<'_>> {
        None
    }

    /// The table, if work can be left to its store: if each of its calls costs a round trip.
    fn far_table(&self, _definition: &TableDefinition) -> Option<Rc<dyn Table>> {
        None
    }

    /// How many rows each of the ranges of an index has; `None` if that is not known now.
    fn range_rows(
        &self,
        _definition: &TableDefinition,
        _index: usize,
        _ranges: Vec<KeyRange>,
    ) -> Option<Vec<u64>> {
        None
    }

    /// Whether a scan of an index reads these columns from the index alone; the default knows of
    /// none.
    fn covers(&self, _definition: &TableDefinition, _index: usize, _columns: &[usize]) -> bool {
        false
    }

    /// Estimates for a table that `table` returned; the default knows nothing.
    fn statistics(&self, _definition: &TableDefinition) -> TableStatistics {
        TableStatistics::default()
    }
}

/// A fixed set of definitions, for tests.
#[derive(Debug, Default)]
pub struct FixedNames {
    /// The tables.
    pub tables: Vec<Arc<TableDefinition>>,
}

impl Names for FixedNames {
    fn table(&self, database: &str, table: &str) -> Option<Arc<TableDefinition>> {
        let is_named = |definition: &&Arc<TableDefinition>| {
            definition.name.database == database && definition.name.table == table
        };
        self.tables.iter().find(is_named).cloned()
    }

    fn has_database(&self, database: &str) -> bool {
        self.tables
            .iter()
            .any(|definition| definition.name.database == database)
    }
}
