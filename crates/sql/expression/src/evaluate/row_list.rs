//! `(a, b) IN ((1, 2), (3, 4))`: row by row, or by a hash table once a long list has been searched
//! for some rows.
//!
//! Rows are equal if all their columns are, different if one column is, and NULL otherwise. So a
//! row with a NULL is never found by its key, but it can make the result NULL. Such rows are
//! compared one by one; so are all rows if the left side has a NULL.

use std::hash::BuildHasher;

use smallvec::SmallVec;
use value::ValueRef;

use super::Evaluator;
use super::list::SEARCHES_MIN;
use crate::frame::{ListPlaces, ListTable, Place};
use crate::key::COMPARE_COST;
use crate::tree::InRows;
use crate::{Failure, append_class_key, compare_metered};

/// The values of a row, converted to the classes of the comparison.
type Row<'a> = SmallVec<[ValueRef<'a>; 4]>;

impl<'a> Evaluator<'a> {
    /// `operands [NOT] IN (rows)`.
    pub(super) fn is_in_rows(&self, list: &'a InRows) -> Result<Option<bool>, Failure> {
        let mut left = Row::new();
        for (operand, class) in list.operands.iter().zip(&list.classes) {
            left.push(self.evaluate_as(operand, *class)?);
        }
        let has_null = left.iter().any(|value| value.is_null());
        let table = list.table.and_then(|number| self.frame.lists.get(number));
        let members = match table {
            Some(table) if !has_null => self.row_members(list, table)?,
            _ => None,
        };
        let found = match members {
            Some(members) => match self.find_row(list, members, &left)? {
                Place::Taken => Some(true),
                Place::Free(_) => self.search_rows(list, &left, members.partial.iter().copied())?,
            },
            None => {
                let count = stdx::to_u32(list.rows.len() / list.operands.len());
                self.search_rows(list, &left, 0..count)?
            }
        };
        Ok(found.map(|found| found != list.negated))
    }

    /// The values of a row of the list.
    fn row_of(&self, list: &'a InRows, number: u32) -> Result<Row<'a>, Failure> {
        let width = list.operands.len();
        let start = stdx::to_usize(number) * width;
        let mut row = Row::new();
        for (value, class) in list.rows[start..start + width].iter().zip(&list.classes) {
            row.push(self.evaluate_as(value, *class)?);
        }
        Ok(row)
    }

    /// Whether one of these rows equals the left side.
    fn search_rows(
        &self,
        list: &'a InRows,
        left: &[ValueRef<'a>],
        numbers: impl Iterator<Item = u32>,
    ) -> Result<Option<bool>, Failure> {
        let mut may_equal = false;
        for number in numbers {
            self.statement.spend(COMPARE_COST)?;
            match self.are_equal(list, left, &self.row_of(list, number)?)? {
                Some(true) => return Ok(Some(true)),
                Some(false) => {}
                None => may_equal = true,
            }
        }
        Ok(if may_equal { None } else { Some(false) })
    }

    /// Whether two rows are equal; `None` is NULL.
    fn are_equal(
        &self,
        list: &'a InRows,
        left: &[ValueRef<'a>],
        right: &[ValueRef<'a>],
    ) -> Result<Option<bool>, Failure> {
        let mut has_null = false;
        for ((left, right), class) in left.iter().zip(right).zip(&list.classes) {
            if left.is_null() || right.is_null() {
                has_null = true;
            } else if compare_metered(*left, *right, *class, self.statement)?.is_ne() {
                return Ok(Some(false));
            }
        }
        Ok(if has_null { None } else { Some(true) })
    }

    /// The hash table of a list's rows, once it pays.
    fn row_members(
        &self,
        list: &'a InRows,
        table: &'a ListTable,
    ) -> Result<Option<&'a ListPlaces>, Failure> {
        if let Some(members) = table.members.get() {
            return Ok(Some(members));
        }
        let searches = table.searches.get() + 1;
        table.searches.set(searches);
        if searches < SEARCHES_MIN {
            return Ok(None);
        }
        let count = list.rows.len() / list.operands.len();
        let mut members = ListPlaces::new(count);
        for number in 0..stdx::to_u32(count) {
            let row = self.row_of(list, number)?;
            if row.iter().any(|value| value.is_null()) {
                members.partial.push(number);
                continue;
            }
            if let Place::Free(at) = self.find_row(list, &members, &row)? {
                members.places[at] = number + 1;
            }
        }
        Ok(Some(table.members.get_or_init(|| members)))
    }

    /// Whether a row is one of the members added so far, and if not, its free place.
    fn find_row(
        &self,
        list: &'a InRows,
        members: &ListPlaces,
        row: &[ValueRef<'a>],
    ) -> Result<Place, Failure> {
        for value in row {
            self.spend_on(*value)?;
        }
        let hash = self.frame.by_key(
            |key| {
                for (value, class) in row.iter().zip(&list.classes) {
                    append_class_key(*value, *class, key);
                }
            },
            |key| members.hasher.hash_one(key),
        );
        let mut at = members.place_of(hash);
        loop {
            self.statement.spend(COMPARE_COST)?;
            let Some(number) = members.places[at].checked_sub(1) else {
                return Ok(Place::Free(at));
            };
            let member = self.row_of(list, number)?;
            if self.are_equal(list, row, &member)? == Some(true) {
                return Ok(Place::Taken);
            }
            at = members.behind(at);
        }
    }
}
