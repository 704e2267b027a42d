//! The clients' work: the transactions of sysbench's `oltp_*` scripts, statement by statement, and
//! those of the contention suite, which lock the same few rows.
//!
//! Order, texts, defaults (10 point selects of one table, ranges of 100 rows) and the choice of
//! tables (random for each step) are those of sysbench 1.0.20. A step whose statements belong
//! together (DELETE and INSERT of one row) keeps table and row.

use std::fmt::Write;

use super::draw::Draw;

/// The rows of a range.
const RANGE_ROWS: u64 = 100;

/// How long a server sleeps, in seconds.
const SLEEP_SECONDS: f64 = 0.02;

/// Groups of eleven digits, separated by dashes.
const C_GROUPS: usize = 10;
const PAD_GROUPS: usize = 5;

/// A statement of the scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Statement {
    Begin,
    Commit,
    PointSelect,
    SimpleRange,
    SumRange,
    OrderRange,
    DistinctRange,
    IndexUpdate,
    NonIndexUpdate,
    Delete,
    Insert,
    SharedRead,
    /// On the server that is named like the table.
    NamedSleep,
    /// Likewise. A server that ignores hints knows it by the table.
    NamedSelect,
}

/// One step of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) statement: Statement,
    /// An alternative statement, sent in half of the cases, chosen each time.
    pub(super) other: Option<Statement>,
    /// Draws a table; otherwise keeps that of the previous statement.
    pub(super) new_table: bool,
    /// Draws a row, likewise.
    pub(super) new_row: bool,
}

/// A value for a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Number(u64),
    Text(Vec<u8>),
}

impl Step {
    /// Whether it uses the row of the previous step.
    pub(super) fn needs_previous(&self) -> bool {
        !self.new_row && !self.statement.names_no_table()
    }
}

impl Statement {
    /// The number of statements.
    pub(super) const COUNT: usize = 14;

    pub(super) fn index(self) -> usize {
        self as usize
    }

    /// Whether it is the same for all tables.
    pub(super) fn names_no_table(self) -> bool {
        matches!(self, Statement::Begin | Statement::Commit)
    }

    /// The statement on a table numbered from 1, with a question mark for each parameter.
    pub(super) fn text(self, table: u32) -> String {
        match self {
            Statement::Begin => "BEGIN".to_owned(),
            Statement::Commit => "COMMIT".to_owned(),
            Statement::PointSelect => format!("SELECT c FROM sbtest{table} WHERE id=?"),
            Statement::SimpleRange => {
                format!("SELECT c FROM sbtest{table} WHERE id BETWEEN ? AND ?")
            }
            Statement::SumRange => {
                format!("SELECT SUM(k) FROM sbtest{table} WHERE id BETWEEN ? AND ?")
            }
            Statement::OrderRange => {
                format!("SELECT c FROM sbtest{table} WHERE id BETWEEN ? AND ? ORDER BY c")
            }
            Statement::DistinctRange => {
                format!("SELECT DISTINCT c FROM sbtest{table} WHERE id BETWEEN ? AND ? ORDER BY c")
            }
            Statement::IndexUpdate => format!("UPDATE sbtest{table} SET k=k+1 WHERE id=?"),
            Statement::NonIndexUpdate => format!("UPDATE sbtest{table} SET c=? WHERE id=?"),
            Statement::Delete => format!("DELETE FROM sbtest{table} WHERE id=?"),
            Statement::Insert => {
                format!("INSERT INTO sbtest{table} (id, k, c, pad) VALUES (?, ?, ?, ?)")
            }
            Statement::SharedRead => {
                format!("SELECT c FROM sbtest{table} WHERE id=? LOCK IN SHARE MODE")
            }
            Statement::NamedSleep => {
                format!("SELECT /* plateau: server=db{table} */ SLEEP({SLEEP_SECONDS})")
            }
            Statement::NamedSelect => {
                format!("SELECT /* plateau: server=db{table} */ c FROM sbtest{table} WHERE id=?")
            }
        }
    }

    /// Draws the parameters of the statement on `row` into `values`.
    pub(super) fn parameters(self, row: u64, draw: &mut Draw, values: &mut Vec<Value>) {
        values.clear();
        match self {
            Statement::Begin | Statement::Commit | Statement::NamedSleep => {}
            Statement::PointSelect
            | Statement::NamedSelect
            | Statement::IndexUpdate
            | Statement::Delete
            | Statement::SharedRead => {
                values.push(Value::Number(row));
            }
            Statement::SimpleRange
            | Statement::SumRange
            | Statement::OrderRange
            | Statement::DistinctRange => {
                values.push(Value::Number(row));
                values.push(Value::Number(row + RANGE_ROWS - 1));
            }
            Statement::NonIndexUpdate => {
                values.push(Value::Text(draw.digits(C_GROUPS)));
                values.push(Value::Number(row));
            }
            Statement::Insert => {
                values.push(Value::Number(row));
                values.push(Value::Number(draw.row()));
                values.push(Value::Text(draw.digits(C_GROUPS)));
                values.push(Value::Text(draw.digits(PAD_GROUPS)));
            }
        }
    }
}

/// Replaces the question marks of a statement by literals.
pub(super) fn with_literals(text: &str, values: &[Value]) -> String {
    let mut parts = text.split('?');
    let mut statement = parts.next().unwrap_or_default().to_owned();
    for (part, value) in parts.zip(values) {
        match value {
            Value::Number(number) => write!(statement, "{number}"),
            // Digits and dashes need no escape.
            Value::Text(text) => write!(statement, "'{}'", String::from_utf8_lossy(text)),
        }
        .expect("a String takes all");
        statement.push_str(part);
    }
    statement
}

impl Step {
    /// The statements that it may send.
    pub(super) fn statements(&self) -> impl Iterator<Item = Statement> {
        std::iter::once(self.statement).chain(self.other)
    }
}

/// The steps of one transaction of `oltp_<workload>`, or of a workload of the contention suite;
/// `None` for an unknown one.
pub(super) fn transaction(workload: &str) -> Option<Vec<Step>> {
    use Statement as S;
    let reads = [
        (S::PointSelect, 10),
        (S::SimpleRange, 1),
        (S::SumRange, 1),
        (S::OrderRange, 1),
        (S::DistinctRange, 1),
    ];
    let writes = [(S::IndexUpdate, 1), (S::NonIndexUpdate, 1), (S::Delete, 1)];
    let steps: Vec<(Statement, usize)> = match workload {
        "lock_mixed" => return Some(lock_steps([S::SharedRead; 2], Some(S::IndexUpdate), true)),
        "lock_exclusive" => return Some(lock_steps([S::IndexUpdate; 2], None, true)),
        "lock_upgrade" => return Some(lock_steps([S::SharedRead, S::IndexUpdate], None, false)),
        "point_select" => return Some(steps([(S::PointSelect, 1)])),
        "named_sleep" => return Some(steps([(S::NamedSleep, 1)])),
        "named_select" => return Some(steps([(S::NamedSelect, 1)])),
        "update_index" => return Some(steps([(S::IndexUpdate, 1)])),
        "update_non_index" => return Some(steps([(S::NonIndexUpdate, 1)])),
        "read_only" => reads.into(),
        "write_only" => writes.into(),
        "read_write" => reads.into_iter().chain(writes).collect(),
        _ => return None,
    };
    let whole = [(S::Begin, 1)]
        .into_iter()
        .chain(steps)
        .chain([(S::Commit, 1)]);
    Some(self::steps(whole))
}

/// A transaction of two statements that lock a row each, or both the same one.
fn lock_steps(
    statements: [Statement; 2],
    other: Option<Statement>,
    second_row_is_new: bool,
) -> Vec<Step> {
    let [first, second] = statements;
    let step = |statement, other, new_row| Step {
        statement,
        other,
        new_table: false,
        new_row,
    };
    vec![
        step(Statement::Begin, None, false),
        step(first, other, true),
        step(second, other, second_row_is_new),
        step(Statement::Commit, None, false),
    ]
}

/// Expands (statement, how often); an INSERT follows each DELETE.
fn steps(counted: impl IntoIterator<Item = (Statement, usize)>) -> Vec<Step> {
    let mut steps = Vec::new();
    for (statement, count) in counted {
        for index in 0..count {
            steps.push(Step {
                statement,
                other: None,
                new_table: index == 0 && !statement.names_no_table(),
                new_row: !statement.names_no_table(),
            });
            if statement == Statement::Delete {
                steps.push(Step {
                    statement: Statement::Insert,
                    other: None,
                    new_table: false,
                    new_row: false,
                });
            }
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::draw::Distribution;

    #[test]
    fn transactions_have_the_scripts_length() {
        let length = |workload| transaction(workload).unwrap().len();
        assert_eq!(length("point_select"), 1);
        assert_eq!(length("named_select"), 1);
        assert_eq!(length("update_non_index"), 1);
        assert_eq!(length("read_only"), 16);
        assert_eq!(length("write_only"), 6);
        assert_eq!(length("read_write"), 20);
        assert_eq!(length("lock_upgrade"), 4);
        assert_eq!(transaction("bulk_insert"), None);
    }

    #[test]
    fn insert_puts_back_what_delete_took() {
        let steps = transaction("write_only").unwrap();
        let at = |statement| steps.iter().find(|step| step.statement == statement);
        assert!(at(Statement::Delete).unwrap().new_row);
        let insert = at(Statement::Insert).unwrap();
        assert!(!insert.new_row && !insert.new_table);
    }

    #[test]
    fn literals_take_the_place_of_question_marks() {
        let mut draw = Draw::new(1, 1000, Distribution::Uniform);
        let mut values = Vec::new();
        Statement::Insert.parameters(7, &mut draw, &mut values);
        let text = with_literals(&Statement::Insert.text(3), &values);
        assert!(text.starts_with("INSERT INTO sbtest3 (id, k, c, pad) VALUES (7, "));
        let strings: Vec<_> = text.split('\'').collect();
        assert_eq!((strings[1].len(), strings[3].len()), (119, 59));
        Statement::SimpleRange.parameters(7, &mut draw, &mut values);
        assert_eq!(
            with_literals(&Statement::SimpleRange.text(1), &values),
            "SELECT c FROM sbtest1 WHERE id BETWEEN 7 AND 106"
        );
        Statement::NamedSelect.parameters(7, &mut draw, &mut values);
        assert_eq!(
            with_literals(&Statement::NamedSelect.text(16), &values),
            "SELECT /* plateau: server=db16 */ c FROM sbtest16 WHERE id=7"
        );
    }
}
