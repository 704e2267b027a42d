//! [`Written`]: what a session has to see when it reads.

use std::str;

use monitor::gtid::GtidPosition;
use monitor::gtid::mariadb::MariaDbPosition;
use monitor::gtid::mysql::MySqlSet;
use wire::{SessionChange, SessionChanges};

/// What a session has written, as far as its reads are concerned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Written {
    /// Nothing: any replica will do.
    #[default]
    Nothing,
    /// Up to here: a replica that has applied it will do.
    UpTo(GtidPosition),
    /// Something, and the server did not tell where: only the primary is known to have it.
    Somewhere,
}

/// By which MariaDB tells the transaction that a session has written last.
const LAST_GTID: &[u8] = b"last_gtid";

impl Written {
    /// Others have written, too.
    pub fn merge(&mut self, other: &Written) {
        let mine = std::mem::take(self);
        *self = match (mine, other) {
            (Written::Nothing, other) => other.clone(),
            (mine, Written::Nothing) => mine,
            (Written::UpTo(mine), Written::UpTo(other)) => match (mine, other) {
                (GtidPosition::MariaDb(mine), GtidPosition::MariaDb(other)) => {
                    Written::UpTo(GtidPosition::MariaDb(mine.merged(other)))
                }
                (mine, other) if mine.covers(other) => Written::UpTo(mine),
                (mine, other) if other.covers(&mine) => Written::UpTo(other.clone()),
                _ => Written::Somewhere,
            },
            (Written::Somewhere, _) | (_, Written::Somewhere) => Written::Somewhere,
        };
    }

    /// The session has written more. `told` is what the server's replies tell of it.
    pub fn advance(&mut self, told: Option<GtidPosition>) {
        let before = std::mem::take(self);
        *self = match (before, told) {
            (_, None) => Written::Somewhere,
            (Written::UpTo(GtidPosition::MariaDb(before)), Some(GtidPosition::MariaDb(now))) => {
                Written::UpTo(GtidPosition::MariaDb(before.merged(&now)))
            }
            // A later transaction of the same source comes after it on each replica.
            (_, Some(now)) => Written::UpTo(now),
        };
    }
}

/// The transaction that the changes of a session name. `None` if they name none.
pub(crate) fn last_gtid(changes: &[u8]) -> Option<GtidPosition> {
    let mut found = None;
    for change in SessionChanges::decode(changes) {
        match change {
            SessionChange::Variable { name, value } if name.eq_ignore_ascii_case(LAST_GTID) => {
                let position = MariaDbPosition::parse(str::from_utf8(value).ok()?).ok()?;
                found = Some(GtidPosition::MariaDb(position)).filter(|it| !it.is_empty());
            }
            SessionChange::Gtids(set) => {
                let set = MySqlSet::parse(str::from_utf8(set).ok()?).ok()?;
                found = Some(GtidPosition::MySql(set)).filter(|it| !it.is_empty());
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mariadb(text: &str) -> Written {
        Written::UpTo(GtidPosition::MariaDb(MariaDbPosition::parse(text).unwrap()))
    }

    fn mysql(text: &str) -> Written {
        Written::UpTo(GtidPosition::MySql(MySqlSet::parse(text).unwrap()))
    }

    fn merged(mut left: Written, right: &Written) -> Written {
        left.merge(right);
        left
    }

    #[test]
    fn what_others_have_written_is_added() {
        let (nothing, somewhere) = (Written::Nothing, Written::Somewhere);
        let a = mariadb("0-1-5");
        assert_eq!(merged(nothing.clone(), &a), a);
        assert_eq!(merged(a.clone(), &nothing), a);
        assert_eq!(
            merged(a.clone(), &mariadb("0-2-7,1-1-1")),
            mariadb("0-2-7,1-1-1")
        );
        assert_eq!(merged(a.clone(), &somewhere), somewhere);
        assert_eq!(merged(somewhere.clone(), &a), somewhere);
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let (few, many) = (mysql(&format!("{uuid}:5")), mysql(&format!("{uuid}:1-9")));
        assert_eq!(merged(few.clone(), &many), many);
        assert_eq!(merged(many.clone(), &few), many);
        assert_eq!(merged(few, &mysql(&format!("{uuid}:7"))), somewhere);
        assert_eq!(merged(many, &a), somewhere);
    }
}
