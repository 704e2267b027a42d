//! [`Action`]: what a client does, and how it is sent.

use std::fmt;

/// One command of a client. `{id}` in a text stands for the client's number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// COM_QUERY.
    Query(String),
    /// COM_INIT_DB.
    InitDb(String),
    /// COM_PING.
    Ping,
    /// COM_FIELD_LIST of a table.
    FieldList(String),
    /// COM_SET_OPTION: several statements in a text are allowed, or not.
    SetOption(u16),
    /// COM_RESET_CONNECTION.
    Reset,
    /// COM_CHANGE_USER to an account without password, and into a database.
    ChangeUser(String, String),
    /// The client leaves, and logs in again.
    Reconnect,
    /// COM_STMT_PREPARE. The statement is called by its slot from now on.
    Prepare(usize, String),
    /// COM_STMT_EXECUTE.
    Execute(usize, Vec<Value>, Execution),
    /// COM_STMT_SEND_LONG_DATA for a parameter.
    LongData(usize, u16, String),
    /// COM_STMT_FETCH of so many rows.
    Fetch(usize, u32),
    /// COM_STMT_RESET.
    ResetStatement(usize),
    /// COM_STMT_CLOSE.
    Close(usize),
}

/// How a statement is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Execution {
    /// With the types of its values.
    Plain,
    /// The types are those of the execution before.
    Untyped,
    /// With a cursor.
    Cursor,
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Null,
    Number(i64),
    Text(String),
    /// It was sent as long data.
    Sent,
}

/// Slots of a client's prepared statements.
pub(super) const SLOTS: usize = 3;

/// No server gives a statement this number.
const NO_STATEMENT: u32 = 0x0077_7777;

pub(super) const QUERY: u8 = 3;
pub(super) const FIELD_LIST: u8 = 4;
pub(super) const CHANGE_USER: u8 = 17;
pub(super) const STMT_PREPARE: u8 = 22;
pub(super) const STMT_EXECUTE: u8 = 23;
pub(super) const STMT_SEND_LONG_DATA: u8 = 24;
pub(super) const STMT_CLOSE: u8 = 25;
pub(super) const STMT_FETCH: u8 = 28;
pub(super) const RESET_CONNECTION: u8 = 31;
pub(super) const INIT_DB: u8 = 2;
const PING: u8 = 14;
const STMT_RESET: u8 = 26;
const SET_OPTION: u8 = 27;

const LONGLONG: u8 = 8;
const BLOB: u8 = 252;
const VAR_STRING: u8 = 253;

/// utf8mb4_general_ci.
const COLLATION: u16 = 45;

/// What stands for the client's number.
pub(super) const OWN_NUMBER: &str = "{id}";

/// A client's numbers on the connection that it has now.
#[derive(Debug, Default, Clone)]
pub(super) struct Numbers {
    /// Of the connection.
    pub(super) connection: u32,
    /// Of its statements.
    pub(super) slots: [Option<u32>; SLOTS],
}

impl Numbers {
    pub(super) fn statement(&self, slot: usize) -> u32 {
        self.slots
            .get(slot)
            .copied()
            .flatten()
            .unwrap_or(NO_STATEMENT)
    }
}

impl Action {
    /// Whether a row may have the client's number.
    pub(super) fn shows_number(&self) -> bool {
        let Action::Query(text) = self else {
            return false;
        };
        text.contains("CONNECTION_ID()") || text.contains("@n")
    }

    /// Whether a column or an error may be called by it.
    pub(super) fn names_number(&self) -> bool {
        match self {
            Action::Query(text) | Action::Prepare(_, text) => text.contains(OWN_NUMBER),
            _ => false,
        }
    }

    /// Whether it is KILL.
    pub(super) fn kills(&self) -> bool {
        matches!(self, Action::Query(text) if text.starts_with("KILL"))
    }

    /// Whether it asks how many rows the action before it had.
    pub(super) fn asks_rows(&self) -> bool {
        matches!(self, Action::Query(text) if text.contains("FOUND_ROWS()"))
    }

    /// The command: its first byte and the rest. `None` for one that is no command.
    pub(super) fn encode(&self, numbers: &Numbers) -> Option<(u8, Vec<u8>)> {
        let text = |text: &String| {
            let number = numbers.connection.to_string();
            text.replace(OWN_NUMBER, &number).into_bytes()
        };
        let of = |slot: &usize| numbers.statement(*slot).to_le_bytes().to_vec();
        Some(match self {
            Action::Query(query) => (QUERY, text(query)),
            Action::InitDb(name) => (INIT_DB, name.clone().into_bytes()),
            Action::Ping => (PING, Vec::new()),
            Action::FieldList(table) => (FIELD_LIST, [table.as_bytes(), b"\0"].concat()),
            Action::SetOption(option) => (SET_OPTION, option.to_le_bytes().to_vec()),
            Action::Reset => (RESET_CONNECTION, Vec::new()),
            Action::ChangeUser(user, database) => (CHANGE_USER, change_user(user, database)),
            Action::Reconnect => return None,
            Action::Prepare(_, query) => (STMT_PREPARE, text(query)),
            Action::Execute(slot, values, execution) => {
                (STMT_EXECUTE, execute(of(slot), values, *execution))
            }
            Action::LongData(slot, parameter, bytes) => {
                let parameter = parameter.to_le_bytes();
                let body = [&*of(slot), &parameter, bytes.as_bytes()].concat();
                (STMT_SEND_LONG_DATA, body)
            }
            Action::Fetch(slot, count) => (STMT_FETCH, [&*of(slot), &count.to_le_bytes()].concat()),
            Action::ResetStatement(slot) => (STMT_RESET, of(slot)),
            Action::Close(slot) => (STMT_CLOSE, of(slot)),
        })
    }
}

fn change_user(user: &str, database: &str) -> Vec<u8> {
    let mut body = [user.as_bytes(), b"\0\0", database.as_bytes(), b"\0"].concat();
    body.extend_from_slice(&COLLATION.to_le_bytes());
    body.extend_from_slice(b"mysql_native_password\0");
    body
}

fn execute(mut body: Vec<u8>, values: &[Value], execution: Execution) -> Vec<u8> {
    body.push(u8::from(execution == Execution::Cursor));
    body.extend_from_slice(&1_u32.to_le_bytes());
    if values.is_empty() {
        return body;
    }
    let mut nulls = vec![0_u8; values.len().div_ceil(8)];
    for (place, _) in values.iter().enumerate().filter(|it| *it.1 == Value::Null) {
        nulls[place / 8] |= 1 << (place % 8);
    }
    body.extend_from_slice(&nulls);
    let is_typed = execution != Execution::Untyped;
    body.push(u8::from(is_typed));
    if is_typed {
        for value in values {
            let kind = match value {
                Value::Null | Value::Text(_) => VAR_STRING,
                Value::Number(_) => LONGLONG,
                Value::Sent => BLOB,
            };
            body.extend_from_slice(&[kind, 0]);
        }
    }
    for value in values {
        match value {
            Value::Null | Value::Sent => {}
            Value::Number(number) => body.extend_from_slice(&number.to_le_bytes()),
            Value::Text(text) => {
                body.push(u8::try_from(text.len()).expect("texts of programs are short"));
                body.extend_from_slice(text.as_bytes());
            }
        }
    }
    body
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Query(text) => f.write_str(text),
            Action::Prepare(slot, text) => write!(f, "Prepare({slot}, {text})"),
            other => write!(f, "{other:?}"),
        }
    }
}
