//! Runs a program, instruction by instruction.
//!
//! A program yields to other clients every few instructions, and then checks whether it was killed
//! or its time is over. Its statements do the same.
//!
//! The list of warnings is that of the last instruction that could have any. An instruction that
//! only computes leaves the list alone, unless it has warnings of its own.

use std::rc::Rc;

use errcode::{
    ClientError, ER_SP_CASE_NOT_FOUND, ER_SP_CURSOR_ALREADY_OPEN, ER_SP_CURSOR_NOT_OPEN,
    ER_SP_FETCH_NO_DATA, ER_SP_WRONG_NO_OF_FETCH_ARGS,
};
use expression::Diagnostics;
use syntax::ast::{self, IntoTarget, VariableScope};
use value::CollationId;
use wire::StatusFlags;

use super::compile::compile;
use super::evaluate::Strictness;
use crate::connection::frame::{CursorState, Frame, HeldHandler};
use crate::connection::reply::{Done, Reply, Stop};
use crate::connection::session::Session;
use crate::set::new_value_of;
use crate::statement::dispatch::TURN_STATEMENT_COUNT;
use crate::statement::statement_run::StatementRun;
use crate::variables::system::NewValue;
use crate::worker::parsed::Parsed;
use crate::worker::program::Instruction;

impl Session {
    /// Runs a statement that is itself a program: `BEGIN NOT ATOMIC`, `IF`, a loop, `SIGNAL`.
    pub(crate) async fn program_statement(
        &mut self,
        program: &ast::Program,
        parsed: &Parsed,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        let collation = {
            let variables = self.state.variables.borrow();
            CollationId::from_name(variables.settings().text("collation_database"))
        };
        let collation = collation.unwrap_or(CollationId::UTF8MB4_GENERAL_CI);
        let compiled = compile(program, &parsed.text, collation)?;
        self.programs
            .check_depth()
            .map_err(|error| Stop::from(*error))?;
        let frame = Frame::new(Rc::new(compiled));
        self.run_unlimited(frame, run).await?;
        Ok(self.program_reply())
    }

    /// The OK packet of a program: how many rows its statements have changed.
    pub(crate) fn program_reply(&self) -> Reply {
        let affected_rows = self.programs.affected_rows;
        let count = i64::try_from(affected_rows).unwrap_or(i64::MAX);
        self.state.set_row_count(count);
        Reply::Ok(Done {
            affected_rows,
            ..Done::default()
        })
    }

    /// Runs a program to its end. Returns it with the final values of its variables.
    pub(crate) async fn run_frame(
        &mut self,
        frame: Frame,
        run: &mut StatementRun,
    ) -> Result<Frame, Stop> {
        let is_outermost = self.programs.frames.is_empty() && !self.programs.is_in_function();
        if is_outermost {
            self.programs.affected_rows = 0;
            self.programs.trace.clear();
            self.programs.deadline = Some(self.statement_deadline());
        }
        self.programs.frames.push(frame);
        let outcome = self.run_instructions(run).await;
        let frame = self.programs.frames.pop().expect("pushed above");
        if is_outermost {
            self.programs.deadline = None;
        }
        outcome.map(|()| frame)
    }

    async fn run_instructions(&mut self, run: &mut StatementRun) -> Result<(), Stop> {
        let program = Rc::clone(&self.frame().program);
        let (mut at, mut count) = (0, 0_u32);
        while let Some(instruction) = program.code.get(at) {
            count = count.wrapping_add(1);
            if count.is_multiple_of(TURN_STATEMENT_COUNT) {
                let deadline = self.programs.deadline.flatten();
                self.give_way(deadline).await?;
            }
            at = match self.instruction(instruction, at, run).await {
                Ok(next) => next,
                Err(Stop::Error(error)) => {
                    let resume = match instruction {
                        Instruction::JumpUnless { resume, .. } => *resume,
                        _ => at + 1,
                    };
                    match self.handle_error(error, resume, run) {
                        Ok(next) => next,
                        Err(stop) => {
                            let place = self.frame().trace(at);
                            self.programs.trace.extend(place);
                            return Err(stop);
                        }
                    }
                }
                Err(stop) => return Err(stop),
            };
        }
        Ok(())
    }

    /// Runs an instruction. Returns the index of the next.
    async fn instruction(
        &mut self,
        instruction: &Instruction,
        at: usize,
        run: &mut StatementRun,
    ) -> Result<usize, Stop> {
        match instruction {
            Instruction::Jump(target) => return Ok(*target),
            Instruction::EndHandler => return Ok(self.end_handler()),
            Instruction::EnterHandlers { first, count } => {
                let frame = self.frame();
                let running_count = frame.running.len();
                let held = |number| HeldHandler {
                    number,
                    running_count,
                };
                frame.handlers.extend((*first..*first + *count).map(held));
            }
            Instruction::LeaveHandlers(count) => {
                let handlers = &mut self.frame().handlers;
                handlers.truncate(handlers.len().saturating_sub(*count));
            }
            Instruction::Clear(slot) => {
                let state = Rc::clone(&self.state);
                self.frame().set(*slot, value::Value::Null, &state)?;
            }
            Instruction::CloseAll(cursors) => {
                self.frame().cursors[cursors.clone()].fill_with(|| None);
            }
            Instruction::GetDiagnostics(asked) => {
                let (asked, number) = &**asked;
                self.get_diagnostics(asked, number.as_ref()).await?;
            }
            Instruction::Signal(signal) => {
                self.signal(signal).await?;
                self.programs.has_kept_warnings = false;
                return Ok(self.after_warnings(at + 1));
            }
            Instruction::Statement(_) | Instruction::Call(_) => {
                self.programs.has_kept_warnings = false;
                self.statement_instruction(instruction, run).await?;
                return Ok(self.after_warnings(at + 1));
            }
            _ => {
                // RETURN begins with an empty list: earlier warnings are dropped.
                if matches!(instruction, Instruction::Return(_)) {
                    self.state.clear_diagnostics();
                }
                let set_aside = self.set_diagnostics_aside();
                let next = self.computing_instruction(instruction, at).await;
                self.keep_diagnostics(set_aside);
                return next.map(|next| self.after_warnings(next));
            }
        }
        Ok(at + 1)
    }

    /// Where the program continues, after handlers for the instruction's warnings.
    fn after_warnings(&mut self, next: usize) -> usize {
        let has_handlers = !self.frame().handlers.is_empty();
        let has_warnings = self.state.diagnostics.borrow().warnings().count() != 0;
        if !has_handlers || !has_warnings || self.programs.has_kept_warnings {
            return next;
        }
        self.handle_warnings(next).unwrap_or(next)
    }

    /// Begins a list of warnings. Returns the former one.
    pub(crate) fn set_diagnostics_aside(&mut self) -> Rc<Diagnostics> {
        let spare = std::mem::take(&mut self.programs.spare);
        let aside = std::mem::replace(&mut *self.state.diagnostics.borrow_mut(), spare);
        self.state.clear_diagnostics();
        aside
    }

    /// Restores the list that was set aside, unless there are new warnings.
    pub(crate) fn keep_diagnostics(&mut self, aside: Rc<Diagnostics>) {
        let has_own = self.state.diagnostics.borrow().warnings().count() != 0;
        self.programs.has_kept_warnings = !has_own;
        if has_own {
            self.programs.spare = aside;
        } else {
            let own = std::mem::replace(&mut *self.state.diagnostics.borrow_mut(), aside);
            self.programs.spare = own;
        }
    }

    /// A statement or a call.
    async fn statement_instruction(
        &mut self,
        instruction: &Instruction,
        run: &mut StatementRun,
    ) -> Result<(), Stop> {
        let reply = match instruction {
            Instruction::Statement(fragment) => {
                Box::pin(self.fragment_statement(fragment, run)).await?
            }
            Instruction::Call(call) => {
                Box::pin(self.call(call, run)).await?;
                return Ok(());
            }
            other => unreachable!("no statement: {other:?}"),
        };
        match reply {
            Reply::Ok(done) => {
                let sum = &mut self.programs.affected_rows;
                *sum = sum.saturating_add(done.affected_rows);
            }
            Reply::Rows(done) => {
                self.write_reply(Ok(Reply::Rows(done)), true)?;
                if self.client.should_flush() {
                    self.send_rows(self.programs.deadline.flatten()).await?;
                }
            }
            Reply::Nothing => {}
            // COMMIT RELEASE: the session would have to end with the program.
            Reply::End => {
                return Err(ClientError::not_supported(&"RELEASE in a stored program").into());
            }
        }
        Ok(())
    }

    /// An instruction that computes something.
    async fn computing_instruction(
        &mut self,
        instruction: &Instruction,
        at: usize,
    ) -> Result<usize, Stop> {
        match instruction {
            Instruction::SetLocal { slot, value } => {
                let (value, column_type) = self.evaluate(value, Strictness::OfMode).await?;
                self.set_local(*slot, value, &column_type)?;
            }
            Instruction::SetUser { name, value } => {
                let (value, column_type) = self.evaluate(value, Strictness::Lax).await?;
                self.state
                    .set_user_variable(name, value, &column_type)
                    .map_err(|failure| *failure)?;
                self.track_state();
            }
            Instruction::SetSystem { variable, value } => {
                let value = match value {
                    Some(value) => self.system_value(value).await?,
                    None => NewValue::Default,
                };
                self.check_set_in_function(&variable.name.text)?;
                let scope = variable.scope.unwrap_or(VariableScope::Session);
                self.set_variable_checked(scope, &variable.name.text, &value)
                    .await?;
            }
            Instruction::JumpUnless {
                condition, target, ..
            } => {
                if !self.holds(condition).await? {
                    return Ok(*target);
                }
            }
            Instruction::RangeTest { range, target } => {
                if !self.is_in_range(*range) {
                    return Ok(*target);
                }
            }
            Instruction::RangeNext { range, start } => {
                self.go_on_in_range(*range)?;
                return Ok(*start);
            }
            Instruction::NextRow { row, target } => {
                if !self.next_row(row)? {
                    return Ok(*target);
                }
            }
            Instruction::Open(cursor) => self.open_cursor(*cursor).await?,
            Instruction::Fetch { cursor, into } => self.fetch(*cursor, into)?,
            Instruction::Close(cursor) => {
                let code = ER_SP_CURSOR_NOT_OPEN;
                let closed = self.frame().cursors[*cursor].take();
                closed.ok_or_else(|| ClientError::new(code, &[]))?;
            }
            Instruction::Return(value) => {
                let (value, column_type) = self.evaluate(value, Strictness::OfMode).await?;
                let result = self.frame().program.result;
                let result = result.expect("only functions return");
                self.set_local(result, value, &column_type)?;
                self.frame().has_returned = true;
                return Ok(usize::MAX);
            }
            Instruction::CaseNotFound => {
                return Err(ClientError::new(ER_SP_CASE_NOT_FOUND, &[]).into());
            }
            other => unreachable!("done elsewhere: {other:?}"),
        }
        Ok(at + 1)
    }

    /// The value of a system variable; a bare word is a text.
    async fn system_value(
        &mut self,
        value: &crate::worker::program::Fragment,
    ) -> Result<NewValue, Stop> {
        if let Some(word) = value.word() {
            return Ok(NewValue::Text(word.to_owned()));
        }
        let (value, column_type) = self.evaluate(value, Strictness::Lax).await?;
        Ok(new_value_of(value, &column_type)?)
    }

    async fn open_cursor(&mut self, cursor: usize) -> Result<(), Stop> {
        let program = Rc::clone(&self.frame().program);
        if self.frame().cursors[cursor].is_some() {
            return Err(ClientError::new(ER_SP_CURSOR_ALREADY_OPEN, &[]).into());
        }
        let rows = Box::pin(self.cursor_rows(&program.cursors[cursor])).await?;
        self.frame().cursors[cursor] = Some(CursorState { rows, places: None });
        Ok(())
    }

    fn fetch(&mut self, cursor: usize, into: &[IntoTarget]) -> Result<(), ClientError> {
        let Some(CursorState { rows, .. }) = &mut self.frame().cursors[cursor] else {
            return Err(ClientError::new(ER_SP_CURSOR_NOT_OPEN, &[]));
        };
        if rows.column_count() != into.len() {
            return Err(ClientError::new(ER_SP_WRONG_NO_OF_FETCH_ARGS, &[]));
        }
        let Some((row, columns)) = rows.next_row() else {
            return Err(ClientError::new(ER_SP_FETCH_NO_DATA, &[]));
        };
        let types: Vec<_> = columns.iter().map(|it| it.column_type.clone()).collect();
        for ((target, value), column_type) in into.iter().zip(row).zip(&types) {
            self.assign(target, value, column_type)?;
        }
        Ok(())
    }

    /// Ends rows that a failed statement has begun to send, so that the program can continue.
    pub(crate) fn end_partial_rows(&mut self) {
        let done = Done {
            status: StatusFlags::MORE_RESULTS,
            ..Done::default()
        };
        if self.write_reply(Ok(Reply::Rows(done)), true).is_err() {
            unreachable!("writing into the buffer does not fail");
        }
    }
}
