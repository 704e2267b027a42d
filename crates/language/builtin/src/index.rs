//! Finds rows of the table: by function, and by name. For names there is an open hash table, made
//! at compile time.

use crate::builtin::{Builtin, Grammar, Meaning};
use crate::function::{AggregateFunction, Function};
use crate::table::{MISSING_FAMILIES, TABLE};

/// A function by one of its names.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// The name in upper case.
    pub name: &'static str,
    /// How a call by this name is written.
    pub grammar: Grammar,
    /// It is built in only if `(` follows directly.
    pub is_adjacent: bool,
    /// The function.
    pub builtin: &'static Builtin,
}

/// The function or operator with that name, in any case.
#[must_use]
pub fn find(name: &[u8]) -> Option<Found> {
    let mut slot = slot_of(name);
    loop {
        let entry = INDEX[slot]?;
        if usize::from(entry.bytes) == name.len() {
            let builtin = &TABLE[entry.row as usize];
            let found = &builtin.names[entry.name as usize];
            if found.text.as_bytes().eq_ignore_ascii_case(name) {
                return Some(Found {
                    name: found.text,
                    grammar: found.grammar,
                    is_adjacent: found.is_adjacent,
                    builtin,
                });
            }
        }
        slot = (slot + 1) % SLOTS;
    }
}

/// True if the name, in any case, belongs to a family of functions that MariaDB has and this server
/// lacks. Ask [`find`] first: some of a family may be there.
#[must_use]
pub fn is_of_missing_family(name: &str) -> bool {
    let begins = |family: &&str| {
        name.get(..family.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(family))
    };
    MISSING_FAMILIES.iter().any(begins)
}

impl Function {
    /// Its row.
    #[must_use]
    pub fn builtin(self) -> &'static Builtin {
        &TABLE[self as usize]
    }

    /// Its first name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.builtin().name()
    }

    /// True if that is one of its names, in any case.
    #[must_use]
    pub fn has_name(self, name: &str) -> bool {
        find(name.as_bytes()).is_some_and(|found| found.builtin.meaning == Meaning::Library(self))
    }
}

impl AggregateFunction {
    /// Its first name.
    ///
    /// # Panics
    /// If the table has no row for it, which a test excludes.
    #[must_use]
    pub fn name(self) -> &'static str {
        TABLE
            .iter()
            .find(|builtin| builtin.meaning == Meaning::Aggregate(self))
            .expect("each aggregate has a row")
            .name()
    }
}

/// A name of the table: its row, its place among the row's names, its length.
#[derive(Debug, Clone, Copy)]
struct Entry {
    row: u16,
    name: u8,
    bytes: u8,
}

/// More than twice the names, so that a search is short.
const SLOTS: usize = 1024;

static INDEX: [Option<Entry>; SLOTS] = index();

const fn index() -> [Option<Entry>; SLOTS] {
    let mut slots = [None; SLOTS];
    let mut count = 0;
    let mut row = 0;
    while row < TABLE.len() {
        let names = TABLE[row].names;
        let mut name = 0;
        while name < names.len() {
            let text = names[name].text.as_bytes();
            let mut slot = slot_of(text);
            while slots[slot].is_some() {
                slot = (slot + 1) % SLOTS;
            }
            slots[slot] = Some(entry(row, name, text.len()));
            count += 1;
            name += 1;
        }
        row += 1;
    }
    assert!(2 * count <= SLOTS, "SLOTS is too small");
    slots
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the assertions say that it fits"
)]
const fn entry(row: usize, name: usize, bytes: usize) -> Entry {
    assert!(row <= u16::MAX as usize && name <= u8::MAX as usize && bytes <= u8::MAX as usize);
    Entry {
        row: row as u16,
        name: name as u8,
        bytes: bytes as u8,
    }
}

/// Where the search for a name begins: a hash of its length and of five of its bytes, which is
/// enough to tell most names apart and cheap for the canonical form, which asks for each word
/// before a parenthesis. `| 0x20` makes ASCII letters lower case.
const fn slot_of(name: &[u8]) -> usize {
    let count = name.len();
    if count == 0 {
        return 0;
    }
    let places = [0, count / 4, count / 2, 3 * count / 4, count - 1];
    let mut word = count as u64;
    let mut at = 0;
    while at < places.len() {
        word ^= ((name[places[at]] | 0x20) as u64) << (8 * at);
        at += 1;
    }
    // An odd constant spreads the bits upwards: the second prime of xxHash.
    (word.wrapping_mul(0xC2B2_AE3D_27D4_EB4F) >> 54) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case() {
        let found = find(b"ucase").expect("a function");
        assert_eq!((found.name, found.builtin.name()), ("UCASE", "UPPER"));
        assert!(find(b"sbtest1").is_none() && find(b"").is_none());
        assert!(find(&[b'A'; 29]).is_none() && find(&[b'A'; 1 << 16]).is_none());
        assert!(find(b"\xFF\xFE").is_none());
    }

    #[test]
    fn searches_are_short() {
        let mut longest = 0;
        let mut run = 0;
        for slot in INDEX.iter().chain(&INDEX) {
            run = if slot.is_some() { run + 1 } else { 0 };
            longest = longest.max(run);
        }
        assert!(longest <= 13, "{longest} slots in a row are taken");
    }

    #[test]
    fn families_are_recognised_by_their_prefixes() {
        assert!(is_of_missing_family("Json_Extract") && is_of_missing_family("st_area"));
        assert!(!is_of_missing_family("json") && !is_of_missing_family("my_own"));
        assert!(!is_of_missing_family("\u{e9}\u{e9}\u{e9}"));
    }
}
