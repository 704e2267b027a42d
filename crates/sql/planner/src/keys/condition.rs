//! [`KeyCondition`]: what conditions say of the parts of one index, before values are known.

use std::borrow::Cow;

use expression::Expression;

use super::range_plan::Edge;

/// What conditions say of the parts of an index. During the scan each expression has one value.
#[derive(Debug, Clone)]
pub enum KeyCondition<'e> {
    /// All of these hold; if empty, any key matches.
    All(Vec<KeyCondition<'e>>),
    /// One of these holds; if empty, no key matches.
    Any(Vec<KeyCondition<'e>>),
    /// The part equals a value.
    Equal {
        /// The part of the index.
        part: usize,
        /// The value.
        value: Cow<'e, Expression>,
        /// NULL matches NULL. Otherwise NULL matches nothing.
        null_safe: bool,
    },
    /// The part is at least (or above) a value.
    Lower {
        /// The part of the index.
        part: usize,
        /// The value.
        value: Cow<'e, Expression>,
        /// Whether the value itself is included.
        edge: Edge,
    },
    /// The part is at most (or below) a value.
    Upper {
        /// The part of the index.
        part: usize,
        /// The value.
        value: Cow<'e, Expression>,
        /// Whether the value itself is included.
        edge: Edge,
    },
    /// The parts together are one of the rows.
    Rows {
        /// The parts, ascending.
        parts: Box<[usize]>,
        /// For each part, the position of its value in a row.
        places: Box<[usize]>,
        /// Values of a row.
        width: usize,
        /// The rows, one after the other.
        values: Cow<'e, [Expression]>,
    },
}

/// An access by ranges of whole keys.
#[derive(Debug)]
pub struct KeyPlan {
    /// The condition on the keys.
    pub condition: KeyCondition<'static>,
    /// How many of the first parts are used for ranges.
    pub depth: usize,
    /// How many of the first parts have values in the ranges; for EXPLAIN.
    pub used_parts: usize,
}

/// The most ranges of one access. A range takes some 200 bytes while a scan runs. If conditions
/// could yield more, the last parts of the index are left out.
pub const RANGE_COUNT_MAX: usize = 1 << 18;

/// The most combinations of alternatives that are examined to find which conditions the ranges
/// answer exactly. Beyond it the conditions are tested again, row by row.
const WAY_COUNT_MAX: usize = 512;

/// What ranges can express of conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reach {
    /// How many parts are useful; 0: the conditions admit all keys.
    pub(crate) depth: usize,
    /// How many parts have values in the ranges.
    pub(crate) used_parts: usize,
    /// By position: whether the ranges answer the condition exactly.
    pub(crate) answered: Vec<bool>,
}

impl KeyCondition<'_> {
    /// The condition with owned values.
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

    /// True if one of the values that the keys must equal satisfies the test.
    pub(crate) fn any_equal_value(&self, test: &dyn Fn(&Expression) -> bool) -> bool {
        match self {
            Self::All(list) | Self::Any(list) => list.iter().any(|it| it.any_equal_value(test)),
            Self::Equal { value, .. } => test(value),
            Self::Rows { values, .. } => values.iter().any(test),
            Self::Lower { .. } | Self::Upper { .. } => false,
        }
    }

    /// The only part that it refers to, or `None`.
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

    /// True if it admits only single values of its only part.
    fn is_points(&self) -> bool {
        match self {
            Self::All(list) => list.iter().any(Self::is_points),
            Self::Any(list) => list.iter().all(Self::is_points),
            Self::Equal { .. } | Self::Rows { .. } => true,
            Self::Lower { .. } | Self::Upper { .. } => false,
        }
    }

    /// The most ranges that it yields with the first `depth` parts.
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

    /// True if each key that satisfies it has one of some given values in the part.
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
/// more than a list of points among them. The numbers of different parts multiply.
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

/// What ranges of an index with `part_count` parts can express of conditions that must all hold.
/// `is_exact` says for each whether the index can answer it exactly.
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
        // Not all combinations were examined, so the alternatives only narrow the ranges.
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

/// Visits all combinations: one alternative of each condition.
struct Walk {
    depth: usize,
    ways_left: usize,
    /// There were too many combinations.
    is_cut: bool,
    way: Way,
    used_parts: usize,
    answered: Vec<bool>,
}

/// One combination.
#[derive(Debug, Clone)]
struct Way {
    /// The restriction on each part.
    parts: Vec<Restriction>,
    /// For each condition, the number of its last restricted part plus 1.
    last_parts: Vec<usize>,
}

/// The restriction on a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Restriction {
    None,
    Interval,
    Points,
}

/// The most nested or adjacent alternatives of a walk. The walk is recursive.
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

    /// The end of a combination: its ranges have single values of the first parts and at most one
    /// interval of the next. Restrictions of later parts are not answered.
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
