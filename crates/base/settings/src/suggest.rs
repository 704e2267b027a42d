//! Finds the name that was probably meant.

use crate::places::as_in_table;

/// The nearest of the names, if it is near enough to suggest: at most a third of the letters
/// differ.
pub(crate) fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let text = as_in_table(text);
    let best = names.map(|name| (distance(&text, name), name)).min()?;
    (best.0 <= text.len().div_ceil(3)).then_some(best.1)
}

/// Edit distance (Levenshtein), one row at a time.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (left_index, left_char) in left.chars().enumerate() {
        let mut diagonal = left_index;
        let mut before = left_index + 1;
        for (right_char, cell) in right.iter().zip(row.iter_mut().skip(1)) {
            let replaced = diagonal + usize::from(left_char != *right_char);
            diagonal = *cell;
            before = replaced.min(before + 1).min(*cell + 1);
            *cell = before;
        }
        if let Some(first) = row.first_mut() {
            *first = left_index + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("same", "same"), 0);
    }

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let names = ["max_connections", "wait_timeout"];
        assert_eq!(
            nearest("max-conections", names.into_iter()),
            Some("max_connections")
        );
        assert_eq!(nearest("colour", names.into_iter()), None);
    }
}
