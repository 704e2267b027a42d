//! `CREATE`, `ALTER` and `DROP` of procedures and functions, and `CALL`.

mod for_loop;
mod program;
mod signal;

use std::rc::Rc;

use super::cursor::{Cursor, Parsed};
use super::definition::create::CreateHead;
use super::error::RoutineError;
use super::scope::{Meaning, Scope, routine_fail};
use crate::ast::{
    AlterRoutine, Call, Characteristics, CreateRoutine, DataAccess, Direction, DropRoutine,
    Program, ProgramExpr, RoutineKind, Statement, StatementKind, Step, UserName,
};
use crate::keyword::Keyword as K;
use crate::token::{Kind, Span};

impl Cursor<'_> {
    /// `CREATE FUNCTION f RETURNS type SONAME '..'`: from a shared library.
    pub(super) fn is_loaded_function(&mut self) -> bool {
        let mut ahead = 1;
        if self.keyword_at(ahead) == Some(K::If) {
            ahead += 3;
        }
        self.keyword_at(ahead + 1) == Some(K::Returns)
    }

    /// `CREATE PROCEDURE` and `CREATE FUNCTION`, from that word on.
    pub(super) fn create_routine(
        &mut self,
        head: CreateHead,
        definer: Option<UserName>,
    ) -> Parsed<StatementKind> {
        let kind = self.bump().keyword.map_or(RoutineKind::Procedure, kind_of);
        if self.scope.is_some() {
            return Err(routine_fail(RoutineError::Create(kind.text()), head.start));
        }
        let if_not_exists = self.if_not_exists()?;
        let name = self.object_name()?;
        self.scope = Some(Scope::new(Some(kind)));
        let parameters_span = self.parameters(kind)?;
        let (mut returns, mut returns_span) = (None, Span::default());
        if kind == RoutineKind::Function {
            self.expect(K::Returns)?;
            let start = self.start();
            returns = Some(self.data_type()?);
            returns_span = self.span_from(start);
        }
        let characteristics = self.characteristics()?;
        let parameter_count = self.scope_of()?.variables.len();
        let body = self.step()?;
        let scope = self.take_scope()?;
        if kind == RoutineKind::Function && !scope.has_return {
            let error = RoutineError::NoReturn;
            return Err(routine_fail(error, name.name.span));
        }
        Ok(StatementKind::CreateRoutine(Box::new(CreateRoutine {
            kind,
            or_replace: head.or_replace,
            if_not_exists,
            definer,
            name,
            parameters_span,
            returns,
            returns_span,
            characteristics,
            body_span: body.span,
            program: program(*scope, parameter_count, body),
        })))
    }

    /// `([IN | OUT | INOUT] name type, ..)`. Returns the text between the parentheses.
    fn parameters(&mut self, kind: RoutineKind) -> Parsed<Span> {
        let open = self.start();
        self.expect_kind(Kind::LeftParen)?;
        while self.kind() != Kind::RightParen {
            self.parameter(kind)?;
            if !self.eat_kind(Kind::Comma) {
                break;
            }
            if self.kind() == Kind::RightParen {
                return Err(self.fail());
            }
        }
        let close = self.start();
        self.expect_kind(Kind::RightParen)?;
        Ok(Span {
            start: open.end,
            end: close.start,
        })
    }

    fn parameter(&mut self, kind: RoutineKind) -> Parsed<()> {
        let start = self.start();
        let direction = self.eat_any(&[K::In, K::Out, K::Inout]);
        if kind == RoutineKind::Function && !matches!(direction, None | Some(K::In)) {
            let error = RoutineError::Unsupported("OUT parameters of functions");
            return Err(routine_fail(error, start));
        }
        let direction = match direction {
            Some(K::Out) => Direction::Out,
            Some(K::Inout) => Direction::InOut,
            _ => Direction::In,
        };
        let name = self.ident()?;
        let data_type = self.data_type()?;
        let scope = self.scope_of()?;
        if scope.variable(&name.text).is_some() {
            return Err(routine_fail(RoutineError::ParameterAgain, name.span));
        }
        let text = name.text.clone();
        let slot = scope.add_variable(name, Some(Rc::new(data_type)), direction);
        scope.declare(&text, Meaning::Variable(slot));
        Ok(())
    }

    fn characteristics(&mut self) -> Parsed<Characteristics> {
        let mut all = Characteristics::default();
        loop {
            if self.eat(K::Comment) {
                all.comment = Some(self.string()?);
            } else if self.eat_all(&[K::Language, K::Sql]) {
                // The only language.
            } else if self.eat(K::Deterministic) {
                all.deterministic = Some(true);
            } else if self.eat_all(&[K::Not, K::Deterministic]) {
                all.deterministic = Some(false);
            } else if self.eat_all(&[K::Contains, K::Sql]) {
                all.data_access = Some(DataAccess::ContainsSql);
            } else if self.eat_all(&[K::No, K::Sql]) {
                all.data_access = Some(DataAccess::NoSql);
            } else if self.eat_all(&[K::Reads, K::Sql, K::Data]) {
                all.data_access = Some(DataAccess::ReadsSqlData);
            } else if self.eat_all(&[K::Modifies, K::Sql, K::Data]) {
                all.data_access = Some(DataAccess::ModifiesSqlData);
            } else if self.eat_all(&[K::Sql, K::Security]) {
                all.invoker = match self.eat_any(&[K::Invoker, K::Definer]) {
                    Some(word) => Some(word == K::Invoker),
                    None => return Err(self.fail()),
                };
            } else {
                return Ok(all);
            }
        }
    }

    /// `ALTER PROCEDURE p ..`; the word has been consumed.
    pub(super) fn alter_routine(&mut self, word: K) -> Parsed<StatementKind> {
        let kind = kind_of(word);
        self.refuse_in_routine(kind)?;
        let name = self.object_name()?;
        let characteristics = self.characteristics()?;
        Ok(StatementKind::AlterRoutine(AlterRoutine {
            kind,
            name,
            characteristics,
        }))
    }

    /// `DROP PROCEDURE [IF EXISTS] p`; the word has been consumed.
    pub(super) fn drop_routine(&mut self, word: K) -> Parsed<StatementKind> {
        let kind = kind_of(word);
        self.refuse_in_routine(kind)?;
        Ok(StatementKind::DropRoutine(DropRoutine {
            kind,
            if_exists: self.if_exists()?,
            name: self.object_name()?,
        }))
    }

    /// Error 1357 within a routine.
    fn refuse_in_routine(&mut self, kind: RoutineKind) -> Parsed<()> {
        if self.scope.is_some() {
            let here = self.start();
            return Err(routine_fail(RoutineError::Change(kind.text()), here));
        }
        Ok(())
    }

    pub(super) fn call_statement(&mut self) -> Parsed<Call> {
        self.expect(K::Call)?;
        let name = self.object_name()?;
        let mut arguments = Vec::new();
        if self.eat_kind(Kind::LeftParen) {
            if self.kind() != Kind::RightParen {
                arguments = self.list(Self::call_argument)?;
            }
            self.expect_kind(Kind::RightParen)?;
        }
        Ok(Call { name, arguments })
    }

    /// An argument of CALL. In a routine it is a fragment of its own; elsewhere it is a part of the
    /// statement, which numbers its `?`.
    fn call_argument(&mut self) -> Parsed<ProgramExpr> {
        if self.scope.is_some() {
            return self.program_expr();
        }
        Ok(ProgramExpr {
            expr: self.expr()?,
            locals: Vec::new(),
        })
    }

    /// `BEGIN NOT ATOMIC .. END`.
    pub(super) fn compound(&mut self) -> Parsed<StatementKind> {
        if self.scope.is_some() {
            return Err(self.fail());
        }
        self.scope = Some(Scope::new(None));
        let start = self.bump().span;
        self.expect(K::Not)?;
        self.expect(K::Atomic)?;
        let kind = self.block_behind_begin(None)?;
        let body = Step {
            kind,
            span: self.span_from(start),
        };
        let scope = self.take_scope()?;
        Ok(StatementKind::Program(Box::new(program(*scope, 0, body))))
    }

    /// A statement of the program language outside of a program: `SIGNAL`, `RESIGNAL`, `GET
    /// DIAGNOSTICS`, and `IF`, `CASE` and loops, without a label, as in MariaDB.
    pub(super) fn lone_step(&mut self) -> Parsed<StatementKind> {
        if self.scope.is_some() {
            return Err(self.fail());
        }
        self.scope = Some(Scope::new(None));
        let body = self.step()?;
        let scope = self.take_scope()?;
        Ok(StatementKind::Program(Box::new(program(*scope, 0, body))))
    }

    pub(super) fn scope_of(&mut self) -> Parsed<&mut Scope> {
        if self.scope.is_none() {
            return Err(self.fail());
        }
        let fail = crate::parse::error::Fail {
            kind: super::SyntaxErrorKind::Unexpected,
            offset: 0,
        };
        self.scope.as_deref_mut().ok_or(fail)
    }

    fn take_scope(&mut self) -> Parsed<Box<Scope>> {
        let fail = self.fail();
        self.scope.take().ok_or(fail)
    }
}

fn kind_of(word: K) -> RoutineKind {
    match word {
        K::Function => RoutineKind::Function,
        _ => RoutineKind::Procedure,
    }
}

fn program(scope: Scope, parameter_count: usize, body: Step) -> Program {
    Program {
        variables: scope.variables,
        parameter_count: u32::try_from(parameter_count).unwrap_or(u32::MAX),
        cursors: scope.cursors,
        body,
    }
}

/// Refuses what no program may do, and what no function may do.
pub(super) fn check_statement(
    statement: &Statement,
    kind: Option<RoutineKind>,
) -> Result<(), RoutineError> {
    use crate::ast::{Admin, Transaction};
    let refused = match &statement.kind {
        StatementKind::SetStatement { statement, .. } => {
            return check_statement(statement, kind);
        }
        StatementKind::Transaction(Transaction::LockTables { .. }) => "LOCK",
        StatementKind::Transaction(Transaction::UnlockTables) => "UNLOCK",
        StatementKind::LoadData(_) => "LOAD DATA",
        StatementKind::Use(_) => "USE",
        StatementKind::Admin(Admin::Shutdown) if kind.is_some() => "SHUTDOWN",
        _ => "",
    };
    if !refused.is_empty() {
        return Err(RoutineError::Statement(refused));
    }
    if kind != Some(RoutineKind::Function) {
        return Ok(());
    }
    check_in_function(&statement.kind)
}

/// Refuses what may not be done while a function runs, also within a procedure that it calls.
///
/// # Errors
///
/// The broken rule.
pub fn check_in_function(statement: &StatementKind) -> Result<(), RoutineError> {
    use crate::ast::{Admin, Transaction};
    match statement {
        StatementKind::Query(query) if query.into.is_some() => Ok(()),
        StatementKind::Insert(insert) if insert.returning.is_empty() => Ok(()),
        StatementKind::Delete(delete) if delete.returning.is_empty() => Ok(()),
        StatementKind::Query(_)
        | StatementKind::Insert(_)
        | StatementKind::Delete(_)
        | StatementKind::Show(_)
        | StatementKind::Explain(_)
        | StatementKind::Admin(Admin::Table { .. } | Admin::Checksum { .. }) => {
            Err(RoutineError::ResultSet)
        }
        StatementKind::Update(_)
        | StatementKind::Do(_)
        | StatementKind::Call(_)
        | StatementKind::Set(_)
        | StatementKind::Program(_)
        | StatementKind::Admin(Admin::Kill { .. })
        | StatementKind::Refused(_) => Ok(()),
        StatementKind::Prepared(_) => Err(RoutineError::StatementInFunction("Dynamic SQL")),
        StatementKind::Admin(Admin::Flush { .. }) => {
            Err(RoutineError::StatementInFunction("FLUSH"))
        }
        StatementKind::Transaction(
            Transaction::Savepoint(_)
            | Transaction::RollbackTo(_)
            | Transaction::ReleaseSavepoint(_)
            | Transaction::Set { .. },
        ) => Err(RoutineError::Unsupported(
            "a savepoint in a stored function",
        )),
        StatementKind::SetStatement { .. } => Err(RoutineError::Unsupported(
            "SET STATEMENT in a stored function",
        )),
        _ => Err(RoutineError::Commit),
    }
}
