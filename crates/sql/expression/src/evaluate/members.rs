//! Filling and asking [`Members`], by the evaluator of the subquery's rows or of the left side.

use smallvec::SmallVec;
use value::ValueRef;

use super::Evaluator;
use crate::tree::{Class, Expression};
use crate::{Failure, Lookup, LookupKind, Members, Rows, append_class_key, compare_metered};

/// The cost of adding a row in addition to its values, in bytes read.
const MEMBER_COST: usize = 64;

impl Members {
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
}

fn append_row_key(values: &[ValueRef<'_>], classes: &[Class], key: &mut Vec<u8>) {
    for (value, class) in values.iter().zip(classes) {
        append_class_key(*value, *class, key);
    }
}
