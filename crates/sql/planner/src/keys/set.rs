//! [`KeySet`]: the keys of an index that satisfy conditions, part by part.
//!
//! A set is a tree of levels. A level belongs to one part of the index and holds intervals of that
//! part's values. Each interval leads to the restrictions of the later parts. A part without a
//! level may have any value.
//!
//! (I1) The intervals of a level are sorted, disjoint and not empty, and there is at least one.
//! (I2) A level below another belongs to a later part.
//! (I3) No interval leads to [`KeySet::Nothing`]: it would be left out.
//!
//! AND intersects and OR unites, each in one pass over two sorted lists, so the result needs no
//! sort. Subtrees are shared. A list of `n` alternatives is united in pairs, then pairs of pairs,
//! which takes `n log n` steps.

use std::cmp::Ordering;
use std::rc::Rc;

use expression::compare_values;
use store::{KeyBound, KeyRange};
use value::{ColumnType, Value};

/// Keys of an index.
#[derive(Debug, Clone)]
pub(crate) enum KeySet {
    /// No key.
    Nothing,
    /// All keys, whatever the later parts.
    Everything,
    /// Keys whose next restricted part lies in one of the intervals.
    Level(Rc<Level>),
}

/// The intervals of one part.
#[derive(Debug)]
pub(crate) struct Level {
    part: usize,
    intervals: Vec<Interval>,
}

/// An interval of one part's values, and the restrictions of the later parts.
#[derive(Debug, Clone)]
pub(crate) struct Interval {
    lower: Cut,
    upper: Cut,
    next: KeySet,
}

/// A position between values.
#[derive(Debug, Clone)]
pub(crate) enum Cut {
    /// Below all values, as a lower end; above all, as an upper one.
    Open,
    /// Right below the value.
    Before(Value),
    /// Right above the value.
    Behind(Value),
}

/// What an operation on sets needs in addition to the sets.
pub(crate) struct Algebra<'a, E> {
    /// The types of the index's parts.
    pub(crate) types: &'a [&'a ColumnType],
    /// Counts work, in bytes read.
    pub(crate) spend: &'a dyn Fn(usize) -> Result<(), E>,
}

/// The cost of one step over an interval, in bytes read.
const STEP_COST: usize = 64;

impl KeySet {
    /// The keys whose `part` lies between two cuts.
    pub(crate) fn between(part: usize, lower: Cut, upper: Cut) -> Self {
        if let (Cut::Open, Cut::Open) = (&lower, &upper) {
            return Self::Everything;
        }
        let next = Self::Everything;
        let intervals = vec![Interval { lower, upper, next }];
        Self::Level(Rc::new(Level { part, intervals }))
    }

    /// The keys of `next` whose `part` is the value.
    pub(crate) fn point(part: usize, value: Value, next: Self) -> Self {
        let lower = Cut::Before(value.clone());
        let intervals = vec![Interval {
            lower,
            upper: Cut::Behind(value),
            next,
        }];
        Self::Level(Rc::new(Level { part, intervals }))
    }

    /// The keys whose `part` is one of the values, each with its later restrictions. The values
    /// ascend and are distinct.
    pub(crate) fn points(part: usize, values: impl Iterator<Item = (Value, Self)>) -> Self {
        let intervals: Vec<Interval> = values
            .map(|(value, next)| Interval {
                lower: Cut::Before(value.clone()),
                upper: Cut::Behind(value),
                next,
            })
            .collect();
        match intervals.is_empty() {
            true => Self::Nothing,
            false => Self::Level(Rc::new(Level { part, intervals })),
        }
    }

    fn of_level(part: usize, intervals: Vec<Interval>) -> Self {
        match intervals.as_slice() {
            [] => Self::Nothing,
            [
                Interval {
                    lower: Cut::Open,
                    upper: Cut::Open,
                    next: Self::Everything,
                },
            ] => Self::Everything,
            _ => Self::Level(Rc::new(Level { part, intervals })),
        }
    }
}

impl<E> Algebra<'_, E> {
    /// The intersection of both sets.
    pub(crate) fn and(&self, left: &KeySet, right: &KeySet) -> Result<KeySet, E> {
        let (left, right) = match (left, right) {
            (KeySet::Nothing, _) | (_, KeySet::Nothing) => return Ok(KeySet::Nothing),
            (KeySet::Everything, other) | (other, KeySet::Everything) => return Ok(other.clone()),
            (KeySet::Level(left), KeySet::Level(right)) => (left, right),
        };
        match left.part.cmp(&right.part) {
            Ordering::Equal => self.intersect(left, right),
            Ordering::Less => self.and_behind(left, &KeySet::Level(Rc::clone(right))),
            Ordering::Greater => self.and_behind(right, &KeySet::Level(Rc::clone(left))),
        }
    }

    /// The keys of a level that also satisfy restrictions of later parts.
    fn and_behind(&self, level: &Level, behind: &KeySet) -> Result<KeySet, E> {
        let mut intervals = Vec::with_capacity(level.intervals.len());
        for interval in &level.intervals {
            (self.spend)(STEP_COST)?;
            let next = self.and(&interval.next, behind)?;
            if !matches!(next, KeySet::Nothing) {
                intervals.push(Interval {
                    lower: interval.lower.clone(),
                    upper: interval.upper.clone(),
                    next,
                });
            }
        }
        Ok(KeySet::of_level(level.part, intervals))
    }

    fn intersect(&self, left: &Level, right: &Level) -> Result<KeySet, E> {
        let mut intervals = Vec::with_capacity(left.intervals.len().min(right.intervals.len()));
        let (mut at, mut other_at) = (0, 0);
        while at < left.intervals.len() && other_at < right.intervals.len() {
            (self.spend)(STEP_COST)?;
            let (a, b) = (&left.intervals[at], &right.intervals[other_at]);
            let lower = match self.lowers(left.part, &a.lower, &b.lower) {
                Ordering::Less => &b.lower,
                _ => &a.lower,
            };
            let uppers = self.uppers(left.part, &a.upper, &b.upper);
            let upper = match uppers {
                Ordering::Less => &a.upper,
                _ => &b.upper,
            };
            if self.is_below(left.part, lower, upper) {
                let next = self.and(&a.next, &b.next)?;
                if !matches!(next, KeySet::Nothing) {
                    intervals.push(Interval {
                        lower: lower.clone(),
                        upper: upper.clone(),
                        next,
                    });
                }
            }
            at += usize::from(uppers.is_le());
            other_at += usize::from(uppers.is_ge());
        }
        Ok(KeySet::of_level(left.part, intervals))
    }

    /// The union of both sets.
    pub(crate) fn or(&self, left: &KeySet, right: &KeySet) -> Result<KeySet, E> {
        let (left, right) = match (left, right) {
            (KeySet::Nothing, other) | (other, KeySet::Nothing) => return Ok(other.clone()),
            (KeySet::Everything, _) | (_, KeySet::Everything) => return Ok(KeySet::Everything),
            (KeySet::Level(left), KeySet::Level(right)) => (left, right),
        };
        match left.part.cmp(&right.part) {
            Ordering::Equal => self.unite(left, right),
            Ordering::Less => self.unite(left, &all_before(left.part, right)),
            Ordering::Greater => self.unite(&all_before(right.part, left), right),
        }
    }

    /// The union of many sets.
    pub(crate) fn any(&self, mut sets: Vec<KeySet>) -> Result<KeySet, E> {
        while 1 < sets.len() {
            let mut united = Vec::with_capacity(sets.len().div_ceil(2));
            for pair in sets.chunks(2) {
                united.push(match pair {
                    [left, right] => self.or(left, right)?,
                    rest => rest[0].clone(),
                });
            }
            sets = united;
        }
        Ok(sets.pop().unwrap_or(KeySet::Nothing))
    }

    fn unite(&self, left: &Level, right: &Level) -> Result<KeySet, E> {
        let part = left.part;
        let mut united = Vec::with_capacity(left.intervals.len() + right.intervals.len());
        let (mut lefts, mut rights) = (left.intervals.iter(), right.intervals.iter());
        let (mut left, mut right) = (lefts.next().cloned(), rights.next().cloned());
        while let (Some(a), Some(b)) = (&mut left, &mut right) {
            (self.spend)(STEP_COST)?;
            if !self.is_below(part, &b.lower, &a.upper) {
                self.add(
                    part,
                    &mut united,
                    std::mem::replace(&mut left, lefts.next().cloned()),
                );
                continue;
            }
            if !self.is_below(part, &a.lower, &b.upper) {
                self.add(
                    part,
                    &mut united,
                    std::mem::replace(&mut right, rights.next().cloned()),
                );
                continue;
            }
            // They overlap: the part of one before the other begins is its own.
            match self.lowers(part, &a.lower, &b.lower) {
                Ordering::Less => self.add(part, &mut united, Some(a.cut_off(&b.lower))),
                Ordering::Greater => self.add(part, &mut united, Some(b.cut_off(&a.lower))),
                Ordering::Equal => {}
            }
            let order = self.uppers(part, &a.upper, &b.upper);
            let upper = if order.is_le() { &a.upper } else { &b.upper };
            let both = Interval {
                lower: a.lower.clone(),
                upper: upper.clone(),
                next: self.or(&a.next, &b.next)?,
            };
            if order.is_gt() {
                a.lower = both.upper.clone();
            }
            if order.is_lt() {
                b.lower = both.upper.clone();
            }
            self.add(part, &mut united, Some(both));
            if order.is_le() {
                left = lefts.next().cloned();
            }
            if order.is_ge() {
                right = rights.next().cloned();
            }
        }
        for rest in left.into_iter().chain(right) {
            self.add(part, &mut united, Some(rest));
        }
        for rest in lefts.chain(rights) {
            (self.spend)(STEP_COST)?;
            self.add(part, &mut united, Some(rest.clone()));
        }
        Ok(KeySet::of_level(part, united))
    }

    /// Appends an interval; it is joined with the last one if nothing lies between them.
    fn add(&self, part: usize, intervals: &mut Vec<Interval>, interval: Option<Interval>) {
        let Some(interval) = interval else {
            return;
        };
        if let (Some(last), KeySet::Everything) = (intervals.last_mut(), &interval.next)
            && matches!(last.next, KeySet::Everything)
            && !self.is_apart(part, &last.upper, &interval.lower)
        {
            last.upper = interval.upper;
            return;
        }
        intervals.push(interval);
    }

    /// True if a value lies between the upper end of one interval and the lower end of the next.
    fn is_apart(&self, part: usize, upper: &Cut, lower: &Cut) -> bool {
        match (upper, lower) {
            (Cut::Open, _) | (_, Cut::Open) => false,
            _ => self.inner(part, upper, lower).is_lt(),
        }
    }

    /// True if a lower end lies below an upper one.
    fn is_below(&self, part: usize, lower: &Cut, upper: &Cut) -> bool {
        match (lower, upper) {
            (Cut::Open, _) | (_, Cut::Open) => true,
            _ => self.inner(part, lower, upper).is_lt(),
        }
    }

    fn lowers(&self, part: usize, a: &Cut, b: &Cut) -> Ordering {
        match (a, b) {
            (Cut::Open, Cut::Open) => Ordering::Equal,
            (Cut::Open, _) => Ordering::Less,
            (_, Cut::Open) => Ordering::Greater,
            _ => self.inner(part, a, b),
        }
    }

    fn uppers(&self, part: usize, a: &Cut, b: &Cut) -> Ordering {
        match (a, b) {
            (Cut::Open, Cut::Open) => Ordering::Equal,
            (Cut::Open, _) => Ordering::Greater,
            (_, Cut::Open) => Ordering::Less,
            _ => self.inner(part, a, b),
        }
    }

    /// The order of two cuts that are not open.
    fn inner(&self, part: usize, a: &Cut, b: &Cut) -> Ordering {
        let (Some((a, a_behind)), Some((b, b_behind))) = (a.value(), b.value()) else {
            unreachable!("open ends are compared by the callers");
        };
        compare_values(a.as_ref(), b.as_ref(), self.types[part]).then(a_behind.cmp(&b_behind))
    }
}

impl Cut {
    /// The value of a cut; `None` for an open end.
    pub(crate) fn into_value(self) -> Option<Value> {
        match self {
            Self::Open => None,
            Self::Before(value) | Self::Behind(value) => Some(value),
        }
    }

    /// The value, and whether the cut is above it; `None` for an open end.
    fn value(&self) -> Option<(&Value, bool)> {
        match self {
            Self::Open => None,
            Self::Before(value) => Some((value, false)),
            Self::Behind(value) => Some((value, true)),
        }
    }
}

impl Interval {
    /// Splits off and returns the part below a cut within the interval.
    fn cut_off(&mut self, at: &Cut) -> Self {
        let lower = std::mem::replace(&mut self.lower, at.clone());
        Self {
            lower,
            upper: at.clone(),
            next: self.next.clone(),
        }
    }

    /// The only value of the interval.
    fn point(&self, column_type: &ColumnType) -> Option<&Value> {
        match (&self.lower, &self.upper) {
            (Cut::Before(lower), Cut::Behind(upper)) => {
                let order = compare_values(lower.as_ref(), upper.as_ref(), column_type);
                order.is_eq().then_some(lower)
            }
            _ => None,
        }
    }
}

/// A level of all values of `part`, each leading to `level`.
fn all_before(part: usize, level: &Rc<Level>) -> Level {
    let intervals = vec![Interval {
        lower: Cut::Open,
        upper: Cut::Open,
        next: KeySet::Level(Rc::clone(level)),
    }];
    Level { part, intervals }
}

/// Converts a set to ranges of whole keys.
pub(crate) struct Flattener<'a, E> {
    pub(crate) algebra: Algebra<'a, E>,
    /// How many of the first parts are used.
    pub(crate) depth: usize,
    pub(crate) ranges: Vec<KeyRange>,
    /// The values of the parts before the current level.
    prefix: Vec<Value>,
}

impl<'a, E> Flattener<'a, E> {
    pub(crate) fn new(algebra: Algebra<'a, E>, depth: usize) -> Self {
        Self {
            algebra,
            depth,
            ranges: Vec::new(),
            prefix: Vec::new(),
        }
    }

    /// Appends the ranges of a set; they ascend and are disjoint. If an interval of many values
    /// leads to another level, its range has keys that the set lacks.
    pub(crate) fn flatten(&mut self, set: &KeySet) -> Result<(), E> {
        (self.algebra.spend)(STEP_COST)?;
        let Some(level) = self.level_at(set, self.prefix.len()) else {
            if !matches!(set, KeySet::Nothing) {
                let prefix = self.prefix.clone();
                let range = match prefix.is_empty() {
                    true => KeyRange::all(),
                    false => KeyRange::equal(prefix),
                };
                self.push(range);
            }
            return Ok(());
        };
        let level = Rc::clone(level);
        for interval in &level.intervals {
            if let Some(value) = interval.point(self.algebra.types[level.part]) {
                self.prefix.push(value.clone());
                self.flatten(&interval.next)?;
                self.prefix.pop();
                continue;
            }
            (self.algebra.spend)(STEP_COST)?;
            let range = KeyRange {
                lower: self.lower_of(interval),
                upper: self.upper_of(interval),
            };
            self.push(range);
        }
        Ok(())
    }

    /// The level of a set, if it belongs to this part and the part is used.
    fn level_at<'s>(&self, set: &'s KeySet, part: usize) -> Option<&'s Rc<Level>> {
        match set {
            KeySet::Level(level) if level.part == part && part < self.depth => Some(level),
            _ => None,
        }
    }

    /// The lower end of an interval of many values, extended by the least key below its first
    /// value.
    fn lower_of(&self, first: &Interval) -> KeyBound {
        let mut values = self.prefix.clone();
        let mut interval = first;
        loop {
            match &interval.lower {
                Cut::Open => break,
                Cut::Behind(value) => {
                    values.push(value.clone());
                    return KeyBound::Exclusive(values);
                }
                Cut::Before(value) => values.push(value.clone()),
            }
            match self.level_at(&interval.next, values.len()) {
                Some(level) => interval = &level.intervals[0],
                None => break,
            }
        }
        match values.is_empty() {
            true => KeyBound::Open,
            false => KeyBound::Inclusive(values),
        }
    }

    /// The upper end of an interval of many values, extended by the greatest key below its last
    /// value.
    fn upper_of(&self, last: &Interval) -> KeyBound {
        let mut values = self.prefix.clone();
        let mut interval = last;
        loop {
            match &interval.upper {
                Cut::Open => break,
                Cut::Before(value) => {
                    values.push(value.clone());
                    return KeyBound::Exclusive(values);
                }
                Cut::Behind(value) => values.push(value.clone()),
            }
            match self.level_at(&interval.next, values.len()) {
                Some(level) => {
                    interval = level
                        .intervals
                        .last()
                        .expect("(I1): a level has an interval");
                }
                None => break,
            }
        }
        match values.is_empty() {
            true => KeyBound::Open,
            false => KeyBound::Inclusive(values),
        }
    }

    /// Appends a range; it is joined with the last one if that ends where it begins.
    fn push(&mut self, range: KeyRange) {
        if let Some(last) = self.ranges.last_mut()
            && meet(&last.upper, &range.lower, self.algebra.types)
        {
            last.upper = range.upper;
            return;
        }
        self.ranges.push(range);
    }
}

/// True if nothing lies between the upper end of one range and the lower end of the next.
fn meet(upper: &KeyBound, lower: &KeyBound, types: &[&ColumnType]) -> bool {
    let (a, b) = match (upper, lower) {
        (KeyBound::Inclusive(a), KeyBound::Exclusive(b))
        | (KeyBound::Exclusive(a), KeyBound::Inclusive(b)) => (a, b),
        _ => return false,
    };
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .zip(types)
            .all(|((a, b), it)| compare_values(a.as_ref(), b.as_ref(), it).is_eq())
}
