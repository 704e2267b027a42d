//! A stable sort whose comparison may fail, or take long: the one of `std` must be given a total
//! order to its end.
//!
//! Runs that are in order already are found first; then neighbours are merged, pass by pass.

use std::cmp::Ordering;

/// Sorts `items`; equal ones keep their order. On failure they are in any order, none is lost.
///
/// # Errors
/// What `compare` fails with.
pub(crate) fn merge_sort<E>(
    items: &mut Vec<u32>,
    mut compare: impl FnMut(u32, u32) -> Result<Ordering, E>,
) -> Result<(), E> {
    let mut ends = run_ends(items, &mut compare)?;
    let mut merged = Vec::with_capacity(items.len());
    while 1 < ends.len() {
        let mut start = 0;
        let mut merged_ends = Vec::with_capacity(ends.len().div_ceil(2));
        merged.clear();
        for pair in ends.chunks(2) {
            let middle = pair[0];
            let end = pair.get(1).copied().unwrap_or(middle);
            merge(
                &items[start..middle],
                &items[middle..end],
                &mut merged,
                &mut compare,
            )?;
            merged_ends.push(end);
            start = end;
        }
        assert_eq!(merged.len(), items.len(), "a pass merges all");
        std::mem::swap(items, &mut merged);
        ends = merged_ends;
    }
    Ok(())
}

/// Where the runs that are in order end, behind their last items.
fn run_ends<E>(
    items: &[u32],
    compare: &mut impl FnMut(u32, u32) -> Result<Ordering, E>,
) -> Result<Vec<usize>, E> {
    let mut ends = Vec::new();
    for (index, pair) in items.windows(2).enumerate() {
        if compare(pair[0], pair[1])?.is_gt() {
            ends.push(index + 1);
        }
    }
    ends.push(items.len());
    Ok(ends)
}

fn merge<E>(
    mut left: &[u32],
    mut right: &[u32],
    merged: &mut Vec<u32>,
    compare: &mut impl FnMut(u32, u32) -> Result<Ordering, E>,
) -> Result<(), E> {
    while let (Some((&first, rest)), Some((&second, behind))) =
        (left.split_first(), right.split_first())
    {
        if compare(first, second)?.is_le() {
            merged.push(first);
            left = rest;
        } else {
            merged.push(second);
            right = behind;
        }
    }
    merged.extend_from_slice(left);
    merged.extend_from_slice(right);
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
            let mut items: Vec<u32> = (0..count).collect();
            let mut expected = items.clone();
            let Ok(()) = merge_sort(&mut items, |a, b| Ok::<_, Infallible>(key(a).cmp(&key(b))));
            expected.sort_by_key(|&item| key(item));
            assert_eq!(items, expected);
        }
    }

    #[test]
    fn a_comparison_may_end_it() {
        let mut items: Vec<u32> = (0..100).rev().collect();
        let mut left = 150;
        let sorted = merge_sort(&mut items, |a, b| {
            left -= 1;
            if left == 0 { Err(()) } else { Ok(a.cmp(&b)) }
        });
        assert_eq!(sorted, Err(()));
        items.sort_unstable();
        assert!(items.into_iter().eq(0..100));
    }

    #[test]
    fn what_is_in_order_is_looked_at_once() {
        let mut items: Vec<u32> = (0..1000).collect();
        let mut count = 0;
        let Ok(()) = merge_sort(&mut items, |a, b| {
            count += 1;
            Ok::<_, Infallible>(a.cmp(&b))
        });
        assert_eq!(count, 999);
    }
}
