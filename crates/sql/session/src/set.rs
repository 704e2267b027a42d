//! SET: system and user variables, names and passwords.

use catalog::Account;
use errcode::{ClientError, ER_TRUNCATED_WRONG_VALUE, ER_UNKNOWN_CHARACTER_SET};
use executor::{Execution, KeptRows, RowSink};
use expression::Share;
use planner::Plan;
use settings::Settings;
use std::rc::Rc;
use std::time::Duration;
use syntax::ast::{self, Expr, ExprKind, SetItem, VariableScope};
use value::{Charset, CollationId, ColumnType, Level, SqlCondition, TypeKind, Value};

use crate::connection::client_charset::check_client_charset;
use crate::connection::reply::{Done, Reply, Stop};
use crate::connection::row_encoder::RowProtocol;
use crate::connection::session::Session;
use crate::connection::sink::Rows;
use crate::connection::state::variable_error;
use crate::statement::dispatch::PLAN_TRY_COUNT_MAX;
use crate::statement::statement_run::StatementRun;
use crate::system::accounts::{AccountChange, hash_password};
use crate::variables::system::{self, NewValue, VariableError};
use crate::worker::parsed::Parsed;

/// What SET NAMES sets.
const NAMES_VARIABLES: [&str; 3] = [
    "collation_connection",
    "character_set_client",
    "character_set_results",
];

/// What SET STATEMENT cannot set: it would have no use for one statement, or do harm.
const NOT_FOR_STATEMENT: [&str; 16] = [
    "autocommit",
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "collation_connection",
    "completion_type",
    "identity",
    "interactive_timeout",
    "last_insert_id",
    "max_allowed_packet",
    "profiling",
    "pseudo_thread_id",
    "rand_seed1",
    "rand_seed2",
    "sql_auto_is_null",
    "sql_log_bin",
];

/// What an item of SET changes, its value computed.
enum Change<'i> {
    /// `@name`.
    User(&'i str, Value, ColumnType),
    /// A system variable.
    System(VariableScope, &'i str, NewValue),
    /// The client's character set; without a collation, its literals have that of the current
    /// database.
    Names(Charset, Option<CollationId>),
    /// The account, whether the password is in clear text, and the text.
    Password(&'i Option<ast::UserName>, bool, &'i [u8]),
}

impl Change<'_> {
    /// Memory until it is applied.
    fn bytes(&self) -> usize {
        match self {
            Self::User(_, Value::Bytes(text), _) => text.len(),
            Self::System(_, _, NewValue::Text(text)) => text.len(),
            _ => 0,
        }
    }
}

/// The new value of a variable that is no setting.
enum ExtraChange {
    Timestamp(Option<i64>),
    InsertId(Option<u64>),
    LastInsertId(u64),
    FirstSeed(u64),
    SecondSeed(u64),
}

/// Which privileges to check before a SELECT within another statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checks {
    /// Those that the SELECT needs.
    Plan,
    /// None: the statement has checked its own instead.
    Done,
}

impl Session {
    /// Answers `SET STATEMENT .. FOR ..`: the variables apply to one statement.
    pub(crate) async fn set_for_statement(
        &mut self,
        items: &[SetItem],
        (inner, parsed): (&Parsed, &Parsed),
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        let mut names = Vec::with_capacity(items.len());
        for item in items {
            let SetItem::System { variable, value } = item else {
                return Err(ClientError::not_supported(&"this part of SET STATEMENT").into());
            };
            let name = variable.name.text.to_ascii_lowercase();
            if NOT_FOR_STATEMENT.contains(&name.as_str()) {
                let code = errcode::ER_SET_STATEMENT_NOT_SUPPORTED;
                return Err(ClientError::new(code, &[&name]).into());
            }
            let value = self.new_value(value.as_ref(), parsed).await?;
            names.push((name, value));
        }
        let before = self.state.variables.borrow().clone();
        let mut outcome = Ok(Reply::Nothing);
        for (name, value) in &names {
            outcome = match self.set_variable(VariableScope::Session, name, value) {
                Ok(()) => outcome,
                Err(error) => Err(error.into()),
            };
        }
        if outcome.is_ok() {
            // `max_statement_time` may have been set.
            self.state.running.begin_time();
            outcome = self.statement(inner, run).await;
        }
        let names = names.iter().map(|(name, _)| name.as_str());
        self.state.variables.borrow_mut().restore(&before, names);
        self.take_timeouts();
        outcome
    }

    /// Answers SET: all values are computed and checked before the first variable changes.
    pub(crate) async fn set_statement(
        &mut self,
        items: &[SetItem],
        parsed: &Parsed,
    ) -> Result<Reply, Stop> {
        let mut changes = Vec::with_capacity(items.len());
        let (mut share, mut bytes) = (Share::default(), 0);
        for item in items {
            let change = self.change_of(item, parsed).await?;
            bytes += change.bytes();
            // A single value does not wait for others.
            if 1 < items.len() {
                self.state.count(&mut share, bytes)?;
                self.state.give_way().map_err(|failure| *failure)?;
            }
            changes.push(change);
        }
        self.check_changes(&changes)?;
        for change in changes {
            bytes -= change.bytes();
            self.state.count(&mut share, bytes)?;
            self.change(change).await?;
            runtime::give_way();
        }
        Ok(Reply::Ok(Done::default()))
    }

    /// What an item of SET will change.
    async fn change_of<'i>(
        &mut self,
        item: &'i SetItem,
        parsed: &Parsed,
    ) -> Result<Change<'i>, Stop> {
        Ok(match item {
            SetItem::User { name, value } => {
                let (value, column_type) = self.constant_typed(value, parsed).await?;
                Change::User(name, value, column_type)
            }
            SetItem::System { variable, value } => {
                let scope = variable.scope.unwrap_or(VariableScope::Session);
                let value = self.new_value(value.as_ref(), parsed).await?;
                Change::System(scope, &variable.name.text, value)
            }
            SetItem::Names { charset, collation } => {
                let collation = named_collation(charset.as_ref(), collation.as_ref())?;
                Change::Names(collation.charset(), Some(collation))
            }
            SetItem::CharacterSet(charset) => {
                Change::Names(named_collation(charset.as_ref(), None)?.charset(), None)
            }
            SetItem::Password { user, hashed, text } => Change::Password(user, *hashed, text),
            SetItem::Role(refused) => {
                return Err(ClientError::not_supported(&refused.name).into());
            }
        })
    }

    /// The error of the first system variable that cannot be set, found on copies.
    fn check_changes(&self, changes: &[Change<'_>]) -> Result<(), ClientError> {
        if changes.len() < 2 {
            return Ok(());
        }
        let globals = self.state.worker.server.settings();
        let mut tried_globals = Settings::clone(&globals);
        let mut tried = self.state.variables.borrow().clone();
        for change in changes {
            let Change::System(scope, name, value) = change else {
                continue;
            };
            let outcome = if *scope == VariableScope::Global {
                self.check_set_global(name)?;
                system::set_global(&mut tried_globals, name, value).map(drop)
            } else if let Some(extra) = extra_of(name, value).transpose() {
                extra.map(drop)
            } else {
                tried.set(name, value, &globals).map(drop)
            };
            outcome.map_err(|error| variable_error(name, &error))?;
        }
        Ok(())
    }

    async fn change(&mut self, change: Change<'_>) -> Result<(), Stop> {
        match change {
            Change::User(name, value, column_type) => {
                self.state
                    .set_user_variable(name, value, &column_type)
                    .map_err(|failure| *failure)?;
                self.track_state();
            }
            Change::System(scope, name, value) => {
                self.set_variable_checked(scope, name, &value).await?;
            }
            Change::Names(charset, collation) => {
                let of_database = || {
                    let variables = self.state.variables.borrow();
                    CollationId::from_name(variables.settings().text("collation_database"))
                };
                let collation = collation.or_else(of_database);
                let collation = collation.unwrap_or_else(|| charset.default_collation());
                self.set_charset(charset, collation)?;
            }
            Change::Password(user, hashed, text) => {
                self.set_password(user.as_ref(), hashed, text).await?;
            }
        }
        Ok(())
    }

    /// SET NAMES, and the character set of a login.
    pub(crate) fn set_names(&mut self, collation: CollationId) -> Result<(), ClientError> {
        self.set_charset(collation.charset(), collation)
    }

    /// Sets `@@collation_database` and its character set to those of the current database, or the
    /// server's if there is none.
    pub(crate) fn follow_database(&mut self, collation: CollationId) -> Result<(), ClientError> {
        let name = "collation_database";
        if self.state.variables.borrow().settings().text(name) == collation.name() {
            return Ok(());
        }
        let text = NewValue::Text(collation.name().to_owned());
        self.derive_variables(
            |worker| &worker.database_variables,
            collation,
            |session| session.set_own_variable(name, &text),
        )
    }

    /// Sets a variable of the session without checks and without reporting it.
    pub(crate) fn set_own_variable(
        &self,
        name: &'static str,
        value: &NewValue,
    ) -> Result<(), ClientError> {
        let globals = self.state.worker.server.settings();
        let mut variables = self.state.variables.borrow_mut();
        let set = variables.set(name, value, &globals);
        set.map(drop).map_err(|error| variable_error(name, &error))
    }

    /// Sets the client's character set and the collation of its literals.
    fn set_charset(&mut self, charset: Charset, collation: CollationId) -> Result<(), ClientError> {
        let charset = NewValue::Text(charset.name().to_owned());
        let text = NewValue::Text(collation.name().to_owned());
        for (name, value) in NAMES_VARIABLES.into_iter().zip([&text, &charset, &charset]) {
            self.set_own_variable(name, value)?;
        }
        for name in NAMES_VARIABLES {
            self.track_variable(name);
        }
        Ok(())
    }

    /// Sets a variable whose change has further effects.
    pub(crate) async fn set_variable_checked(
        &mut self,
        scope: VariableScope,
        name: &str,
        value: &NewValue,
    ) -> Result<(), Stop> {
        let autocommit = |session: &Self| session.state.variables.borrow().active().autocommit;
        let was_autocommit = autocommit(self);
        self.set_variable(scope, name, value)?;
        if !autocommit(self) || was_autocommit {
            return Ok(());
        }
        let committed = self.commit().await;
        if committed.is_err() && self.transaction.is_open() {
            // The open transaction goes on, so each statement is not its own.
            self.set_variable(scope, name, &NewValue::Number(0))?;
        }
        committed
    }

    /// Whether this session may set a variable for all. What a gateway's operators would set has
    /// no effect on its clients, so to them all of these are read-only.
    fn check_set_global(&self, name: &str) -> Result<(), ClientError> {
        self.check_super()?;
        match self.state.worker.server.control() {
            Some(_) => Err(variable_error(name, &VariableError::ReadOnly)),
            None => Ok(()),
        }
    }

    /// Sets a system variable of the session, or of all later ones.
    pub(crate) fn set_variable(
        &mut self,
        scope: VariableScope,
        name: &str,
        value: &NewValue,
    ) -> Result<(), ClientError> {
        let fail = |error| variable_error(name, &error);
        let is_global = scope == VariableScope::Global;
        if is_global {
            self.check_set_global(name)?;
        } else if self.set_extra(name, value).map_err(fail)? {
            self.track_state();
            return Ok(());
        }
        let server = &self.state.worker.server;
        let bent = if is_global {
            server.change_settings(|settings| system::set_global(settings, name, value))
        } else {
            let globals = server.settings();
            self.state.variables.borrow_mut().set(name, value, &globals)
        };
        let is_bent = bent.map_err(fail)?;
        if !is_global {
            self.take_timeouts();
            self.track_variable(name);
        }
        if is_bent {
            let diagnostics = self.state.diagnostics.borrow();
            let given = shown(value);
            let noted = SqlCondition::new(ER_TRUNCATED_WRONG_VALUE, &[&name, &given]);
            diagnostics.warnings().push(Level::Warning, noted);
        }
        Ok(())
    }

    /// Applies the session's timeout variables to the connection.
    pub(crate) fn take_timeouts(&mut self) {
        let variables = self.state.variables.borrow();
        let seconds = |name| Duration::from_secs(variables.settings().unsigned(name));
        let (read, write) = (seconds("net_read_timeout"), seconds("net_write_timeout"));
        self.client.set_timeouts(read, write);
    }

    /// Sets a variable that is no setting. Returns false if the name is none of those.
    fn set_extra(&mut self, name: &str, value: &NewValue) -> Result<bool, VariableError> {
        let Some(change) = extra_of(name, value)? else {
            return Ok(false);
        };
        let state = &self.state;
        match change {
            ExtraChange::Timestamp(micros) => {
                state.variables.borrow_mut().extra.timestamp_us = micros;
            }
            ExtraChange::InsertId(id) => state.variables.borrow_mut().extra.insert_id = id,
            ExtraChange::LastInsertId(id) => state.set_last_insert_id(id),
            ExtraChange::FirstSeed(seed) => state.set_random_state(|state| state.first = seed),
            ExtraChange::SecondSeed(seed) => state.set_random_state(|state| state.second = seed),
        }
        Ok(true)
    }

    pub(crate) async fn new_value(
        &mut self,
        value: Option<&Expr>,
        parsed: &Parsed,
    ) -> Result<NewValue, Stop> {
        let Some(value) = value else {
            return Ok(NewValue::Default);
        };
        if let ExprKind::Column(name) = &value.kind
            && name.table.is_none()
        {
            return Ok(NewValue::Text(name.column.text.clone()));
        }
        let (value, column_type) = self.constant_typed(value, parsed).await?;
        Ok(new_value_of(value, &column_type)?)
    }

    /// The value of an expression outside of any row.
    pub(crate) async fn constant(
        &mut self,
        expression: &Expr,
        parsed: &Parsed,
    ) -> Result<Value, Stop> {
        self.constant_typed(expression, parsed)
            .await
            .map(|(value, _)| value)
    }

    /// The value of an expression outside of any row, and its type: that of `SELECT expression`.
    pub(crate) async fn constant_typed(
        &mut self,
        expression: &Expr,
        parsed: &Parsed,
    ) -> Result<(Value, ColumnType), Stop> {
        let source = parsed.source(expression.span);
        let text = [b"SELECT ", source].concat();
        let select = self.parse_as(&text, parsed.text.strings)?;
        let (plan, kept) = self
            .run_select(&select, Checks::Plan, |_| KeptRows::default())
            .await?;
        let column_type = plan.columns.first().map_or_else(
            || ColumnType::new(TypeKind::Null),
            |column| column.column_type.clone(),
        );
        let value = kept
            .rows
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().next());
        Ok((value.unwrap_or_default(), column_type))
    }

    /// Runs a SELECT of the session's own. Returns its plan, and the sink that was made for it,
    /// with its rows.
    pub(crate) async fn run_select<S: RowSink>(
        &mut self,
        select: &Parsed,
        checks: Checks,
        sink_for: impl Fn(&Plan) -> S,
    ) -> Result<(Rc<Plan>, S), Stop> {
        for _ in 0..PLAN_TRY_COUNT_MAX {
            let plan = Rc::new(self.plan_own(select)?);
            if checks == Checks::Plan {
                self.check_privileges(&plan)?;
            }
            crate::statement::run::check_parameters(&plan, &[])?;
            let mut sink = sink_for(&plan);
            let run = StatementRun::new(&self.state, RowProtocol::Text);
            let rows = Rows::Own {
                sink: &mut sink,
                is_strict: false,
            };
            let mut execution = Execution::new(Rc::clone(&plan));
            let ran = self.run_into(&mut execution, &[], rows, &run);
            if ran.await?.is_some() {
                return Ok((plan, sink));
            }
        }
        Err(ClientError::new(errcode::ER_TABLE_DEF_CHANGED, &[]).into())
    }

    async fn set_password(
        &mut self,
        user: Option<&ast::UserName>,
        is_clear: bool,
        text: &[u8],
    ) -> Result<(), Stop> {
        let name = self.account_name_of(user.unwrap_or(&ast::UserName::Current));
        self.check_may_set_password(&name)?;
        self.commit().await?;
        let turn = self.change_turn().await?;
        let accounts = self.state.worker.server.accounts();
        let Some(account) = accounts.by_name(&name) else {
            return Err(ClientError::new(errcode::ER_PASSWORD_NO_MATCH, &[]).into());
        };
        let mut account = Account::clone(account);
        account.credential.hash = if is_clear && !text.is_empty() {
            let front = Rc::clone(&self.state.worker.front);
            let random = &front.options().random;
            let password = self.strings().sent(text);
            hash_password(&account.credential.plugin, &password, random).await?
        } else {
            check_hash(&account.credential.plugin, text)?;
            String::from_utf8_lossy(text).into_owned()
        };
        let changes = [AccountChange::Put(account)];
        self.change_accounts(&turn, &changes).await
    }
}

/// The change that sets a variable that is no setting, or `None` if the name is none of those.
fn extra_of(name: &str, value: &NewValue) -> Result<Option<ExtraChange>, VariableError> {
    let number = || match value {
        NewValue::Number(number) => u64::try_from(*number).ok(),
        NewValue::Default => Some(0),
        _ => None,
    };
    let number = || number().ok_or(VariableError::WrongType);
    let seed = || Ok(number()? & u64::from(u32::MAX));
    Ok(Some(match name.to_ascii_lowercase().as_str() {
        "timestamp" => {
            let seconds = match value {
                NewValue::Fraction(seconds) => *seconds,
                NewValue::Default => 0.0,
                #[allow(clippy::cast_precision_loss, reason = "seconds are small")]
                NewValue::Number(seconds) => *seconds as f64,
                _ => return Err(VariableError::WrongType),
            };
            ExtraChange::Timestamp(system::timestamp_us(seconds)?)
        }
        "insert_id" => ExtraChange::InsertId(Some(number()?).filter(|&number| number != 0)),
        "last_insert_id" | "identity" => ExtraChange::LastInsertId(number()?),
        "rand_seed1" => ExtraChange::FirstSeed(seed()?),
        "rand_seed2" => ExtraChange::SecondSeed(seed()?),
        "warning_count" | "error_count" | "in_transaction" | "pseudo_thread_id" => {
            return Err(VariableError::ReadOnly);
        }
        _ => return Ok(None),
    }))
}

/// Error 1372 for a text that is no hash of the plugin, since no login could match it. The empty
/// text is an empty password.
fn check_hash(plugin: &str, hash: &[u8]) -> Result<(), ClientError> {
    let method = auth::Method::from_account_plugin(plugin);
    let is_hash = method.is_some_and(|it| auth::StoredSecret::parse(it, hash).is_ok());
    if hash.is_empty() || is_hash {
        return Ok(());
    }
    Err(ClientError::new(errcode::ER_PASSWD_LENGTH, &[&41]))
}

/// Converts a value of some type for a system variable.
pub(crate) fn new_value_of(value: Value, from: &ColumnType) -> Result<NewValue, ClientError> {
    Ok(match value {
        Value::Null => NewValue::Null,
        Value::Int(number) => NewValue::Number(number.into()),
        Value::UInt(number) => NewValue::Number(number.into()),
        Value::Float(number) => NewValue::Fraction(number.into()),
        Value::Double(number) => NewValue::Fraction(number),
        Value::Decimal(number) => match number.to_i64() {
            Ok(whole) if number.scale() == 0 => NewValue::Number(whole.into()),
            _ => NewValue::Fraction(number.to_f64()),
        },
        Value::Bytes(text) => NewValue::Text(from.charset().to_utf8_lossy(&text).into_owned()),
        Value::Date(_) | Value::Time(_) | Value::DateTime(_) => {
            return Err(ClientError::new(errcode::ER_WRONG_TYPE_FOR_VAR, &[&""]));
        }
    })
}

fn named_collation(
    charset: Option<&ast::Ident>,
    collation: Option<&ast::Ident>,
) -> Result<CollationId, ClientError> {
    let Some(charset) = charset else {
        return Ok(CollationId::UTF8MB4_GENERAL_CI);
    };
    check_client_charset(&charset.text)?;
    let unknown = || ClientError::new(ER_UNKNOWN_CHARACTER_SET, &[&charset.text]);
    let charset = Charset::from_name(&charset.text).ok_or_else(unknown)?;
    let Some(collation) = collation else {
        return Ok(charset.default_collation());
    };
    let unknown = || ClientError::new(errcode::ER_UNKNOWN_COLLATION, &[&collation.text]);
    let named = CollationId::from_name(&collation.text).ok_or_else(unknown)?;
    if named.charset() == charset {
        Ok(named)
    } else {
        let code = errcode::ER_COLLATION_CHARSET_MISMATCH;
        Err(ClientError::new(code, &[&collation.text, &charset.name()]))
    }
}

fn shown(value: &NewValue) -> String {
    match value {
        NewValue::Number(number) => number.to_string(),
        NewValue::Fraction(number) => number.to_string(),
        NewValue::Text(text) => text.clone(),
        NewValue::Null => "NULL".to_owned(),
        NewValue::Default => "DEFAULT".to_owned(),
    }
}
