//! The first byte of a packet from a client: which command it is.

/// The bytes that commands start with.
#[derive(Debug, Clone, Copy)]
pub struct CommandByte;

impl CommandByte {
    /// The client disconnects.
    pub const QUIT: u8 = 1;
    /// Change the database.
    pub const INIT_DB: u8 = 2;
    /// Run statements.
    pub const QUERY: u8 = 3;
    /// List columns.
    pub const FIELD_LIST: u8 = 4;
    /// FLUSH, in old clients.
    pub const REFRESH: u8 = 7;
    /// Stop the server.
    pub const SHUTDOWN: u8 = 8;
    /// One line of statistics.
    pub const STATISTICS: u8 = 9;
    /// SHOW PROCESSLIST, in old clients.
    pub const PROCESS_INFO: u8 = 10;
    /// KILL, in old clients.
    pub const PROCESS_KILL: u8 = 12;
    /// Dump the server's state to its log.
    pub const DEBUG: u8 = 13;
    /// Are you there?
    pub const PING: u8 = 14;
    /// Log in again.
    pub const CHANGE_USER: u8 = 17;
    /// Prepare a statement.
    pub const STMT_PREPARE: u8 = 22;
    /// Run a prepared statement.
    pub const STMT_EXECUTE: u8 = 23;
    /// A piece of a parameter.
    pub const STMT_SEND_LONG_DATA: u8 = 24;
    /// Close a prepared statement.
    pub const STMT_CLOSE: u8 = 25;
    /// Close a statement's cursor and drop its long data.
    pub const STMT_RESET: u8 = 26;
    /// Allow several statements in one query, or not.
    pub const SET_OPTION: u8 = 27;
    /// Rows from a cursor.
    pub const STMT_FETCH: u8 = 28;
    /// Reset the session to its initial state.
    pub const RESET_CONNECTION: u8 = 31;
    /// MariaDB: run a prepared statement for many rows of parameters.
    pub const STMT_BULK_EXECUTE: u8 = 0xFA;
}
