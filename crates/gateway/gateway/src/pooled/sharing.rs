//! Gives connections back between transactions.
//!
//! A connection is given back once its session is at rest: no transaction is open, nothing pins the
//! session, no cursor is open, and no long data waits. What only the connection knows of the last
//! statement ([`router::Residue`]) is asked for before that. Or the connection is kept a moment for
//! the next statement, since most come at once; but not while others wait for it.

use std::time::Duration;

use errcode::{
    ClientError, ER_BAD_FIELD_ERROR, ER_COLUMNACCESS_DENIED_ERROR, ER_NO_SUCH_TABLE,
    ER_PARSE_ERROR, ER_TABLEACCESS_DENIED_ERROR, ErrorCode,
};
use link::Ending;
use monitor::ServerId as Place;
use pool::CloseReason;
use router::{Pin, Plan};
use syntax::SqlMode;
use syntax::class::{Detail, Facts, Source, classify};
use syntax::token::string_value;
use wire::{CommandByte, SessionChange, SessionChanges, StatusFlags};

use crate::connection::NotReady;
use crate::end::End;
use crate::guest::Answer;

use super::Pooled;
use super::lane::Lane;
use super::recall::reads_insert_id;
use super::wait::{Waiter, while_up};

/// A connection is kept for so long for what only that knows. Who waits for it meanwhile waits as
/// long; the next statement of most clients comes sooner.
const LINGER_TIME_MAX: Duration = Duration::from_millis(10);

/// Errors in a query's own text, which are found before it runs. In a function that a view calls,
/// they are another one (1356, MariaDB 10.11).
const OF_OWN_TEXT: [ErrorCode; 5] = [
    ER_PARSE_ERROR,
    ER_BAD_FIELD_ERROR,
    ER_NO_SUCH_TABLE,
    ER_TABLEACCESS_DENIED_ERROR,
    ER_COLUMNACCESS_DENIED_ERROR,
];

/// What servers do not report.
const UNREPORTED: [Pin; 4] = [Pin::UserLock, Pin::TableLock, Pin::Handler, Pin::Unknown];

impl Pooled {
    /// Waits for a command. A connection that is kept for it is given back after a while.
    pub(super) async fn peek_command(&mut self) -> Result<u8, End> {
        if let Some(place) = self.lingers_at {
            match self.guest.peek_for(self.status, LINGER_TIME_MAX).await {
                Err(End::Idle) => Box::pin(self.part_with(place)).await,
                peeked => return peeked,
            }
        }
        self.guest.peek_command(self.status).await
    }

    /// Notes what a reply has left on its connection.
    pub(super) fn note_sharing(&mut self, plan: &Plan, place: Place, answer: &Answer) {
        if !self.multiplexes {
            return;
        }
        let residue = self.session.recall().residue();
        if residue.has_warnings || plan.clears_warnings {
            self.warnings = None;
        }
        if plan.facts.has(Facts::ADVANCES_SEQUENCE) {
            self.session.pin(Pin::Sequence, place);
        }
        if let Some(lane) = self.lane(place) {
            // A server that prepares a statement keeps what it has of the one before.
            lane.is_own |= answer.exchange.command_byte() != CommandByte::STMT_PREPARE;
            lane.has_own_warnings |= residue.has_warnings || plan.clears_warnings;
            if plan.facts.has(Facts::HAS_SET_STATEMENT) {
                // MariaDB tells a later reply that the variables are back, which would be taken for
                // what that statement has changed. So the gateway's own is the next.
                lane.connection.state_mut().tells_otherwise();
            }
            // An error tells no changes, and no later reply does.
            if let Ending::Error(error) = answer.ending {
                lane.is_dirty |= may_have_changed(plan, error);
                if plan.may_change_unseen() {
                    lane.connection.state_mut().may_have_role();
                }
            }
            let may_have_warnings = !plan.clears_warnings || plan.is_several || plan.is_call;
            if residue.has_warnings || may_have_warnings {
                lane.connection.state_mut().has_warnings();
            }
            let told = answer.exchange.tally().last_insert_id;
            // Also one that the session knows already may be new to the connection.
            let is_new_here = told != 0 && !lane.connection.state().has_insert_id(told);
            if residue.has_insert_id || is_new_here {
                let known = lane.connection.state_mut().forget_insert_id();
                let before = known.or(lane.before_id);
                lane.before_id = before.filter(|it| told == 0 || *it != told);
                self.session.recall_mut().may_have_inserted();
            }
        }
    }

    /// Notes what a statement may have changed that ran by what its session had set before. Its
    /// database is reported as a change of the session, behind which a trigger's is not seen.
    pub(super) fn note_elsewhere(&mut self, place: Place, answer: &Answer) {
        let Ending::Status(status) = answer.ending else {
            return;
        };
        if !status.contains(StatusFlags::SESSION_STATE_CHANGED) {
            return;
        }
        let changes = answer.exchange.session_changes();
        let reports = |kind: fn(&SessionChange<'_>) -> bool| {
            changes.is_none_or(|it| SessionChanges::decode(it).any(|it| kind(&it)))
        };
        let is_changed = reports(|it| matches!(it, SessionChange::State));
        let was_in_database = reports(|it| matches!(it, SessionChange::Schema(_)));
        if is_changed && !was_in_database {
            self.session.pin(Pin::Unknown, place);
        } else if (is_changed || !answer.exchange.reports_changes())
            && let Some(lane) = self.lane(place)
        {
            lane.is_dirty = true;
        }
    }

    /// Gives back what the session does not need.
    pub(super) async fn settle(&mut self) {
        if !self.multiplexes || !self.session.is_at_rest() {
            return;
        }
        for place in self.places() {
            let Some(Some(lane)) = self.lanes.get(usize::from(place.0)) else {
                continue;
            };
            if self.statements.need(place) {
                continue;
            }
            let has_residue = self.has_residue(place);
            // The next statement has to find temporary tables, wherever it would go.
            let must_ask = self.session.recall().residue().may_have_tables;
            if has_residue && !must_ask && !self.guest.worker.pool.is_wanted(&lane.slot) {
                self.lingers_at = Some(place);
            } else if has_residue {
                Box::pin(self.part_with(place)).await;
            } else {
                self.give_back(place);
            }
        }
    }

    /// Whether only the connection to a server knows something of the last statement.
    pub(super) fn has_residue(&self, place: Place) -> bool {
        self.session.last() == Some(place) && !self.session.recall().residue().is_empty()
    }

    /// A connection that is kept is given back if the next statement goes elsewhere.
    pub(super) async fn stay_at(&mut self, place: Place) {
        if let Some(kept) = self.lingers_at.take()
            && kept != place
        {
            Box::pin(self.part_with(kept)).await;
        }
    }

    /// Gives a connection back, and asks it before for what only that knows.
    pub(super) async fn part_with(&mut self, place: Place) {
        self.lingers_at = None;
        if self.has_residue(place)
            && let Err(error) = self.collect(place).await
        {
            let server = &*self.server_name(place);
            let error = match error {
                NotReady::Lost(text) => text,
                NotReady::Refused(error) => error.to_string(),
            };
            tracing::warn!(server, %error, "what a statement has left cannot be learned");
            self.drop_lane(place, CloseReason::Failed);
            self.session.recall_mut().forget();
            return;
        }
        if self.session.is_at_rest() {
            self.give_back(place);
        }
    }

    /// LAST_INSERT_ID() of a connection is of another session if nothing was generated since.
    pub(super) async fn learn_insert_id(
        &mut self,
        plan: &Plan,
        place: Place,
    ) -> Result<(), NotReady> {
        let recall = self.session.recall();
        let (own, is_told) = (recall.insert_id(), recall.residue().has_insert_id);
        let lane = self.lane(place);
        let is_other = lane.is_some_and(|it| it.before_id.is_some_and(|before| before != own));
        if is_told && is_other && reads_insert_id(plan) && self.has_residue(place) {
            return Box::pin(self.collect(place)).await;
        }
        Ok(())
    }

    /// Asks a connection for what only that knows of the last statement.
    pub(super) async fn collect(&mut self, place: Place) -> Result<(), NotReady> {
        let residue = self.session.recall().residue();
        let Some(Some(lane)) = self.lanes.get_mut(usize::from(place.0)) else {
            return Ok(());
        };
        lane.is_own = false;
        let recall = self.session.recall_mut();
        let waiter = Waiter {
            worker: &self.guest.worker,
            handle: &self.guest.handle,
        };
        let id = lane.id;
        if residue.has_found_rows || residue.has_insert_id {
            let (found, insert_id) = while_up(waiter, id, lane.connection.numbers()).await?;
            // Else it may be another session's.
            // The reply also tells values that were not generated, and leave it.
            match lane.before_id.take() {
                Some(before) if before == insert_id => recall.kept_insert_id(),
                _ if residue.has_insert_id => recall.inserted(insert_id),
                _ => {}
            }
            if residue.has_found_rows {
                recall.found(found);
            }
        }
        if residue.has_warnings {
            let rows = while_up(waiter, id, lane.connection.warnings()).await?;
            recall.drop_warnings();
            self.warnings = (!rows.rows.is_empty()).then(|| Box::new(rows));
        }
        // It takes the place of the warnings.
        if residue.may_have_tables {
            recall.asked_tables();
            if while_up(waiter, id, lane.connection.has_made_tables()).await? {
                self.session.pin(Pin::TemporaryTable, place);
            }
        }
        Ok(())
    }

    /// Gives a connection back as it is.
    fn give_back(&mut self, place: Place) {
        let slot = self.lanes.get_mut(usize::from(place.0));
        let Some(mut lane) = slot.and_then(Option::take) else {
            return;
        };
        self.guest.running.standing.release(place);
        let worker = &self.guest.worker;
        let server = &lane.connection.server;
        let is_open = server.status().contains(StatusFlags::IN_TRANSACTION);
        let is_free = self.guest.running.leave() && server.is_at_rest() && !is_open;
        // What a session has on a connection that it keeps is not noted.
        if lane.is_dirty || !self.multiplexes {
            lane.connection.state_mut().forget();
        }
        let Lane {
            slot, connection, ..
        } = lane;
        if is_free {
            worker.give_back(slot, connection);
        } else {
            slot.close(CloseReason::Dropped);
            worker.dismiss(connection);
        }
    }

    /// Closes a connection.
    pub(super) fn drop_lane(&mut self, place: Place, reason: CloseReason) {
        let slot = self.lanes.get_mut(usize::from(place.0));
        if let Some(mut lane) = slot.and_then(Option::take) {
            self.guest.running.standing.release(place);
            self.guest.running.leave();
            lane.slot.close(reason);
            if lane.connection.server.link().is_usable() {
                self.guest.worker.dismiss(lane.connection);
            } else {
                self.guest
                    .end_statement(lane.id, &mut lane.connection.server);
            }
        }
    }

    /// The session ends, or begins anew: what it holds ends with its connections.
    pub(super) fn part_with_all(&mut self) {
        self.lingers_at = None;
        let is_known = !self.session.recall().residue().may_have_tables;
        for place in self.places() {
            let is_usable = self
                .lane(place)
                .is_some_and(|lane| lane.connection.server.is_at_rest());
            if is_known && is_usable && self.session.is_at_rest() && !self.statements.need(place) {
                self.give_back(place);
            } else {
                self.drop_lane(place, CloseReason::Dropped);
            }
        }
    }

    /// A prepared statement that reads of the one before it keeps the session on its connection,
    /// since it cannot be given other words.
    pub(super) fn pin_reader(&mut self, facts: Facts, place: Place) {
        if self.multiplexes && facts.has_any(router::OF_LAST_STATEMENT) {
            self.session.pin(Pin::LastStatement, place);
        }
    }

    /// The same of PREPARE in a text.
    pub(super) fn pin_text_reader(&mut self, text: &[u8], mode: SqlMode, place: Place) {
        let facts = match classify(text, mode).detail {
            Detail::Prepare(_, Source::Literal(quoted)) => {
                let text = string_value(quoted, mode);
                let judged = self.guest.ruled.judge(&text, mode);
                let pins = self.session.plan(&text, mode, &judged).pins;
                // EXECUTE does not show what it takes.
                if UNREPORTED.into_iter().any(|pin| pins.has(pin)) {
                    self.session.pin(Pin::Unknown, place);
                }
                judged.verdict.facts
            }
            Detail::Prepare(_, Source::Expression) => Facts::READS_WARNINGS,
            _ => return,
        };
        let asks_number = facts.has(Facts::READS_CONNECTION_ID);
        if self.multiplexes && asks_number {
            self.session.pin(Pin::LastStatement, place);
        }
        self.pin_reader(facts, place);
    }

    /// What messages call a server.
    pub(super) fn server_name(&self, place: Place) -> std::sync::Arc<str> {
        let generation = self.guest.generation();
        let id = generation.server_at(self.guest.service, place);
        std::sync::Arc::clone(&generation.server(id).options.name)
    }

    /// What a client gets whose connection to a server was lost.
    pub(super) fn lost_error(&self, place: Place) -> ClientError {
        let name = self.server_name(place);
        ClientError::worded(errcode::WORDS_SERVER_LOST, &[&name])
    }
}

/// Whether a statement may have changed its session before it failed. A write may have a trigger,
/// and a table of a query may be a view that calls a function.
pub(super) fn may_have_changed(plan: &Plan, error: ErrorCode) -> bool {
    plan.changes_session
        || plan.may_write
        || plan.may_change_unseen()
        || plan.uses_tables && !OF_OWN_TEXT.contains(&error)
}
