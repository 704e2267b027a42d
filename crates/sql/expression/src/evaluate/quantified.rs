//! Subqueries inside expressions: what they found is in the frame already.

use value::ValueRef;

use super::Evaluator;
use crate::tree::{Class, CompareOperator, Quantified};
use crate::{Failure, Members, SubqueryResult, append_class_key, compare_in};

impl<'a> Evaluator<'a> {
    /// The value of a scalar subquery; NULL where it found no row.
    pub(super) fn scalar(&self, number: usize) -> ValueRef<'a> {
        match &self.frame.subqueries[number] {
            SubqueryResult::Scalar(value) => value.as_ref(),
            _ => ValueRef::Null,
        }
    }

    /// Whether a subquery found a row.
    pub(super) fn exists(&self, number: usize) -> bool {
        self.frame.subqueries[number] == SubqueryResult::Exists(true)
    }

    /// `left op ANY (..)`, `left op ALL (..)`.
    pub(super) fn quantified(&self, quantified: &'a Quantified) -> Result<Option<bool>, Failure> {
        let SubqueryResult::Set { slot, members } = &self.frame.subqueries[quantified.subquery]
        else {
            unreachable!("the operator ran the subquery before");
        };
        let slot = *slot;
        let rows = self.frame.rows(slot);
        if rows.is_empty() {
            return Ok(Some(quantified.is_all));
        }
        let mut left = Vec::with_capacity(quantified.left.len());
        for (expression, class) in quantified.left.iter().zip(&quantified.classes) {
            left.push(self.evaluate_as(expression, *class)?);
        }
        if let ([value], Some(members)) = (left.as_slice(), members) {
            let found = is_member(*value, quantified.classes[0], members);
            return Ok(found.map(|found| found != quantified.is_all));
        }
        let mut has_unknown = false;
        for row in 0..rows.len() {
            match self.compare_row(quantified, &left, slot, row)? {
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

    /// Whether the left side compares with a row as asked: rows of several columns are equal if
    /// all are, different if one is.
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
            let value = self.frame.rows(slot).get(row, column);
            let value = self
                .domain()
                .bring(value, &quantified.types[column], *class);
            if left[column].is_null() || value.is_null() {
                has_unknown = true;
                continue;
            }
            let holds = quantified
                .operator
                .holds(compare_in(left[column], value, *class));
            if left.len() == 1 || holds != wants_equal {
                return Ok(Some(holds));
            }
        }
        Ok(if has_unknown { None } else { Some(wants_equal) })
    }
}

/// Whether a value is among the members; `None` is NULL.
fn is_member(value: ValueRef<'_>, class: Class, members: &Members) -> Option<bool> {
    if value.is_null() {
        return None;
    }
    let mut key = Vec::with_capacity(32);
    append_class_key(value, class, &mut key);
    match members.keys.contains(key.as_slice()) {
        true => Some(true),
        false if members.has_null => None,
        false => Some(false),
    }
}
