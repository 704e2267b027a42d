//! Weights by the Unicode collation algorithm in its versions 4.0.0 and 5.2.0, with only the
//! primary level, and their changes for languages.

use super::Charset;
use super::tables::{UNICODE, UNICODE_520, WeightTable};
use super::weight::{ill_formed, next_char};

/// The weight of a code point beyond a version's table.
const BEYOND: u16 = 0xFFFD;
/// In a page: the code point has no entry and gets weights by rule.
const IMPLICIT: u16 = 0xFFFF;
/// In a page: the lowest number of an expansion.
const EXPANSION: u16 = 0xE000;

/// The weights of one version of the algorithm. A code point beyond the table's index has the
/// weight [`BEYOND`].
pub(crate) struct Version {
    table: &'static WeightTable<u16, 2>,
    /// The weight of a blank.
    pub(super) blank: u16,
}

/// Version 4.0.0, for the basic plane.
pub(crate) static V400: Version = Version {
    table: &UNICODE,
    blank: 0x0209,
};

/// Version 5.2.0, all planes.
pub(crate) static V520: Version = Version {
    table: &UNICODE_520,
    blank: 0x020A,
};

/// The order of a language: a version of the algorithm, and the differences.
pub(crate) struct Language {
    pub(super) base: &'static Version,
    /// Code points with other weights, sorted.
    pub(super) letters: &'static [(u32, &'static [u16])],
    /// Sequences of letters with weights of their own, sorted.
    pub(super) contractions: &'static [(&'static [u32], &'static [u16])],
}

/// `unicode_ci`
pub(crate) static ROOT: Language = Language {
    base: &V400,
    letters: &[],
    contractions: &[],
};

/// `unicode_520_ci`
pub(crate) static ROOT_520: Language = Language {
    base: &V520,
    letters: &[],
    contractions: &[],
};

/// Up to eight weights of a character.
#[derive(Clone, Copy)]
pub(super) enum Weights {
    One(u16),
    Two([u16; 2]),
    Many(&'static [u16]),
}

impl Weights {
    #[inline]
    pub(super) fn as_slice(&self) -> &[u16] {
        match self {
            // Weight 0 means no weight.
            Self::One(0) => &[],
            Self::One(weight) => std::slice::from_ref(weight),
            Self::Two(weights) => weights,
            Self::Many(weights) => weights,
        }
    }
}

impl Version {
    #[inline]
    fn weights(&self, code: u32) -> Weights {
        let [_, _, page_high, low] = code.to_be_bytes();
        let page = usize::from(u16::from_be_bytes([code.to_be_bytes()[1], page_high]));
        let Some(place) = self.table.index.get(page) else {
            return Weights::One(BEYOND);
        };
        let Some(words) = self.table.pages.get(usize::from(*place)) else {
            return Weights::Two(implicit(code));
        };
        match u16::from_le_bytes(words[usize::from(low)]) {
            IMPLICIT => Weights::Two(implicit(code)),
            word @ EXPANSION.. => {
                Weights::Many(self.table.expansion(usize::from(word - EXPANSION)))
            }
            word => Weights::One(word),
        }
    }
}

/// The weights of a code point without an entry, by the rule of version 4.0.0; MariaDB uses it in
/// version 5.2.0, too.
fn implicit(code: u32) -> [u16; 2] {
    let base = match code {
        0x4E00..=0x9FA5 => 0xFB40,
        0x3400..=0x4DB5 => 0xFB80,
        _ => 0xFBC0,
    };
    let half = |word: u32| stdx::low_u16(u64::from(word));
    [half(base + (code >> 15)), half(code & 0x7FFF | 0x8000)]
}

impl Language {
    /// The weights of a code point by itself.
    #[inline]
    pub(super) fn weights(&self, code: u32) -> Weights {
        if !self.letters.is_empty()
            && let Ok(at) = self
                .letters
                .binary_search_by_key(&code, |(letter, _)| *letter)
        {
            return Weights::Many(self.letters[at].1);
        }
        self.base.weights(code)
    }

    /// Whether ASCII characters may have other weights than in the version of the algorithm.
    pub(super) fn changes_ascii(&self) -> bool {
        let first = self.letters.first();
        first.is_some_and(|(letter, _)| *letter < 0x80)
    }

    /// The code point with the lowest weight: a tab (the control characters before it have none),
    /// unless the language has a letter below it.
    pub(super) fn lowest(&self) -> u32 {
        let tab = u32::from(b'\t');
        let weight = |code| self.weights(code).as_slice().first().copied();
        let letters = self.letters.iter().map(|(letter, _)| *letter);
        let weighing = letters.filter(|letter| weight(*letter).is_some());
        weighing
            .chain([tab])
            .min_by_key(|code| weight(*code))
            .unwrap_or(tab)
    }

    /// The weights of the contraction that begins with a code point; its rest is removed from
    /// `rest`. `None` if there is none.
    fn contraction(&self, charset: Charset, code: u32, rest: &mut &[u8]) -> Option<Weights> {
        let first = self
            .contractions
            .partition_point(|(letters, _)| letters[0] < code);
        for (letters, weights) in &self.contractions[first..] {
            if letters[0] != code {
                break;
            }
            let mut after = *rest;
            let follows = letters[1..]
                .iter()
                .all(|letter| !after.is_empty() && next_char(charset, &mut after) == Ok(*letter));
            if follows {
                *rest = after;
                return Some(Weights::Many(weights));
            }
        }
        None
    }
}

/// The weights of a text.
pub(super) struct UnicodeWeights<'a> {
    language: &'static Language,
    charset: Charset,
    rest: &'a [u8],
    pending: Weights,
    used: usize,
}

impl<'a> UnicodeWeights<'a> {
    pub(super) fn new(language: &'static Language, charset: Charset, rest: &'a [u8]) -> Self {
        Self {
            language,
            charset,
            rest,
            pending: Weights::One(0),
            used: 0,
        }
    }

    #[inline]
    fn next_weights(&mut self) -> Weights {
        let code = match next_char(self.charset, &mut self.rest) {
            Ok(code) => code,
            Err(byte) => return Weights::One(ill_formed(byte)),
        };
        if !self.language.contractions.is_empty()
            && let Some(found) = self
                .language
                .contraction(self.charset, code, &mut self.rest)
        {
            return found;
        }
        self.language.weights(code)
    }
}

impl Iterator for UnicodeWeights<'_> {
    type Item = u16;

    #[inline]
    fn next(&mut self) -> Option<u16> {
        loop {
            if let Some(weight) = self.pending.as_slice().get(self.used) {
                self.used += 1;
                return Some(*weight);
            }
            if self.rest.is_empty() {
                return None;
            }
            self.used = 0;
            self.pending = self.next_weights();
        }
    }
}
