//! Syntax errors: their numbers, and the places that their texts quote.

use errcode::ErrorCode;
use settings::SqlMode;
use thiserror::Error;

use crate::token::{self, Kind, Lexer};

/// Why a text is not a statement.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("error {} near '{}' at line {}", self.code(), self.near, self.line)]
pub struct SyntaxError {
    /// The kind of error.
    pub kind: SyntaxErrorKind,
    /// The text from the unexpected token on, as messages quote it ([`quoted`]).
    pub near: String,
    /// The line of that token, from 1.
    pub line: u32,
    /// The offset of that token.
    pub offset: usize,
    /// For [`SyntaxErrorKind::Routine`]: the name at that place, quotes removed.
    pub name: String,
}

/// Kinds of [`SyntaxError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyntaxErrorKind {
    /// An unexpected token: error 1064.
    Unexpected,
    /// Only blanks: error 1065.
    Empty,
    /// Nested deeper than the limits allow: error 1436.
    TooDeep,
    /// A list of more than [`LIST_LEN_MAX`](super::LIST_LEN_MAX) items: error 1235.
    TooLong,
    /// The same for the columns of a SELECT: error 1117.
    TooManyColumns,
    /// A name that is not UTF-8: error 1300.
    NotUtf8,
    /// The caller stopped the parser: error 1317, unless it has another.
    Stopped,
    /// A stored program that contradicts itself.
    Routine(RoutineError),
}

/// An error of a stored program that is grammatically correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoutineError {
    /// `LEAVE` of no label: error 1308.
    LeaveLabel,
    /// `ITERATE` of no loop's label: error 1308.
    IterateLabel,
    /// A label within another of its name: error 1309.
    LabelAgain,
    /// A label at the end that is not the one at the start: error 1310.
    EndLabel,
    /// `RETURN` in a procedure: error 1313.
    Return,
    /// A statement that no routine may hold: error 1314.
    Statement(&'static str),
    /// A statement that no function may hold: error 1336.
    StatementInFunction(&'static str),
    /// A definition of a routine within a routine: error 1303.
    Create(&'static str),
    /// A change of a routine within a routine: error 1357.
    Change(&'static str),
    /// A condition that was not declared: error 1319.
    UndeclaredCondition,
    /// A function without `RETURN`: error 1320.
    NoReturn,
    /// A cursor of a SELECT with INTO: error 1323.
    CursorInto,
    /// A cursor that was not declared: error 1324.
    UndeclaredCursor,
    /// A variable that was not declared: error 1327.
    UndeclaredVariable,
    /// Two parameters of one name: error 1330.
    ParameterAgain,
    /// Two variables of one name: error 1331.
    VariableAgain,
    /// Two conditions of one name: error 1332.
    ConditionAgain,
    /// Two cursors of one name: error 1333.
    CursorAgain,
    /// A variable or condition declared too late: error 1337.
    VariableLate,
    /// A cursor declared too late: error 1338.
    CursorLate,
    /// Two handlers of one block for one condition: error 1413.
    HandlerAgain,
    /// An invalid SQLSTATE: error 1407.
    BadState,
    /// An item set twice by SIGNAL: error 1641.
    SignalItemAgain,
    /// SIGNAL of a condition that has no SQLSTATE: error 1646.
    SignalCondition,
    /// A function that returns rows to the client: error 1415.
    ResultSet,
    /// A statement that commits, in a function: error 1422.
    Commit,
    /// `SET autocommit` in a function: error 1445.
    Autocommit,
    /// Something valid that is not supported here: error 1235.
    Unsupported(&'static str),
    /// A cursor that is opened with more or fewer values than it has parameters: error 4080.
    CursorParameterCount,
}

impl RoutineError {
    /// MariaDB's number of the error.
    #[must_use]
    pub fn code(self) -> ErrorCode {
        match self {
            Self::Create(_) => errcode::ER_SP_NO_RECURSIVE_CREATE,
            Self::LeaveLabel | Self::IterateLabel => errcode::ER_SP_LILABEL_MISMATCH,
            Self::LabelAgain => errcode::ER_SP_LABEL_REDEFINE,
            Self::EndLabel => errcode::ER_SP_LABEL_MISMATCH,
            Self::Return => errcode::ER_SP_BADRETURN,
            Self::Statement(_) => errcode::ER_SP_BADSTATEMENT,
            Self::UndeclaredCondition => errcode::ER_SP_COND_MISMATCH,
            Self::NoReturn => errcode::ER_SP_NORETURN,
            Self::CursorInto => errcode::ER_SP_BAD_CURSOR_SELECT,
            Self::UndeclaredCursor => errcode::ER_SP_CURSOR_MISMATCH,
            Self::UndeclaredVariable => errcode::ER_SP_UNDECLARED_VAR,
            Self::ParameterAgain => errcode::ER_SP_DUP_PARAM,
            Self::VariableAgain => errcode::ER_SP_DUP_VAR,
            Self::ConditionAgain => errcode::ER_SP_DUP_COND,
            Self::CursorAgain => errcode::ER_SP_DUP_CURS,
            Self::StatementInFunction(_) => errcode::ER_STMT_NOT_ALLOWED_IN_SF_OR_TRG,
            Self::VariableLate => errcode::ER_SP_VARCOND_AFTER_CURSHNDLR,
            Self::CursorLate => errcode::ER_SP_CURSOR_AFTER_HANDLER,
            Self::Change(_) => errcode::ER_SP_NO_DROP_SP,
            Self::BadState => errcode::ER_SP_BAD_SQLSTATE,
            Self::HandlerAgain => errcode::ER_SP_DUP_HANDLER,
            Self::ResultSet => errcode::ER_SP_NO_RETSET,
            Self::SignalItemAgain => errcode::ER_DUP_SIGNAL_SET,
            Self::SignalCondition => errcode::ER_SIGNAL_BAD_CONDITION_TYPE,
            Self::Commit => errcode::ER_COMMIT_NOT_ALLOWED_IN_SF_OR_TRG,
            Self::Autocommit => errcode::ER_SP_CANT_SET_AUTOCOMMIT,
            Self::Unsupported(_) => errcode::ER_NOT_SUPPORTED_YET,
            Self::CursorParameterCount => errcode::ER_WRONG_PARAMCOUNT_TO_CURSOR,
        }
    }
}

/// Where and why the parser stopped.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fail {
    pub(super) kind: SyntaxErrorKind,
    pub(super) offset: usize,
}

/// How many bytes of the text a message quotes: MariaDB's `%-.80T`.
const NEAR_BYTES_MAX: usize = 80;
/// What replaces the rest of a longer text.
const MORE: &str = "...";

/// The rest of a statement as messages quote it. More than 80 bytes are cut between characters and
/// end in `...`. Characters beyond the first 65,536 become `?`, as in MariaDB, whose messages are
/// in utf8mb3.
pub fn quoted(rest: &[u8]) -> String {
    // One more character than can be quoted, to see whether there are more.
    let head = rest.get(..rest.len().min(4 * NEAR_BYTES_MAX + 4));
    let mut near = String::new();
    for letter in String::from_utf8_lossy(head.unwrap_or_default()).chars() {
        near.push(if letter.len_utf8() == 4 { '?' } else { letter });
        if near.len() > NEAR_BYTES_MAX {
            near.truncate(near.floor_char_boundary(NEAR_BYTES_MAX - MORE.len()));
            near.push_str(MORE);
            break;
        }
    }
    near
}

impl SyntaxError {
    pub(super) fn new(text: &[u8], fail: Fail) -> SyntaxError {
        let offset = fail.offset.min(text.len());
        let (before, rest) = text.split_at(offset);
        let lines = before.iter().filter(|&&byte| byte == b'\n').count();
        let line = u32::try_from(lines).unwrap_or(u32::MAX - 1) + 1;
        SyntaxError {
            kind: fail.kind,
            near: quoted(rest),
            line,
            offset,
            name: name_at(rest),
        }
    }

    /// MariaDB's number of the error.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self.kind {
            SyntaxErrorKind::Unexpected => errcode::ER_PARSE_ERROR,
            SyntaxErrorKind::Empty => errcode::ER_EMPTY_QUERY,
            SyntaxErrorKind::TooDeep => errcode::ER_STACK_OVERRUN_NEED_MORE,
            SyntaxErrorKind::TooLong => errcode::ER_NOT_SUPPORTED_YET,
            SyntaxErrorKind::TooManyColumns => errcode::ER_TOO_MANY_FIELDS,
            SyntaxErrorKind::NotUtf8 => errcode::ER_INVALID_CHARACTER_STRING,
            SyntaxErrorKind::Stopped => errcode::ER_QUERY_INTERRUPTED,
            SyntaxErrorKind::Routine(error) => error.code(),
        }
    }
}

/// The name at the start of a text, quotes removed.
fn name_at(text: &[u8]) -> String {
    let token = Lexer::new(text, SqlMode::default()).next_token();
    let raw = token.span.of(text);
    let value = match token.kind {
        Kind::Quoted => token::name_value(raw),
        Kind::String => token::string_value(raw, SqlMode::default()),
        _ => raw.into(),
    };
    String::from_utf8_lossy(&value).into_owned()
}
