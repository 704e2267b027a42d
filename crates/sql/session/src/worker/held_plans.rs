//! Plans that fragments of programs keep, of all programs of one worker together.
//!
//! A fragment holds a [`Ticket`] for the plan that it ran last. The plans lie here, so one limit
//! holds for all programs, however many and long. A ticket whose plan was evicted finds nothing,
//! and its fragment is planned again.
//!
//! (I1) At most [`HELD_COUNT_MAX`] plans are kept. A full list evicts by the clock algorithm: the
//! first plan not used since the hand last passed.
//! (I2) Each plan gets a number of its own, never reused: a ticket never finds a later plan.

use std::rc::Rc;

use crate::worker::clock_hand::ClockHand;
use crate::worker::plan_cache::{PLAN_COUNT_MAX, SharedPlan};

/// Plans that a worker's programs keep: as many as its other statements do.
const HELD_COUNT_MAX: usize = PLAN_COUNT_MAX;

/// A plan that a fragment keeps.
#[derive(Debug, Clone)]
pub(crate) struct FragmentPlan {
    /// The types of the variables and the session's settings.
    pub(crate) key: Rc<[u8]>,
    pub(crate) schema_version: u64,
    pub(crate) shared: Rc<SharedPlan>,
}

/// How a fragment finds its plan again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    index: usize,
    number: u64,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    plan: FragmentPlan,
    is_used: bool,
}

/// The plans of one worker's programs.
#[derive(Debug, Default)]
pub(crate) struct HeldPlans {
    entries: Vec<Entry>,
    /// The clock's hand: the entry that is looked at next for eviction.
    hand: ClockHand,
    /// How many plans were kept so far.
    count: u64,
}

impl HeldPlans {
    /// The plan of a ticket, if it is still kept and was made under this key and for this schema.
    pub(crate) fn find(
        &mut self,
        ticket: Option<Ticket>,
        key: &[u8],
        schema_version: u64,
    ) -> Option<Rc<SharedPlan>> {
        let entry = self.entry(ticket?)?;
        entry.is_used = true;
        let plan = &entry.plan;
        let is_it = plan.schema_version == schema_version && *plan.key == *key;
        is_it.then(|| Rc::clone(&plan.shared))
    }

    /// Keeps a plan, in place of the fragment's last one if that is still kept.
    pub(crate) fn put(&mut self, last: Option<Ticket>, plan: FragmentPlan) -> Ticket {
        let known = last.filter(|ticket| self.entry(*ticket).is_some());
        self.count += 1;
        let number = self.count;
        let entry = Entry {
            number,
            plan,
            is_used: true,
        };
        let index = match known {
            Some(ticket) => ticket.index,
            None if HELD_COUNT_MAX <= self.entries.len() => {
                self.hand.victim(&mut self.entries, |it| &mut it.is_used)
            }
            None => self.entries.len(),
        };
        match self.entries.get_mut(index) {
            Some(place) => *place = entry,
            None => self.entries.push(entry),
        }
        assert!(self.entries.len() <= HELD_COUNT_MAX);
        Ticket { index, number }
    }

    fn entry(&mut self, ticket: Ticket) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(ticket.index)?;
        (entry.number == ticket.number).then_some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::CountedStatement;

    fn plan(key: &[u8]) -> FragmentPlan {
        let statement = syntax::parse::parse(b"SELECT 1", settings::SqlMode::default()).unwrap();
        let names = planner::FixedNames::default();
        let settings = planner::Settings::default();
        let plan = planner::plan(&statement, b"SELECT 1", &names, &settings).unwrap();
        FragmentPlan {
            key: key.into(),
            schema_version: 1,
            shared: SharedPlan::new(plan, CountedStatement::Select),
        }
    }

    #[test]
    fn a_ticket_finds_its_plan_and_no_other() {
        let mut plans = HeldPlans::default();
        let first = plans.put(None, plan(b"a"));
        assert!(plans.find(Some(first), b"a", 1).is_some());
        assert!(plans.find(Some(first), b"b", 1).is_none(), "other types");
        assert!(plans.find(Some(first), b"a", 2).is_none(), "another schema");
        assert!(plans.find(None, b"a", 1).is_none());
        let second = plans.put(Some(first), plan(b"b"));
        assert!(plans.find(Some(first), b"a", 1).is_none());
        assert!(plans.find(Some(second), b"b", 1).is_some());
        assert_eq!(plans.entries.len(), 1, "in the first one's place");
    }

    #[test]
    fn what_is_not_used_goes_when_there_are_too_many() {
        let mut plans = HeldPlans::default();
        // The first round clears all marks, and the first entry is evicted.
        plans.put(None, plan(b""));
        let kept = plans.put(None, plan(b"kept"));
        let other = plans.put(None, plan(b"other"));
        for _ in 0..3 * HELD_COUNT_MAX {
            plans.put(None, plan(b""));
            assert!(plans.find(Some(kept), b"kept", 1).is_some());
        }
        assert!(plans.find(Some(other), b"other", 1).is_none());
        assert_eq!(plans.entries.len(), HELD_COUNT_MAX);
    }
}
