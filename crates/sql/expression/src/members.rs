//! [`Members`]: answers `IN`, `ANY` and `ALL` in place of a subquery's rows.
//!
//! `= ANY` and `<> ALL` look up a key of one or several columns. Any other operator of one column
//! compares with the least and the greatest value. A comparison with NULL is never certain. For one
//! column it suffices to know whether there is a NULL. A row of several columns with a NULL is kept
//! and compared if no key was found. All other rows are kept too, for left sides with a NULL. Equal
//! rows are kept once.

use smallvec::SmallVec;
use stdx::{ChunkedVec, KeyTable};
use value::{Value, ValueRef};

use crate::tree::{Class, Expression};
use crate::{Evaluator, Failure, Rows, append_class_key, compare_metered};

/// What is kept of a subquery's rows to answer a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    /// The kind.
    pub kind: LookupKind,
    /// The class in which each column is compared.
    pub classes: Box<[Class]>,
}

/// How a comparison with all rows of a subquery is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupKind {
    /// `= ANY`, `<> ALL`: the keys of the rows.
    Keys,
    /// Any other operator of one column: the least and the greatest value.
    Extremes,
}

/// Answers a comparison with all rows of a subquery.
#[derive(Debug, Default)]
pub struct Members {
    /// The rows' keys in the classes of the comparison.
    keys: KeyTable,
    /// For several columns: the kept rows with a NULL.
    partial: ChunkedVec<u32>,
    /// The least and the greatest value that is not NULL.
    extremes: Option<(Value, Value)>,
    /// For one column: one of the values is NULL.
    has_null: bool,
}

/// The cost of adding a row in addition to its values, in bytes read.
const MEMBER_COST: usize = 64;

impl Members {
    /// True if there was no row.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.extremes.is_none() && !self.has_null
    }

    /// Bytes of memory in use, without the kept rows.
    pub fn memory_bytes(&self) -> usize {
        let extremes = self.extremes.iter();
        self.keys.memory_bytes()
            + self.partial.memory_bytes()
            + extremes
                .map(|(a, b)| bytes_of(a) + bytes_of(b))
                .sum::<usize>()
    }

    /// Adds the subquery's current row, the values of `output`. It is also appended to `rows` if it
    /// may have to be compared.
    ///
    /// # Errors
    /// Those of the values, and if the statement has to end.
    pub fn take_row<'a>(
        &mut self,
        evaluator: &Evaluator<'a>,
        output: &'a [Expression],
        lookup: &Lookup,
        rows: &mut Rows,
    ) -> Result<(), Failure> {
        evaluator.statement.spend(MEMBER_COST)?;
        let mut values: SmallVec<[ValueRef<'_>; 4]> = SmallVec::new();
        let mut brought: SmallVec<[ValueRef<'_>; 4]> = SmallVec::new();
        for (expression, class) in output.iter().zip(&lookup.classes) {
            let value = evaluator.evaluate(expression)?;
            evaluator.spend_on(value)?;
            values.push(value);
            brought.push(evaluator.bring(value, &expression.column_type, *class));
        }
        let has_null = brought.iter().any(|value| value.is_null());
        if let ([value], [class]) = (&*brought, &*lookup.classes) {
            self.has_null |= has_null;
            if has_null {
                return Ok(());
            }
            if lookup.kind == LookupKind::Extremes {
                return self.take_extreme(evaluator, *value, *class);
            }
        }
        let is_new = evaluator.frame.by_key(
            |key| append_row_key(&brought, &lookup.classes, key),
            |key| self.keys.insert(key).1,
        );
        if is_new && 1 < values.len() {
            if has_null {
                self.partial.push(stdx::to_u32(rows.len()));
            }
            for value in values {
                rows.push(value);
            }
        }
        Ok(())
    }

    fn take_extreme(
        &mut self,
        evaluator: &Evaluator<'_>,
        value: ValueRef<'_>,
        class: Class,
    ) -> Result<(), Failure> {
        let Some((least, greatest)) = &mut self.extremes else {
            self.extremes = Some((value.to_value(), value.to_value()));
            return Ok(());
        };
        let statement = evaluator.statement;
        if compare_metered(value, least.as_ref(), class, statement)?.is_lt() {
            *least = value.to_value();
        } else if compare_metered(value, greatest.as_ref(), class, statement)?.is_gt() {
            *greatest = value.to_value();
        }
        Ok(())
    }

    /// True if one of the rows equals the left side, which has no NULL.
    pub(crate) fn has_key(
        &self,
        evaluator: &Evaluator<'_>,
        left: &[ValueRef<'_>],
        classes: &[Class],
    ) -> Result<bool, Failure> {
        evaluator.statement.spend(MEMBER_COST)?;
        for value in left {
            evaluator.spend_on(*value)?;
        }
        Ok(evaluator.frame.by_key(
            |key| append_row_key(left, classes, key),
            |key| self.keys.find(key).is_some(),
        ))
    }

    /// The kept rows with a NULL.
    pub(crate) fn partial(&self) -> &ChunkedVec<u32> {
        &self.partial
    }

    /// The least and the greatest value.
    pub(crate) fn extremes(&self) -> Option<(ValueRef<'_>, ValueRef<'_>)> {
        let extremes = self.extremes.as_ref();
        extremes.map(|(least, greatest)| (least.as_ref(), greatest.as_ref()))
    }

    /// True if one of the values of the only column is NULL.
    pub(crate) fn has_null(&self) -> bool {
        self.has_null
    }
}

fn append_row_key(values: &[ValueRef<'_>], classes: &[Class], key: &mut Vec<u8>) {
    for (value, class) in values.iter().zip(classes) {
        append_class_key(*value, *class, key);
    }
}

fn bytes_of(value: &Value) -> usize {
    let text = match value {
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    size_of::<Value>() + text
}
