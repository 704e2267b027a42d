//! Data generated from MariaDB and from Unicode's tables; nothing here is edited by hand.
//!
//! Small tables are sources. The weights of whole planes are files beside them: as literals they
//! were 16,000 lines. `examples/collation_tables` writes both. `tests/mariadb.rs` compares the
//! weights with MariaDB's.
//!
//! ```text
//! NAME.weights: numbers have 2 bytes, words 2 or 4; the lowest byte is first
//! number              entries of the index
//! number              pages
//! number              expansions
//! index               a byte for each 256 code points: their place among the pages; 255: none
//! pages               256 words each
//! ends                a number for each expansion: where it ends in the words
//! words               the expansions, one behind the other
//! ```
//!
//! An expansion is what one code point weighs if that is no single word. What a word means, and
//! which words stand for an expansion, is its reader's to know.

pub(super) mod case;
pub(super) mod languages;
pub(super) mod latin1;

/// Weights by code point. Pages stay as they are in the file, and a word is put together where it
/// is read: to decode a hundred thousand of them would cost more compile time than their literals
/// did.
pub(crate) struct WeightTable<W: 'static, const BYTES: usize> {
    /// By page (256 code points): its place in `pages`, or 255 if it has none.
    pub(crate) index: &'static [u8],
    pub(crate) pages: &'static [[[u8; BYTES]; 256]],
    /// Where each expansion ends in `words`.
    ends: &'static [[u8; 2]],
    words: &'static [W],
}

impl<W, const BYTES: usize> WeightTable<W, BYTES> {
    /// The words of an expansion.
    #[inline]
    pub(crate) fn expansion(&self, number: usize) -> &'static [W] {
        let end = |number: usize| usize::from(u16::from_le_bytes(self.ends[number]));
        let begin = match number {
            0 => 0,
            _ => end(number - 1),
        };
        &self.words[begin..end(number)]
    }
}

/// The parts of a file.
struct File {
    index: &'static [u8],
    pages: &'static [u8],
    ends: &'static [u8],
    words: &'static [u8],
}

impl File {
    /// Takes a file apart while the crate is compiled. A file that is too short does not compile.
    const fn read(bytes: &'static [u8], word_bytes: usize) -> File {
        let (head, rest) = bytes.split_at(6);
        let (numbers, _) = head.as_chunks();
        let (index, rest) = rest.split_at(u16::from_le_bytes(numbers[0]) as usize);
        let page_bytes = 256 * word_bytes;
        let (pages, rest) = rest.split_at(u16::from_le_bytes(numbers[1]) as usize * page_bytes);
        let (ends, words) = rest.split_at(u16::from_le_bytes(numbers[2]) as usize * 2);
        File {
            index,
            pages,
            ends,
            words,
        }
    }
}

/// Includes a file. A macro, since the count of words is the length of an array.
macro_rules! weight_table {
    ($word:ty, $file:literal) => {{
        const BYTES: usize = size_of::<$word>();
        const FILE: File = File::read(include_bytes!($file), BYTES);
        static WORDS: [$word; FILE.words.len() / BYTES] = {
            let (chunks, _) = FILE.words.as_chunks();
            let mut words = [0; _];
            let mut at = 0;
            while at < chunks.len() {
                words[at] = <$word>::from_le_bytes(chunks[at]);
                at += 1;
            }
            words
        };
        WeightTable {
            index: FILE.index,
            pages: FILE.pages.as_chunks().0.as_chunks().0,
            ends: FILE.ends.as_chunks().0,
            words: &WORDS,
        }
    }};
}

/// Weights of `general_ci`: pages that differ from the code points.
pub(super) static GENERAL: WeightTable<u16, 2> = weight_table!(u16, "tables/general.weights");

/// Weights of `unicode_ci`.
pub(super) static UNICODE: WeightTable<u16, 2> = weight_table!(u16, "tables/unicode.weights");

/// Weights of `unicode_520_ci`.
pub(super) static UNICODE_520: WeightTable<u16, 2> =
    weight_table!(u16, "tables/unicode520.weights");

/// Collation elements of the Unicode collation algorithm, version 9.0.0: 16 bits of primary weight,
/// 11 of secondary, 5 of tertiary. From `allkeys.txt`, Copyright 2016 Unicode, Inc., under the
/// Unicode License (LICENSE-UNICODE).
pub(super) static UCA_900: WeightTable<u32, 4> = weight_table!(u32, "tables/uca900.weights");

#[cfg(test)]
mod tests {
    use super::*;

    /// FNV-1a of 64 bits.
    fn digest(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0xCBF2_9CE4_8422_2325, |digest, byte| {
            (digest ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3)
        })
    }

    /// The generator's output, to the byte. `utf8mb4_0900_*` has no reference to compare with.
    #[test]
    fn files_are_as_generated() {
        let file = |name: &str| {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/collation/tables");
            std::fs::read(format!("{folder}/{name}.weights")).unwrap()
        };
        assert_eq!(digest(&file("general")), 0x1620_fe2c_0cae_6970);
        assert_eq!(digest(&file("unicode")), 0x375a_7774_efc7_683d);
        assert_eq!(digest(&file("unicode520")), 0x6437_dcb6_6849_2615);
        assert_eq!(digest(&file("uca900")), 0x9010_1a23_d698_d150);
    }

    #[test]
    fn every_expansion_has_words_and_a_code_point() {
        fn check<W, const BYTES: usize>(
            table: &WeightTable<W, BYTES>,
            number: impl Fn([u8; BYTES]) -> Option<usize>,
        ) {
            let words = table.pages.iter().flatten();
            let mut numbers: Vec<usize> = words.copied().filter_map(number).collect();
            numbers.sort_unstable();
            numbers.dedup();
            assert!(numbers.iter().copied().eq(0..table.ends.len()));
            for number in numbers {
                assert!((2..=8).contains(&table.expansion(number).len()));
            }
        }
        let narrow = |word: [u8; 2]| {
            let word = u16::from_le_bytes(word);
            (0xE000..0xFFFF)
                .contains(&word)
                .then(|| usize::from(word - 0xE000))
        };
        check(&UNICODE, narrow);
        check(&UNICODE_520, narrow);
        check(&UCA_900, |word| {
            let number = u32::from_le_bytes(word).checked_sub(0xFFFF_0000)?;
            (number < 0xFFFF).then(|| usize::try_from(number).unwrap())
        });
    }
}
