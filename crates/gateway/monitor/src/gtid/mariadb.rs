//! Positions of MariaDB.
//!
//! Within a domain all servers have one order of transactions, and the sequence number counts in
//! it. So a position is one triple a domain, and a higher sequence number has all lower ones.

use std::collections::BTreeMap;
use std::fmt;

use super::{GtidError, number};

/// The last transaction of each domain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MariaDbPosition {
    /// By domain.
    domains: BTreeMap<u32, Last>,
}

/// The last transaction of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Last {
    /// The server that has made it.
    server: u32,
    /// Its number in the domain.
    sequence: u64,
}

impl MariaDbPosition {
    /// Reads `domain-server-sequence,...`. Blanks around a triple are skipped. Of several triples
    /// of one domain, as `gtid_binlog_state` has them, the highest counts.
    pub fn parse(text: &str) -> Result<MariaDbPosition, GtidError> {
        let mut position = MariaDbPosition::default();
        for triple in text.split(',').map(str::trim) {
            if triple.is_empty() {
                continue;
            }
            let mut parts = triple.split('-');
            let (Some(domain), Some(server), Some(sequence), None) =
                (parts.next(), parts.next(), parts.next(), parts.next())
            else {
                return Err(GtidError::Triple);
            };
            let last = Last {
                server: number(server)?,
                sequence: number(sequence)?,
            };
            position.advance(number(domain)?, last);
        }
        Ok(position)
    }

    /// The higher of both in each domain: a replica that writes no binary log of its own has
    /// `gtid_slave_pos` alone, a primary has `gtid_binlog_pos` alone.
    #[must_use]
    pub fn merged(mut self, other: &MariaDbPosition) -> MariaDbPosition {
        for (domain, last) in &other.domains {
            self.advance(*domain, *last);
        }
        self
    }

    /// Whether all of `wanted` is applied here.
    pub fn covers(&self, wanted: &MariaDbPosition) -> bool {
        wanted.domains.iter().all(|(domain, wanted)| {
            let have = self.domains.get(domain);
            have.is_some_and(|have| wanted.sequence <= have.sequence)
        })
    }

    /// Whether it names no transaction.
    pub fn is_empty(&self) -> bool {
        self.domains.is_empty()
    }

    fn advance(&mut self, domain: u32, last: Last) {
        let have = self.domains.entry(domain).or_insert(last);
        if have.sequence < last.sequence {
            *have = last;
        }
    }
}

impl fmt::Display for MariaDbPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (domain, last)) in self.domains.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{domain}-{}-{}", last.server, last.sequence)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(text: &str) -> MariaDbPosition {
        MariaDbPosition::parse(text).unwrap()
    }

    #[test]
    fn texts_are_read_and_written() {
        for (text, read) in [
            ("", ""),
            ("0-1-5", "0-1-5"),
            (" 7-1-2 , 0-1-5 ", "0-1-5,7-1-2"),
            ("0-1-5,0-2-9,0-3-7", "0-2-9"),
            ("0-0-0", "0-0-0"),
            (
                "4294967295-4294967295-18446744073709551615",
                "4294967295-4294967295-18446744073709551615",
            ),
        ] {
            assert_eq!(position(text).to_string(), read, "{text}");
        }
        for (text, error) in [
            ("0-1", GtidError::Triple),
            ("0-1-2-3", GtidError::Triple),
            ("a-1-2", GtidError::Number),
            ("0--2", GtidError::Number),
            ("4294967296-1-1", GtidError::Number),
            ("0-4294967296-1", GtidError::Number),
            ("0-1-18446744073709551616", GtidError::Number),
        ] {
            assert_eq!(MariaDbPosition::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn a_domain_is_covered_by_its_sequence_whoever_wrote_it() {
        let have = position("0-1-5,7-3-2");
        for (wanted, is_covered) in [
            ("", true),
            ("0-2-4", true),
            ("0-2-5", true),
            ("0-1-6", false),
            ("7-1-2,0-1-1", true),
            ("8-1-1", false),
        ] {
            assert_eq!(have.covers(&position(wanted)), is_covered, "{wanted}");
        }
    }

    #[test]
    fn merging_takes_the_higher_of_each_domain() {
        let merged = position("0-1-5,1-1-1").merged(&position("0-2-4,1-2-9,2-1-1"));
        assert_eq!(merged, position("0-1-5,1-2-9,2-1-1"));
    }
}
