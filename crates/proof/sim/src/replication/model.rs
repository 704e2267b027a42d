//! What the tables of a node must have at a place, made of the write sets up to it alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::group::Event;

/// The rows of each table, as bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) tables: BTreeMap<String, BTreeSet<Vec<u8>>>,
}

impl Model {
    /// The tables behind the first `count` places.
    pub(crate) fn at(events: &[Arc<Event>], count: u64) -> Result<Self, String> {
        let mut model = Self::default();
        for event in events.iter().take(stdx::to_usize(count)) {
            if !event.is_refused {
                model.apply(event)?;
            }
        }
        Ok(model)
    }

    /// The same, with an empty table for each that `other` has and this has not.
    pub(crate) fn tables_of(&self, other: &Self) -> Self {
        let mut tables = self.tables.clone();
        for name in other.tables.keys() {
            tables.entry(name.clone()).or_default();
        }
        Self { tables }
    }

    /// Rows that only one of both has, by table.
    pub(crate) fn difference(&self, other: &Self) -> String {
        let of = |model: &Self, name: &String| model.tables.get(name).cloned().unwrap_or_default();
        let tables = other.tables.keys().map(|name| {
            let (own, others) = (of(self, name), of(other, name));
            let missing = own.difference(&others).count();
            let more = others.difference(&own).count();
            format!("{name}: {missing} missing, {more} more")
        });
        tables.collect::<Vec<_>>().join("; ")
    }

    /// Each row that a change has before it must be there, byte by byte.
    fn apply(&mut self, event: &Event) -> Result<(), String> {
        let place = event.position.seqno;
        for change in &event.writes.changes {
            let rows = self
                .tables
                .entry(change.table.name.table.clone())
                .or_default();
            if let Some(before) = &change.before
                && !rows.remove(&**before)
            {
                return Err(format!("place {place} changes a row that is not there"));
            }
            if let Some(after) = &change.after
                && !rows.insert(after.to_vec())
            {
                return Err(format!("place {place} makes a row that is there"));
            }
        }
        Ok(())
    }
}
