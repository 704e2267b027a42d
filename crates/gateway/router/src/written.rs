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
