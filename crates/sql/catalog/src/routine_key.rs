//! The key by which a stored program is found, and to which grants refer.

use syntax::ast::RoutineKind;

/// The key by which a routine is found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoutineKey {
    database: String,
    /// In lower case.
    name: String,
    kind: RoutineKind,
}

impl RoutineKey {
    /// The key for a name.
    pub fn new(kind: RoutineKind, database: &str, name: &str) -> Self {
        Self {
            database: database.to_owned(),
            name: name.to_lowercase(),
            kind,
        }
    }

    /// Procedure or function.
    pub fn kind(&self) -> RoutineKind {
        self.kind
    }

    /// Its database.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Its name in lower case.
    pub fn name(&self) -> &str {
        &self.name
    }
}
