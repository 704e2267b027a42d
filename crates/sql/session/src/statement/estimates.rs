//! [`Estimates`]: what the store tells of the ranges that a statement reads, while it is planned.
//!
//! Planning does not wait. The store may have to read pages for an answer; then the plan is made by
//! what is known, and thrown away: the session waits for the pages, and plans again
//! (`Session::plan_estimated`). What was answered once is not asked again.
//!
//! One wait is kept at a time. It brings pages in, for which others wait, too. Two sessions that
//! each kept a wait without attending to it could wait for each other's pages for ever.

use std::cell::RefCell;

use store::{Interrupt, KeyRange, Store, Suspend, TableDefinition, TableId};
use value::Value;
use value::temporal::Zone;

/// Questions of one statement; past them kept statistics have to do. A join of many tables asks for
/// each of their indexes.
const QUESTION_COUNT_MAX: usize = 64;

/// The answers for one statement with these values.
#[derive(Debug)]
pub(crate) struct Estimates<'v> {
    /// Of its parameters.
    pub(crate) values: &'v [Value],
    /// The session's time zone.
    pub(crate) zone: Zone,
    questions: RefCell<Vec<Question>>,
}

#[derive(Debug)]
struct Question {
    table: TableId,
    index: usize,
    ranges: Vec<KeyRange>,
    answer: Answer,
}

#[derive(Debug)]
enum Answer {
    /// The rows of each range; `None` if the store cannot tell.
    Known(Option<Vec<u64>>),
    /// The store waits for this, or has to be asked again.
    Awaited(Option<Suspend>),
}

impl Answer {
    /// Asks the store.
    fn of(store: &dyn Store, table: TableId, index: usize, ranges: &[KeyRange]) -> Self {
        let answer = store
            .table(table)
            .and_then(|table| table.measure(index, ranges));
        match answer {
            Ok(rows) => Self::Known(rows),
            Err(Interrupt::Suspend(suspend)) => Self::Awaited(Some(suspend)),
            // Whoever reads the table meets the error again.
            Err(Interrupt::Error(_)) => Self::Known(None),
        }
    }
}

impl<'v> Estimates<'v> {
    /// Nothing is asked yet.
    pub(crate) fn new(values: &'v [Value], zone: Zone) -> Self {
        Self {
            values,
            zone,
            questions: RefCell::default(),
        }
    }

    /// The rows of each range, if that is known, or the store knows it now.
    pub(crate) fn rows(
        &self,
        store: &dyn Store,
        definition: &TableDefinition,
        index: usize,
        ranges: Vec<KeyRange>,
    ) -> Option<Vec<u64>> {
        let mut questions = self.questions.borrow_mut();
        let is_same =
            |it: &&Question| it.table == definition.id && it.index == index && it.ranges == ranges;
        let known = questions.iter().find(is_same);
        if let Some(question) = known {
            return match &question.answer {
                Answer::Known(rows) => rows.clone(),
                Answer::Awaited(_) => None,
            };
        }
        if questions.len() == QUESTION_COUNT_MAX {
            return None;
        }
        let is_waiting = questions.iter().any(Question::is_open);
        let (rows, answer) = match Answer::of(store, definition.id, index, &ranges) {
            Answer::Known(rows) => (rows.clone(), Answer::Known(rows)),
            Answer::Awaited(wait) => (None, Answer::Awaited(wait.filter(|_| !is_waiting))),
        };
        questions.push(Question {
            table: definition.id,
            index,
            ranges,
            answer,
        });
        rows
    }

    /// The place of a question without an answer, and what it waits for, if that is kept. To be
    /// asked again after that.
    pub(crate) fn take_wait(&self) -> Option<(usize, Option<Suspend>)> {
        let mut questions = self.questions.borrow_mut();
        let place = questions.iter().position(Question::is_open)?;
        match std::mem::replace(&mut questions[place].answer, Answer::Known(None)) {
            Answer::Awaited(wait) => Some((place, wait)),
            Answer::Known(_) => unreachable!("an open question has no answer"),
        }
    }

    /// Asks a question again.
    pub(crate) fn ask_again(&self, store: &dyn Store, place: usize) {
        let question = &mut self.questions.borrow_mut()[place];
        question.answer = Answer::of(store, question.table, question.index, &question.ranges);
    }

    /// True if an answer would have come too late for the plan.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.questions.borrow().iter().any(Question::is_open)
    }
}

impl Question {
    /// Whether it has no answer.
    fn is_open(&self) -> bool {
        matches!(self.answer, Answer::Awaited(_))
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use store::{Uniqueness, WaitReason};
    use testkit::definitions::{column, index, table};
    use testkit::naive_store::{NaiveStore, RoundTrip};
    use value::{ColumnType, TypeKind};

    use super::*;

    /// What is kept and not attended to would keep others from their pages.
    #[test]
    fn one_wait_is_kept_at_a_time() {
        let store = NaiveStore::new();
        let columns =
            ["a", "b", "c"].map(|name| column(name, ColumnType::new(TypeKind::Int), false));
        let indexes = [0, 1, 2].map(|at| index("i", Uniqueness::Unique, &[at]));
        let id = store.add_table(table("t", columns.to_vec(), indexes.to_vec()));
        let kept = Rc::new(());
        let waiting = Rc::clone(&kept);
        // A call waits at every second try.
        let wait = move || {
            let waiting = Rc::clone(&waiting);
            Suspend::new(WaitReason::PageMiss, async move { drop(waiting) })
        };
        store.be_remote(RoundTrip(Box::new(wait)));
        let unused = Rc::strong_count(&kept);
        let estimates = Estimates::new(&[], Zone::Utc);
        let found = store.table(id).expect("the table");
        let ask = |at| estimates.rows(&store, found.definition(), at, vec![KeyRange::all()]);
        let answers: Vec<bool> = (0..3).map(|at| ask(at).is_some()).collect();
        assert_eq!(answers, [false, true, false]);
        assert_eq!(
            Rc::strong_count(&kept),
            unused + 1,
            "two wait, and one is kept"
        );
        let mut places = Vec::new();
        while let Some((place, wait)) = estimates.take_wait() {
            places.push((place, wait.is_some()));
            drop(wait);
            estimates.ask_again(&store, place);
            assert!(Rc::strong_count(&kept) <= unused + 1);
        }
        assert_eq!(places, [(0, true), (2, false), (2, true)]);
        assert!((0..3).all(|at| ask(at) == Some(vec![0])));
    }
}
