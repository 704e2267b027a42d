//! Locking reads of ranges, and what they promise.
//!
//! A locking read of REPEATABLE READ or SERIALIZABLE keeps its range until its transaction ends:
//! nothing comes into it, leaves it or changes in it. A transaction takes its number after its last
//! read. So all transactions that have changed the range before the read have lower numbers, and
//! all that change it later have higher ones. In the order of the numbers, the rows before a
//! transaction, with its own changes, are those that each of its reads has found. Whoever inserts
//! into a locked gap, or reads a row under change, breaks that.

use std::collections::BTreeMap;

use env::Random;
use store::{Direction, Isolation, KeyBound, KeyRange, LockWait, RowLock, ScanOptions};
use value::Value;

use crate::rows::{Data, Row, Writes, all, data_of};

/// Values of the column `a`, from 0.
pub(crate) const GROUP_COUNT: u64 = 6;

/// The index that a range is read by, and whose first column bounds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Key,
    Group,
}

/// A range and how it is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RangeRead {
    by: By,
    /// The first value in it.
    lower: i64,
    /// The last value in it; `None` if it is open.
    upper: Option<i64>,
    direction: Direction,
    /// How its rows are locked.
    pub(crate) lock: RowLock,
}

/// A row without the bytes of its note: `a`, `u`, the note's length and first byte.
type Summary = (i64, Option<i64>, usize, Option<u8>);

/// What a read has found.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    range: RangeRead,
    /// The rows, by key.
    rows: BTreeMap<i64, Summary>,
    /// What the transaction had written before.
    own: BTreeMap<i64, Option<Summary>>,
}

impl RangeRead {
    /// Draws a locking read for a transaction of this level.
    pub(crate) fn draw(isolation: Isolation, key_count: u64, random: &mut Random) -> Self {
        let below = |random: &mut Random, bound| i64::try_from(random.below(bound)).unwrap_or(0);
        let (by, lower, length) = if random.coin() {
            (By::Key, below(random, key_count), below(random, 6))
        } else {
            (By::Group, below(random, GROUP_COUNT), below(random, 2))
        };
        let upper = (random.below(8) != 0).then_some(lower + length);
        let direction = match random.below(4) {
            0 => Direction::Backward,
            _ => Direction::Forward,
        };
        let lock = match (isolation, random.below(4)) {
            // A plain read, which locks at this level.
            (Isolation::Serializable, 0) => RowLock::None,
            (_, 0) => RowLock::Source,
            (_, 1) => RowLock::Shared,
            _ => RowLock::Exclusive,
        };
        Self {
            by,
            lower,
            upper,
            direction,
            lock,
        }
    }

    /// The scan.
    pub(crate) fn scan(&self) -> ScanOptions {
        let bound = |value| KeyBound::Inclusive(vec![Value::Int(value)]);
        ScanOptions {
            index: Some(match self.by {
                By::Key => 0,
                By::Group => 1,
            }),
            range: KeyRange {
                lower: bound(self.lower),
                upper: self.upper.map_or(KeyBound::Open, bound),
            },
            direction: self.direction,
            lock: self.lock,
            wait: LockWait::Wait,
            ..all()
        }
    }

    fn has(&self, key: i64, row: &Summary) -> bool {
        let value = match self.by {
            By::Key => key,
            By::Group => row.0,
        };
        self.lower <= value && self.upper.is_none_or(|upper| value <= upper)
    }
}

impl Found {
    /// What a read has found, and what its transaction had written before.
    pub(crate) fn new(range: RangeRead, rows: &[Row], own: &Writes) -> Self {
        let row_of = |(_, row): &Row| {
            let (key, data) = data_of(row);
            (key, summary(&data))
        };
        Self {
            range,
            rows: rows.iter().map(row_of).collect(),
            own: own
                .iter()
                .map(|(key, row)| (*key, row.as_ref().map(summary)))
                .collect(),
        }
    }

    /// Compares with the rows that were there before the transaction.
    pub(crate) fn check(&self, before: &BTreeMap<i64, &Data>) -> Result<(), String> {
        let mut expected: BTreeMap<i64, Summary> = before
            .iter()
            .map(|(key, row)| (*key, summary(row)))
            .collect();
        for (key, row) in &self.own {
            match row {
                Some(row) => expected.insert(*key, *row),
                None => expected.remove(key),
            };
        }
        expected.retain(|key, row| self.range.has(*key, row));
        if expected == self.rows {
            return Ok(());
        }
        Err(format!(
            "{:?} has found {:?}, and in the order of the numbers there is {expected:?}",
            self.range, self.rows
        ))
    }
}

fn summary((a, unique, note): &Data) -> Summary {
    (*a, *unique, note.len(), note.first().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(a: i64) -> Data {
        (a, None, vec![1])
    }

    fn range(by: By, lower: i64, upper: Option<i64>) -> RangeRead {
        let (direction, lock) = (Direction::Forward, RowLock::Shared);
        RangeRead {
            by,
            lower,
            upper,
            direction,
            lock,
        }
    }

    #[test]
    fn what_comes_into_a_range_is_found() {
        let row = |key: i64, a: i64| {
            let values = vec![
                Value::Int(key),
                Value::Int(a),
                Value::Null,
                Value::Bytes(vec![1]),
            ];
            (Vec::new(), values)
        };
        let own = Writes::from([(3, Some(data(5))), (4, None)]);
        let found = Found::new(range(By::Key, 2, Some(4)), &[row(2, 0), row(3, 5)], &own);
        let (zero, one, seven) = (data(0), data(1), data(7));
        let mut before = BTreeMap::from([(1, &zero), (2, &zero), (4, &one), (5, &zero)]);
        assert_eq!(found.check(&before), Ok(()));
        // A phantom in the range, a change in it, and a row that is gone.
        before.insert(3, &one);
        assert_eq!(found.check(&before), Ok(()), "its own change covers it");
        before.insert(2, &one);
        assert!(found.check(&before).is_err());
        before.remove(&2);
        assert!(found.check(&before).is_err());
        let found = Found::new(range(By::Group, 1, None), &[], &Writes::new());
        assert_eq!(found.check(&BTreeMap::from([(9, &zero)])), Ok(()));
        assert!(found.check(&BTreeMap::from([(9, &seven)])).is_err());
    }
}
