//! Subqueries inside expressions; their results are already in the frame.

use errcode::{ClientError, ER_INTERNAL_ERROR};
use smallvec::SmallVec;
use value::ValueRef;

use super::Evaluator;
use crate::key::COMPARE_COST;
use crate::tree::{CompareOperator, Quantified};
use crate::{Failure, Members, SubqueryResult, compare_metered};

impl<'a> Evaluator<'a> {
    /// The value of a scalar subquery, or NULL if it found no row; or the result of a stored
    /// function.
    pub(super) fn scalar(&self, number: usize) -> ValueRef<'a> {
        match &self.frame.subqueries[number] {
            SubqueryResult::Scalar(value) => value.as_ref(),
            _ => ValueRef::Null,
        }
    }

    /// Whether a subquery found a row.
    pub(super) fn exists(&self, number: usize) -> bool {
        matches!(self.frame.subqueries[number], SubqueryResult::Exists(true))
    }

    /// `left op ANY (..)`, `left op ALL (..)`.
    pub(super) fn quantified(&self, quantified: &'a Quantified) -> Result<Option<bool>, Failure> {
        let SubqueryResult::Set { slot, members } = &self.frame.subqueries[quantified.subquery]
        else {
            let what = "a subquery is read that was not run";
            return Err(Box::new(ClientError::new(ER_INTERNAL_ERROR, &[&what])));
        };
        let slot = *slot;
        let is_empty = match members {
            Some(members) => members.is_empty(),
            None => self.frame.rows(slot).is_empty(),
        };
        if is_empty {
            return Ok(Some(quantified.is_all));
        }
        let mut left: SmallVec<[ValueRef<'_>; 4]> = SmallVec::new();
        for (expression, class) in quantified.left.iter().zip(&quantified.classes) {
            left.push(self.evaluate_as(expression, *class)?);
        }
        match (members.as_deref(), left.as_slice()) {
            (Some(members), [value]) => self.among_values(quantified, *value, members),
            (Some(members), left) => self.among_rows(quantified, left, slot, members),
            (None, left) => self.among_all(quantified, left, slot),
        }
    }

    /// Compares a value with a subquery's single column.
    fn among_values(
        &self,
        quantified: &'a Quantified,
        value: ValueRef<'a>,
        members: &Members,
    ) -> Result<Option<bool>, Failure> {
        if value.is_null() {
            return Ok(None);
        }
        let is_all = quantified.is_all;
        let is_decided = match members.extremes() {
            Some((least, greatest)) => {
                let class = quantified.classes[0];
                let holds = |other| {
                    let order = compare_metered(value, other, class, self.statement)?;
                    Ok::<_, Failure>(quantified.operator.holds(order) != is_all)
                };
                holds(least)? || holds(greatest)?
            }
            None => members.has_key(self, &[value], &quantified.classes)?,
        };
        Ok(match is_decided {
            true => Some(!is_all),
            false if members.has_null() => None,
            false => Some(is_all),
        })
    }

    /// Looks up a row of several values.
    fn among_rows(
        &self,
        quantified: &'a Quantified,
        left: &[ValueRef<'a>],
        slot: usize,
        members: &Members,
    ) -> Result<Option<bool>, Failure> {
        if left.iter().any(|value| value.is_null()) {
            return self.among_all(quantified, left, slot);
        }
        if members.has_key(self, left, &quantified.classes)? {
            return Ok(Some(!quantified.is_all));
        }
        for place in 0..members.partial().len() {
            let row = stdx::to_usize(members.partial()[place]);
            if self.compare_row(quantified, left, slot, row)?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(quantified.is_all))
    }

    /// Compares with each row.
    fn among_all(
        &self,
        quantified: &'a Quantified,
        left: &[ValueRef<'a>],
        slot: usize,
    ) -> Result<Option<bool>, Failure> {
        let mut has_unknown = false;
        for row in 0..self.frame.rows(slot).len() {
            match self.compare_row(quantified, left, slot, row)? {
                Some(holds) if holds != quantified.is_all => return Ok(Some(holds)),
                Some(_) => {}
                None => has_unknown = true,
            }
        }
        Ok(if has_unknown {
            None
        } else {
            Some(quantified.is_all)
        })
    }

    /// Whether the comparison of the left side with a row is true. Rows of several columns are
    /// equal if all columns are, and different if one is.
    fn compare_row(
        &self,
        quantified: &'a Quantified,
        left: &[ValueRef<'a>],
        slot: usize,
        row: usize,
    ) -> Result<Option<bool>, Failure> {
        let wants_equal = quantified.operator == CompareOperator::Equal;
        let mut has_unknown = false;
        for (column, class) in quantified.classes.iter().enumerate() {
            self.statement.spend(COMPARE_COST)?;
            let value = self.frame.rows(slot).get(row, column);
            let value = self
                .domain()
                .bring(value, &quantified.types[column], *class);
            if left[column].is_null() || value.is_null() {
                has_unknown = true;
                continue;
            }
            let order = compare_metered(left[column], value, *class, self.statement)?;
            let holds = quantified.operator.holds(order);
            if left.len() == 1 || holds != wants_equal {
                return Ok(Some(holds));
            }
        }
        Ok(if has_unknown { None } else { Some(wants_equal) })
    }
}
