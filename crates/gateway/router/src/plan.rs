//! [`Plan`]: where a statement may go, and what its success leaves. Pure.

use std::time::Duration;

use syntax::class::set::{Target, assignments};
use syntax::class::{Access, Class, Effect, Facts, Hint, HintRoute, Kind};
use syntax::keyword::Keyword;
use syntax::token::{Kind as TokenKind, Lexer};

use monitor::ServerId;
use result_cache::Changes;
use settings::SqlMode;

use crate::judge::Judged;
use crate::parts::Step;
use crate::pins::{Pin, Pins};
use crate::rules::{Route, Ruling};
use crate::touched::of_effect;

/// Where a statement may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// To this server alone: its connection has what the statement needs.
    Held(ServerId),
    /// To the primary.
    Primary,
    /// To the primary; while there is none, where a read goes.
    PrimaryFirst,
    /// To a replica that has what the session wrote, else to the primary.
    Replica,
}

/// A statement's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Where it may go.
    pub goal: Goal,
    /// Each connection of the session needs it once it has succeeded.
    pub is_kept: bool,
    /// It may be sent to another server if this one fails before it replies.
    pub may_repeat: bool,
    /// It may change data: what is read later has to have it.
    pub may_write: bool,
    /// It is one of several statements in a text.
    pub is_several: bool,
    /// What pins the session once it has succeeded.
    pub pins: Pins,
    /// What does no longer.
    pub lifts: Pins,
    /// The changes of the session that its text shows: all that the server may report without
    /// pinning the session.
    pub changes_session: bool,
    /// What it does to the transaction.
    pub effect: Effect,
    /// What it reads and changes beyond that.
    pub facts: Facts,
    /// It calls a procedure.
    pub is_call: bool,
    /// It reads or writes tables, which may be views.
    pub uses_tables: bool,
    /// The warnings of the statement before are gone once it has succeeded.
    pub clears_warnings: bool,
    /// FOUND_ROWS() is the number of its rows.
    pub counts_rows: bool,
    /// How far a replica may be behind that answers it, if that is not the service's.
    pub lag_max: Option<Duration>,
    /// What it does to the parts that its transaction has on other servers.
    pub step: Step,
    /// What it changes, with what its transaction has changed if it may end that. Nothing if
    /// nobody asks.
    pub changes: Changes,
}

/// What reads of the statement before it.
pub const OF_LAST_STATEMENT: Facts = Facts::READS_FOUND_ROWS
    .with(Facts::READS_ROW_COUNT)
    .with(Facts::READS_WARNINGS);

/// What a read may ask that replicas answer in another way than the primary, or not at all.
pub(crate) const OF_PRIMARY: Facts = Facts::READS_SYSTEM_VARIABLES
    .with(Facts::READS_LAST_INSERT_ID)
    .with(Facts::READS_CONNECTION_ID)
    .with(Facts::READS_LAST_VALUE)
    .with(Facts::READS_SESSION_STATUS)
    .with(Facts::READS_HANDLER)
    .with(Facts::SETS_USER_VARIABLES)
    .with(Facts::SETS_LAST_INSERT_ID);

/// What a SET may read whose value another connection would not compute alike.
const UNREPEATABLE: Facts = Facts::READS_LAST_INSERT_ID
    .with(OF_LAST_STATEMENT)
    .with(Facts::READS_CONNECTION_ID)
    .with(Facts::READS_LAST_VALUE)
    .with(Facts::READS_SESSION_STATUS)
    .with(Facts::CALLS_UNKNOWN)
    .with(Facts::ADVANCES_SEQUENCE)
    .with(Facts::DEPENDS_ON_VERSION)
    .with(Facts::NOT_UNDERSTOOD);

/// What changes the session by the text.
const CHANGES: Facts = Facts::SETS_USER_VARIABLES
    .with(Facts::SETS_SESSION_VARIABLES)
    .with(Facts::SETS_NEXT_TRANSACTION)
    .with(Facts::SETS_ROLE)
    .with(Facts::CHANGES_DATABASE)
    .with(Facts::CREATES_TEMPORARY)
    .with(Facts::DROPS_TEMPORARY)
    .with(Facts::PREPARES)
    .with(Facts::DEALLOCATES)
    .with(Facts::SETS_LAST_INSERT_ID)
    .with(Facts::HAS_SET_STATEMENT);

/// What a text of several statements may leave in a session.
const LEAVES: Facts = CHANGES
    .with(Facts::LOCKS_TABLES)
    .with(Facts::TAKES_USER_LOCK)
    .with(Facts::TAKES_GLOBAL_LOCK)
    .with(Facts::OPENS_HANDLER)
    .with(UNSEEN);

/// What may change the session in a way that its text does not show.
pub const UNSEEN: Facts = Facts::CALLS_UNKNOWN
    .with(Facts::EXECUTES)
    .with(Facts::NOT_UNDERSTOOD);

impl Plan {
    /// Whether it may change the session in a way that its text does not show.
    pub fn may_change_unseen(&self) -> bool {
        self.is_call || self.is_several || self.facts.has_any(UNSEEN)
    }

    /// Whether it may end the open transaction.
    pub fn may_end_transaction(&self) -> bool {
        !matches!(self.effect, Effect::None | Effect::Uses)
    }

    /// Whether it may be SAVEPOINT.
    pub(crate) fn may_set_savepoint(&self, kind: Kind) -> bool {
        kind == Kind::Transaction && self.effect == Effect::None
    }

    /// Of a statement in a session without a transaction or a pin. `last` is the server of the
    /// statement before, `access` what transactions of the session may do.
    pub(crate) fn of(
        text: &[u8],
        mode: SqlMode,
        judged: &Judged,
        last: Option<ServerId>,
        access: Access,
    ) -> Plan {
        let verdict = &judged.verdict;
        let facts = verdict.facts;
        let mut plan = Plan {
            goal: Goal::Primary,
            is_kept: false,
            may_repeat: false,
            may_write: false,
            is_several: verdict.is_several,
            pins: pins(judged),
            lifts: lifts(text, mode, facts),
            changes_session: facts.has_any(CHANGES),
            effect: judged.effect,
            facts,
            is_call: judged.class == Class::Call,
            uses_tables: judged.uses_tables,
            clears_warnings: clears_warnings(judged),
            counts_rows: counts_rows(judged),
            lag_max: None,
            step: Step::Stays,
            changes: changes(judged),
        };
        if verdict.is_several {
            plan.may_write = verdict.kind != Kind::Read;
            plan.effect = Effect::Unknown;
            if facts.has_any(LEAVES) {
                plan.pins.add(Pin::SeveralStatements);
            }
            return plan;
        }
        match verdict.kind {
            Kind::Read => plan.read(judged, last),
            Kind::Session => plan.session(text, mode, facts, last),
            Kind::Transaction => plan.transaction(facts, access),
            Kind::LockingRead => {}
            Kind::Write => plan.may_write = true,
        }
        if !plan.is_kept {
            plan.pin_values(facts);
        }
        plan
    }

    /// Does as a hint asks. `server` is the place of the server that it names. What has to go to
    /// one server still does, and only what is known to be a read goes to a replica.
    pub(crate) fn guide(&mut self, hint: &Hint<'_>, server: Option<ServerId>, judged: &Judged) {
        if hint.pins {
            self.pins.add(Pin::Hint);
        }
        self.lag_max = hint.max_lag_ms.map(Duration::from_millis);
        match (server, hint.route) {
            (Some(server), _) => self.go(Goal::Held(server), judged),
            (None, Some(HintRoute::Primary)) => self.go(Goal::Primary, judged),
            (None, Some(HintRoute::Replica)) => self.go(Goal::Replica, judged),
            (None, None) => {}
        }
    }

    /// What it does in a transaction that has parts on other servers.
    pub(crate) fn step_among_parts(&self, kind: Kind) -> Step {
        if self.is_kept || self.changes_session || self.is_several {
            return Step::Refused;
        }
        match self.effect {
            Effect::Commit(_)
            | Effect::Begin(_)
            | Effect::ImplicitCommit
            | Effect::Lock
            | Effect::FlushLock => Step::Commits,
            Effect::Rollback(_) => Step::RollsBack,
            // Savepoints are of one server.
            Effect::None if self.may_set_savepoint(kind) => Step::Refused,
            Effect::None | Effect::Uses => Step::MayJoin,
            Effect::Unlock
            | Effect::XaStart
            | Effect::XaFinish
            | Effect::Set(_)
            | Effect::Unknown => Step::Refused,
        }
    }

    /// Does as rules say, where a hint says nothing else.
    pub(crate) fn obey(&mut self, ruling: &Ruling) {
        if ruling.multiplexes == Some(false) {
            self.pins.add(Pin::Rule);
            if self.goal == Goal::Replica {
                // The session stays there, and what comes may write.
                self.goal = Goal::PrimaryFirst;
                self.may_repeat = false;
            }
        }
        self.lag_max = self.lag_max.or(ruling.lag_max);
    }

    /// Goes where a rule says. `server` is the place of the server that it names.
    pub(crate) fn follow(&mut self, route: &Route, server: Option<ServerId>, judged: &Judged) {
        match (route, server) {
            (Route::Primary, _) => self.go(Goal::Primary, judged),
            (Route::Replica, _) => self.go(Goal::Replica, judged),
            (Route::Server(_), Some(server)) => self.go(Goal::Held(server), judged),
            (Route::Server(_), None) => {}
        }
    }

    /// Goes elsewhere than its text says, if it may.
    fn go(&mut self, goal: Goal, judged: &Judged) {
        // A read that pins the session would keep its later writes at the replica.
        let is_read =
            judged.verdict.kind == Kind::Read && !judged.verdict.is_several && !leaves_pin(judged);
        let is_bound = matches!(self.goal, Goal::Held(_));
        if is_bound || goal == Goal::Replica && !is_read {
            return;
        }
        self.goal = goal;
        self.may_repeat &= goal == Goal::Replica;
    }

    /// What is set and not kept is on one connection alone.
    pub(crate) fn pin_values(&mut self, facts: Facts) {
        if facts.has(Facts::SETS_USER_VARIABLES) {
            self.pins.add(Pin::UserVariable);
        }
        let of_system = Facts::SETS_SESSION_VARIABLES
            .with(Facts::SETS_ROLE)
            .with(Facts::CHANGES_DATABASE);
        if facts.has_any(of_system) {
            self.pins.add(Pin::SystemVariable);
        }
    }

    fn read(&mut self, judged: &Judged, last: Option<ServerId>) {
        let facts = judged.verdict.facts;
        // Numbers of the last statement are known on each server, its warnings are not.
        let is_known = !facts.has(Facts::READS_WARNINGS);
        if facts.has_any(OF_LAST_STATEMENT) && !(is_known && leaves_pin(judged)) {
            self.goal = last.map_or(Goal::Primary, Goal::Held);
        } else if judged.class == Class::Query && !facts.has_any(OF_PRIMARY) {
            self.goal = Goal::Replica;
            self.may_repeat = true;
        } else if !facts.has_any(OF_PRIMARY.without(Facts::READS_SYSTEM_VARIABLES)) {
            // Drivers ask for variables when they connect.
            self.goal = Goal::PrimaryFirst;
        }
    }

    fn session(&mut self, text: &[u8], mode: SqlMode, facts: Facts, last: Option<ServerId>) {
        if facts.has(Facts::READS_WARNINGS) {
            self.goal = last.map_or(Goal::Primary, Goal::Held);
        }
        // These hold for the next statement that uses them, wherever that is, or have one read what
        // the statement before has left.
        let of_one_statement = Facts::SETS_INSERT_ID
            .with(Facts::SETS_LAST_INSERT_ID)
            .with(Facts::SETS_RAND_SEED)
            .with(Facts::SETS_AUTO_IS_NULL);
        let is_clock =
            facts.has(Facts::NOT_DETERMINISTIC) && !facts.has(Facts::READS_SYSTEM_VARIABLES);
        let is_unrepeatable = facts.has_any(UNREPEATABLE.with(of_one_statement))
            || is_clock
            || facts.has(Facts::SETS_USER_VARIABLES) && reads_tables(text, mode);
        let prepares = facts.has_any(Facts::PREPARES.with(Facts::DEALLOCATES));
        let changes = facts.has_any(CHANGES.without(Facts::HAS_SET_STATEMENT))
            && !facts.has(Facts::SETS_NEXT_TRANSACTION);
        self.is_kept = changes && (prepares || !is_unrepeatable);
        if self.is_kept && self.goal == Goal::Primary {
            // Each server takes it alike. Drivers send SET NAMES when they connect.
            self.goal = Goal::PrimaryFirst;
        }
    }

    fn transaction(&mut self, facts: Facts, access: Access) {
        self.is_kept = facts.has(Facts::SETS_SESSION_VARIABLES);
        let may_write = match self.effect {
            Effect::Begin(Access::ReadOnly) => false,
            Effect::Begin(Access::Default) => access != Access::ReadOnly,
            _ => true,
        };
        if self.is_kept {
            self.goal = Goal::PrimaryFirst;
        } else if !may_write {
            self.goal = Goal::Replica;
        }
        self.may_write = matches!(self.effect, Effect::Commit(_) | Effect::XaFinish);
    }
}

/// What a text changes by itself.
fn changes(judged: &Judged) -> Changes {
    match &judged.touched {
        Some(touched) => touched.changes.and(of_effect(judged.effect)),
        None => Changes::Nothing,
    }
}

/// Rows of SHOW, CALL, EXPLAIN and the like count or not, each in its way.
fn counts_rows(judged: &Judged) -> bool {
    let is_other = judged.verdict.facts.has(Facts::CALCULATES_FOUND_ROWS);
    judged.class == Class::Query && !judged.verdict.is_several && !is_other
}

/// Statements that use no table leave the warnings of the one before.
fn clears_warnings(judged: &Judged) -> bool {
    let uses_tables = !matches!(judged.verdict.kind, Kind::Session | Kind::Transaction);
    uses_tables && judged.uses_tables && !judged.verdict.facts.has(Facts::READS_WARNINGS)
}

/// Whether a SET has a subquery: rows may differ where it is repeated.
fn reads_tables(text: &[u8], mode: SqlMode) -> bool {
    let has_query = |value: &[u8]| {
        let mut words = value.windows(b"select".len());
        words.any(|word| word.eq_ignore_ascii_case(b"select"))
    };
    assignments(text, mode).any(|it| {
        let is_user = matches!(it.target, Target::User(_));
        is_user && !it.value.is_constant() && has_query(it.value.text)
    })
}

/// Whether a read pins the session where it is answered.
fn leaves_pin(judged: &Judged) -> bool {
    judged.verdict.facts.has(Facts::SETS_USER_VARIABLES) || !pins(judged).is_empty()
}

fn pins(judged: &Judged) -> Pins {
    let facts = judged.verdict.facts;
    let mut pins = Pins::default();
    if runs_unseen(judged) {
        pins.add(Pin::Unknown);
    }
    let causes = [
        (Facts::SETS_NEXT_TRANSACTION, Pin::NextTransaction),
        (Facts::CREATES_TEMPORARY, Pin::TemporaryTable),
        (Facts::TAKES_USER_LOCK, Pin::UserLock),
        (Facts::LOCKS_TABLES, Pin::TableLock),
        (Facts::TAKES_GLOBAL_LOCK, Pin::TableLock),
        (Facts::OPENS_HANDLER, Pin::Handler),
    ];
    for (fact, pin) in causes {
        if facts.has(fact) {
            pins.add(pin);
        }
    }
    pins
}

/// Whether it runs statements that its text does not show. Servers report the variables that these
/// set, but neither locks nor handlers.
fn runs_unseen(judged: &Judged) -> bool {
    let is_immediate =
        judged.class == Class::Prepared && judged.verdict.facts.has(Facts::CALLS_UNKNOWN);
    is_immediate || matches!(judged.class, Class::Program | Class::Unknown)
}

fn lifts(text: &[u8], mode: SqlMode, facts: Facts) -> Pins {
    let mut lifts = Pins::default();
    if facts.has(Facts::UNLOCKS_TABLES) {
        lifts.add(Pin::TableLock);
    }
    if facts.has(Facts::FREES_USER_LOCKS) && surely_frees_user_locks(text, mode) {
        lifts.add(Pin::UserLock);
    }
    lifts
}

/// Whether a text is RELEASE_ALL_LOCKS() alone. As a part of an expression it may not be evaluated.
fn surely_frees_user_locks(text: &[u8], mode: SqlMode) -> bool {
    let mut lexer = Lexer::new(text, mode);
    let is_first = matches!(
        lexer.next_keyword().keyword,
        Some(Keyword::Select | Keyword::Do)
    );
    let name = lexer.next_token();
    let is_name = name.kind == TokenKind::Word
        && name
            .span
            .of(text)
            .eq_ignore_ascii_case(b"release_all_locks");
    let has_parens = lexer.next_token().kind == TokenKind::LeftParen
        && lexer.next_token().kind == TokenKind::RightParen;
    let mut behind = lexer.next_token().kind;
    if behind == TokenKind::Semicolon {
        behind = lexer.next_token().kind;
    }
    is_first && is_name && has_parens && behind == TokenKind::End
}
