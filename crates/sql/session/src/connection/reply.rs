//! What a statement leaves for its last packet, and what stops one.

use errcode::ClientError;
use executor::Summary;
use front::Disconnect;
use wire::StatusFlags;

use crate::connection::session::Session;

/// How a command's reply ends.
#[derive(Debug)]
pub(crate) enum Reply {
    /// With an OK packet.
    Ok(Done),
    /// Rows have been written; with the packet that ends them.
    Rows(Done),
    /// Everything has been written.
    Nothing,
    /// With the session (`COMMIT RELEASE`).
    End,
}

/// What an OK packet says.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Rows that were changed.
    pub(crate) affected_rows: u64,
    /// The first number that AUTO_INCREMENT gave, or 0.
    pub(crate) last_insert_id: u64,
    /// It is the list of warnings itself, which counts none.
    pub(crate) tells_warnings: bool,
    /// Text for people.
    pub(crate) info: String,
    /// Flags beside those of the session.
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
    /// The reply of a statement that has done this.
    pub(crate) fn reply_of(&self, summary: &Summary, has_rows: bool, is_write: bool) -> Reply {
        let state = &self.state;
        if let Some(found_rows) = summary.found_rows {
            state.found_rows.set(found_rows);
        } else if has_rows {
            state.found_rows.set(summary.returned_rows);
        }
        if is_write && summary.last_insert_id != 0 {
            state.set_last_insert_id(summary.last_insert_id);
        }
        if has_rows {
            state.row_count.set(-1);
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
        state
            .row_count
            .set(i64::try_from(affected_rows).unwrap_or(i64::MAX));
        Reply::Ok(Done {
            affected_rows,
            last_insert_id: self.told_insert_id(summary),
            info: self.info_of(summary),
            ..Done::default()
        })
    }

    /// The number that the client is told: what AUTO_INCREMENT gave, else what `LAST_INSERT_ID(n)`
    /// was given, else the number of the last row written. DELETE tells none.
    fn told_insert_id(&self, summary: &Summary) -> u64 {
        let given = self.state.given_insert_id();
        match summary.last_insert_id {
            0 if summary.is_insert || summary.is_update => given.unwrap_or(summary.last_number),
            generated => generated,
        }
    }

    /// The text of the OK packet. An INSERT of one row has one if `sql_warnings` asks for it.
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
