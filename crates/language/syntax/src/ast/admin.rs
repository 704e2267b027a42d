//! Transactions, settings, SHOW, accounts, and the administration of a server.

use super::{Expr, Ident, Limit, ObjectName, Refused, RoutineKind, Statement, VariableScope};

/// Transaction control.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transaction {
    /// `BEGIN [WORK]`, `START TRANSACTION ..`.
    Begin {
        /// `READ ONLY` (true), `READ WRITE` (false), if written.
        read_only: Option<bool>,
        /// `WITH CONSISTENT SNAPSHOT`.
        consistent_snapshot: bool,
    },
    /// `COMMIT`.
    Commit(Completion),
    /// `ROLLBACK`.
    Rollback(Completion),
    /// `SAVEPOINT a`.
    Savepoint(Ident),
    /// `ROLLBACK TO a`.
    RollbackTo(Ident),
    /// `RELEASE SAVEPOINT a`.
    ReleaseSavepoint(Ident),
    /// `SET [scope] TRANSACTION ..`; without scope it applies to the next transaction only.
    Set {
        /// The scope.
        scope: Option<VariableScope>,
        /// `ISOLATION LEVEL ..`.
        isolation: Option<Isolation>,
        /// `READ ONLY` (true), `READ WRITE` (false).
        read_only: Option<bool>,
    },
    /// `LOCK TABLES`.
    LockTables {
        /// The tables, with alias and mode.
        tables: Vec<TableLock>,
    },
    /// `UNLOCK TABLES`.
    UnlockTables,
    /// `XA ..`.
    Xa(Xa),
}

/// What becomes of an XA transaction, after X/Open's specification (C193).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Xa {
    /// `START`, `BEGIN`.
    Start {
        /// The transaction.
        xid: Xid,
        /// What of it is asked for, if written.
        association: Option<Association>,
    },
    /// `END`.
    End {
        /// The transaction.
        xid: Xid,
        /// `SUSPEND [FOR MIGRATE]`.
        suspend: bool,
    },
    /// `PREPARE`.
    Prepare(Xid),
    /// `COMMIT`.
    Commit {
        /// The transaction.
        xid: Xid,
        /// Whether it was prepared before.
        phases: Phases,
    },
    /// `ROLLBACK`.
    Rollback(Xid),
    /// `RECOVER [FORMAT = '..']`.
    Recover {
        /// How identifiers are shown.
        format: Option<Vec<u8>>,
    },
}

/// What `XA START` asks for instead of a new transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Association {
    /// `JOIN`.
    Join,
    /// `RESUME`.
    Resume,
}

/// How many phases a commit has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phases {
    /// `ONE PHASE`: it was not prepared.
    One,
    /// It was prepared.
    Two,
}

/// The identifier of an XA transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Xid {
    /// `gtrid`, of at most 64 bytes.
    pub global: Vec<u8>,
    /// `bqual`, of at most 64 bytes.
    pub branch: Vec<u8>,
    /// `formatID`: 1 if it is not written.
    pub format_id: u32,
}

/// What follows `COMMIT` and `ROLLBACK`; `None` means as `completion_type` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Completion {
    /// `AND [NO] CHAIN`.
    pub chain: Option<bool>,
    /// `[NO] RELEASE`.
    pub release: Option<bool>,
}

/// Isolation levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// A table of `LOCK TABLES`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableLock {
    /// The table.
    pub name: ObjectName,
    /// Its name in statements under the lock.
    pub alias: Option<Ident>,
    /// `WRITE` (else `READ`).
    pub write: bool,
    /// `LOCAL` of `READ LOCAL`, `CONCURRENT` of `WRITE CONCURRENT`.
    pub local: bool,
}

/// One item of `SET`.
#[derive(Debug, Clone, PartialEq)]
pub enum SetItem {
    /// `@a = e`.
    User {
        /// The variable.
        name: String,
        /// Its value.
        value: Expr,
    },
    /// `a = e`, `GLOBAL a = e`, `@@global.a = e`. Without scope it is a routine's variable or the
    /// session's. A bare word on the right (`SET a = ON`) becomes a column name.
    System {
        /// The variable.
        variable: super::SystemVariable,
        /// Its value; `None` is `DEFAULT`.
        value: Option<Expr>,
    },
    /// `NAMES c [COLLATE d]`; without a set it is `DEFAULT`.
    Names {
        /// The character set.
        charset: Option<Ident>,
        /// The collation.
        collation: Option<Ident>,
    },
    /// `CHARACTER SET c`; `None` is `DEFAULT`.
    CharacterSet(Option<Ident>),
    /// `PASSWORD [FOR user] = ..`. (`SET [scope] TRANSACTION ..` is no item: [`Transaction::Set`].)
    Password {
        /// The account; the session's own when absent.
        user: Option<UserName>,
        /// `PASSWORD('..')`: the text is to be hashed; a plain string is already the hash.
        hashed: bool,
        /// The text.
        text: Vec<u8>,
    },
    /// `ROLE ..`, `DEFAULT ROLE ..`, by name.
    Role(Refused),
}

/// `SHOW`.
#[derive(Debug, Clone, PartialEq)]
pub struct Show {
    /// What.
    pub kind: ShowKind,
    /// The filter of its rows.
    pub filter: Option<ShowFilter>,
}

/// The tail of many SHOW statements.
#[derive(Debug, Clone, PartialEq)]
pub enum ShowFilter {
    /// `LIKE '..'`.
    Like(Vec<u8>),
    /// `WHERE e`.
    Where(Expr),
}

/// What is shown.
#[derive(Debug, Clone, PartialEq)]
pub enum ShowKind {
    /// `DATABASES`, `SCHEMAS`.
    Databases,
    /// `[FULL] TABLES [FROM db]`.
    Tables {
        /// `FULL`.
        full: bool,
        /// The database.
        schema: Option<Ident>,
    },
    /// `TABLE STATUS [FROM db]`.
    TableStatus(Option<Ident>),
    /// `OPEN TABLES [FROM db]`.
    OpenTables(Option<Ident>),
    /// `TRIGGERS [FROM db]`.
    Triggers(Option<Ident>),
    /// `EVENTS [FROM db]`.
    Events(Option<Ident>),
    /// `[FULL] COLUMNS FROM t`.
    Columns {
        /// `FULL`.
        full: bool,
        /// The table.
        table: ObjectName,
    },
    /// `INDEX FROM t`.
    Index(ObjectName),
    /// `CREATE TABLE t`.
    CreateTable(ObjectName),
    /// `CREATE PROCEDURE p`, `CREATE FUNCTION f`.
    CreateRoutine(RoutineKind, ObjectName),
    /// `CREATE VIEW v`.
    CreateView(ObjectName),
    /// `CREATE DATABASE [IF NOT EXISTS] d`.
    CreateDatabase {
        /// The database.
        name: Ident,
        /// `IF NOT EXISTS`.
        if_not_exists: bool,
    },
    /// `CREATE USER u`; the session's account when absent.
    CreateUser(Option<UserName>),
    /// `[scope] VARIABLES`; the session's when absent.
    Variables(Option<VariableScope>),
    /// `[scope] STATUS`.
    Status(Option<VariableScope>),
    /// `[FULL] PROCESSLIST`.
    Processlist {
        /// `FULL`.
        full: bool,
    },
    /// `WARNINGS [LIMIT ..]`.
    Warnings(Option<Limit>),
    /// `ERRORS [LIMIT ..]`.
    Errors(Option<Limit>),
    /// `COUNT(*) WARNINGS`.
    CountWarnings,
    /// `COUNT(*) ERRORS`.
    CountErrors,
    /// `GRANTS [FOR u]`; the session's account when absent.
    Grants(Option<UserName>),
    /// `[STORAGE] ENGINES`.
    Engines,
    /// `ENGINE e STATUS` and `MUTEX`, `LOGS`.
    Engine {
        /// The engine.
        name: Ident,
        /// The word after it, in capitals.
        what: String,
    },
    /// `CHARACTER SET`.
    CharacterSets,
    /// `COLLATION`.
    Collations,
    /// `PLUGINS`.
    Plugins,
    /// `PRIVILEGES`.
    Privileges,
    /// `PROCEDURE STATUS`, `FUNCTION STATUS`; `None` for those of packages.
    RoutineStatus(Option<RoutineKind>),
    /// `PROFILES`.
    Profiles,
    /// `MASTER STATUS`, `BINLOG STATUS`.
    MasterStatus,
    /// `BINARY LOGS`.
    BinaryLogs,
    /// `[ALL] SLAVES STATUS`, `SLAVE STATUS`, `REPLICA STATUS`.
    ReplicaStatus,
    /// Known only by name.
    Refused(Refused),
}

/// `EXPLAIN` and the like.
#[derive(Debug, Clone, PartialEq)]
pub enum Explain {
    /// `EXPLAIN statement`, `ANALYZE statement`.
    Statement {
        /// `ANALYZE`: it runs.
        analyze: bool,
        /// `EXTENDED`.
        extended: bool,
        /// `PARTITIONS`.
        partitions: bool,
        /// `FORMAT = JSON`.
        json: bool,
        /// The statement.
        statement: Box<Statement>,
    },
    /// `DESCRIBE t [column]`.
    Table {
        /// The table.
        table: ObjectName,
        /// A column or a pattern of columns.
        column: Option<Vec<u8>>,
    },
    /// `EXPLAIN FOR CONNECTION n`.
    Connection(Expr),
    /// `EXPLAIN ROUTE FOR 'text' ..`: where a gateway sends a statement.
    Route(ExplainRoute),
    /// `EXPLAIN ROUTE FOR CONNECTION n`: where a gateway has sent the statement of a client.
    RouteOf(u64),
}

/// What `EXPLAIN ROUTE` asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainRoute {
    /// The statement.
    pub text: Vec<u8>,
    /// `AS user`: whose it is.
    pub user: Option<String>,
    /// `IN database`: where its session is.
    pub database: Option<String>,
    /// `SERVICE name`: of which service.
    pub service: Option<String>,
}

/// Prepared statements in text.
#[derive(Debug, Clone, PartialEq)]
pub enum Prepared {
    /// `PREPARE s FROM e`.
    Prepare {
        /// Its name.
        name: Ident,
        /// Its text.
        from: Expr,
    },
    /// `EXECUTE s USING ..`.
    Execute {
        /// Its name.
        name: Ident,
        /// Its parameters.
        using: Vec<UsingValue>,
    },
    /// `EXECUTE IMMEDIATE e USING ..`.
    ExecuteImmediate {
        /// Its text.
        from: Expr,
        /// Its parameters.
        using: Vec<UsingValue>,
    },
    /// `DEALLOCATE PREPARE s`, `DROP PREPARE s`.
    Deallocate(Ident),
}

/// A parameter of EXECUTE.
#[derive(Debug, Clone, PartialEq)]
pub enum UsingValue {
    /// A value.
    Value(Expr),
    /// `DEFAULT`: that of the column.
    Default,
    /// `IGNORE`: as if the column were not listed.
    Ignore,
}

/// `'u'@'h'`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum UserName {
    /// `CURRENT_USER`.
    Current,
    /// By name; `%` when no host was written.
    Named {
        /// The user.
        user: String,
        /// The host.
        host: Option<String>,
    },
}

/// Accounts, roles, privileges.
#[derive(Debug, Clone, PartialEq)]
pub enum Account {
    /// `CREATE USER`.
    CreateUser {
        /// `OR REPLACE`.
        or_replace: bool,
        /// `IF NOT EXISTS`.
        if_not_exists: bool,
        /// The accounts.
        users: Vec<UserSpec>,
        /// Options for all of them.
        options: AccountOptions,
    },
    /// `ALTER USER`.
    AlterUser {
        /// `IF EXISTS`.
        if_exists: bool,
        /// The accounts.
        users: Vec<UserSpec>,
        /// What changes for all of them.
        options: AccountOptions,
    },
    /// `DROP USER`.
    DropUser {
        /// `IF EXISTS`.
        if_exists: bool,
        /// The accounts.
        users: Vec<UserName>,
    },
    /// `RENAME USER a TO b, ..`.
    RenameUser(Vec<(UserName, UserName)>),
    /// `GRANT .. ON .. TO ..`.
    Grant {
        /// The privileges.
        privileges: Vec<Privilege>,
        /// The target.
        on: GrantTarget,
        /// The accounts, perhaps with a new password.
        users: Vec<UserSpec>,
        /// `REQUIRE`, and limits of `WITH`.
        options: AccountOptions,
        /// `WITH GRANT OPTION`.
        grant_option: bool,
    },
    /// `REVOKE .. ON .. FROM ..`.
    Revoke {
        /// The privileges.
        privileges: Vec<Privilege>,
        /// The target.
        on: GrantTarget,
        /// The accounts.
        users: Vec<UserName>,
    },
    /// `REVOKE ALL PRIVILEGES, GRANT OPTION FROM ..`.
    RevokeAll(Vec<UserName>),
    /// Roles and proxies: by name.
    Role(Refused),
}

/// A user with its authentication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserSpec {
    /// The user.
    pub name: UserName,
    /// `IDENTIFIED ..`, each of which admits the user; empty if none was written.
    pub authentication: Vec<Authentication>,
}

/// `IDENTIFIED BY ..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authentication {
    /// `VIA plugin`, `WITH plugin`; the default plugin when absent.
    pub plugin: Option<Ident>,
    /// The password or hash.
    pub secret: Option<Secret>,
}

/// What comes with `IDENTIFIED`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Secret {
    /// A password in clear text.
    Password(Vec<u8>),
    /// A plugin's own string.
    Hash(Vec<u8>),
}

/// What may follow the users of `CREATE USER`, `ALTER USER`, `GRANT`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountOptions {
    /// `REQUIRE`: `NONE`, `SSL`, `X509`, or pairs like `SUBJECT` and text; capitals.
    pub require: Vec<(String, Vec<u8>)>,
    /// `WITH MAX_QUERIES_PER_HOUR n`: name in capitals and number.
    pub limits: Vec<(String, u64)>,
    /// `PASSWORD EXPIRE ..`, skipped.
    pub password_expire: Option<Refused>,
    /// `ACCOUNT LOCK` (true), `ACCOUNT UNLOCK` (false).
    pub locked: Option<bool>,
}

/// A privilege, perhaps on some columns only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Privilege {
    /// Its name in capitals, one blank between words: `SELECT`, `ALL`, `CREATE VIEW`,
    /// `GRANT OPTION`.
    pub name: String,
    /// The columns; the whole target when empty.
    pub columns: Vec<Ident>,
}

/// The target of a privilege.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantTarget {
    /// `*.*`.
    Global,
    /// `*`: the session's database.
    CurrentSchema,
    /// `db.*`.
    Schema(Ident),
    /// `t`, `db.t`.
    Table(ObjectName),
    /// `FUNCTION f`, `PROCEDURE p`, ...: the word in capitals and the name.
    Routine(String, ObjectName),
}

/// The lock of `FLUSH TABLES`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushLock {
    /// `WITH READ LOCK`.
    Read,
    /// `FOR EXPORT`.
    Export,
}

/// Administration of the server and maintenance of tables.
#[derive(Debug, Clone, PartialEq)]
pub enum Admin {
    /// `KILL ..`.
    Kill {
        /// `QUERY`: the statement, not the connection.
        query: bool,
        /// The connection's number.
        id: Expr,
    },
    /// `FLUSH ..`: each thing in capitals; `TABLES` with its tables.
    Flush {
        /// What is flushed.
        what: Vec<String>,
        /// The tables.
        tables: Vec<ObjectName>,
        /// How the tables are locked, if at all.
        lock: Option<FlushLock>,
    },
    /// `ANALYZE TABLE`, `CHECK TABLE`, ...
    Table {
        /// The verb.
        verb: TableVerb,
        /// The tables.
        tables: Vec<ObjectName>,
        /// The words after it, in capitals: `EXTENDED`, `QUICK`, ...
        options: Vec<String>,
    },
    /// `CHECKSUM TABLE`.
    Checksum {
        /// The tables.
        tables: Vec<ObjectName>,
        /// `QUICK`: the checksum stored with the table.
        is_quick: bool,
    },
    /// `SET SERVER name = 'word'`: what a gateway is to use a server for.
    SetServer {
        /// The server.
        name: String,
        /// The word, as written.
        wanted: Vec<u8>,
    },
    /// `RELOAD CONFIGURATION`: a gateway reads its settings file again.
    ReloadConfiguration,
    /// `SHUTDOWN`.
    Shutdown,
}

/// What is done to a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TableVerb {
    Analyze,
    Check,
    Optimize,
    Repair,
}
