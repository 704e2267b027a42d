//! [`Estimates`]: what the store tells of the ranges that a statement reads, while it is planned.
//!
//! Planning does not wait. The store may have to read pages for an answer; then the plan is made by
//! what is known, and thrown away: the session waits for the pages, and plans again
//! (`Session::plan_estimated`). What was answered once is not asked again.

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
    /// The store waits for this.
    Awaited(Suspend),
}

impl Answer {
    /// Asks the store.
    fn of(store: &dyn Store, table: TableId, index: usize, ranges: &[KeyRange]) -> Self {
        let answer = store
            .table(table)
            .and_then(|table| table.measure(index, ranges));
        match answer {
            Ok(rows) => Self::Known(rows),
            Err(Interrupt::Suspend(suspend)) => Self::Awaited(suspend),
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
        let answer = Answer::of(store, definition.id, index, &ranges);
        let rows = match &answer {
            Answer::Known(rows) => rows.clone(),
            Answer::Awaited(_) => None,
        };
        questions.push(Question {
            table: definition.id,
            index,
            ranges,
            answer,
        });
        rows
    }

    /// What a question without an answer waits for, and its place; to be asked again after that.
    pub(crate) fn take_wait(&self) -> Option<(usize, Suspend)> {
        let mut questions = self.questions.borrow_mut();
        for (place, question) in questions.iter_mut().enumerate() {
            match std::mem::replace(&mut question.answer, Answer::Known(None)) {
                Answer::Awaited(suspend) => return Some((place, suspend)),
                known @ Answer::Known(_) => question.answer = known,
            }
        }
        None
    }

    /// Asks a question again.
    pub(crate) fn ask_again(&self, store: &dyn Store, place: usize) {
        let question = &mut self.questions.borrow_mut()[place];
        question.answer = Answer::of(store, question.table, question.index, &question.ranges);
    }

    /// True if an answer would have come too late for the plan.
    pub(crate) fn is_incomplete(&self) -> bool {
        let questions = self.questions.borrow();
        let mut answers = questions.iter().map(|question| &question.answer);
        answers.any(|answer| matches!(answer, Answer::Awaited(_)))
    }
}
