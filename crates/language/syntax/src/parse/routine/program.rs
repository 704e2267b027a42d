//! The statements of stored programs' bodies.

use std::collections::HashSet;
use std::rc::Rc;

use super::check_statement;
use crate::ast::{
    BinaryOperator, Block, CaseStep, ConditionValue, Declaration, Direction, Expr, ExprKind,
    Handler, Ident, LockWait, LoopKind, LoopStep, ProgramExpr, ProgramStatement, RoutineKind,
    SetItem, Statement, StatementKind, Step, StepKind,
};
use crate::keyword::Keyword as K;
use crate::parse::cursor::{Cursor, Parsed};
use crate::parse::error::RoutineError;
use crate::parse::scope::{Meaning, routine_fail};
use crate::token::{Kind, Span};

/// What may end a list of statements.
const LIST_ENDS: [K; 5] = [K::End, K::Else, K::Elseif, K::When, K::Until];

impl Cursor<'_> {
    /// One statement of a body, without its `;`.
    pub(crate) fn step(&mut self) -> Parsed<Step> {
        let start = self.start();
        let kind = self.deeper(Self::step_kind)?;
        Ok(Step {
            kind,
            span: self.span_from(start),
        })
    }

    /// Statements, each with its `;`; the word that ends them is not consumed.
    fn steps(&mut self) -> Parsed<Vec<Step>> {
        let mut steps = Vec::new();
        loop {
            if self.is_any(&LIST_ENDS) {
                return Ok(steps);
            }
            steps.push(self.step()?);
            self.expect_kind(Kind::Semicolon)?;
        }
    }

    /// At least one statement.
    pub(crate) fn some_steps(&mut self) -> Parsed<Vec<Step>> {
        if self.is_any(&LIST_ENDS) {
            return Err(self.fail());
        }
        self.steps()
    }

    fn step_kind(&mut self) -> Parsed<StepKind> {
        let is_label = self.kind_at(1) == Kind::Colon && Self::is_name(self.peek());
        if is_label {
            let label = self.ident()?;
            self.bump();
            return self.labelled(Some(label));
        }
        let Some(word) = self.keyword() else {
            return self.plain_step();
        };
        match word {
            K::Begin | K::Loop | K::While | K::Repeat | K::For => self.labelled(None),
            K::If => self.if_step(),
            K::Case => self.case_step(),
            K::Set => self.set_step(),
            K::Call => Ok(StepKind::Call(Box::new(self.call_statement()?))),
            K::Leave | K::Iterate => self.leave_or_iterate(word),
            K::Open | K::Close | K::Fetch => self.cursor_step(word),
            K::Return => self.return_step(),
            K::Signal | K::Resignal => self.signal(word),
            K::Get => self.get_diagnostics(),
            _ => self.plain_step(),
        }
    }

    /// A statement that could also stand alone.
    fn plain_step(&mut self) -> Parsed<StepKind> {
        let start = self.start();
        let statement = self.program_statement()?;
        let kind = self.scope_of()?.kind;
        check_statement(&statement.statement, kind).map_err(|error| routine_fail(error, start))?;
        Ok(StepKind::Statement(Box::new(statement)))
    }

    /// A block or a loop; its label has been consumed.
    fn labelled(&mut self, label: Option<Ident>) -> Parsed<StepKind> {
        let Some(word) = self.eat_any(&[K::Begin, K::Loop, K::While, K::Repeat, K::For]) else {
            return Err(self.fail());
        };
        if word == K::Begin {
            return self.block_behind_begin(label);
        }
        if word == K::For {
            return self.for_behind_word(label);
        }
        let number = self.enter(label.as_ref(), true)?;
        let step = match word {
            K::Loop => {
                let body = self.some_steps()?;
                self.expect_all(&[K::End, K::Loop])?;
                (LoopKind::Endless, body)
            }
            K::While => {
                let condition = self.program_expr()?;
                self.expect(K::Do)?;
                let body = self.some_steps()?;
                self.expect_all(&[K::End, K::While])?;
                (LoopKind::While(condition), body)
            }
            K::Repeat => {
                let body = self.some_steps()?;
                self.expect(K::Until)?;
                let condition = self.program_expr()?;
                self.expect_all(&[K::End, K::Repeat])?;
                (LoopKind::Until(condition), body)
            }
            _ => return Err(self.fail()),
        };
        self.leave_label(label.as_ref())?;
        let (kind, body) = step;
        Ok(StepKind::Loop(Box::new(LoopStep {
            label: number,
            kind,
            body,
        })))
    }

    /// Declares a label.
    pub(crate) fn enter(&mut self, label: Option<&Ident>, is_loop: bool) -> Parsed<Option<u32>> {
        let Some(label) = label else {
            return Ok(None);
        };
        let scope = self.scope_of()?;
        if scope.label(&label.text).is_some() {
            return Err(routine_fail(RoutineError::LabelAgain, label.span));
        }
        Ok(Some(scope.enter_label(label.clone(), is_loop)))
    }

    /// The optional label after END, and the end of the label's scope.
    pub(crate) fn leave_label(&mut self, label: Option<&Ident>) -> Parsed<()> {
        if !self.is_end() && Self::is_name(self.peek()) {
            let end = self.ident()?;
            let is_same =
                label.is_some_and(|label| label.text.to_lowercase() == end.text.to_lowercase());
            if !is_same {
                return Err(routine_fail(RoutineError::EndLabel, end.span));
            }
        }
        if label.is_some() {
            self.scope_of()?.labels.pop();
        }
        Ok(())
    }

    /// `.. END` of a block; its `BEGIN` has been consumed.
    pub(crate) fn block_behind_begin(&mut self, label: Option<Ident>) -> Parsed<StepKind> {
        let number = self.enter(label.as_ref(), false)?;
        // `BEGIN NOT ATOMIC` is accepted at the start of every block.
        if self.eat(K::Not) {
            self.expect(K::Atomic)?;
        }
        let scope = self.scope_of()?;
        let outer_names = scope.name_count();
        let outer_start = std::mem::replace(&mut scope.block_start, outer_names);
        let cursor = scope.cursor_count();
        let mut block = Block {
            label: number,
            variables: Vec::new(),
            cursors: cursor..cursor,
            handlers: Vec::new(),
            body: Vec::new(),
        };
        let mut handled = HashSet::new();
        while self.is(K::Declare) {
            self.declare(&mut block, &mut handled)?;
            self.expect_kind(Kind::Semicolon)?;
        }
        block.body = self.steps()?;
        self.expect(K::End)?;
        let scope = self.scope_of()?;
        scope.forget(outer_names);
        scope.block_start = outer_start;
        self.leave_label(label.as_ref())?;
        Ok(StepKind::Block(Box::new(block)))
    }

    /// A declaration of the block; `handled` are the conditions that have handlers.
    fn declare(&mut self, block: &mut Block, handled: &mut HashSet<ConditionValue>) -> Parsed<()> {
        let start = self.bump().span;
        if self.is_any(&[K::Continue, K::Exit, K::Undo]) && self.keyword_at(1) == Some(K::Handler) {
            return self.declare_handler(block, handled);
        }
        let is_late = !block.cursors.is_empty() || !block.handlers.is_empty();
        match self.keyword_at(1) {
            Some(K::Cursor) => {
                if !block.handlers.is_empty() {
                    return Err(routine_fail(RoutineError::CursorLate, start));
                }
                self.declare_cursor(block)
            }
            Some(K::Condition) => {
                if is_late {
                    return Err(routine_fail(RoutineError::VariableLate, start));
                }
                self.declare_condition()
            }
            _ => {
                if is_late {
                    return Err(routine_fail(RoutineError::VariableLate, start));
                }
                self.declare_variables(block)
            }
        }
    }

    fn declare_variables(&mut self, block: &mut Block) -> Parsed<()> {
        let names = self.list(Self::ident)?;
        let data_type = self.data_type()?;
        let default = if self.eat(K::Default) {
            Some(self.program_expr()?)
        } else {
            None
        };
        let data_type = Rc::new(data_type);
        let scope = self.scope_of()?;
        let first = scope.variable_count();
        for name in names {
            let is_variable = |meaning| matches!(meaning, Meaning::Variable(_));
            if scope.has_declared(&name.text, is_variable) {
                return Err(routine_fail(RoutineError::VariableAgain, name.span));
            }
            let text = name.text.clone();
            let slot = scope.add_variable(name, Some(Rc::clone(&data_type)), Direction::In);
            scope.declare(&text, Meaning::Variable(slot));
        }
        block.variables.push(Declaration {
            slots: first..scope.variable_count(),
            value: default,
        });
        Ok(())
    }

    fn declare_condition(&mut self) -> Parsed<()> {
        let name = self.ident()?;
        self.expect_all(&[K::Condition, K::For])?;
        let value = self.condition_number()?;
        let scope = self.scope_of()?;
        if scope.has_declared(&name.text, |meaning| {
            matches!(meaning, Meaning::Condition(_))
        }) {
            return Err(routine_fail(RoutineError::ConditionAgain, name.span));
        }
        scope.declare(&name.text, Meaning::Condition(value));
        Ok(())
    }

    fn declare_cursor(&mut self, block: &mut Block) -> Parsed<()> {
        let name = self.ident()?;
        self.expect(K::Cursor)?;
        let outer_names = self.scope_of()?.name_count();
        let parameters = self.cursor_parameters()?;
        self.expect(K::For)?;
        let statement = self.cursor_query()?;
        let scope = self.scope_of()?;
        scope.forget(outer_names);
        if scope.has_declared(&name.text, |meaning| matches!(meaning, Meaning::Cursor(_))) {
            return Err(routine_fail(RoutineError::CursorAgain, name.span));
        }
        let number = scope.add_cursor(statement, parameters);
        scope.declare(&name.text, Meaning::Cursor(number));
        block.cursors.end = number + 1;
        Ok(())
    }

    fn declare_handler(
        &mut self,
        block: &mut Block,
        handled: &mut HashSet<ConditionValue>,
    ) -> Parsed<()> {
        let start = self.start();
        let is_exit = match self.bump().keyword {
            Some(K::Exit) => true,
            Some(K::Continue) => false,
            _ => return Err(self.fail()),
        };
        self.expect_all(&[K::Handler, K::For])?;
        let conditions = self.list(Self::handled_condition)?;
        if !conditions
            .iter()
            .all(|condition| handled.insert(*condition))
        {
            return Err(routine_fail(RoutineError::HandlerAgain, start));
        }
        // Labels around a handler are not visible in it.
        let labels = std::mem::take(&mut self.scope_of()?.labels);
        let body = self.step()?;
        self.scope_of()?.labels = labels;
        block.handlers.push(Handler {
            is_exit,
            conditions,
            body,
        });
        Ok(())
    }

    fn if_step(&mut self) -> Parsed<StepKind> {
        let mut branches = Vec::new();
        let mut otherwise = None;
        self.bump();
        loop {
            let condition = self.program_expr()?;
            self.expect(K::Then)?;
            branches.push((condition, self.some_steps()?));
            if self.eat(K::Elseif) {
                continue;
            }
            if self.eat(K::Else) {
                otherwise = Some(self.some_steps()?);
            }
            self.expect_all(&[K::End, K::If])?;
            return Ok(StepKind::If {
                branches,
                otherwise,
            });
        }
    }

    fn case_step(&mut self) -> Parsed<StepKind> {
        let start = self.bump().span;
        let mut operand = None;
        if !self.is(K::When) {
            let value = self.program_expr()?;
            let name = Ident {
                text: String::new(),
                span: start,
            };
            let slot = self.scope_of()?.add_variable(name, None, Direction::In);
            operand = Some((slot, value));
        }
        let mut branches = Vec::new();
        let mut otherwise = None;
        while self.eat(K::When) {
            let condition = match &operand {
                Some((slot, _)) => self.case_value(*slot)?,
                None => self.program_expr()?,
            };
            self.expect(K::Then)?;
            branches.push((condition, self.some_steps()?));
        }
        if branches.is_empty() {
            return Err(self.fail());
        }
        if self.eat(K::Else) {
            otherwise = Some(self.some_steps()?);
        }
        self.expect_all(&[K::End, K::Case])?;
        Ok(StepKind::Case(Box::new(CaseStep {
            branches,
            otherwise,
            operand,
        })))
    }

    /// `e` of `WHEN e`, as a condition: it equals the operand of CASE.
    fn case_value(&mut self, slot: u32) -> Parsed<ProgramExpr> {
        let (expr, locals) = self.fragment(|cursor| {
            let start = cursor.start();
            let number = cursor.use_slot(slot, start)?;
            let value = cursor.expr()?;
            let kept = Expr {
                kind: ExprKind::Parameter(number),
                span: start,
            };
            let kind = ExprKind::Binary {
                operator: BinaryOperator::Equal,
                left: Box::new(kept),
                right: Box::new(value),
            };
            Ok(cursor.made(start, kind))
        })?;
        Ok(ProgramExpr { expr, locals })
    }

    fn leave_or_iterate(&mut self, word: K) -> Parsed<StepKind> {
        self.bump();
        let name = self.ident()?;
        let is_leave = word == K::Leave;
        let label = self.scope_of()?.label(&name.text);
        match label {
            Some(label) if is_leave => Ok(StepKind::Leave(label.number)),
            Some(label) if label.is_loop => Ok(StepKind::Iterate(label.number)),
            _ if is_leave => Err(routine_fail(RoutineError::LeaveLabel, name.span)),
            _ => Err(routine_fail(RoutineError::IterateLabel, name.span)),
        }
    }

    fn cursor_step(&mut self, word: K) -> Parsed<StepKind> {
        self.bump();
        if word == K::Fetch {
            // `FETCH [[NEXT] FROM] c`.
            if self.is(K::Next) && self.keyword_at(1) == Some(K::From) {
                self.bump();
            }
            self.eat(K::From);
        }
        if word == K::Open {
            return Ok(StepKind::Open(self.open_cursor()?));
        }
        let cursor = self.known_cursor()?;
        Ok(match word {
            K::Close => StepKind::Close(cursor),
            _ => {
                self.expect(K::Into)?;
                let into = self.list(Self::target_variable)?;
                StepKind::Fetch { cursor, into }
            }
        })
    }

    fn return_step(&mut self) -> Parsed<StepKind> {
        let start = self.bump().span;
        if self.scope_of()?.kind != Some(RoutineKind::Function) {
            return Err(routine_fail(RoutineError::Return, start));
        }
        self.scope_of()?.has_return = true;
        Ok(StepKind::Return(Box::new(self.program_expr()?)))
    }

    /// `SET`, whose items become steps of their own.
    fn set_step(&mut self) -> Parsed<StepKind> {
        let is_whole = matches!(
            self.keyword_at(1),
            Some(K::Statement | K::Password | K::Transaction)
        ) && !matches!(self.kind_at(2), Kind::Equal | Kind::Assign);
        let scoped = matches!(self.keyword_at(1), Some(K::Global | K::Session | K::Local));
        if is_whole || scoped && self.keyword_at(2) == Some(K::Transaction) {
            return self.plain_step();
        }
        self.bump();
        let mut items = self.list(Self::set_item_step)?;
        match items.len() {
            1 => items.pop().map(|step| step.kind).ok_or_else(|| self.fail()),
            _ => Ok(StepKind::Sequence(items)),
        }
    }

    fn set_item_step(&mut self) -> Parsed<Step> {
        let start = self.start();
        let kind = self.set_item_kind(start)?;
        Ok(Step {
            kind,
            span: self.span_from(start),
        })
    }

    fn set_item_kind(&mut self, start: Span) -> Parsed<StepKind> {
        let token = self.peek();
        let is_assigned = matches!(self.kind_at(1), Kind::Equal | Kind::Assign);
        let is_field = self.kind_at(1) == Kind::Dot
            && matches!(self.kind_at(3), Kind::Equal | Kind::Assign)
            && Self::is_name(token)
            && Self::is_name(self.peek_at(2));
        if is_field {
            let field = self.peek_at(2);
            let (row, field) = (self.ident_of(token)?, self.ident_of(field)?);
            if let Some(slot) = self.scope_of()?.field(&row.text, &field) {
                self.skip(4);
                let value = Box::new(self.program_expr()?);
                return Ok(StepKind::SetLocal { slot, value });
            }
        }
        if is_assigned && Self::is_name(token) {
            let name = self.ident_of(token)?;
            if let Some(slot) = self.scope_of()?.variable(&name.text) {
                self.skip(2);
                let value = Box::new(self.program_expr()?);
                return Ok(StepKind::SetLocal { slot, value });
            }
        }
        let (item, locals) = self.fragment(Self::set_item)?;
        Ok(match item {
            SetItem::User { name, value } => StepKind::SetUser {
                name,
                value: Box::new(ProgramExpr {
                    expr: value,
                    locals,
                }),
            },
            SetItem::System { variable, .. }
                if self.scope_of()?.kind == Some(RoutineKind::Function)
                    && variable.name.text.eq_ignore_ascii_case("autocommit") =>
            {
                return Err(routine_fail(RoutineError::Autocommit, start));
            }
            SetItem::System { variable, value } => StepKind::SetSystem {
                variable,
                value: value.map(|expr| Box::new(ProgramExpr { expr, locals })),
            },
            other => StepKind::Statement(Box::new(ProgramStatement {
                statement: Statement {
                    kind: StatementKind::Set(vec![other]),
                    span: self.span_from(start),
                    parameter_count: 0,
                    lock_wait: LockWait::Default,
                },
                locals,
            })),
        })
    }
}
