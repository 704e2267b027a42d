//! Writes the weights of code points as a file; `src/collation/tables.rs` has its layout.

use std::collections::BTreeMap;

/// Weights of code points, in words of type `W`.
pub(super) struct WeightFile<W> {
    /// By page number: the words of its 256 code points.
    pub(super) pages: BTreeMap<u32, Vec<W>>,
    /// What a code point weighs if that is no single word.
    pub(super) expansions: Vec<Vec<W>>,
    /// The last code point of the index.
    pub(super) last: u32,
}

impl<W: Copy> WeightFile<W> {
    /// The file's bytes; `word` shows the bytes of a word.
    pub(super) fn bytes<const BYTES: usize>(&self, word: impl Fn(W) -> [u8; BYTES]) -> Vec<u8> {
        assert!(self.pages.len() < 255, "255 is no page");
        let mut out = Vec::new();
        let number = |count: usize| u16::try_from(count).expect("a small count").to_le_bytes();
        let page_count = usize::try_from(self.last >> 8).expect("a page number") + 1;
        for count in [page_count, self.pages.len(), self.expansions.len()] {
            out.extend(number(count));
        }
        for page in 0..=self.last >> 8 {
            let place = self.pages.keys().position(|known| *known == page);
            out.push(place.map_or(255, |place| u8::try_from(place).expect("below 255")));
        }
        let pages = self.pages.values();
        out.extend(pages.flatten().copied().flat_map(&word));
        let mut end = 0;
        for words in &self.expansions {
            end += words.len();
            out.extend(number(end));
        }
        out.extend(self.expansions.iter().flatten().copied().flat_map(&word));
        out
    }
}
