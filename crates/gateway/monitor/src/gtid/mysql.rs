//! Executed sets of MySQL.
//!
//! Each server numbers its own transactions, and a replica may lack some of them. So a set is a
//! list of intervals for each source. Since 8.3 a source may have several series, told apart by a
//! tag.
//!
//! (I1) The intervals of a series are sorted and neither overlap nor touch.

use std::collections::BTreeMap;
use std::fmt;

use super::{GtidError, number};

/// Transactions by source, tag and number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MySqlSet {
    /// The intervals of each series, as I1 says.
    series: BTreeMap<Series, Vec<Interval>>,
}

/// What has its own numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    /// The source's `server_uuid`.
    uuid: u128,
    /// In small letters; mostly empty.
    tag: String,
}

/// Numbers of transactions, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Interval {
    first: u64,
    last: u64,
}

/// Characters of a tag at most: MySQL's own limit.
const TAG_BYTES_MAX: usize = 32;

/// Digits of a UUID.
const UUID_DIGITS: usize = 32;

/// Where a UUID's text has dashes.
const UUID_DASHES: [usize; 4] = [8, 13, 18, 23];

impl MySqlSet {
    /// Reads `uuid[:tag]:interval...,...`. Blanks around each part are skipped.
    pub fn parse(text: &str) -> Result<MySqlSet, GtidError> {
        let mut set = MySqlSet::default();
        for source in text.split(',').map(str::trim) {
            if !source.is_empty() {
                set.add_source(source)?;
            }
        }
        for intervals in set.series.values_mut() {
            join(intervals);
        }
        Ok(set)
    }

    /// Whether all of `wanted` is in this set.
    pub fn covers(&self, wanted: &MySqlSet) -> bool {
        wanted.series.iter().all(|(series, wanted)| {
            let have = self.series.get(series);
            have.is_some_and(|have| wanted.iter().all(|it| has(have, *it)))
        })
    }

    /// Whether it names no transaction.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    fn add_source(&mut self, text: &str) -> Result<(), GtidError> {
        let mut parts = text.split(':').map(str::trim);
        let uuid = uuid(parts.next().unwrap_or_default())?;
        let mut tag = String::new();
        let mut is_named = true;
        for part in parts {
            if part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
                tag = read_tag(part)?;
                is_named = true;
                continue;
            }
            let interval = interval(part)?;
            let key = Series {
                uuid,
                tag: tag.clone(),
            };
            self.series.entry(key).or_default().push(interval);
            is_named = false;
        }
        match is_named {
            true => Err(GtidError::Interval),
            false => Ok(()),
        }
    }
}

impl fmt::Display for MySqlSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before: Option<u128> = None;
        for (series, intervals) in &self.series {
            if before != Some(series.uuid) {
                f.write_str(if before.is_some() { "," } else { "" })?;
                write_uuid(f, series.uuid)?;
            }
            if !series.tag.is_empty() {
                write!(f, ":{}", series.tag)?;
            }
            for interval in intervals {
                write!(f, ":{}", interval.first)?;
                if interval.first < interval.last {
                    write!(f, "-{}", interval.last)?;
                }
            }
            before = Some(series.uuid);
        }
        Ok(())
    }
}

/// Whether one of the intervals holds all of `wanted`.
fn has(have: &[Interval], wanted: Interval) -> bool {
    // By I1 only the last one that starts in time can.
    let after = have.partition_point(|it| it.first <= wanted.first);
    let found = after.checked_sub(1).and_then(|place| have.get(place));
    found.is_some_and(|it| wanted.last <= it.last)
}

/// Makes I1 true.
fn join(intervals: &mut Vec<Interval>) {
    intervals.sort_unstable();
    let mut joined: Vec<Interval> = Vec::with_capacity(intervals.len());
    for interval in intervals.drain(..) {
        match joined.last_mut() {
            Some(before) if interval.first <= before.last.saturating_add(1) => {
                before.last = before.last.max(interval.last);
            }
            _ => joined.push(interval),
        }
    }
    *intervals = joined;
}

fn interval(text: &str) -> Result<Interval, GtidError> {
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (number(first.trim_end())?, number(last.trim_start())?),
        None => {
            let only = number(text)?;
            (only, only)
        }
    };
    match 0 < first && first <= last {
        true => Ok(Interval { first, last }),
        false => Err(GtidError::Interval),
    }
}

fn read_tag(text: &str) -> Result<String, GtidError> {
    let is_of_tag = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    match text.len() <= TAG_BYTES_MAX && text.bytes().all(is_of_tag) {
        true => Ok(text.to_ascii_lowercase()),
        false => Err(GtidError::Tag),
    }
}

/// Reads 32 hexadecimal digits, with dashes in their places or without any.
fn uuid(text: &str) -> Result<u128, GtidError> {
    let has_dashes = text.len() == UUID_DIGITS + UUID_DASHES.len();
    if !has_dashes && text.len() != UUID_DIGITS {
        return Err(GtidError::Uuid);
    }
    let mut value = 0_u128;
    for (place, byte) in text.bytes().enumerate() {
        if has_dashes && UUID_DASHES.contains(&place) {
            if byte != b'-' {
                return Err(GtidError::Uuid);
            }
            continue;
        }
        let digit = char::from(byte).to_digit(16).ok_or(GtidError::Uuid)?;
        value = value << 4 | u128::from(digit);
    }
    Ok(value)
}

fn write_uuid(f: &mut fmt::Formatter<'_>, uuid: u128) -> fmt::Result {
    write!(
        f,
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        uuid >> 96,
        uuid >> 80 & 0xffff,
        uuid >> 64 & 0xffff,
        uuid >> 48 & 0xffff,
        uuid & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const B: &str = "00000000-0000-0000-0000-00000000000b";

    fn set(text: &str) -> MySqlSet {
        MySqlSet::parse(&text.replace('A', A).replace('B', B)).unwrap()
    }

    #[test]
    fn texts_are_read_and_written() {
        for (text, read) in [
            ("", ""),
            (",", ""),
            ("A:1", "A:1"),
            ("A:1-5", "A:1-5"),
            ("A:7:1-3:4-5", "A:1-5:7"),
            ("A:1-9:2-3", "A:1-9"),
            ("A:3 - 4 , \nB:1", "B:1,A:3-4"),
            ("A:1,A:2", "A:1-2"),
            ("A:1:blue:1-2:Red:5", "A:1:blue:1-2:red:5"),
            (
                "A:18446744073709551615:18446744073709551614",
                "A:18446744073709551614-18446744073709551615",
            ),
        ] {
            let expected = read.replace('A', A).replace('B', B);
            assert_eq!(set(text).to_string(), expected, "{text}");
        }
        let bare = MySqlSet::parse(&format!("{}:1", A.replace('-', "").to_uppercase())).unwrap();
        assert_eq!(bare, set("A:1"));
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for (text, error) in [
            ("A", GtidError::Interval),
            ("A:1:blue", GtidError::Interval),
            ("A:0", GtidError::Interval),
            ("A:0-3", GtidError::Interval),
            ("A:5-4", GtidError::Interval),
            ("A:", GtidError::Number),
            ("A:1-", GtidError::Number),
            ("A:1-2-3", GtidError::Number),
            ("A:18446744073709551616", GtidError::Number),
            ("A:bl-ue:1", GtidError::Tag),
            ("0-1-5", GtidError::Uuid),
            ("3e11fa47:71ca", GtidError::Uuid),
            ("3e11fa47-71ca-11e1-9e33-c80aa942956g:1", GtidError::Uuid),
            ("3e11fa47-71ca-11e1-9e33.c80aa9429562:1", GtidError::Uuid),
        ] {
            let text = text.replace('A', A);
            assert_eq!(MySqlSet::parse(&text), Err(error), "{text}");
        }
    }

    #[test]
    fn a_tag_has_a_limit() {
        for (length, is_read) in [(31, true), (32, true), (33, false)] {
            let text = format!("{A}:{}:1", "t".repeat(length));
            assert_eq!(MySqlSet::parse(&text).is_ok(), is_read, "{length}");
        }
    }

    #[test]
    fn a_set_covers_its_parts() {
        let have = set("A:1-5:8-9,B:1,B:blue:4");
        for (wanted, is_covered) in [
            ("", true),
            ("A:1", true),
            ("A:5", true),
            ("A:2-4:8", true),
            ("A:6", false),
            ("A:5-8", false),
            ("A:9-10", false),
            ("B:1,A:1", true),
            ("B:2", false),
            ("B:blue:4", true),
            ("B:red:4", false),
        ] {
            assert_eq!(have.covers(&set(wanted)), is_covered, "{wanted}");
        }
    }

    /// Against a naive set of numbers.
    #[test]
    fn intervals_are_what_a_set_of_numbers_is() {
        let mut random = env::Random::new(7);
        for _ in 0..2_000 {
            let mut naive = [std::collections::BTreeSet::new(), Default::default()];
            let mut texts = [String::from(A), String::from(A)];
            for (numbers, text) in naive.iter_mut().zip(&mut texts) {
                for _ in 0..=random.below(5) {
                    let first = 1 + random.below(20);
                    let last = first + random.below(4);
                    numbers.extend(first..=last);
                    text.push_str(&format!(":{first}-{last}"));
                }
            }
            let [have, wanted] = texts.map(|text| MySqlSet::parse(&text).unwrap());
            assert_eq!(have.covers(&wanted), naive[1].is_subset(&naive[0]));
            let again = MySqlSet::parse(&have.to_string()).unwrap();
            assert_eq!(again, have);
        }
    }
}
