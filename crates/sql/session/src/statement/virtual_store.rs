//! The store as a statement sees it: the worker's own, and the tables of `information_schema`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use catalog::information_schema::{self, Facts, ParameterFacts, Process, TableFacts};
use catalog::{Privilege, Routine, RowSource, VirtualTable, is_virtual, system_tables};
use clients::{IDLE, KillOrder, SessionHandle};
use executor::HandlerCall;
use expression::StoredFunction;
use planner::{GivenValues, Names, PlanError};
use store::{
    CallCost, KeyRange, Outcome, Store, StoreId, Table, TableDefinition, TableId, TableStatistics,
    Transaction, TransactionOptions,
};
use syntax::ast::{Direction, StatementKind};
use value::{CollationId, ColumnType, Value};

use crate::connection::state::State;
use crate::define::column_type;
use crate::lock::locked_tables::not_locked;
use crate::statement::estimates::Estimates;
use crate::variables::describe::{Sources, system_variables};
use crate::variables::value::{setting_text, system_variable_type};

/// A store that adds virtual tables to the real ones.
pub struct VirtualStore {
    /// The session whose view it is.
    state: Rc<State>,
    /// The worker's own store.
    store: Rc<dyn Store>,
}

impl std::fmt::Debug for VirtualStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VirtualStore").finish_non_exhaustive()
    }
}

impl VirtualStore {
    /// The store as the session sees it.
    pub fn new(state: Rc<State>) -> Self {
        let store = Rc::clone(&state.worker.store);
        Self { state, store }
    }

    /// The table of that id, if it is made of the accounts.
    fn system_table(&self, id: TableId) -> Option<VirtualTable> {
        system_tables::definition_by_id(id)?;
        system_tables::open(id, self.state.worker.server.accounts())
    }
}

/// The rows of a virtual table as a session sees them.
struct SessionRows {
    state: Rc<State>,
    definition: Arc<TableDefinition>,
}

impl RowSource for SessionRows {
    fn tables(&self) -> Vec<Arc<TableDefinition>> {
        let names = self.state.worker.names();
        information_schema::described(&names, &self.state.privileges())
    }

    fn rows(&self, about: Option<&[Arc<TableDefinition>]>) -> Vec<Vec<Value>> {
        let worker = &self.state.worker;
        let names = worker.names();
        let accounts = worker.server.accounts();
        let privileges = self.state.privileges();
        let globals = worker.server.settings();
        let routines = worker.server.routines();
        let facts = Facts {
            names: &names,
            about,
            accounts: &accounts,
            privileges: &privileges,
            routines: &routines,
            sees_bodies: self.state.sees_routine_bodies(),
            parameters: &parameters_of,
            table_facts: &|definition| table_facts(&*worker.store, definition),
            session_variables: &|| {
                let variables = self.state.variables.borrow();
                named(&variables.settings().variables())
            },
            global_variables: &|| named(&globals.variables()),
            system_variables: &|| {
                system_variables(&Sources {
                    start: worker.server.start_settings(),
                    global: &globals,
                    session: self.state.variables.borrow().settings(),
                })
            },
            status: &|| {
                let mut counted = worker.server.status(worker.steady_us());
                if self.definition.name.table == "SESSION_STATUS" {
                    let own = self.state.handler_counts();
                    let own = HandlerCall::ALL.map(|(call, name)| (name.into(), own.of(call)));
                    counted.extend(own);
                }
                let mut status: Vec<_> = counted
                    .iter()
                    .map(|(name, value)| (name.clone().into_owned(), value.to_string()))
                    .collect();
                // Clients only check whether it is empty; the TLS library chooses the cipher suite.
                let cipher = if self.state.has_tls.get() { "TLS" } else { "" };
                status.push(("Ssl_cipher".to_owned(), cipher.to_owned()));
                status
            },
            processes: &|| processes(&self.state),
            activity: &|| worker.store.activity(),
        };
        information_schema::rows(&self.definition, &facts)
    }
}

fn named(
    variables: &[(&'static str, &'static settings::Setting, &settings::Value)],
) -> Vec<(String, String)> {
    variables
        .iter()
        .map(|(name, setting, value)| ((*name).to_owned(), setting_text(setting.name, value)))
        .collect()
}

/// What the store estimates of a table, if it can be opened without waiting.
pub fn table_facts(store: &dyn Store, definition: &TableDefinition) -> TableFacts {
    let Ok(table) = store.table(definition.id) else {
        return TableFacts::default();
    };
    TableFacts {
        statistics: table.statistics(),
        next_auto_increment: table.next_auto_increment(),
    }
}

/// The sessions that this one may see: all with the PROCESS privilege, else its own user's.
pub fn processes(state: &State) -> Vec<Process> {
    let privileges = state.privileges();
    let own_user = &privileges.account().name.user;
    let sees_all = privileges.global().has(Privilege::Process);
    let now_us = state.worker.steady_us();
    let handles = state.worker.server.clients.registry().all();
    let mut all: Vec<Process> = handles.iter().map(|it| process(it, now_us)).collect();
    all.retain(|process| sees_all || process.user == *own_user);
    all
}

/// The command of a session that was killed and has not ended yet, or whose statement was.
const KILLED: &str = "Killed";

/// What others see of a session now.
pub(crate) fn process(handle: &SessionHandle, now_us: u64) -> Process {
    let line = handle.line();
    let is_killed = match handle.order() {
        KillOrder::None => false,
        // The order stays until the next statement begins.
        KillOrder::Query => line.command != IDLE,
        KillOrder::Connection => true,
    };
    let command = if is_killed { KILLED } else { line.command };
    Process {
        id: line.id,
        user: line.user,
        host: line.host,
        database: line.database,
        command: command.to_owned(),
        time_ms: now_us.saturating_sub(line.since_us) / 1000,
        state: line.state.to_owned(),
        info: Some(line.statement).filter(|text| !text.is_empty()),
    }
}

impl Store for VirtualStore {
    fn id(&self) -> StoreId {
        self.store.id()
    }

    fn begin(&self, options: TransactionOptions) -> Box<dyn Transaction> {
        self.store.begin(options)
    }

    fn schema_version(&self) -> u64 {
        self.store.schema_version()
    }

    fn definitions(&self) -> Arc<[Arc<TableDefinition>]> {
        self.store.definitions()
    }

    fn databases(&self) -> Arc<[(String, CollationId)]> {
        self.store.databases()
    }

    fn table(&self, id: TableId) -> Outcome<Rc<dyn Table>> {
        match information_schema::definition_by_id(id) {
            Some(definition) => {
                let rows = SessionRows {
                    state: Rc::clone(&self.state),
                    definition: Arc::clone(definition),
                };
                let table = VirtualTable::new(Arc::clone(definition), Box::new(rows));
                Ok(Rc::new(table))
            }
            None => match self.system_table(id) {
                Some(table) => Ok(Rc::new(table)),
                None => self.store.table(id),
            },
        }
    }

    fn statistics_version(&self) -> u64 {
        self.store.statistics_version()
    }
}

/// Names for the planner.
#[derive(Debug)]
pub struct SessionNames<'s> {
    /// The session whose view it is.
    state: &'s State,
    /// The plan contains the value of a system variable.
    asked_variable: Cell<bool>,
    /// The privilege that the statement needs on the next table that it names: its own on its
    /// target, which comes first, and SELECT on the others.
    needed: Cell<&'static str>,
    /// The error of the first named table that the account may not know of.
    hidden: RefCell<Option<PlanError>>,
    /// What the store tells of ranges, where the statement is to run.
    estimates: Option<&'s Estimates<'s>>,
}

impl<'s> SessionNames<'s> {
    /// Names as this session sees them.
    pub fn new(state: &'s State) -> Self {
        Self {
            state,
            asked_variable: Cell::new(false),
            needed: Cell::new("SELECT"),
            hidden: RefCell::default(),
            estimates: None,
        }
    }

    /// The same for a statement that is planned to run with the values of `estimates`.
    pub(crate) fn estimating(state: &'s State, estimates: &'s Estimates<'s>) -> Self {
        Self {
            estimates: Some(estimates),
            ..Self::new(state)
        }
    }

    /// Sets the privilege that the statement needs on its target, as errors name it.
    pub(crate) fn set_needed(&self, needed: &'static str) {
        self.needed.set(needed);
    }

    /// The error for a statement that cannot be planned. If it names a table on which the account
    /// has no privilege, any other error would reveal something of that table.
    pub(crate) fn told(&self, error: PlanError) -> PlanError {
        self.hidden.take().unwrap_or(error)
    }

    /// True if the account may know whether the table exists.
    fn may_know(&self, database: &str, table: &str) -> bool {
        !self.state.privileges().on_table(database, table).is_empty()
            // Copies belong to the server.
            || table.starts_with(store::COPY_NAME_PREFIX)
    }

    /// True once a system variable's value was read: the plan is valid for that value.
    pub fn has_asked_variable(&self) -> bool {
        self.asked_variable.get()
    }
}

impl Names for SessionNames<'_> {
    fn give_way(&self) -> Result<(), PlanError> {
        self.state.give_way()
    }

    fn table(&self, database: &str, table: &str) -> Option<Arc<TableDefinition>> {
        if database.eq_ignore_ascii_case(information_schema::INFORMATION_SCHEMA) {
            return information_schema::definition(table).cloned();
        }
        let needed = self.needed.replace("SELECT");
        if !self.may_know(database, table) {
            let denied = self.state.table_denied(needed, database, table);
            self.hidden.borrow_mut().get_or_insert(Box::new(denied));
        }
        self.state.worker.names().table(database, table).cloned()
    }

    fn no_table(&self, database: &str, table: &str) -> PlanError {
        let is_own = database.eq_ignore_ascii_case(information_schema::INFORMATION_SCHEMA);
        if self.state.locks_tables.get() && !is_own {
            return Box::new(not_locked(table));
        }
        Box::new(planner::missing_table(database, table))
    }

    fn has_database(&self, database: &str) -> bool {
        database.eq_ignore_ascii_case(information_schema::INFORMATION_SCHEMA)
            || self.state.worker.names().database(database).is_some()
    }

    fn system_variable_type(
        &self,
        scope: Option<settings::VariableScope>,
        name: &str,
    ) -> Result<ColumnType, PlanError> {
        self.asked_variable.set(true);
        let value = self.state.system_variable(scope, name)?;
        Ok(system_variable_type(name, &value))
    }

    fn user_variable_type(&self, name: &str) -> ColumnType {
        self.state.user_variable_type(name)
    }

    fn stored_function(
        &self,
        database: &str,
        name: &str,
    ) -> Result<Option<Rc<StoredFunction>>, PlanError> {
        Ok(self.state.stored_function(database, name)?)
    }

    fn given_values(&self) -> Option<GivenValues<'_>> {
        let estimates = self.estimates?;
        Some(GivenValues {
            parameters: estimates.values,
            zone: &estimates.zone,
        })
    }

    fn range_rows(
        &self,
        definition: &TableDefinition,
        index: usize,
        ranges: Vec<KeyRange>,
    ) -> Option<Vec<u64>> {
        if is_virtual(definition.id) {
            return None;
        }
        let store = &*self.state.worker.store;
        self.estimates?.rows(store, definition, index, ranges)
    }

    fn far_table(&self, definition: &TableDefinition) -> Option<Rc<dyn Table>> {
        if is_virtual(definition.id) {
            return None;
        }
        let table = self.state.worker.store.table(definition.id).ok()?;
        (table.call_cost() == CallCost::RoundTrip).then_some(table)
    }

    fn covers(&self, definition: &TableDefinition, index: usize, columns: &[usize]) -> bool {
        if is_virtual(definition.id) {
            return false;
        }
        let table = self.state.worker.store.table(definition.id);
        table.is_ok_and(|table| table.covers(index, columns))
    }

    fn statistics(&self, definition: &TableDefinition) -> TableStatistics {
        if is_virtual(definition.id) {
            return TableStatistics::default();
        }
        table_facts(&*self.state.worker.store, definition).statistics
    }
}

/// A routine's parameters for `information_schema`; none if its text cannot be read.
fn parameters_of(routine: &Routine) -> Vec<ParameterFacts> {
    let text = routine.show_create();
    let mode = settings::SqlMode::of(&routine.sql_mode);
    let Ok(statement) = syntax::parse::parse(text.as_bytes(), mode) else {
        return Vec::new();
    };
    let StatementKind::CreateRoutine(create) = &statement.kind else {
        return Vec::new();
    };
    let collation = CollationId::from_name(&routine.database_collation);
    let collation = collation.unwrap_or(CollationId::UTF8MB4_GENERAL_CI);
    let typed = |name: &str, data_type| column_type(name, data_type, collation).ok();
    let returned = create.returns.as_ref().and_then(|returns| {
        Some(ParameterFacts {
            mode: None,
            name: None,
            column_type: typed("", returns)?,
        })
    });
    let program = &create.program;
    let count = stdx::to_usize(program.parameter_count);
    let parameters = program.variables.iter().take(count).filter_map(|variable| {
        let name = &variable.name.text;
        Some(ParameterFacts {
            mode: Some(match variable.direction {
                Direction::In => "IN",
                Direction::Out => "OUT",
                Direction::InOut => "INOUT",
            }),
            name: Some(name.clone()),
            column_type: typed(name, variable.data_type.as_ref()?)?,
        })
    });
    returned.into_iter().chain(parameters).collect()
}
