//! [`Route`]: why a statement has gone where it went.

/// See the module's head. Of several reasons, the first that binds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Route {
    /// It has come to no server.
    #[default]
    Nowhere,
    /// A cache of results has answered.
    Cache,
    /// A comment in its text says so.
    Hint,
    /// A rule says so.
    Rule,
    /// The session's transaction was open there.
    Transaction,
    /// The session was pinned there.
    Pin,
    /// It reads of the statement before, which had gone there.
    LastStatement,
    /// The client's session is there.
    Home,
    /// It is a read, which any server may answer that has what it has to see.
    Read,
    /// It is about the session alone, or reads what each server has of its own.
    Session,
    /// Only the primary may take it.
    Primary,
}

impl Route {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Route::Nowhere => "nowhere",
            Route::Cache => "cache",
            Route::Hint => "hint",
            Route::Rule => "rule",
            Route::Transaction => "transaction",
            Route::Pin => "pin",
            Route::LastStatement => "last statement",
            Route::Home => "home",
            Route::Read => "read",
            Route::Session => "session",
            Route::Primary => "primary",
        }
    }
}
