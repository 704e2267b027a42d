//! The character set that a login asks for, by the number of a collation.
//!
//! Texts of a character set that is not supported would be misread, so such a login is refused. A
//! collation that is not supported, of a character set that is, stands for that set's default: its
//! texts are read right. A number that MariaDB does not know means the server's own settings.

use std::ops::RangeInclusive;

use errcode::{ClientError, ER_UNKNOWN_CHARACTER_SET, ER_WRONG_VALUE_FOR_VAR};
use value::{Charset, CollationId};

/// Numbers of MariaDB's collations, of which the login can name those below 1,024.
type Numbers = &'static [RangeInclusive<u16>];

/// The character sets of MariaDB 10.11 that are not supported.
const UNSUPPORTED: &[(&str, Numbers)] = &[
    ("armscii8", &[32..=32, 64..=64]),
    ("big5", &[1..=1, 84..=84]),
    ("cp850", &[4..=4, 80..=80]),
    ("cp852", &[40..=40, 81..=81]),
    ("dec8", &[3..=3, 69..=69]),
    ("eucjpms", &[97..=98]),
    ("geostd8", &[92..=93]),
    ("hp8", &[6..=6, 72..=72]),
    ("keybcs2", &[37..=37, 73..=73]),
    ("macce", &[38..=38, 43..=43]),
    ("swe7", &[10..=10, 82..=82]),
    ("ucs2", &[35..=35, 90..=90, 128..=151, 159..=159, 640..=642]),
    ("ujis", &[12..=12, 91..=91]),
    ("utf16", &[54..=55, 101..=124, 672..=674]),
    ("utf16le", &[56..=56, 62..=62]),
    ("utf32", &[60..=61, 160..=183, 736..=738]),
];

/// Collations that are not supported, of character sets that are.
const OF_SUPPORTED: &[(Charset, Numbers)] = &[
    (
        Charset::Latin1,
        &[5..=5, 15..=15, 31..=31, 48..=49, 94..=94],
    ),
    (Charset::Utf8mb3, &[192..=215, 223..=223, 576..=578]),
    (Charset::Utf8mb4, &[224..=247, 608..=610]),
];

/// Character sets whose ASCII is not one byte a character: no client may have them, as in MariaDB.
const WIDE: [&str; 4] = ["ucs2", "utf16", "utf16le", "utf32"];

/// The collation that a login's number means; `None` means the server's own. Error 1231 for a
/// character set that no client can have, and 1115 for others that are not supported.
pub(crate) fn login_collation(number: u16) -> Result<Option<CollationId>, ClientError> {
    if let Some(collation) = CollationId::from_id(number) {
        return Ok(Some(collation));
    }
    let has = |numbers: Numbers| numbers.iter().any(|range| range.contains(&number));
    if let Some((name, _)) = UNSUPPORTED.iter().find(|(_, numbers)| has(numbers)) {
        check_client_charset(name)?;
        return Err(ClientError::new(ER_UNKNOWN_CHARACTER_SET, &[name]));
    }
    let charset = OF_SUPPORTED.iter().find(|(_, numbers)| has(numbers));
    Ok(charset.map(|(charset, _)| charset.default_collation()))
}

/// Error 1231 if no client can have that character set.
pub(crate) fn check_client_charset(name: &str) -> Result<(), ClientError> {
    let wide = WIDE.iter().find(|wide| wide.eq_ignore_ascii_case(name));
    wide.map_or(Ok(()), |wide| {
        let facts: [&dyn std::fmt::Display; 2] = [&"character_set_client", wide];
        Err(ClientError::new(ER_WRONG_VALUE_FOR_VAR, &facts))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(number: u16) -> String {
        let error = login_collation(number).unwrap_err();
        format!("{} {}", error.code.number(), error.message)
    }

    #[test]
    fn each_number_means_one_thing() {
        let unsupported = UNSUPPORTED.iter().map(|(_, numbers)| *numbers);
        let of_supported = OF_SUPPORTED.iter().map(|(_, numbers)| *numbers);
        let all = unsupported.chain(of_supported).flatten();
        let mut numbers: Vec<u16> = all.cloned().flatten().collect();
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count);
        // A supported collation is never looked for there.
        let is_unsupported = |(name, _): &(&str, Numbers)| Charset::from_name(name).is_none();
        assert!(UNSUPPORTED.iter().all(is_unsupported));
    }

    #[test]
    fn what_would_be_misread_is_refused() {
        for number in [1, 84] {
            assert_eq!(refusal(number), "1115 Unknown character set: 'big5'");
        }
        assert_eq!(refusal(12), "1115 Unknown character set: 'ujis'");
        assert_eq!(refusal(10), "1115 Unknown character set: 'swe7'");
        assert_eq!(
            refusal(35),
            "1231 Variable 'character_set_client' can't be set to the value of 'ucs2'"
        );
        for number in [54, 60, 62] {
            assert!(refusal(number).starts_with("1231"), "{number}");
        }
    }

    #[test]
    fn what_is_read_right_is_taken() {
        let taken = |number| login_collation(number).unwrap();
        assert_eq!(taken(45), Some(CollationId::UTF8MB4_GENERAL_CI));
        assert_eq!(taken(5), Some(CollationId::LATIN1_SWEDISH_CI));
        assert_eq!(taken(51), Some(CollationId::CP1251_GENERAL_CI));
        assert_eq!(taken(14), Some(CollationId::CP1251_BULGARIAN_CI));
        for unknown in [0, 100, 254, 2000] {
            assert_eq!(taken(unknown), None, "{unknown}");
        }
    }
}
