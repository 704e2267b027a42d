//! The collation elements of Unicode, version 9.0.0.
//!
//! Contractions of `allkeys.txt` are left out, and a character has at most eight elements, as in
//! MySQL's `utf8mb4_0900_*` collations.

use std::collections::BTreeMap;

use super::weight_file::WeightFile;

/// In a page: the code point has no entry.
const IMPLICIT: u32 = u32::MAX;
/// In a page: the lowest number of an expansion; its low half is the index.
const EXPANSION: u32 = 0xFFFF_0000;
/// The most elements of a character.
const ELEMENTS_MAX: usize = 8;

/// The weights of the text of `allkeys.txt`.
pub(super) fn weights(allkeys: &str) -> WeightFile<u32> {
    assert!(
        allkeys.contains("@version 9.0.0"),
        "version 9.0.0 is wanted"
    );
    let elements: BTreeMap<u32, Vec<u32>> = allkeys.lines().filter_map(entry).collect();
    let mut expansions: Vec<Vec<u32>> = Vec::new();
    let mut known: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
    let mut pages: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (code, found) in elements {
        let page = pages
            .entry(code >> 8)
            .or_insert_with(|| vec![IMPLICIT; 256]);
        page[(code & 0xFF) as usize] = match found[..] {
            [single] => single,
            _ => {
                let index = *known.entry(found).or_insert_with_key(|found| {
                    expansions.push(found.clone());
                    expansions.len() - 1
                });
                EXPANSION + u32::try_from(index).expect("few expansions")
            }
        };
    }
    WeightFile {
        pages,
        expansions,
        last: 0x10_FFFF,
    }
}

/// A line's code point and its elements, each packed: 16 bits of primary weight, 11 of secondary
/// weight, 5 of tertiary weight. `None` for other lines.
fn entry(line: &str) -> Option<(u32, Vec<u32>)> {
    let line = line.split('#').next()?.trim();
    let (code, elements) = line.split_once(';')?;
    let code = u32::from_str_radix(code.trim(), 16).ok()?;
    let packed = elements
        .split('[')
        .skip(1)
        .take(ELEMENTS_MAX)
        .map(|element| {
            let weights: Vec<u32> = element
                .trim_matches(['*', '.', ']', ' '])
                .split('.')
                .map(|weight| u32::from_str_radix(weight, 16).expect("hexadecimal digits"))
                .collect();
            let [primary, secondary, tertiary] = weights[..] else {
                panic!("three weights in {element}");
            };
            assert!(
                secondary < 1 << 11 && tertiary < 1 << 5,
                "they fit: {element}"
            );
            let packed = primary << 16 | secondary << 5 | tertiary;
            assert!(packed < EXPANSION, "expansions start there");
            packed
        });
    Some((code, packed.collect()))
}
