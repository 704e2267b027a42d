//! What a statement's last packet says, and what stops a statement.

use errcode::ClientError;
use executor::Summary;
use front::Disconnect;
use wire::StatusFlags;

use crate::connection::session::Session;

/// How a command's reply ends.
#[derive(Debug)]
pub(crate) enum Reply {
    /// By an OK packet.
    Ok(Done),
    /// Rows have been written; the packet that ends them follows.
    Rows(Done),
    /// Everything has been written.
    Nothing,
    /// With the end of the session (`COMMIT RELEASE`).
    End,
}

/// What an OK packet says.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Rows that were changed.
    pub(crate) affected_rows: u64,
    /// The first number that AUTO_INCREMENT assigned, or 0.
    pub(crate) last_insert_id: u64,
    /// The reply is the list of warnings itself, so it counts none.
    pub(crate) tells_warnings: bool,
    /// Text for the user.
    pub(crate) info: String,
    /// Flags in addition to those of the session.
    pub(crate) status: StatusFlags,
}

/// Why a statement has no reply of its own.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It failed.
    Error(Box<ClientError>),
    /// The client is gone.
    Disconnect(Box<Disconnect>),
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Self {
        Self::Error(Box::new(error))
    }
}

impl From<Box<ClientError>> for Stop {
    fn from(error: Box<ClientError>) -> Self {
        Self::Error(error)
    }
}

impl From<Disconnect> for Stop {
    fn from(disconnect: Disconnect) -> Self {
        Self::Disconnect(Box::new(disconnect))
    }
}

impl From<store::StoreError> for Stop {
    fn from(error: store::StoreError) -> Self {
        Self::from(executor::client_error(&error))
    }
}

impl Session {
    /// The reply of a statement that did what `summary` says.
    pub(crate) fn reply_of(&self, summary: &Summary, has_rows: bool, is_write: bool) -> Reply {
        let state = &self.state;
        if let Some(found_rows) = summary.found_rows {
            state.set_found_rows(found_rows);
        } else if has_rows {
            state.set_found_rows(summary.returned_rows);
        }
        if is_write && summary.last_insert_id != 0 {
            state.set_last_insert_id(summary.last_insert_id);
        }
        if has_rows {
            state.set_row_count(-1);
            return Reply::Rows(Done {
                affected_rows: summary.affected_rows,
                last_insert_id: summary.last_insert_id,
                ..Done::default()
            });
        }
        let wants_found = self
            .client
            .capabilities()
            .contains(wire::Capabilities::FOUND_ROWS);
        let affected_rows = if wants_found && (summary.is_update || summary.is_insert) {
            summary.matched_rows
        } else {
            summary.affected_rows
        };
        state.set_row_count(i64::try_from(affected_rows).unwrap_or(i64::MAX));
        Reply::Ok(Done {
            affected_rows,
            last_insert_id: self.told_insert_id(summary),
            info: self.info_of(summary),
            ..Done::default()
        })
    }

    /// The insert id of the reply: what AUTO_INCREMENT assigned, else the argument of
    /// `LAST_INSERT_ID(n)`, else the number of the last row written. DELETE reports none.
    fn told_insert_id(&self, summary: &Summary) -> u64 {
        let given = self.state.given_insert_id();
        match summary.last_insert_id {
            0 if summary.is_insert || summary.is_update => given.unwrap_or(summary.last_number),
            generated => generated,
        }
    }

    /// The text of the OK packet. An INSERT of one row has a text only if `sql_warnings` is on.
    fn info_of(&self, summary: &Summary) -> String {
        let warning_count = self.state.diagnostics.borrow().warnings().count();
        let tells = self.state.variables.borrow().active().tells_insert_warnings;
        if tells && summary.is_insert && warning_count != 0 {
            let records = Some(summary.records.unwrap_or(1));
            return Summary {
                records,
                ..summary.clone()
            }
            .info(warning_count);
        }
        summary.info(warning_count)
    }
}
