//! Compiles the tree of a program to instructions.
//!
//! ```text
//! block:   initial values; close cursors; jump L; handlers' instructions; L: enter handlers;
//!          body; leave handlers; (exit:) close cursors
//! while:   (start:) unless condition jump end; body; jump start; (end:)
//! repeat:  (start:) body; (test:) unless condition jump start; (end:)
//! for i:   first value; limit; (start:) range test; body; (next:) range next; (end:)
//! for r:   open; (start:) next row; body; jump start; (end:) close
//! case:    operand; unless condition jump next; branch; jump end; (next:) ..; no case; (end:)
//! ```
//!
//! LEAVE and ITERATE first undo what the blocks between have done, then jump. They never leave a
//! handler: it cannot see the labels around it.

use std::ops::Range;
use std::rc::Rc;

use errcode::ClientError;
use syntax::ast::{
    self, Block, CaseStep, Expr, ExprKind, GetDiagnostics, IntoTarget, LockWait, LoopKind,
    LoopStep, ProgramExpr, Query, QueryBody, Select, SelectItem, Statement, StatementKind, Step,
    StepKind,
};
use value::{CollationId, ColumnType, TypeKind};

use crate::define;
use crate::worker::parsed::Parsed;
use crate::worker::program::{
    Argument, Call, Compiled, CounterRange, Fragment, Handler, Instruction, RowOf, Signal, Variable,
};
use crate::worker::source::Source;

/// The target of a jump that is not known yet.
const UNKNOWN: usize = usize::MAX;

/// Compiles a program. Spans of the tree count from the start of `text`; variables without a
/// collation get `collation`.
pub(crate) fn compile(
    program: &ast::Program,
    text: &Source,
    collation: CollationId,
) -> Result<Compiled, ClientError> {
    compile_with(program, text, variables_of(program, collation)?)
}

/// Compiles a routine. A function has one more variable than it declares: its result, which
/// messages show as a call without arguments.
pub(crate) fn compile_routine(
    create: &ast::CreateRoutine,
    text: &Source,
    collation: CollationId,
) -> Result<Compiled, ClientError> {
    let mut variables = variables_of(&create.program, collation)?;
    let Some(returns) = &create.returns else {
        return compile_with(&create.program, text, variables);
    };
    let name = format!("{}()", create.name.name.text);
    let declared = define::column_type(&name, returns, collation)?;
    let result = variables.len();
    variables.push(Variable {
        name,
        column_type: Some(local_type(declared.clone())),
        declared: Some(declared),
        is_nullable: true,
        direction: ast::Direction::In,
    });
    Ok(Compiled {
        result: Some(result),
        ..compile_with(&create.program, text, variables)?
    })
}

fn compile_with(
    program: &ast::Program,
    text: &Source,
    mut variables: Vec<Variable>,
) -> Result<Compiled, ClientError> {
    let mut compiler = Compiler {
        text: text.clone(),
        code: Vec::new(),
        handlers: Vec::new(),
        contexts: Vec::new(),
        block_count: 0,
        has_results: false,
        counting: Vec::new(),
        line: LineCounter::default(),
        lines: Vec::new(),
    };
    compiler.step(&program.body);
    for &slot in &compiler.counting {
        variables[slot].is_nullable = false;
    }
    let cursors = program.cursors.iter();
    let cursors = cursors.map(|cursor| compiler.statement(&cursor.statement, &cursor.locals));
    Ok(Compiled {
        cursors: cursors.collect(),
        variables,
        result: None,
        parameter_count: stdx::to_usize(program.parameter_count),
        code: compiler.code,
        lines: compiler.lines,
        is_block: matches!(program.body.kind, StepKind::Block(_)),
        handlers: compiler.handlers,
        has_results: compiler.has_results,
    })
}

/// The variables of a program. Those of one DECLARE share one type, which may be long.
fn variables_of(
    program: &ast::Program,
    collation: CollationId,
) -> Result<Vec<Variable>, ClientError> {
    let mut variables = Vec::with_capacity(program.variables.len());
    let mut last: Option<(&Rc<ast::DataType>, ColumnType)> = None;
    for variable in &program.variables {
        let name = &variable.name.text;
        let declared = match (&variable.data_type, &last) {
            (None, _) => None,
            (Some(own), Some((known, column_type))) if Rc::ptr_eq(own, known) => {
                Some(column_type.clone())
            }
            (Some(own), _) => {
                let column_type = define::column_type(name, own, collation)?;
                last = Some((own, column_type.clone()));
                Some(column_type)
            }
        };
        variables.push(Variable {
            name: name.clone(),
            column_type: declared.clone().map(local_type),
            declared,
            is_nullable: true,
            direction: variable.direction,
        });
    }
    Ok(variables)
}

/// The type of a variable. A TIMESTAMP is kept as local time of the session.
fn local_type(declared: ColumnType) -> ColumnType {
    match declared.kind {
        TypeKind::Timestamp => ColumnType::temporal(TypeKind::DateTime, declared.decimals),
        _ => declared,
    }
}

/// A program that is being compiled.
struct Compiler {
    text: Source,
    code: Vec<Instruction>,
    handlers: Vec<Handler>,
    /// What encloses the current place, the innermost last.
    contexts: Vec<Context>,
    block_count: usize,
    has_results: bool,
    /// Counters of FOR loops.
    counting: Vec<usize>,
    /// The line of the current step.
    line: LineCounter,
    /// The line of each instruction.
    lines: Vec<u32>,
}

/// Finds the line of an offset in a text. Offsets come in order, so one pass over the text finds
/// all lines: a body may hold a million steps.
#[derive(Debug, Default)]
struct LineCounter {
    /// The current offset.
    offset: usize,
    /// Lines that ended before it.
    ended: u32,
}

impl LineCounter {
    fn go_to(&mut self, text: &[u8], offset: usize) {
        if offset < self.offset {
            *self = Self::default();
        }
        let passed = text.get(self.offset..offset).unwrap_or_default();
        let ends = passed.iter().filter(|byte| **byte == b'\n').count();
        self.ended = self.ended.saturating_add(stdx::to_u32(ends));
        self.offset = offset;
    }

    /// From 1.
    fn line(&self) -> u32 {
        self.ended.saturating_add(1)
    }
}

/// A construct that encloses a place of the program.
enum Context {
    Block {
        label: Option<u32>,
        handler_count: usize,
        cursors: Range<usize>,
        /// Jumps to its end.
        leaves: Vec<usize>,
    },
    Loop {
        label: Option<u32>,
        /// Where the next iteration begins; `None` if that place comes later.
        start: Option<usize>,
        leaves: Vec<usize>,
        /// Jumps to the next iteration.
        iterates: Vec<usize>,
    },
}

impl Context {
    fn label(&self) -> Option<u32> {
        match self {
            Context::Block { label, .. } | Context::Loop { label, .. } => *label,
        }
    }
}

impl Compiler {
    fn here(&self) -> usize {
        self.code.len()
    }

    fn emit(&mut self, instruction: Instruction) -> usize {
        self.code.push(instruction);
        self.lines.push(self.line.line());
        self.code.len() - 1
    }

    /// Sets the target of earlier jumps to the next instruction.
    fn land(&mut self, jumps: &[usize]) {
        let here = self.here();
        for &jump in jumps {
            match &mut self.code[jump] {
                Instruction::Jump(target)
                | Instruction::JumpUnless { target, .. }
                | Instruction::RangeTest { target, .. }
                | Instruction::NextRow { target, .. } => *target = here,
                other => unreachable!("no jump: {other:?}"),
            }
        }
    }

    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            self.step(step);
        }
    }

    fn step(&mut self, step: &Step) {
        let start = stdx::to_usize(step.span.start);
        self.line.go_to(&self.text, start);
        match &step.kind {
            StepKind::Statement(statement) => {
                self.has_results |= gives_rows(&statement.statement.kind);
                let fragment = self.statement(&statement.statement, &statement.locals);
                self.emit(Instruction::Statement(Box::new(fragment)));
            }
            StepKind::Block(block) => self.block(block),
            StepKind::Sequence(steps) => self.steps(steps),
            StepKind::If {
                branches,
                otherwise,
            } => self.branches(branches, otherwise.as_deref(), None),
            StepKind::Case(case) => self.case(case),
            StepKind::Loop(step) => self.repeat(step),
            StepKind::Open(open) => self.open(open),
            StepKind::Leave(label) => self.leave(*label),
            StepKind::Iterate(label) => self.iterate(*label),
            kind => {
                let instruction = self.simple(kind);
                self.emit(instruction);
            }
        }
    }

    /// A step that is one instruction.
    fn simple(&self, kind: &StepKind) -> Instruction {
        let boxed = |expr: &ProgramExpr| Box::new(self.expression(expr));
        match kind {
            StepKind::SetLocal { slot, value } => Instruction::SetLocal {
                slot: stdx::to_usize(*slot),
                value: Rc::new(self.expression(value)),
            },
            StepKind::SetUser { name, value } => Instruction::SetUser {
                name: name.clone(),
                value: boxed(value),
            },
            StepKind::SetSystem { variable, value } => Instruction::SetSystem {
                variable: variable.clone(),
                value: value.as_deref().map(boxed),
            },
            StepKind::Call(call) => Instruction::Call(Box::new(self.call(call))),
            StepKind::Close(cursor) => Instruction::Close(stdx::to_usize(*cursor)),
            StepKind::Fetch { cursor, into } => Instruction::Fetch {
                cursor: stdx::to_usize(*cursor),
                into: into.clone(),
            },
            StepKind::Return(value) => Instruction::Return(boxed(value)),
            StepKind::Signal(signal) => self.signal(signal, false),
            StepKind::Resignal(signal) => self.signal(signal, true),
            StepKind::GetDiagnostics(asked) => {
                let number = match &**asked {
                    GetDiagnostics::Condition { number, .. } => Some(self.expression(number)),
                    GetDiagnostics::Statement(_) => None,
                };
                Instruction::GetDiagnostics(Box::new(((**asked).clone(), number)))
            }
            other => unreachable!("of several instructions, or of functions: {other:?}"),
        }
    }

    fn signal(&self, signal: &ast::Signal, is_again: bool) -> Instruction {
        let items = signal.items.iter();
        Instruction::Signal(Box::new(Signal {
            is_again,
            condition: signal.condition,
            items: items
                .map(|(item, value)| (*item, self.expression(value)))
                .collect(),
        }))
    }

    fn call(&self, call: &ast::Call) -> Call {
        call_of(call, &self.text)
    }

    fn statement(&self, statement: &Statement, locals: &[ast::LocalUse]) -> Fragment {
        fragment(statement.clone(), &self.text, locals)
    }

    fn expression(&self, expr: &ProgramExpr) -> Fragment {
        expression(expr, &self.text)
    }

    fn condition(&self, expr: &ProgramExpr) -> Fragment {
        let kind = ExprKind::IsTruth {
            negated: false,
            value: Box::new(expr.expr.clone()),
            truth: Some(true),
        };
        let span = expr.expr.span;
        self.expression(&ProgramExpr {
            expr: Expr { kind, span },
            locals: expr.locals.clone(),
        })
    }

    fn block(&mut self, block: &Block) {
        for declaration in &block.variables {
            let value = declaration.value.as_ref();
            let value = value.map(|value| Rc::new(self.expression(value)));
            for slot in declaration.slots.clone().map(stdx::to_usize) {
                self.emit(match &value {
                    Some(value) => Instruction::SetLocal {
                        slot,
                        value: Rc::clone(value),
                    },
                    None => Instruction::Clear(slot),
                });
            }
        }
        let cursors = stdx::to_usize(block.cursors.start)..stdx::to_usize(block.cursors.end);
        if !cursors.is_empty() {
            self.emit(Instruction::CloseAll(cursors.clone()));
        }
        let handler_count = block.handlers.len();
        self.contexts.push(Context::Block {
            label: block.label,
            handler_count,
            cursors: cursors.clone(),
            leaves: Vec::new(),
        });
        let first = self.handlers.len();
        if handler_count != 0 {
            self.block_handlers(block);
            self.emit(Instruction::EnterHandlers {
                first,
                count: handler_count,
            });
        }
        self.steps(&block.body);
        if handler_count != 0 {
            self.emit(Instruction::LeaveHandlers(handler_count));
        }
        let exit = self.here();
        for handler in &mut self.handlers[first..first + handler_count] {
            handler.exit = exit;
        }
        if !cursors.is_empty() {
            self.emit(Instruction::CloseAll(cursors));
        }
        if let Some(Context::Block { leaves, .. }) = self.contexts.pop() {
            self.land(&leaves);
        }
    }

    /// The instructions of a block's handlers; the block jumps over them.
    fn block_handlers(&mut self, block: &Block) {
        let number = self.block_count;
        self.block_count += 1;
        let first = self.handlers.len();
        for handler in &block.handlers {
            self.handlers.push(Handler {
                conditions: handler.conditions.clone(),
                is_exit: handler.is_exit,
                block: number,
                entry: UNKNOWN,
                exit: UNKNOWN,
            });
        }
        let over = self.emit(Instruction::Jump(UNKNOWN));
        for (place, handler) in block.handlers.iter().enumerate() {
            self.handlers[first + place].entry = self.here();
            self.step(&handler.body);
            self.emit(Instruction::EndHandler);
        }
        self.land(&[over]);
    }

    /// IF and CASE: the first branch whose condition holds. Without ELSE, `missing` is done if no
    /// condition holds.
    fn branches(
        &mut self,
        branches: &[(ProgramExpr, Vec<Step>)],
        otherwise: Option<&[Step]>,
        missing: Option<Instruction>,
    ) {
        let (mut ends, mut tests) = (Vec::new(), Vec::new());
        for (condition, steps) in branches {
            let condition = Box::new(self.condition(condition));
            let test = self.emit(Instruction::JumpUnless {
                condition,
                target: UNKNOWN,
                resume: UNKNOWN,
            });
            tests.push(test);
            self.steps(steps);
            ends.push(self.emit(Instruction::Jump(UNKNOWN)));
            self.land(&[test]);
        }
        match (otherwise, missing) {
            (Some(steps), _) => self.steps(steps),
            (None, Some(missing)) => {
                self.emit(missing);
            }
            (None, None) => {}
        }
        self.land(&ends);
        self.resume_here(&tests);
    }

    /// After an error in one of these conditions, a CONTINUE handler goes on here.
    fn resume_here(&mut self, tests: &[usize]) {
        let here = self.here();
        for &test in tests {
            if let Instruction::JumpUnless { resume, .. } = &mut self.code[test] {
                *resume = here;
            }
        }
    }

    fn case(&mut self, case: &CaseStep) {
        if let Some((slot, value)) = &case.operand {
            let value = Rc::new(self.expression(value));
            let slot = stdx::to_usize(*slot);
            self.emit(Instruction::SetLocal { slot, value });
        }
        let missing = Some(Instruction::CaseNotFound);
        self.branches(&case.branches, case.otherwise.as_deref(), missing);
    }

    fn repeat(&mut self, step: &LoopStep) {
        match &step.kind {
            LoopKind::Range(range) => return self.integers(step, range),
            LoopKind::Rows(range) => return self.rows(step, range),
            LoopKind::Endless | LoopKind::While(_) | LoopKind::Until(_) => {}
        }
        let start = self.here();
        let mut tests = Vec::new();
        if let LoopKind::While(condition) = &step.kind {
            let condition = Box::new(self.condition(condition));
            tests.push(self.emit(Instruction::JumpUnless {
                condition,
                target: UNKNOWN,
                resume: UNKNOWN,
            }));
        }
        let leaves = self.loop_body(step, Some(start));
        if let LoopKind::Until(condition) = &step.kind {
            let condition = Box::new(self.condition(condition));
            let test = self.emit(Instruction::JumpUnless {
                condition,
                target: start,
                resume: UNKNOWN,
            });
            self.resume_here(&[test]);
        } else {
            self.emit(Instruction::Jump(start));
        }
        self.land(&leaves);
        self.land(&tests);
        self.resume_here(&tests);
    }

    /// The body of a loop. ITERATE goes to `start`, or behind the body. Returns the jumps to the
    /// loop's end.
    fn loop_body(&mut self, step: &LoopStep, start: Option<usize>) -> Vec<usize> {
        self.contexts.push(Context::Loop {
            label: step.label,
            start,
            leaves: Vec::new(),
            iterates: Vec::new(),
        });
        self.steps(&step.body);
        let Some(Context::Loop {
            leaves, iterates, ..
        }) = self.contexts.pop()
        else {
            unreachable!("what was pushed above")
        };
        self.land(&iterates);
        leaves
    }

    /// FOR over integers.
    fn integers(&mut self, step: &LoopStep, range: &ast::IntegerRange) {
        for (slot, value) in [(range.index, &range.first), (range.limit, &range.last)] {
            let (slot, value) = (stdx::to_usize(slot), Rc::new(self.expression(value)));
            self.counting.push(slot);
            self.emit(Instruction::SetLocal { slot, value });
        }
        let range = CounterRange {
            index: stdx::to_usize(range.index),
            limit: stdx::to_usize(range.limit),
            is_reverse: range.is_reverse,
        };
        let target = UNKNOWN;
        let start = self.emit(Instruction::RangeTest { range, target });
        let leaves = self.loop_body(step, None);
        self.emit(Instruction::RangeNext { range, start });
        self.land(&[start]);
        self.land(&leaves);
    }

    /// FOR over the rows of a cursor. Leaving the loop closes a cursor of its own.
    fn rows(&mut self, step: &LoopStep, range: &ast::CursorRange) {
        let cursor = stdx::to_usize(range.open.cursor);
        if range.is_own {
            let cursors = cursor..cursor + 1;
            self.emit(Instruction::CloseAll(cursors.clone()));
            self.contexts.push(Context::Block {
                label: None,
                handler_count: 0,
                cursors,
                leaves: Vec::new(),
            });
        }
        self.open(&range.open);
        let fields = range.row.fields.iter();
        let fields = fields.map(|(name, slot)| (name.text.clone(), stdx::to_usize(*slot)));
        let row = Box::new(RowOf {
            cursor,
            name: range.row.name.text.clone(),
            fields: fields.collect(),
        });
        let target = UNKNOWN;
        let start = self.emit(Instruction::NextRow { row, target });
        let leaves = self.loop_body(step, Some(start));
        self.emit(Instruction::Jump(start));
        self.land(&[start]);
        self.land(&leaves);
        if range.is_own {
            self.contexts.pop();
        }
        self.emit(Instruction::Close(cursor));
    }

    /// OPEN: the cursor's parameters are assigned, then its query runs.
    fn open(&mut self, open: &ast::OpenCursor) {
        for (slot, value) in &open.arguments {
            let (slot, value) = (stdx::to_usize(*slot), Rc::new(self.expression(value)));
            self.emit(Instruction::SetLocal { slot, value });
        }
        self.emit(Instruction::Open(stdx::to_usize(open.cursor)));
    }

    /// Undoes what the blocks within a labelled construct have done. Returns its place among the
    /// contexts.
    fn unwind(&mut self, label: u32, with_itself: bool) -> usize {
        let mut place = self.contexts.len();
        while 0 < place {
            place -= 1;
            let is_it = self.contexts[place].label() == Some(label);
            if is_it && !with_itself {
                break;
            }
            let mut undo = Vec::new();
            if let Context::Block {
                handler_count,
                cursors,
                ..
            } = &self.contexts[place]
            {
                if *handler_count != 0 {
                    undo.push(Instruction::LeaveHandlers(*handler_count));
                }
                if !cursors.is_empty() {
                    undo.push(Instruction::CloseAll(cursors.clone()));
                }
            }
            for instruction in undo {
                self.emit(instruction);
            }
            if is_it {
                break;
            }
        }
        place
    }

    fn leave(&mut self, label: u32) {
        let place = self.unwind(label, true);
        let jump = self.emit(Instruction::Jump(UNKNOWN));
        match &mut self.contexts[place] {
            Context::Block { leaves, .. } | Context::Loop { leaves, .. } => leaves.push(jump),
        }
    }

    fn iterate(&mut self, label: u32) {
        let place = self.unwind(label, false);
        let jump = self.emit(Instruction::Jump(UNKNOWN));
        let known = match &mut self.contexts[place] {
            Context::Loop {
                start, iterates, ..
            } => {
                if start.is_none() {
                    iterates.push(jump);
                }
                *start
            }
            Context::Block { .. } => unreachable!("the parser knows loops"),
        };
        if let Some(start) = known {
            self.code[jump] = Instruction::Jump(start);
        }
    }
}

/// A CALL whose expressions refer to this text.
pub(crate) fn call_of(call: &ast::Call, text: &Source) -> Call {
    let argument = |argument: &ProgramExpr| {
        let target = match &argument.expr.kind {
            ExprKind::UserVariable(name) => Some(IntoTarget::User(name.clone())),
            ExprKind::Parameter(number) => {
                let local = argument.locals.get(stdx::to_usize(*number));
                local.map(|local| IntoTarget::Slot(local.slot))
            }
            _ => None,
        };
        Argument {
            value: expression(argument, text),
            target,
        }
    };
    Call {
        name: call.name.clone(),
        arguments: call.arguments.iter().map(argument).collect(),
    }
}

/// A CALL whose `?` are the variables with the same numbers.
pub(crate) fn call_with_parameters(call: &ast::Call, text: &Source, count: usize) -> Call {
    let locals = (0..count).map(|slot| ast::LocalUse {
        slot: stdx::to_u32(slot),
        span: syntax::Span::default(),
    });
    let locals: Vec<_> = locals.collect();
    let arguments = call.arguments.iter().map(|argument| ProgramExpr {
        expr: argument.expr.clone(),
        locals: locals.clone(),
    });
    let with_locals = ast::Call {
        name: call.name.clone(),
        arguments: arguments.collect(),
    };
    call_of(&with_locals, text)
}

fn fragment(statement: Statement, text: &Source, locals: &[ast::LocalUse]) -> Fragment {
    let of = |local: &ast::LocalUse| (stdx::to_usize(local.slot), local.span);
    Fragment {
        parsed: Parsed::new(statement, text.clone()),
        locals: locals.iter().map(of).collect(),
        only: None,
        held: std::cell::Cell::default(),
    }
}

/// An expression, as `SELECT expression`.
fn expression(expr: &ProgramExpr, text: &Source) -> Fragment {
    let span = expr.expr.span;
    let statement = Statement {
        kind: StatementKind::Query(Box::new(selecting(expr.expr.clone()))),
        span,
        parameter_count: stdx::to_u32(expr.locals.len()),
        lock_wait: LockWait::Default,
    };
    let only = match expr.expr.kind {
        ExprKind::Parameter(number) => expr.locals.get(stdx::to_usize(number)),
        _ => None,
    };
    Fragment {
        only: only.map(|local| stdx::to_usize(local.slot)),
        ..fragment(statement, text, &expr.locals)
    }
}

fn selecting(expr: Expr) -> Query {
    let span = expr.span;
    let select = Select {
        options: ast::SelectOptions::default(),
        items: vec![SelectItem::Expr {
            expr,
            alias: None,
            span,
        }],
        from: Vec::new(),
        condition: None,
        group_by: Vec::new(),
        with_rollup: false,
        having: None,
        windows: Vec::new(),
        procedure: None,
        span,
    };
    Query {
        with: None,
        body: QueryBody::Select(Box::new(select)),
        order_by: Vec::new(),
        limit: None,
        into: None,
        lock: None,
        span,
    }
}

/// Whether a statement sends rows to the client.
fn gives_rows(kind: &StatementKind) -> bool {
    match kind {
        StatementKind::Query(query) => query.into.is_none(),
        StatementKind::Show(_) | StatementKind::Explain(_) => true,
        StatementKind::Admin(ast::Admin::Table { .. } | ast::Admin::Checksum { .. }) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(text: String) -> Compiled {
        let text = Source::new(text.into_bytes(), planner::StringRules::default());
        let statement = syntax::parse::parse(&text, settings::SqlMode::default()).unwrap();
        let StatementKind::Program(program) = &statement.kind else {
            panic!("no program");
        };
        compile(program, &text, CollationId::UTF8MB4_GENERAL_CI).unwrap()
    }

    #[test]
    fn lines_of_many_steps_are_counted_in_one_pass() {
        let count = 100_000;
        let padding = "SET @a = 1 /* of some length, so that the text is some megabytes */;\n";
        let text = format!("BEGIN NOT ATOMIC\n{}END", padding.repeat(count));
        let compiled = compiled(text);
        assert_eq!(compiled.lines.len(), count);
        let expected: Vec<u32> = (2..).take(count).collect();
        assert_eq!(compiled.lines, expected);
    }

    #[test]
    fn variables_of_one_declaration_share_its_value() {
        let compiled = compiled("BEGIN NOT ATOMIC DECLARE a, b INT DEFAULT 1 + 1; END".to_owned());
        let [
            Instruction::SetLocal { slot: 0, value: a },
            Instruction::SetLocal { slot: 1, value: b },
        ] = compiled.code.as_slice()
        else {
            panic!("{:?}", compiled.code);
        };
        assert!(Rc::ptr_eq(a, b));
    }
}
