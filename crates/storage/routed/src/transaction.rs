//! [`RoutedTransaction`]: a transaction with a part in each store that its statements use.
//!
//! A part begins when a table of its store first asks for the transaction's key. So a transaction
//! that stays in one store costs the others nothing.
//!
//! ```text
//!   Open --commit, several parts have changes--> Preparing --all are ready--> Committing --> Open
//!   Open --commit, one part or none has changes----------------------------> Committing --> Open
//!   Open, Preparing --rollback--> Open
//! ```
//!
//! **Commit.** If several parts have changes, each is prepared before the first commits. At most
//! one part may be unable to prepare: it commits first, and its commit decides for all. If another
//! part cannot be prepared, none commits. What is missing: a record of the decision. After a crash
//! between the first commit and the last one, a prepared part waits until somebody decides.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use store::{
    ClientId, Durability, Interrupt, Isolation, Outcome, Prepared, StoreError, StoreId,
    Transaction, TransactionKey, TransactionOptions, UndoMark, Xid,
};

use crate::Member;
use crate::marks::Marks;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct RoutedTransaction {
    members: Rc<[Member]>,
    /// With the present time limit of locks. For parts that begin later.
    options: TransactionOptions,
    /// In the order in which they began.
    parts: Vec<Part>,
    marks: RefCell<Marks>,
    /// A statement has begun, and a snapshot was opened: parts that begin later do the same.
    has_statement: bool,
    has_snapshot: bool,
    /// The parts whose statement has ended, while it ends.
    statements_ended: usize,
    state: State,
    /// What lives until each part has ended.
    kept: Option<Rc<dyn Any>>,
}

#[derive(Debug)]
struct Part {
    store: StoreId,
    txn: Box<dyn Transaction>,
    vote: Vote,
    /// It has committed, or was rolled back.
    has_ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// Parts are asked to prepare.
    Preparing,
    /// Nothing can fail any more but the commit that decides.
    Committing,
}

/// What a part has answered, in the order of the commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Vote {
    /// It cannot prepare: its commit decides.
    Decides,
    /// It was not asked: it is the only one with changes, or has none.
    NotAsked,
    /// Its commit cannot fail.
    Ready,
    /// It has no changes.
    Nothing,
}

impl RoutedTransaction {
    pub(crate) fn new(members: Rc<[Member]>, options: TransactionOptions) -> Self {
        Self {
            members,
            options,
            parts: Vec::new(),
            marks: RefCell::default(),
            has_statement: false,
            has_snapshot: false,
            statements_ended: 0,
            state: State::Open,
            kept: None,
        }
    }

    /// A transaction that a former life of the server has left prepared; its parts follow.
    pub(crate) fn left(members: Rc<[Member]>) -> Self {
        let options = TransactionOptions {
            isolation: Isolation::default(),
            read_only: false,
            lock_wait_timeout_s: 0,
            client: ClientId::NONE,
        };
        Self::new(members, options)
    }

    /// Takes a part that a former life of the server has left prepared.
    pub(crate) fn adopt(&mut self, store: StoreId, txn: Box<dyn Transaction>) {
        self.parts.push(Part {
            store,
            txn,
            vote: Vote::Ready,
            has_ended: false,
        });
    }

    /// The place of the part in a store, which begins if there is none.
    fn part_in(&mut self, store: StoreId) -> usize {
        if let Some(place) = self.parts.iter().position(|part| part.store == store) {
            return place;
        }
        let mut members = self.members.iter();
        let member = members.find(|member| member.store.id() == store);
        let member = member.expect("the transaction's tables are of its own stores");
        let mut txn = member.store.begin(self.options);
        if self.has_statement {
            txn.begin_statement();
        }
        if self.has_snapshot {
            txn.open_snapshot();
        }
        self.parts.push(Part {
            store,
            txn,
            vote: Vote::NotAsked,
            has_ended: false,
        });
        self.parts.len() - 1
    }

    /// Asks each part with changes to prepare that has not answered yet.
    fn ask(&mut self) -> Outcome<()> {
        for place in 0..self.parts.len() {
            let has_decider = self.parts.iter().any(|part| part.vote == Vote::Decides);
            let part = &mut self.parts[place];
            if part.vote != Vote::NotAsked {
                continue;
            }
            if !part.txn.has_changes() {
                part.vote = Vote::Nothing;
                continue;
            }
            part.vote = match part.txn.prepare() {
                Ok(Prepared::Ready) => Vote::Ready,
                Ok(Prepared::Nothing) => Vote::Nothing,
                Err(Interrupt::Error(StoreError::NotSupported { .. })) if !has_decider => {
                    Vote::Decides
                }
                Err(other) => return Err(other),
            };
        }
        Ok(())
    }

    /// Ends each part that has not ended.
    fn end_parts(&mut self, end: impl Fn(&mut dyn Transaction) -> Outcome<()>) -> Outcome<()> {
        for part in self.parts.iter_mut().filter(|part| !part.has_ended) {
            end(&mut *part.txn)?;
            part.has_ended = true;
        }
        self.parts.clear();
        self.marks = RefCell::default();
        (self.has_statement, self.has_snapshot) = (false, false);
        self.statements_ended = 0;
        self.state = State::Open;
        self.kept = None;
        Ok(())
    }
}

impl Transaction for RoutedTransaction {
    fn key(&mut self, store: StoreId) -> TransactionKey {
        let place = self.part_in(store);
        self.parts[place].txn.key(store)
    }

    fn begin_statement(&mut self) {
        self.has_statement = true;
        for part in &mut self.parts {
            part.txn.begin_statement();
        }
    }

    fn end_statement(&mut self) -> Outcome<()> {
        while let Some(part) = self.parts.get_mut(self.statements_ended) {
            if let Err(interrupt) = part.txn.end_statement() {
                if matches!(interrupt, Interrupt::Error(_)) {
                    self.statements_ended = 0;
                }
                return Err(interrupt);
            }
            self.statements_ended += 1;
        }
        self.statements_ended = 0;
        Ok(())
    }

    /// All stores open theirs, so that the snapshots are of about one time.
    fn open_snapshot(&mut self) {
        let members = Rc::clone(&self.members);
        for member in &*members {
            let place = self.part_in(member.store.id());
            self.parts[place].txn.open_snapshot();
        }
        self.has_snapshot = true;
    }

    fn mark(&self) -> UndoMark {
        let mut marks = self.marks.borrow_mut();
        for (place, part) in self.parts.iter().enumerate() {
            marks.note(place, part.txn.mark().0);
        }
        UndoMark(marks.place())
    }

    fn rollback_to(&mut self, mark: UndoMark) -> Outcome<()> {
        self.statements_ended = 0;
        self.mark();
        let marks = self.marks.get_mut();
        for (place, part) in self.parts.iter_mut().enumerate() {
            let own = UndoMark(marks.number(place, mark.0));
            part.txn.rollback_to(own)?;
        }
        marks.cut(mark.0);
        Ok(())
    }

    fn prepare(&mut self) -> Outcome<Prepared> {
        self.ask()?;
        let has = |vote| self.parts.iter().any(|part| part.vote == vote);
        if has(Vote::Decides) {
            // Its commit would decide, but the caller wants to.
            let what = "the first phase of a commit in this store";
            return Err(StoreError::NotSupported { what }.into());
        }
        Ok(match has(Vote::Ready) {
            true => Prepared::Ready,
            false => Prepared::Nothing,
        })
    }

    /// If a part refuses, those before it stay prepared until the caller ends the transaction.
    fn prepare_as(&mut self, xid: &Xid, durability: Durability) -> Outcome<Prepared> {
        let asked = self
            .parts
            .iter_mut()
            .filter(|part| part.vote == Vote::NotAsked);
        for part in asked {
            part.vote = match part.txn.prepare_as(xid, durability)? {
                Prepared::Ready => Vote::Ready,
                Prepared::Nothing => Vote::Nothing,
            };
        }
        let is_ready = self.parts.iter().any(|part| part.vote == Vote::Ready);
        Ok(match is_ready {
            true => Prepared::Ready,
            false => Prepared::Nothing,
        })
    }

    fn commit(&mut self, durability: Durability) -> Outcome<()> {
        if self.state == State::Open {
            let changed = self.parts.iter().filter(|part| part.txn.has_changes());
            self.state = match changed.count() {
                0 | 1 => State::Committing,
                _ => State::Preparing,
            };
        }
        if self.state == State::Preparing {
            self.ask()?;
            self.parts.sort_by_key(|part| part.vote);
            self.state = State::Committing;
        }
        self.end_parts(|txn| txn.commit(durability))
    }

    fn rollback(&mut self) -> Outcome<()> {
        self.end_parts(|txn| txn.rollback())
    }

    fn has_changes(&self) -> bool {
        self.parts.iter().any(|part| part.txn.has_changes())
    }

    fn is_active(&self) -> bool {
        self.parts.iter().any(|part| part.txn.is_active())
    }

    fn set_lock_wait_timeout(&mut self, seconds: u64) {
        self.options.lock_wait_timeout_s = seconds;
        for part in &mut self.parts {
            part.txn.set_lock_wait_timeout(seconds);
        }
    }

    fn id(&self) -> u64 {
        let mut ids = self.parts.iter().map(|part| part.txn.id());
        ids.find(|id| *id != 0).unwrap_or(0)
    }

    /// Each part holds on to it, so it lives until the last one is undone.
    fn keep(&mut self, kept: Box<dyn Any>) {
        let kept: Rc<dyn Any> = Rc::from(kept);
        for part in &mut self.parts {
            part.txn.keep(Box::new(Rc::clone(&kept)));
        }
        self.kept = Some(kept);
    }
}
