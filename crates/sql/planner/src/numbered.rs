//! Lists with lookup: expressions that are kept once, and columns by name.
//!
//! Short lists are searched linearly, longer ones by hash. So planning takes time proportional to
//! the number of columns, also for thousands of them.

use std::collections::HashMap;

use expression::{AggregateCall, Expression};
use foldhash::quality::RandomState;

/// Lists up to this length are searched linearly: it takes less than a hash.
const SHORT_LEN: usize = 16;

/// A thing with a digest; equal things have equal digests.
pub(crate) trait Digest {
    fn digest(&self) -> u64;
}

impl Digest for Expression {
    fn digest(&self) -> u64 {
        Expression::digest(self)
    }
}

impl Digest for AggregateCall {
    fn digest(&self) -> u64 {
        AggregateCall::digest(self)
    }
}

/// A list of things, distinct unless [`Numbered::push`] repeats one.
#[derive(Debug, Clone)]
pub(crate) struct Numbered<T> {
    list: Vec<T>,
    /// The places by digest, once the list is long.
    places: HashMap<u64, Vec<usize>, RandomState>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            places: HashMap::default(),
        }
    }
}

impl<T: Digest + PartialEq + Clone> Numbered<T> {
    /// A list of these, each once.
    pub(crate) fn of(list: &[T]) -> Self {
        let mut numbered = Self::default();
        for it in list {
            numbered.place_of(it);
        }
        numbered
    }

    /// The things, in the order of insertion.
    pub(crate) fn list(&self) -> &[T] {
        &self.list
    }

    pub(crate) fn into_list(self) -> Vec<T> {
        self.list
    }

    /// The position of the last equal thing.
    pub(crate) fn find(&self, wanted: &T) -> Option<usize> {
        if self.list.len() <= SHORT_LEN {
            return self.list.iter().rposition(|known| known == wanted);
        }
        let places = self.places.get(&wanted.digest())?;
        places
            .iter()
            .copied()
            .rfind(|place| self.list[*place] == *wanted)
    }

    /// The position of a thing; it is appended if missing.
    pub(crate) fn place_of(&mut self, wanted: &T) -> usize {
        if let Some(place) = self.find(wanted) {
            return place;
        }
        self.push(wanted)
    }

    /// Appends a thing, also if an equal one is there, and returns its position.
    pub(crate) fn push(&mut self, it: &T) -> usize {
        self.list.push(it.clone());
        let count = self.list.len();
        let first = match count.cmp(&(SHORT_LEN + 1)) {
            std::cmp::Ordering::Less => count,
            std::cmp::Ordering::Equal => 0,
            std::cmp::Ordering::Greater => count - 1,
        };
        for place in first..count {
            let digest = self.list[place].digest();
            self.places.entry(digest).or_default().push(place);
        }
        count - 1
    }
}

/// Finds the first of a list of names, in any case.
#[derive(Debug, Clone, Default)]
pub(crate) struct NameIndex {
    /// By the name in lower case; empty for a short list.
    places: HashMap<String, usize, RandomState>,
    /// How many names are in `places`.
    count: usize,
}

impl NameIndex {
    /// An index of these names.
    pub(crate) fn new<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> Self {
        let mut index = Self::default();
        index.extend(names);
        index
    }

    /// Adds what was appended to the list; these are all of its names.
    pub(crate) fn extend<'n>(&mut self, names: impl ExactSizeIterator<Item = &'n str>) {
        let count = names.len();
        if SHORT_LEN < count {
            for (place, name) in names.enumerate().skip(self.count) {
                let name = name.to_ascii_lowercase();
                self.places.entry(name).or_insert(place);
            }
            self.count = count;
        }
    }

    /// The position of the name in the indexed list.
    pub(crate) fn find<'n>(
        &self,
        wanted: &str,
        mut names: impl ExactSizeIterator<Item = &'n str>,
    ) -> Option<usize> {
        if SHORT_LEN < names.len() {
            return self.places.get(&wanted.to_ascii_lowercase()).copied();
        }
        names.position(|name| name.eq_ignore_ascii_case(wanted))
    }
}

#[cfg(test)]
mod tests {
    use expression::{ColumnPlace, ExpressionKind};
    use value::{ColumnType, TypeKind};

    use super::*;

    #[test]
    fn equal_expressions_have_one_place() {
        let column = |column| {
            let place = ColumnPlace { slot: 0, column };
            Expression::column(place, ColumnType::new(TypeKind::Int), true)
        };
        let mut numbered = Numbered::default();
        let mut naive: Vec<usize> = Vec::new();
        for step in 0..400 {
            let wanted = step * 7919 % 97;
            let expected = naive.iter().position(|known| *known == wanted);
            assert_eq!(numbered.find(&column(wanted)), expected);
            let place = numbered.place_of(&column(wanted));
            assert_eq!(place, expected.unwrap_or(naive.len()));
            if expected.is_none() {
                naive.push(wanted);
            }
        }
        assert_eq!(numbered.list().len(), naive.len());
    }

    #[test]
    fn the_last_of_equal_things_is_found() {
        let column = |column| {
            let place = ColumnPlace { slot: 0, column };
            Expression::column(place, ColumnType::new(TypeKind::Int), true)
        };
        let mut numbered = Numbered::default();
        for step in 0..40 {
            assert_eq!(numbered.push(&column(step % 2)), step);
            assert_eq!(numbered.find(&column(step % 2)), Some(step));
        }
        assert_eq!(numbered.place_of(&column(0)), 38);
    }

    #[test]
    fn each_of_many_has_a_digest_of_its_own() {
        let column_type = || ColumnType::new(TypeKind::BigInt);
        let column = Expression::column(ColumnPlace { slot: 0, column: 0 }, column_type(), true);
        let mut numbered = Numbered::default();
        for number in 0..5000 {
            let constant = Expression::constant(value::Value::Int(number), column_type());
            let list = vec![column.clone(), constant];
            let either = Expression::new(ExpressionKind::Coalesce(list), column_type());
            numbered.place_of(&either);
        }
        // So a lookup compares one expression, however many there are.
        assert_eq!(numbered.places.values().map(Vec::len).max(), Some(1));
    }

    #[test]
    fn names_are_found_whatever_their_case() {
        for count in [3, 16, 17, 50] {
            let names: Vec<String> = (0..count)
                .map(|place| format!("Name{}", place % 20))
                .collect();
            let all = || names.iter().map(String::as_str);
            let index = NameIndex::new(all());
            for (place, name) in names.iter().enumerate() {
                let found = index.find(&name.to_uppercase(), all());
                assert_eq!(found, Some(place % 20));
            }
            assert_eq!(index.find("nobody", all()), None);
            let mut grown = NameIndex::default();
            for end in 1..=names.len() {
                grown.extend(all().take(end));
                let last = &names[end - 1];
                assert_eq!(grown.find(last, all().take(end)), Some((end - 1) % 20));
            }
        }
    }
}
