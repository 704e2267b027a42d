//! [`Marks`]: places in the undo of a transaction that has parts in several stores.
//!
//! A place is one number for the caller, and one for each part. It is the sum of the parts' own
//! numbers, counted as they grew. What grew is kept as runs: in a run only one part grew. So a
//! transaction of one store has one run, however many statements it has. (A list of all places that
//! were given out would grow with each changing statement.)
//!
//! (I1) The runs follow each other without a gap: each begins where the one before ends.

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    runs: Vec<Run>,
    /// The last number of each part.
    parts: Vec<u64>,
    /// The sum of all growth: the present place.
    total: u64,
}

/// A stretch in which one part grew.
#[derive(Debug, Clone, Copy)]
struct Run {
    part: usize,
    /// The place at which it begins.
    start: u64,
    /// The part's number there.
    part_start: u64,
}

impl Marks {
    /// Notes the present number of a part.
    pub(crate) fn note(&mut self, part: usize, number: u64) {
        if self.parts.len() <= part {
            self.parts.resize(part + 1, 0);
        }
        let before = self.parts[part];
        if number <= before {
            return;
        }
        if self.runs.last().is_none_or(|run| run.part != part) {
            self.runs.push(Run {
                part,
                start: self.total,
                part_start: before,
            });
        }
        self.parts[part] = number;
        self.total += number - before;
    }

    /// The present place.
    pub(crate) fn place(&self) -> u64 {
        self.total
    }

    /// The number of a part at a place that was given out.
    pub(crate) fn number(&self, part: usize, place: u64) -> u64 {
        let ends = self.runs.iter().skip(1).map(|run| run.start);
        let ends = ends.chain([self.total]);
        let own = self.runs.iter().zip(ends);
        let last = own
            .filter(|(run, _)| run.part == part && run.start < place)
            .last();
        last.map_or(0, |(run, end)| {
            run.part_start + (end.min(place) - run.start)
        })
    }

    /// Forgets what came after the place: everything since was undone.
    pub(crate) fn cut(&mut self, place: u64) {
        let parts: Vec<u64> = (0..self.parts.len())
            .map(|part| self.number(part, place))
            .collect();
        self.parts = parts;
        self.runs.retain(|run| run.start < place);
        self.total = self.total.min(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_of_one_part_has_one_run() {
        let mut marks = Marks::default();
        for number in 1..1000 {
            marks.note(0, number);
            assert_eq!(marks.place(), number);
        }
        assert_eq!(marks.runs.len(), 1);
        assert_eq!((marks.number(0, 400), marks.number(1, 400)), (400, 0));
    }

    /// Beside a list of all places, with random growth and returns.
    #[test]
    fn places_are_found_again_as_a_list_of_them_has_them() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..200 {
            let (mut marks, mut now) = (Marks::default(), [0_u64; 3]);
            let mut given = vec![(0, now)];
            for _ in 0..40 {
                if random(4) == 0 {
                    let kept = usize::try_from(random(given.len() as u64)).unwrap_or(0);
                    given.truncate(kept + 1);
                    let (place, numbers) = given[kept];
                    marks.cut(place);
                    now = numbers;
                    continue;
                }
                // A statement may change the tables of several parts.
                for (part, number) in now.iter_mut().enumerate() {
                    *number += random(3);
                    marks.note(part, *number);
                }
                given.push((marks.place(), now));
                for (place, numbers) in &given {
                    let found = [0, 1, 2].map(|part| marks.number(part, *place));
                    assert_eq!(found, *numbers, "at {place} in {marks:?}");
                }
            }
        }
    }
}
