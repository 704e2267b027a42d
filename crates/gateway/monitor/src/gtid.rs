//! Which transactions a server has: positions of MariaDB and executed sets of MySQL.
//!
//! A router compares the transaction that a session has written with what each replica has applied
//! ([`GtidPosition::covers`]). Both forms come from servers as texts, so their parsers take any
//! bytes and return an error for what is none.
//!
//! * [`mariadb`]: `domain-server-sequence`, one for each domain;
//! * [`mysql`]: `uuid:interval:interval`, one for each source and tag.

pub mod mariadb;
pub mod mysql;

use std::fmt;

use thiserror::Error;

use self::mariadb::MariaDbPosition;
use self::mysql::MySqlSet;

/// What a server has applied, or what a session wants to be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GtidPosition {
    /// Of MariaDB.
    MariaDb(MariaDbPosition),
    /// Of MySQL.
    MySql(MySqlSet),
}

/// Why a text is no position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum GtidError {
    /// A number is missing, too large, or has other characters.
    #[error("a number of the GTID is missing or too large")]
    Number,
    /// A part of MariaDB's triple is missing or too many.
    #[error("a GTID of MariaDB has a domain, a server and a sequence number")]
    Triple,
    /// A UUID has another form.
    #[error("a GTID of MySQL begins with a UUID")]
    Uuid,
    /// A tag has other characters or is too long.
    #[error("the tag of a GTID has at most 32 letters, digits and underscores")]
    Tag,
    /// An interval starts at 0, ends before its start, or is not there.
    #[error("an interval of a GTID set is empty")]
    Interval,
}

impl GtidPosition {
    /// Whether all of `wanted` is applied here. A position of one product covers none of the
    /// other's, except an empty one.
    pub fn covers(&self, wanted: &GtidPosition) -> bool {
        match (self, wanted) {
            (GtidPosition::MariaDb(have), GtidPosition::MariaDb(wanted)) => have.covers(wanted),
            (GtidPosition::MySql(have), GtidPosition::MySql(wanted)) => have.covers(wanted),
            (_, wanted) => wanted.is_empty(),
        }
    }

    /// Whether it names no transaction.
    pub fn is_empty(&self) -> bool {
        match self {
            GtidPosition::MariaDb(position) => position.is_empty(),
            GtidPosition::MySql(set) => set.is_empty(),
        }
    }
}

impl fmt::Display for GtidPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GtidPosition::MariaDb(position) => position.fmt(f),
            GtidPosition::MySql(set) => set.fmt(f),
        }
    }
}

/// A decimal number without a sign, which the standard parser would take.
fn number<T: std::str::FromStr>(text: &str) -> Result<T, GtidError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(GtidError::Number);
    }
    text.parse().map_err(|_| GtidError::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_do_not_mix() {
        let mariadb = |text| GtidPosition::MariaDb(MariaDbPosition::parse(text).unwrap());
        let mysql = |text| GtidPosition::MySql(MySqlSet::parse(text).unwrap());
        let set = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5";
        assert!(mariadb("0-1-5").covers(&mariadb("0-2-4")));
        assert!(mysql(set).covers(&mysql(set)));
        assert!(!mariadb("0-1-5").covers(&mysql(set)));
        assert!(!mysql(set).covers(&mariadb("0-1-5")));
        assert!(mysql(set).covers(&mariadb("")) && mariadb("").covers(&mysql("")));
        assert_eq!(mariadb("0-1-5").to_string(), "0-1-5");
        assert_eq!(mysql(set).to_string(), set);
    }

    #[test]
    fn numbers_have_digits_alone() {
        assert_eq!(number::<u32>("4294967295"), Ok(u32::MAX));
        for text in ["", "+1", "-1", " 1", "1 ", "4294967296", "x"] {
            assert_eq!(number::<u32>(text), Err(GtidError::Number), "{text}");
        }
    }
}
