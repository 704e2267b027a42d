//! A stable sort whose comparison may fail, or take long. The one of `std` needs a total order and
//! cannot stop early.
//!
//! Runs that are in order already are found first. Then neighbours are merged, pass by pass. All
//! lists are in chunks, so no step takes long.

use std::cmp::Ordering;
use std::ops::Range;

use crate::{ChunkedVec, to_u32};

/// Sorts `items`; equal ones keep their order. `moved` is called again and again with the number of
/// items that were moved without a comparison. After a failure they are in any order, and none is
/// lost.
///
/// # Errors
/// What `compare` and `moved` fail with.
pub fn merge_sort<E>(
    items: &mut ChunkedVec<u32>,
    mut compare: impl FnMut(u32, u32) -> Result<Ordering, E>,
    mut moved: impl FnMut(usize) -> Result<(), E>,
) -> Result<(), E> {
    let mut ends = run_ends(items, &mut compare)?;
    while 1 < ends.len() {
        let mut merged = ChunkedVec::new();
        let mut merged_ends = ChunkedVec::new();
        let mut start = 0;
        for pair in (0..ends.len()).step_by(2) {
            let middle = ends[pair] as usize;
            let end = if pair + 1 < ends.len() {
                ends[pair + 1] as usize
            } else {
                middle
            };
            let (mut left, mut right) = (start, middle);
            while left < middle && right < end {
                let (first, second) = (items[left], items[right]);
                if compare(first, second)?.is_le() {
                    merged.push(first);
                    left += 1;
                } else {
                    merged.push(second);
                    right += 1;
                }
            }
            copy(items, left..middle, &mut merged, &mut moved)?;
            copy(items, right..end, &mut merged, &mut moved)?;
            merged_ends.push(to_u32(end));
            start = end;
        }
        assert_eq!(merged.len(), items.len(), "a pass merges all");
        *items = merged;
        ends = merged_ends;
    }
    Ok(())
}

/// The ends of the runs that are in order, after their last items.
fn run_ends<E>(
    items: &ChunkedVec<u32>,
    compare: &mut impl FnMut(u32, u32) -> Result<Ordering, E>,
) -> Result<ChunkedVec<u32>, E> {
    let mut ends = ChunkedVec::new();
    for next in 1..items.len() {
        if compare(items[next - 1], items[next])?.is_gt() {
            ends.push(to_u32(next));
        }
    }
    ends.push(to_u32(items.len()));
    Ok(ends)
}

/// Items that are copied between two calls of `moved`.
const PIECE_LEN: usize = 4096;

fn copy<E>(
    items: &ChunkedVec<u32>,
    range: Range<usize>,
    merged: &mut ChunkedVec<u32>,
    moved: &mut impl FnMut(usize) -> Result<(), E>,
) -> Result<(), E> {
    for start in range.clone().step_by(PIECE_LEN) {
        let end = range.end.min(start + PIECE_LEN);
        merged.extend((start..end).map(|index| items[index]));
        moved(end - start)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn it_sorts_as_std_does() {
        let mut state = 7u32;
        for count in [0, 1, 2, 3, 7, 100, 1000] {
            let keys: Vec<u32> = (0..count)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    state >> 28
                })
                .collect();
            let key = |item: u32| keys[item as usize];
            let mut items: ChunkedVec<u32> = (0..count).collect();
            let mut expected: Vec<u32> = (0..count).collect();
            let compare = |a, b| Ok::<_, Infallible>(key(a).cmp(&key(b)));
            let Ok(()) = merge_sort(&mut items, compare, |_| Ok(()));
            expected.sort_by_key(|&item| key(item));
            assert!(items.iter().eq(&expected));
        }
    }

    #[test]
    fn a_comparison_may_end_it() {
        let mut items: ChunkedVec<u32> = (0..100).rev().collect();
        let mut left = 150;
        let compare = |a: u32, b: u32| {
            left -= 1;
            if left == 0 { Err(()) } else { Ok(a.cmp(&b)) }
        };
        assert_eq!(merge_sort(&mut items, compare, |_| Ok(())), Err(()));
        let mut items: Vec<u32> = items.iter().copied().collect();
        items.sort_unstable();
        assert!(items.into_iter().eq(0..100));
    }

    #[test]
    fn what_is_in_order_is_looked_at_once() {
        let mut items: ChunkedVec<u32> = (0..1000).collect();
        let mut count = 0;
        let compare = |a: u32, b: u32| {
            count += 1;
            Ok::<_, Infallible>(a.cmp(&b))
        };
        let Ok(()) = merge_sort(&mut items, compare, |_| Ok(()));
        assert_eq!(count, 999);
    }

    #[test]
    fn long_copies_are_told_of_piece_by_piece() {
        let count = 100_000;
        let mut items: ChunkedVec<u32> = (count..2 * count).chain(0..count).collect();
        let mut told = Vec::new();
        let sorted = merge_sort(
            &mut items,
            |a, b| Ok::<_, Infallible>(a.cmp(&b)),
            |moved| {
                told.push(moved);
                Ok(())
            },
        );
        assert_eq!(sorted, Ok(()));
        assert!(items.iter().copied().eq(0..2 * count));
        assert_eq!(told.iter().sum::<usize>(), count as usize);
        assert!(told.iter().all(|&moved| moved <= PIECE_LEN));
    }
}
