//! Pages of one tablespace: a bit for each, for those stretches that have any.
//!
//! A check keeps one for each tablespace. It takes about a millionth of the file at 16 KiB a page,
//! and does not grow with the number of findings.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use format::PageNo;

/// Words of a stretch: 4,096 pages.
const WORDS: usize = 64;
/// Pages of a stretch.
const STRETCH: u32 = 64 * 64;

/// A set of page numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PageSet {
    /// Where a stretch begins, divided by its length; its bits.
    stretches: BTreeMap<u32, Box<[u64; WORDS]>>,
}

impl PageSet {
    /// Adds a page. Returns false if it was there.
    pub(crate) fn insert(&mut self, page: PageNo) -> bool {
        let words = self
            .stretches
            .entry(page.0 / STRETCH)
            .or_insert_with(|| Box::new([0; WORDS]));
        let word = words.get_mut(word_of(page)).expect("a remainder is below");
        let is_new = *word & bit_of(page) == 0;
        *word |= bit_of(page);
        is_new
    }

    /// Whether the set has a page.
    pub(crate) fn contains(&self, page: PageNo) -> bool {
        let words = self.stretches.get(&(page.0 / STRETCH));
        let word = words.and_then(|words| words.get(word_of(page)));
        word.is_some_and(|word| word & bit_of(page) != 0)
    }

    /// The pages of a range of numbers, in order.
    pub(crate) fn range(&self, range: RangeInclusive<u32>) -> impl Iterator<Item = PageNo> {
        let stretches = range.start() / STRETCH..=range.end() / STRETCH;
        let all = self
            .stretches
            .range(stretches)
            .flat_map(|(stretch, words)| {
                let numbers = words.iter().zip(0_u32..).flat_map(|(&word, number)| {
                    let bits = (0..64).filter(move |bit| word & (1 << bit) != 0);
                    bits.map(move |bit: u32| number * 64 + bit)
                });
                numbers.map(move |number| stretch * STRETCH + number)
            });
        all.filter(move |number| range.contains(number)).map(PageNo)
    }
}

fn word_of(page: PageNo) -> usize {
    stdx::to_usize(page.0 % STRETCH / 64)
}

fn bit_of(page: PageNo) -> u64 {
    1 << (page.0 % 64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_as_a_set(numbers in proptest::collection::vec(
            prop_oneof![0..200_u32, any::<u32>(), Just(u32::MAX), Just(STRETCH - 1)], 0..200)) {
            let (mut set, mut twin) = (PageSet::default(), BTreeSet::new());
            for number in numbers {
                prop_assert_eq!(set.contains(PageNo(number)), twin.contains(&number));
                prop_assert_eq!(set.insert(PageNo(number)), twin.insert(number));
            }
            for range in [0..=u32::MAX, 5..=150, 4096..=u32::MAX - 1, 4095..=4095] {
                let pages: Vec<u32> = set.range(range.clone()).map(|page| page.0).collect();
                prop_assert_eq!(pages, twin.range(range).copied().collect::<Vec<_>>());
            }
        }
    }
}
