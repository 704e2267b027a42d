//! [`Session`]: what is known of one client's session, and where its next statement may go.

use monitor::ServerId;
use monitor::gtid::GtidPosition;
use result_cache::Changes;
use settings::SqlMode;
use syntax::class::{Access, Effect, Facts, Flags, Guess, Hint, Kind, State};
use wire::{SessionChange, SessionChanges, StatusFlags};

use crate::judge::Judged;
use crate::parts::{Parts, Step};
use crate::pins::{Pin, Pins};
use crate::plan::{Goal, Plan};
use crate::recall::{Recall, Told};
use crate::written::{self, Written};

/// What is known of a session.
#[derive(Debug, Clone, Default)]
pub struct Session {
    /// Of its transactions.
    transaction: State,
    /// The server where the open one was begun.
    open_at: Option<ServerId>,
    /// The others that have a part of it.
    parts: Parts,
    /// Why it has to stay where it is.
    pins: Pins,
    /// Where that is, if it is pinned.
    pinned_at: Option<ServerId>,
    /// The server of the last statement.
    last: Option<ServerId>,
    written: Written,
    /// What its statements may read of earlier ones.
    recall: Recall,
    /// What the open transaction has changed, if somebody asks.
    changed: Changes,
    /// What a transaction had changed that has ended unseen.
    ended: Changes,
    /// Statements that did to the transaction what their text does not show.
    surprises: u64,
    /// Its server has closed the connection, as the client has asked.
    is_closed: bool,
}

/// What a server reports at the end of a reply.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// The status; `None` if the reply was an error.
    pub status: Option<StatusFlags>,
    /// The changes of the session; `None` if they were too long to be kept.
    pub changes: Option<&'a [u8]>,
    /// The server tells each transaction that the session writes.
    pub tells_writes: bool,
    /// What it has told of the last result.
    pub told: Told,
}

/// What a session loses with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Nothing: another connection can take its place.
    Nothing,
    /// Its open transaction.
    Transaction,
    /// What had pinned it there.
    State,
}

impl Session {
    /// Where a statement may go, and what its success leaves.
    pub fn plan(&self, text: &[u8], mode: SqlMode, judged: &Judged) -> Plan {
        let mut plan = self.plan_freely(text, mode, judged);
        self.keep_in_place(&mut plan);
        if plan.may_end_transaction() {
            // Also if none seems to be open: an error tells no status.
            plan.changes = plan.changes.and(self.changed);
        }
        if self.open_at.is_some() {
            self.step(&mut plan, judged.verdict.kind);
        } else if plan.may_set_savepoint(judged.verdict.kind)
            && self.transaction.autocommit != Guess::Yes
        {
            // The server tells no transaction until a statement uses a table.
            plan.pins.add(Pin::Savepoint);
        }
        plan
    }

    /// Where a statement might go if nothing held the session.
    pub(crate) fn plan_freely(&self, text: &[u8], mode: SqlMode, judged: &Judged) -> Plan {
        let is_read_only = self.transaction.session_read_only == Guess::Yes
            && self.transaction.next_read_only.is_none();
        let access = match is_read_only {
            true => Access::ReadOnly,
            false => Access::ReadWrite,
        };
        Plan::of(text, mode, judged, self.last, access)
    }

    /// What a statement does to the parts of the open transaction.
    fn step(&self, plan: &mut Plan, kind: Kind) {
        let step = plan.step_among_parts(kind);
        plan.step = match step {
            Step::MayJoin if !self.pins.is_empty() || !plan.pins.is_empty() => Step::Stays,
            _ if self.parts.is_empty() && step != Step::MayJoin => Step::Stays,
            step => step,
        };
    }

    /// Has a plan do as a hint asks. `server` is the place of the server that it names.
    pub(crate) fn guide(
        &self,
        plan: &mut Plan,
        hint: &Hint<'_>,
        server: Option<ServerId>,
        judged: &Judged,
    ) {
        if plan.step == Step::MayJoin
            && !hint.pins
            && let Some(server) = server
        {
            plan.goal = Goal::Held(server);
            plan.may_repeat = false;
            if self.open_at != Some(server) && !self.parts.has(server) {
                plan.step = Step::Joins;
            }
        }
        plan.guide(hint, server, judged);
    }

    /// Where a command goes that is no text: to `goal`, unless the session has to stay.
    pub fn plan_command(&self, goal: Goal) -> Plan {
        let mut plan = Plan {
            goal,
            is_kept: false,
            may_repeat: false,
            may_write: false,
            is_several: false,
            pins: Pins::default(),
            lifts: Pins::default(),
            changes_session: false,
            effect: Effect::None,
            facts: Facts::NONE,
            is_call: false,
            uses_tables: false,
            clears_warnings: false,
            counts_rows: false,
            lag_max: None,
            step: Step::Stays,
            changes: Changes::Nothing,
        };
        self.keep_in_place(&mut plan);
        plan
    }

    /// Where a command goes that changes the session on each of its connections.
    pub fn plan_session_command(&self) -> Plan {
        let step = match self.parts.is_empty() {
            true => Step::Stays,
            false => Step::Refused,
        };
        Plan {
            is_kept: true,
            changes_session: true,
            step,
            ..self.plan_command(Goal::PrimaryFirst)
        }
    }

    /// Where the execution of a prepared statement goes. It is kept for no other connection, since
    /// its parameters are not: what it sets pins the session.
    pub fn plan_execution(&self, text: &[u8], mode: SqlMode, judged: &Judged) -> Plan {
        let mut plan = self.plan(text, mode, judged);
        if plan.is_kept {
            plan.is_kept = false;
            plan.pin_values(judged.verdict.facts);
        }
        plan
    }

    /// The rules R1 and R2, and the implicit transactions of a session without autocommit.
    fn keep_in_place(&self, plan: &mut Plan) {
        if let Some(server) = self.held_for(plan) {
            plan.goal = Goal::Held(server);
            plan.may_repeat = false;
        } else if self.transaction.autocommit != Guess::Yes && plan.goal == Goal::Replica {
            plan.goal = Goal::Primary;
            plan.may_repeat = false;
        }
    }

    /// What a read has to see.
    pub fn written(&self) -> &Written {
        &self.written
    }

    /// Why the session has to stay where it is.
    pub fn pins(&self) -> Pins {
        self.pins
    }

    /// Where it has to stay: at its open transaction, or where it is pinned.
    pub fn held_at(&self) -> Option<ServerId> {
        self.open_at.or(self.pinned_at)
    }

    /// The same for a statement. What reads of the statement before can follow it, and a write must
    /// not go to a replica because a read was there.
    pub(crate) fn held_for(&self, plan: &Plan) -> Option<ServerId> {
        let follows = plan.may_write && self.pins.is_only(Pin::LastStatement);
        self.open_at.or(self.pinned_at.filter(|_| !follows))
    }

    /// Whether each statement is a transaction of its own, unless one is begun.
    pub fn has_autocommit(&self) -> bool {
        self.transaction.autocommit == Guess::Yes
    }

    /// Whether it is known if a transaction is open.
    pub fn knows_transaction(&self) -> bool {
        self.transaction.in_transaction != Guess::Unknown
    }

    /// What the open transaction has changed.
    pub fn changed(&self) -> Changes {
        self.changed
    }

    /// What a transaction had changed that has ended though no text showed that.
    pub fn take_ended(&mut self) -> Changes {
        std::mem::take(&mut self.ended)
    }

    /// Whether COMMIT or ROLLBACK with RELEASE has ended it.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The server where its open transaction was begun.
    pub fn open_at(&self) -> Option<ServerId> {
        self.open_at
    }

    /// Whether any connection will do for the next statement: no transaction is open, and nothing
    /// pins the session.
    pub fn is_at_rest(&self) -> bool {
        let is_outside = self.transaction.in_transaction == Guess::No;
        is_outside && self.open_at.is_none() && self.parts.is_empty() && self.pins.is_empty()
    }

    /// The other servers that have a part of its open transaction, in the order in which these were
    /// begun.
    pub fn parts(&self) -> &[ServerId] {
        self.parts.servers()
    }

    /// What begins a part of the open transaction on another server.
    pub fn begin_part(&self) -> &'static str {
        match self.transaction.is_read_only {
            Guess::Yes => "START TRANSACTION READ ONLY",
            Guess::No | Guess::Unknown => "START TRANSACTION",
        }
    }

    /// A part was begun there.
    pub fn part_begun(&mut self, at: ServerId) {
        self.parts.add(at);
    }

    /// The parts have ended, and the transaction goes on or ends where it was begun.
    pub fn parts_ended(&mut self) {
        if !self.parts.is_empty() {
            self.parts.clear();
            self.written.advance(None);
        }
    }

    /// The whole transaction was rolled back.
    pub fn rolled_back(&mut self) {
        self.parts_ended();
        self.transaction = self.transaction.rolled_back();
        self.open_at = None;
        self.changed = Changes::Nothing;
    }

    /// The server of the last statement.
    pub fn last(&self) -> Option<ServerId> {
        self.last
    }

    /// What its statements may read of earlier ones.
    pub fn recall(&self) -> &Recall {
        &self.recall
    }

    /// The same, to note what a connection has told.
    pub fn recall_mut(&mut self) -> &mut Recall {
        &mut self.recall
    }

    /// Replies whose flags did not fit the text.
    pub fn surprises(&self) -> u64 {
        self.surprises
    }

    /// The status that the session has: of the server with its transaction, else after its login.
    pub fn observe_login(&mut self, status: StatusFlags) {
        self.transaction = State::new().observe(flags(status));
    }

    /// Reads have to see this, too.
    pub fn see(&mut self, others: &Written) {
        self.written.merge(others);
    }

    /// The primary has told up to where it has written, after all that the session has.
    pub fn locate(&mut self, position: GtidPosition) {
        self.written = Written::UpTo(position);
    }

    /// A write may have been carried out whose server was lost.
    pub fn lost_write(&mut self) {
        self.written.advance(None);
    }

    /// A statement has been answered by `at`. Returns whether it changes what reads have to see.
    pub fn answered(&mut self, plan: &Plan, at: ServerId, report: Report<'_>) -> bool {
        self.last = Some(at);
        let earlier = self.changed;
        self.changed = earlier.and(plan.changes);
        if self.parts.has(at) {
            self.answered_part(plan, at, report);
            return false;
        }
        let Some(status) = report.status else {
            self.recall.failed();
            // An error tells no flags. The transaction may be gone; the next reply tells.
            self.transaction = self.transaction.failed(plan.effect);
            // Of several statements, those before the one that failed have been carried out. A lock
            // may have been taken before the error.
            if plan.is_several && plan.may_write {
                // One of them may have begun a transaction, which no status tells.
                self.pin(Pin::SeveralStatements, at);
            }
            if plan.pins.has(Pin::UserLock) {
                self.pin(Pin::UserLock, at);
            }
            // A routine, DDL, COMMIT and tables without transactions keep what was done before the
            // error. So does a transaction that the statement has ended first.
            let has_ended = self.open_at.is_some() && plan.may_end_transaction();
            let has_written = plan.may_write || has_ended;
            if has_written {
                self.written.advance(None);
            }
            return has_written;
        };
        self.recall.answered(plan, &report.told);
        let guess = self.transaction.done(plan.effect);
        self.is_closed = guess.is_closed == Guess::Yes;
        if !guess.allows(flags(status)) {
            self.surprises += 1;
        }
        self.transaction = guess.observe(flags(status));
        let is_open = status.contains(StatusFlags::IN_TRANSACTION);
        let before = self.open_at;
        self.open_at = is_open.then_some(at);
        if !is_open {
            self.changed = Changes::Nothing;
            if !plan.may_end_transaction() {
                self.ended = self.ended.and(earlier);
            }
        }
        self.note_pins(plan, at, report.changes);
        self.note_write(plan, before, report)
    }

    /// The same of a server with a part of the transaction.
    fn answered_part(&mut self, plan: &Plan, at: ServerId, report: Report<'_>) {
        let Some(status) = report.status else {
            self.recall.failed();
            return;
        };
        self.recall.answered(plan, &report.told);
        if !status.contains(StatusFlags::IN_TRANSACTION) {
            self.surprises += 1;
            self.parts.remove(at);
        }
        self.note_pins(plan, at, report.changes);
    }

    fn note_pins(&mut self, plan: &Plan, at: ServerId, changes: Option<&[u8]>) {
        for pin in plan.lifts.iter() {
            self.pins.lift(pin);
        }
        let stays_at = self.stays_at();
        self.pins.add_all(plan.pins);
        let is_state = |it: SessionChange<'_>| matches!(it, SessionChange::State);
        let is_changed = changes.is_none_or(|it| SessionChanges::decode(it).any(is_state));
        if is_changed && !plan.changes_session {
            self.pins.add(Pin::Unknown);
        }
        if self.transaction.has_next == Guess::No {
            self.pins.lift(Pin::NextTransaction);
        }
        let has_autocommit = self.transaction.autocommit == Guess::Yes;
        if self.open_at.is_none() && (plan.may_end_transaction() || has_autocommit) {
            self.pins.lift(Pin::Savepoint);
        }
        self.pinned_at = (!self.pins.is_empty()).then_some(stays_at.unwrap_or(at));
    }

    fn note_write(&mut self, plan: &Plan, before: Option<ServerId>, report: Report<'_>) -> bool {
        let told = report.changes.and_then(written::last_gtid);
        let is_silent = report.tells_writes && report.changes.is_some();
        let may_have = self.open_at.is_none() && (plan.may_write || before.is_some());
        let has_written = told.is_some() || may_have && !is_silent;
        if has_written {
            self.written.advance(told);
        }
        has_written
    }

    /// Where a statement that leaves more does not unpin it from. What is pinned by the last
    /// statement alone follows it.
    fn stays_at(&self) -> Option<ServerId> {
        let follows = self.pins.is_only(Pin::LastStatement);
        self.pinned_at.filter(|_| !follows)
    }

    /// Pins the session to a server.
    pub fn pin(&mut self, pin: Pin, at: ServerId) {
        let stays_at = self.stays_at();
        self.pins.add(pin);
        self.pinned_at = Some(stays_at.unwrap_or(at));
    }

    /// A reason to stay has ended.
    pub fn unpin(&mut self, pin: Pin) {
        self.pins.lift(pin);
        self.pinned_at = self.pinned_at.filter(|_| !self.pins.is_empty());
    }

    /// Takes the reasons away that end with the reply to a statement, or with its connection.
    pub fn reset(&mut self, status: StatusFlags) {
        let written = std::mem::take(&mut self.written);
        *self = Session {
            written,
            recall: self.recall.reset(),
            surprises: self.surprises,
            ..Session::default()
        };
        self.observe_login(status);
    }

    /// What is lost with the connection to a server.
    pub fn loss(&self, server: ServerId) -> Loss {
        if self.open_at == Some(server) || self.parts.has(server) {
            return Loss::Transaction;
        }
        match self.pinned_at == Some(server) {
            true => Loss::State,
            false => Loss::Nothing,
        }
    }

    /// The connection to a server is gone, and nothing with it.
    pub fn forget(&mut self, server: ServerId) {
        if self.last == Some(server) {
            self.last = None;
        }
    }
}

fn flags(status: StatusFlags) -> Flags {
    Flags {
        autocommit: status.contains(StatusFlags::AUTOCOMMIT),
        in_transaction: status.contains(StatusFlags::IN_TRANSACTION),
        is_read_only: status.contains(StatusFlags::IN_READ_ONLY_TRANSACTION),
    }
}

#[cfg(test)]
mod tests;
