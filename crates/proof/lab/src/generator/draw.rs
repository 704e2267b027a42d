//! The rows and values of statements: sysbench's distributions, drawn from a seed.

use crate::random::Random;

/// How rows are chosen (sysbench's `--rand-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Distribution {
    /// All rows are equally likely.
    Uniform,
    /// sysbench's default. Three of four draws are uniform over the middle hundredth of the rows;
    /// the others are around the middle, as the mean of twelve uniform draws.
    Special,
}

/// Draws of the special distribution that are averaged.
const SPECIAL_DRAWS: u64 = 12;

/// One in this many rows is special.
const SPECIAL_SHARE: u64 = 100;

/// Digits in a group of a text.
const GROUP_DIGITS: usize = 11;

/// A source of rows and texts.
#[derive(Clone, Debug)]
pub(super) struct Draw {
    random: Random,
    rows: u64,
    distribution: Distribution,
}

impl Draw {
    /// Rows are numbered from 1 to `rows`, which is not 0.
    pub(super) fn new(seed: u64, rows: u64, distribution: Distribution) -> Draw {
        Draw {
            random: Random::new(seed),
            rows,
            distribution,
        }
    }

    /// A row of a table.
    pub(super) fn row(&mut self) -> u64 {
        1 + match self.distribution {
            Distribution::Uniform => self.random.below(self.rows),
            Distribution::Special => self.special(),
        }
    }

    fn special(&mut self) -> u64 {
        if self.random.below(4) == 0 {
            let sum: u64 = (0..SPECIAL_DRAWS)
                .map(|_| self.random.below(self.rows))
                .sum();
            return sum / SPECIAL_DRAWS;
        }
        let special = (self.rows / SPECIAL_SHARE).max(1);
        (self.rows - special) / 2 + self.random.below(special)
    }

    /// A table, numbered from 1.
    pub(super) fn table(&mut self, tables: u32) -> u32 {
        1 + stdx::to_u32(stdx::to_usize(self.random.below(u64::from(tables))))
    }

    /// A number below `limit`, which is not 0.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    /// `groups` groups of eleven digits, separated by dashes.
    pub(super) fn digits(&mut self, groups: usize) -> Vec<u8> {
        let mut text = Vec::with_capacity(groups * (GROUP_DIGITS + 1));
        for _ in 0..groups {
            // 16 bits are dropped for their quality; 48 are enough for eleven digits.
            let mut rest = self.random.next() >> 16;
            for _ in 0..GROUP_DIGITS {
                let [digit, ..] = (rest % 10).to_le_bytes();
                text.push(b'0' + digit);
                rest /= 10;
            }
            text.push(b'-');
        }
        text.pop();
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_in_the_table() {
        for distribution in [Distribution::Uniform, Distribution::Special] {
            for rows in [1, 2, 99, 50_000] {
                let mut draw = Draw::new(rows, rows, distribution);
                assert!((0..1000).all(|_| (1..=rows).contains(&draw.row())));
            }
        }
    }

    #[test]
    fn special_rows_are_in_the_middle() {
        let mut draw = Draw::new(3, 50_000, Distribution::Special);
        let hot = (0..10_000)
            .filter(|_| (24_751..=25_250).contains(&draw.row()))
            .count();
        // Three quarters, and the few of the others that are also there.
        assert!((7_300..7_900).contains(&hot), "{hot}");
    }

    #[test]
    fn texts_have_the_template_s_shape() {
        let mut draw = Draw::new(5, 10, Distribution::Uniform);
        let text = draw.digits(10);
        assert_eq!(text.len(), 119);
        for (index, byte) in text.iter().enumerate() {
            assert_eq!(*byte == b'-', index % 12 == 11);
        }
        assert_ne!(text, draw.digits(10));
    }
}
