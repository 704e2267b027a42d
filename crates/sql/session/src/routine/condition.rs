//! Conditions: errors, warnings and notes, and the handler for each.
//!
//! The innermost block with an active handler for a condition decides. Within a block a handler for
//! the error's number comes before one for its SQLSTATE, and that before one for its class.

use clients::KillOrder;
use errcode::ClientError;
use value::Level;

use crate::connection::condition::Condition;
use crate::connection::frame::{Frame, HeldHandler, RunningHandler};
use crate::connection::programs::Programs;
use crate::connection::reply::Stop;
use crate::connection::session::Session;
use crate::statement::statement_run::StatementRun;

impl Frame {
    /// The handler for a condition: its place among the active ones.
    fn handler_for(&self, condition: &Condition) -> Option<usize> {
        let mut best: Option<(usize, u8, usize)> = None;
        for (place, held) in self.handlers.iter().enumerate().rev() {
            let handler = &self.program.handlers[held.number];
            if best.is_some_and(|(_, _, block)| block != handler.block) {
                break;
            }
            let ranks = handler.conditions.iter();
            let rank = ranks.filter_map(|value| condition.rank(*value)).max();
            let Some(rank) = rank else {
                continue;
            };
            if best.is_none_or(|(_, known, _)| known < rank) {
                best = Some((place, rank, handler.block));
            }
        }
        best.map(|(place, _, _)| place)
    }

    /// Begins the handler at that place and returns its first instruction. `resume` is where the
    /// program continues after the condition.
    fn begin_handler(&mut self, place: usize, condition: Condition, resume: usize) -> usize {
        let held = self.handlers[place];
        let handler = &self.program.handlers[held.number];
        let block = handler.block;
        let is_of_block = |held: &HeldHandler| self.program.handlers[held.number].block == block;
        let base = self.handlers.iter().position(is_of_block).unwrap_or(place);
        let (entry, resume) = match handler.is_exit {
            true => (handler.entry, handler.exit),
            false => (handler.entry, resume),
        };
        let is_exit = handler.is_exit;
        let mut saved = self.handlers.split_off(base);
        if is_exit {
            saved.clear();
            self.running.truncate(held.running_count);
        }
        self.running.push(RunningHandler {
            saved,
            resume,
            condition,
        });
        entry
    }
}

impl Session {
    /// Where the program continues after an error that has a handler; else returns the error.
    pub(crate) fn handle_error(
        &mut self,
        error: Box<ClientError>,
        resume: usize,
        run: &mut StatementRun,
    ) -> Result<usize, Stop> {
        // A session that has killed itself gets the error.
        if error.code == errcode::ER_CONNECTION_KILLED {
            return Err(error.into());
        }
        // A killed program ends, whatever its handlers say.
        if self.state.handle.order() != KillOrder::None {
            return Err(self.interrupted());
        }
        // If a function's transaction is gone, the program cannot continue either.
        let is_lost = self.programs.is_in_function() && self.transaction.opened().is_none();
        if is_lost || error.code == errcode::ER_STATEMENT_TIMEOUT {
            return Err(error.into());
        }
        let condition = Condition {
            level: Level::Error,
            error: *error,
        };
        let frame = self.frame();
        let Some(place) = frame.handler_for(&condition) else {
            return Err(condition.error.into());
        };
        let next = frame.begin_handler(place, condition.clone(), resume);
        // The client gets no more than the rows that it has received.
        if std::mem::take(&mut run.has_partial_rows) {
            self.end_partial_rows();
        }
        self.state.set_row_count(-1);
        let diagnostics = std::rc::Rc::clone(&self.state.diagnostics.borrow());
        diagnostics.push(Level::Error, condition.error);
        for place in self.programs.take_trace() {
            diagnostics.push(Level::Note, place);
        }
        Ok(next)
    }

    /// Where the program continues if a warning of the last instruction has a handler. The last
    /// such warning counts.
    pub(crate) fn handle_warnings(&mut self, next: usize) -> Option<usize> {
        let diagnostics = std::rc::Rc::clone(&self.state.diagnostics.borrow());
        let Programs {
            frames, signalled, ..
        } = &mut self.programs;
        let frame = frames.last_mut()?;
        let warnings = diagnostics.warnings();
        let noted = warnings.entries().iter().rev();
        for (level, noted) in noted.filter(|(level, _)| *level != Level::Error) {
            let mut condition = Condition::noted(*level, noted);
            if let Some(signalled) = signalled {
                signalled.complete(&mut condition.error);
            }
            if let Some(place) = frame.handler_for(&condition) {
                return Some(frame.begin_handler(place, condition, next));
            }
        }
        None
    }

    /// Ends a handler. Returns where the program continues.
    pub(crate) fn end_handler(&mut self) -> usize {
        let done = self.frame().running.pop();
        let done = done.expect("its last instruction ends it");
        self.forget_handled(&done.condition);
        self.frame().handlers.extend(done.saved);
        done.resume
    }

    /// Removes the handled condition from the list.
    fn forget_handled(&mut self, condition: &Condition) {
        let is_listed = {
            let diagnostics = self.state.diagnostics.borrow();
            let warnings = diagnostics.warnings();
            warnings.entries().iter().any(|(_, noted)| {
                noted.code == condition.error.code && noted.message == condition.error.message
            })
        };
        if is_listed {
            self.state.clear_diagnostics();
        }
    }
}
