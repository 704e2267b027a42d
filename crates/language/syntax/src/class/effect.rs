//! The words of the first stage: what a statement is, and what it does to the transaction.

/// What a statement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Only blanks and comments.
    Empty,
    /// `SELECT`, `VALUES`, `WITH`: a read, unless the verdict says otherwise.
    Query,
    /// Changes rows, or might: `INSERT`, `UPDATE`, `LOAD DATA`, `ANALYZE UPDATE`, ...
    Write,
    /// `DO`.
    Do,
    /// `CALL`.
    Call,
    /// A compound statement: `BEGIN NOT ATOMIC`, `IF`, a loop, ... It reaches to the end of the
    /// text.
    Program,
    /// Changes definitions.
    Definition,
    /// Begins, ends or marks a transaction; `SET TRANSACTION`, too.
    Transaction,
    /// `XA ..`.
    Xa,
    /// `SET`, also before a statement (`SET STATEMENT`) if that is a SET.
    Set,
    /// `SHOW`, `DESCRIBE`, `EXPLAIN`, `HELP`, `CHECKSUM TABLE`.
    Show,
    /// `USE`.
    Use,
    /// `PREPARE`, `EXECUTE`, `DEALLOCATE`.
    Prepared,
    /// `GET DIAGNOSTICS`, `SIGNAL`, `RESIGNAL`.
    Diagnostics,
    /// `LOCK TABLES`, `UNLOCK TABLES`.
    Lock,
    /// `HANDLER`.
    Handler,
    /// Accounts and privileges; `SET PASSWORD` and `SET DEFAULT ROLE`, too.
    Account,
    /// `KILL`.
    Kill,
    /// `FLUSH`, `CHECK TABLE` and the like.
    Admin,
    /// No known statement.
    Unknown,
}

/// What a statement does to the transaction if it succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing.
    None,
    /// Begins a transaction if autocommit is off and it uses a table of a transactional engine.
    Uses,
    /// Commits the open one and begins another.
    Begin(Access),
    /// `COMMIT`.
    Commit(Completion),
    /// `ROLLBACK`, without a savepoint.
    Rollback(Completion),
    /// Commits the open one before it runs.
    ImplicitCommit,
    /// `LOCK TABLES`: commits, then holds the tables.
    Lock,
    /// `FLUSH TABLES .. WITH READ LOCK` of some tables: commits, then holds them.
    FlushLock,
    /// `UNLOCK TABLES`: commits if tables are held.
    Unlock,
    /// `XA START`: begins one. It is refused while one is open.
    XaStart,
    /// `XA COMMIT`, `XA ROLLBACK`. They are refused while another transaction is open.
    XaFinish,
    /// `SET` of variables that matter to transactions.
    Set(SetEffect),
    /// Unknown until the server answers: `CALL`, `EXECUTE`.
    Unknown,
}

/// Whether a transaction may change rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// As `SET TRANSACTION` or else the session says.
    Default,
    /// `READ ONLY`.
    ReadOnly,
    /// `READ WRITE`.
    ReadWrite,
}

/// The words after `COMMIT` and `ROLLBACK`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Completion {
    /// `AND [NO] CHAIN`: another transaction begins, with the same characteristics.
    pub chain: Tail,
    /// `[NO] RELEASE`: the server closes the connection.
    pub release: Tail,
}

/// A word of [`Completion`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tail {
    /// Not written: `completion_type` decides.
    Default,
    /// Written with `NO`.
    No,
    /// Written.
    Yes,
}

/// What a SET does. Fields that are `None` are not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SetEffect {
    /// `autocommit`, which commits when it is switched on.
    pub autocommit: Option<Switch>,
    /// `SET SESSION TRANSACTION READ ..`, `tx_read_only`: of all later transactions. On: read only.
    pub session_read_only: Option<Switch>,
    /// `SET TRANSACTION READ ..`, `@@tx_read_only`: of the next transaction.
    pub next_read_only: Option<Switch>,
    /// `SET TRANSACTION ISOLATION LEVEL`, `@@tx_isolation`: of the next transaction.
    pub sets_next_isolation: bool,
    /// `completion_type`, as the words that a plain COMMIT then stands for.
    pub completion: Option<SetCompletion>,
    /// A value is more than a literal, and may read tables.
    pub has_expression: bool,
}

/// A value of `completion_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SetCompletion {
    /// `NO_CHAIN`, 0.
    NoChain,
    /// `CHAIN`, 1.
    Chain,
    /// `RELEASE`, 2.
    Release,
    /// The text does not show it.
    Unknown,
}

/// A value that a text gives to a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Switch {
    /// `1`, `ON`, `TRUE`.
    On,
    /// `0`, `OFF`, `FALSE`.
    Off,
    /// `DEFAULT`, which is the server's, or an expression.
    Unknown,
}

/// What is known of a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Guess {
    /// It is off.
    No,
    /// It is on.
    Yes,
    /// It is either.
    Unknown,
}

impl Guess {
    /// What is known if one of both holds.
    #[must_use]
    pub fn or_else(self, other: Guess) -> Guess {
        if self == other { self } else { Guess::Unknown }
    }

    /// Whether a flag that is told fits.
    #[must_use]
    pub fn allows(self, told: Guess) -> bool {
        self == Guess::Unknown || self == told
    }
}

impl From<Switch> for Guess {
    fn from(switch: Switch) -> Guess {
        match switch {
            Switch::On => Guess::Yes,
            Switch::Off => Guess::No,
            Switch::Unknown => Guess::Unknown,
        }
    }
}
