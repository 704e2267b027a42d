//! [`Row`]: what one worker, or all of them, have counted of one text and one user.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::{Tally, Who};

/// See the module's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The digest's number and its text as people may see it; `None`: of texts that were not read,
    /// and of those that there was no room for.
    pub text: Option<(u64, Arc<[u8]>)>,
    /// Who has sent them; `None`: those that there was no room for.
    pub who: Option<Arc<Who>>,
    /// Their numbers.
    pub tally: Tally,
}

/// The rows of several workers, with one for each text and user.
pub fn sum(rows: impl IntoIterator<Item = Row>) -> Vec<Row> {
    type Key = (Option<u64>, Option<Arc<Who>>);
    let mut places: HashMap<Key, usize, RandomState> = HashMap::default();
    let mut sums: Vec<Row> = Vec::new();
    for row in rows {
        let key = (row.text.as_ref().map(|it| it.0), row.who.clone());
        let place = *places.entry(key).or_insert(sums.len());
        match sums.get_mut(place) {
            Some(sum) => sum.tally.add(&row.tally),
            None => sums.push(row),
        }
    }
    sums
}
