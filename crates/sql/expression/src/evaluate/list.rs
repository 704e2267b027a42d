//! `IN (list)`: member by member, or by a hash table once a long list has been searched for some
//! rows.

use std::hash::BuildHasher;

use value::ValueRef;

use super::Evaluator;
use crate::frame::{ListPlaces, ListTable, Place};
use crate::key::COMPARE_COST;
use crate::tree::{InList, ListMembers};
use crate::{Failure, append_class_key, compare_metered};

/// A table costs about as much as this many searches of the list.
pub(super) const SEARCHES_MIN: u32 = 8;

impl<'a> Evaluator<'a> {
    /// `operand [NOT] IN (list)`.
    pub(super) fn is_in(&self, list: &'a InList) -> Result<Option<bool>, Failure> {
        let operand = self.evaluate_as(&list.operand, list.class)?;
        if operand.is_null() {
            return Ok(None);
        }
        let number = list.table;
        if let Some(table) = number.and_then(|number| self.frame.lists.get(number))
            && let Some(members) = self.members_of(list, table)?
        {
            return Ok(match self.find(list, members, operand)? {
                Place::Taken => Some(!list.negated),
                Place::Free(_) if members.has_null => None,
                Place::Free(_) => Some(list.negated),
            });
        }
        let mut has_null = false;
        for number in 0..list.list.len() {
            self.statement.spend(COMPARE_COST)?;
            let candidate = self.member(list, number)?;
            if candidate.is_null() {
                has_null = true;
            } else if compare_metered(operand, candidate, list.class, self.statement)?.is_eq() {
                return Ok(Some(!list.negated));
            }
        }
        Ok(if has_null { None } else { Some(list.negated) })
    }

    /// The hash table of a list's members, once it pays.
    fn members_of(
        &self,
        list: &'a InList,
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
        let mut members = ListPlaces::new(list.list.len());
        for number in 0..list.list.len() {
            let member = self.member(list, number)?;
            if member.is_null() {
                members.has_null = true;
                continue;
            }
            if let Place::Free(at) = self.find(list, &members, member)? {
                members.places[at] = stdx::to_u32(number + 1);
            }
        }
        Ok(Some(table.members.get_or_init(|| members)))
    }

    /// Whether a value is one of the members added so far, and if not, its free place.
    fn find(
        &self,
        list: &'a InList,
        members: &ListPlaces,
        value: ValueRef<'a>,
    ) -> Result<Place, Failure> {
        self.spend_on(value)?;
        let hash = self.frame.by_key(
            |key| append_class_key(value, list.class, key),
            |key| members.hasher.hash_one(key),
        );
        let mut at = members.place_of(hash);
        loop {
            self.statement.spend(COMPARE_COST)?;
            let Some(number) = members.places[at].checked_sub(1) else {
                return Ok(Place::Free(at));
            };
            let member = self.member(list, stdx::to_usize(number))?;
            if compare_metered(value, member, list.class, self.statement)?.is_eq() {
                return Ok(Place::Taken);
            }
            at = members.behind(at);
        }
    }

    /// A member, converted to the list's class.
    fn member(&self, list: &'a InList, number: usize) -> Result<ValueRef<'a>, Failure> {
        match &list.list {
            ListMembers::Expressions(members) => self.evaluate_as(&members[number], list.class),
            ListMembers::Constants(members) => {
                let (value, column_type) = members.value(number);
                Ok(self.bring(value, column_type, list.class))
            }
        }
    }
}
