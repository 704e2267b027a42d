//! [`KeyCondition`]: what conditions say of the parts of one index, before values are known.

use std::borrow::Cow;

use expression::Expression;

use crate::plan::Edge;

/// What conditions say of the parts of an index. The expressions have one value each while the
/// table is read.
#[derive(Debug, Clone)]
pub enum KeyCondition<'e> {
    /// All of these hold; of none: any key will do.
    All(Vec<KeyCondition<'e>>),
    /// One of these holds; of none: no key will do.
    Any(Vec<KeyCondition<'e>>),
    /// The part equals a value.
    Equal {
        /// Which part.
        part: usize,
        /// The value.
        value: Cow<'e, Expression>,
        /// NULL finds NULL. Otherwise it finds nothing.
        null_safe: bool,
    },
    /// The part is at least (or above) a value.
    Lower {
        /// Which part.
        part: usize,
        /// The value.
        value: Cow<'e, Expression>,
        /// Whether the value belongs to it.
        edge: Edge,
    },
    /// The part is at most (or below) a value.
    Upper {
        /// Which part.
        part: usize,
        /// The value.
        value: Cow<'e, Expression>,
        /// Whether the value belongs to it.
        edge: Edge,
    },
    /// The parts together are one of the rows.
    Rows {
        /// Which parts, ascending.
        parts: Box<[usize]>,
        /// Of each part, where its value stands in a row.
        places: Box<[usize]>,
        /// Values of a row.
        width: usize,
        /// The rows, one after the other.
        values: Cow<'e, [Expression]>,
    },
}

/// What an access by ranges of whole keys does.
#[derive(Debug)]
pub struct KeyPlan {
    /// What the keys satisfy.
    pub condition: KeyCondition<'static>,
    /// Only the first parts, so many of them, are looked at.
    pub depth: usize,
    /// The first parts, so many of them, that the ranges can name values of; for EXPLAIN.
    pub used_parts: usize,
}

/// The most ranges that one access reads. A range takes some 200 bytes while a scan runs. Where
/// conditions could make more of them, the last parts of the index are left out.
pub const RANGE_COUNT_MAX: usize = 1 << 18;

/// The most ways through alternatives that are looked at to find out which conditions the ranges
/// answer exactly. Past it the conditions are tested again, row by row.
const WAY_COUNT_MAX: usize = 512;

/// What ranges made of conditions can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reach {
    /// How many parts are worth looking at; 0: the conditions leave all keys.
    pub(crate) depth: usize,
    /// How many parts the ranges can name values of.
    pub(crate) used_parts: usize,
    /// The conditions, by place, that hold for all keys in the ranges.
    pub(crate) answered: Vec<bool>,
}

impl KeyCondition<'_> {
    /// The condition with values of its own.
    pub(crate) fn into_owned(self) -> KeyCondition<'static> {
        let owned = |value: Cow<'_, Expression>| Cow::Owned(value.into_owned());
        match self {
            Self::All(list) => KeyCondition::All(list.into_iter().map(Self::owned).collect()),
            Self::Any(list) => KeyCondition::Any(list.into_iter().map(Self::owned).collect()),
            Self::Equal {
                part,
                value,
                null_safe,
            } => KeyCondition::Equal {
                part,
                value: owned(value),
                null_safe,
            },
            Self::Lower { part, value, edge } => KeyCondition::Lower {
                part,
                value: owned(value),
                edge,
            },
            Self::Upper { part, value, edge } => KeyCondition::Upper {
                part,
                value: owned(value),
                edge,
            },
            Self::Rows {
                parts,
                places,
                width,
                values,
            } => KeyCondition::Rows {
                parts,
                places,
                width,
                values: Cow::Owned(values.into_owned()),
            },
        }
    }

    fn owned(condition: KeyCondition<'_>) -> KeyCondition<'static> {
        condition.into_owned()
    }

    /// Calls `visit` with each value that the keys are compared with.
    pub(crate) fn for_each_value<'v>(&'v self, visit: &mut dyn FnMut(&'v Expression)) {
        match self {
            Self::All(list) | Self::Any(list) => {
                for condition in list {
                    condition.for_each_value(visit);
                }
            }
            Self::Equal { value, .. } | Self::Lower { value, .. } | Self::Upper { value, .. } => {
                visit(value);
            }
            Self::Rows { values, .. } => values.iter().for_each(visit),
        }
    }

    /// True if one of the values that keys are to equal satisfies the test.
    pub(crate) fn any_equal_value(&self, test: &dyn Fn(&Expression) -> bool) -> bool {
        match self {
            Self::All(list) | Self::Any(list) => list.iter().any(|it| it.any_equal_value(test)),
            Self::Equal { value, .. } => test(value),
            Self::Rows { values, .. } => values.iter().any(test),
            Self::Lower { .. } | Self::Upper { .. } => false,
        }
    }

    /// The only part that it speaks of.
    fn single_part(&self) -> Option<usize> {
        match self {
            Self::All(list) | Self::Any(list) => {
                let mut parts = list.iter().map(Self::single_part);
                let first = parts.next()??;
                parts.all(|part| part == Some(first)).then_some(first)
            }
            Self::Equal { part, .. } | Self::Lower { part, .. } | Self::Upper { part, .. } => {
                Some(*part)
            }
            Self::Rows { parts, .. } => match parts[..] {
                [part] => Some(part),
                _ => None,
            },
        }
    }

    /// True if it leaves single values of the only part that it speaks of.
    fn is_points(&self) -> bool {
        match self {
            Self::All(list) => list.iter().any(Self::is_points),
            Self::Any(list) => list.iter().all(Self::is_points),
            Self::Equal { .. } | Self::Rows { .. } => true,
            Self::Lower { .. } | Self::Upper { .. } => false,
        }
    }

    /// At most so many ranges come of it if the first `depth` parts are looked at.
    fn range_count_max(&self, depth: usize) -> usize {
        match self {
            Self::Equal { .. } | Self::Lower { .. } | Self::Upper { .. } => 1,
            Self::Rows {
                parts,
                width,
                values,
                ..
            } => match parts[0] < depth {
                true => values.len() / width,
                false => 1,
            },
            // An interval that begins within another one splits that.
            Self::Any(list) => list.iter().fold(0_usize, |sum, it| {
                let split_count = usize::from(!it.is_points());
                sum.saturating_add(it.range_count_max(depth))
                    .saturating_add(split_count)
            }),
            Self::All(list) => range_count_of_all(list, depth),
        }
    }

    /// True if each key that satisfies it has one of some values in the part.
    fn restricts(&self, wanted: usize) -> bool {
        match self {
            Self::All(list) => list.iter().any(|it| it.restricts(wanted)),
            Self::Any(list) => list.iter().all(|it| it.restricts(wanted)),
            Self::Equal { part, .. } | Self::Lower { part, .. } | Self::Upper { part, .. } => {
                *part == wanted
            }
            Self::Rows { parts, .. } => parts.contains(&wanted),
        }
    }
}

/// The intersection of lists of intervals of one part has at most as many as all together, and no
/// more than a list of points has; each of one part goes with each of another.
fn range_count_of_all(list: &[KeyCondition<'_>], depth: usize) -> usize {
    let mut product = 1_usize;
    let mut sums = vec![(0_usize, usize::MAX); depth];
    for condition in list {
        let count = condition.range_count_max(depth);
        match condition.single_part() {
            Some(part) if part < depth => {
                let (sum, least) = &mut sums[part];
                *sum = sum.saturating_add(count);
                if condition.is_points() {
                    *least = (*least).min(count);
                }
            }
            Some(_) => {}
            None => product = product.saturating_mul(count),
        }
    }
    for (sum, least) in sums {
        product = product.saturating_mul(sum.min(least).max(1));
    }
    product
}

/// What ranges of an index of `part_count` parts can do with conditions that must all hold.
/// `is_exact` says of each whether the index can tell it exactly.
pub(crate) fn reach(
    conditions: &[KeyCondition<'_>],
    is_exact: &[bool],
    part_count: usize,
) -> Reach {
    let is_too_many = |depth| RANGE_COUNT_MAX < range_count_of_all(conditions, depth);
    let mut depth = part_count;
    while 0 < depth && is_too_many(depth) {
        depth -= 1;
    }
    if !conditions.iter().any(|it| it.restricts(0)) {
        depth = 0;
    }
    let mut walk = Walk {
        depth,
        ways_left: WAY_COUNT_MAX,
        is_cut: false,
        way: Way {
            parts: vec![Restriction::None; depth],
            last_parts: vec![0; conditions.len()],
        },
        used_parts: 0,
        answered: is_exact.to_vec(),
    };
    let mut branching = Vec::new();
    for (place, condition) in conditions.iter().enumerate() {
        match condition.single_part() {
            Some(part) => walk.restrict(place, part, condition.is_points()),
            None => branching.push((place, condition)),
        }
    }
    let branching_places: Vec<usize> = branching.iter().map(|(place, _)| *place).collect();
    let simple = walk.way.clone();
    walk.go(branching, 0);
    if walk.is_cut {
        // Not all ways were seen, so the ranges only narrow what the alternatives say.
        walk.way = simple;
        walk.answered = is_exact.to_vec();
        walk.arrive();
        for place in branching_places {
            walk.answered[place] = false;
        }
    }
    Reach {
        depth,
        used_parts: walk.used_parts,
        answered: walk.answered,
    }
}

/// A walk along all ways to satisfy the conditions, one of the alternatives of each.
struct Walk {
    depth: usize,
    ways_left: usize,
    /// There were too many ways.
    is_cut: bool,
    way: Way,
    used_parts: usize,
    answered: Vec<bool>,
}

/// One way.
#[derive(Debug, Clone)]
struct Way {
    /// What is asked of each part.
    parts: Vec<Restriction>,
    /// Of each condition, one more than the last part that it asks something of.
    last_parts: Vec<usize>,
}

/// What a way asks of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Restriction {
    None,
    Interval,
    Points,
}

/// Alternatives within alternatives, or beside them, that a walk goes through. It is recursive.
const BRANCH_COUNT_MAX: usize = 32;

impl Walk {
    fn restrict(&mut self, place: usize, part: usize, is_points: bool) {
        let last = &mut self.way.last_parts[place];
        *last = (*last).max(part + 1);
        if let Some(known) = self.way.parts.get_mut(part) {
            *known = match is_points || *known == Restriction::Points {
                true => Restriction::Points,
                false => Restriction::Interval,
            };
        }
    }

    fn go(&mut self, mut pending: Vec<(usize, &KeyCondition<'_>)>, branch_count: usize) {
        while let Some((place, condition)) = pending.pop() {
            if let Some(part) = condition.single_part() {
                self.restrict(place, part, condition.is_points());
                continue;
            }
            match condition {
                KeyCondition::All(list) => pending.extend(list.iter().map(|it| (place, it))),
                KeyCondition::Rows { parts, .. } => {
                    for &part in parts {
                        self.restrict(place, part, true);
                    }
                }
                KeyCondition::Any(list) => {
                    self.is_cut |= BRANCH_COUNT_MAX < branch_count || self.ways_left < list.len();
                    for alternative in list {
                        if self.is_cut {
                            return;
                        }
                        let way = self.way.clone();
                        let mut rest = pending.clone();
                        rest.push((place, alternative));
                        self.go(rest, branch_count + 1);
                        self.way = way;
                    }
                    return;
                }
                KeyCondition::Equal { .. }
                | KeyCondition::Lower { .. }
                | KeyCondition::Upper { .. } => unreachable!("each has a single part"),
            }
        }
        self.arrive();
    }

    /// At the end of a way: its ranges name single values of the first parts and an interval of
    /// the next one at most; what is asked of later parts they do not answer.
    fn arrive(&mut self) {
        self.is_cut |= self.ways_left == 0;
        self.ways_left = self.ways_left.saturating_sub(1);
        let points = self.way.parts.iter();
        let points = points
            .take_while(|part| **part == Restriction::Points)
            .count();
        let has_interval = self.way.parts.get(points) == Some(&Restriction::Interval);
        let used_parts = points + usize::from(has_interval);
        self.used_parts = self.used_parts.max(used_parts);
        for (answered, last) in self.answered.iter_mut().zip(&self.way.last_parts) {
            *answered &= *last <= used_parts;
        }
        assert!(
            used_parts <= self.depth,
            "only parts that are looked at are used"
        );
    }
}
