//! COM_QUERY by the plan cache: a text that differs from an earlier one only in its literals is
//! neither parsed nor planned.
//!
//! ```text
//! text -> canonical form + literals -> key -> plan? -> run with the literals as parameters
//!                                         \-> parse and plan the canonical text, keep it
//! ```
//!
//! Everything else goes through [`super::dispatch`], which also makes the error messages: a text
//! without a canonical form, one that cannot be planned, rows that only the session knows.

use std::rc::Rc;

use errcode::ClientError;
use planner::StringRules;
use syntax::ast::StatementKind;
use syntax::canonical::{Parameter, ParameterKind};
use value::{CollationId, ColumnType, Decimal, TypeKind, Value};

use crate::connection::reply::{Reply, Stop};
use crate::connection::row_encoder::RowProtocol;
use crate::connection::session::{QueryBuffers, Session};
use crate::statement::dispatch::counted;
use crate::statement::run::Ran;
use crate::statement::statement_run::StatementRun;
use crate::worker::parsed::Parsed;
use crate::worker::plan_cache::{PlanCache, PlanKeyContext, SharedPlan, is_cacheable, scale_of};

/// The widest VARCHAR that is no BLOB, in characters of four bytes. All strings get this type, so
/// that one plan serves all lengths.
const STRING_CHARS: u32 = 16_383;

/// The outcome of trying the cache.
pub(crate) enum Tried {
    /// It was answered.
    Answered(Result<Reply, Stop>),
    /// Not answered; [`super::dispatch`] must handle it.
    Not,
}

/// What is there for a text.
enum Found {
    /// A plan.
    Plan(Rc<SharedPlan>),
    /// None yet, at this version of the schema.
    Missing(u64),
    /// It has no canonical form, or a literal that is no parameter.
    Nothing,
}

impl Session {
    /// Answers a text if it is one statement with a canonical form that can be planned.
    pub(crate) async fn cached_query(&mut self, text: &[u8]) -> Tried {
        let mut buffers = std::mem::take(&mut self.buffers);
        let found = match self.find_plan(&mut buffers, text) {
            Found::Plan(found) => Some(found),
            Found::Missing(version) => Box::pin(self.keep_plan(&buffers, version)).await,
            Found::Nothing => None,
        };
        let tried = match found {
            Some(found) => self.run_found(found, &buffers.values).await,
            None => Tried::Not,
        };
        buffers.values.clear();
        self.buffers = buffers;
        tried
    }

    /// The plan of a text, and the values of its literals in the buffers.
    fn find_plan(&self, buffers: &mut QueryBuffers, text: &[u8]) -> Found {
        let active = Rc::clone(self.state.variables.borrow().active());
        let mode = active.options.sql_mode;
        let is_canonical = buffers.canonical.fill(text, mode);
        if !is_canonical || !literals(buffers, text, mode, active.strings) {
            return Found::Nothing;
        }
        let worker = &self.state.worker;
        let schema_version = worker.plan_version();
        let QueryBuffers {
            canonical,
            key,
            values,
        } = buffers;
        self.with_key_context(|context| {
            PlanCache::write_key(key, canonical, values, context);
        });
        let found = worker.plans.borrow_mut().find(key, schema_version);
        if let Some(found) = found.filter(|found| self.state.has_types_of(found.plan())) {
            worker.counters().plan_hits.increment();
            return Found::Plan(found);
        }
        worker.counters().plan_misses.increment();
        Found::Missing(schema_version)
    }

    /// What the plans of statements that arrive now depend on.
    pub(crate) fn with_key_context<T>(&self, act: impl FnOnce(&PlanKeyContext<'_>) -> T) -> T {
        let active = Rc::clone(self.state.variables.borrow().active());
        let database = self.state.database();
        act(&PlanKeyContext {
            database: database.as_deref(),
            text_mode: active.options.sql_mode,
            sql_mode: active.options.sql_mode,
            strings: active.strings,
            collation: active.strings.collation,
            division_increment: active.options.division_increment,
            limits: active.limits,
            now: self.state.wall_now(),
        })
    }

    /// Puts a plan of this session into the worker's cache.
    pub(crate) fn share_plan(&self, key: &[u8], shared: &Rc<SharedPlan>, schema_version: u64) {
        let worker = &self.state.worker;
        if worker.plans.borrow_mut().put(key, shared, schema_version) {
            worker.counters().plan_evictions.increment();
        }
    }

    /// Plans the canonical text for the values at hand and keeps the plan, if it may be kept.
    async fn keep_plan(
        &mut self,
        buffers: &QueryBuffers,
        schema_version: u64,
    ) -> Option<Rc<SharedPlan>> {
        let canonical = &buffers.canonical;
        let parsed: Parsed = self.parse(canonical.text()).ok()?;
        let kind = &parsed.statement.kind;
        let is_planned = matches!(
            kind,
            StatementKind::Query(_)
                | StatementKind::Insert(_)
                | StatementKind::Update(_)
                | StatementKind::Delete(_)
        );
        if !is_planned {
            return None;
        }
        let collation = self.state.variables.borrow().active().strings.collation;
        let parameters = canonical.parameters().iter().zip(&buffers.values);
        let types: Vec<ColumnType> = parameters
            .map(|(parameter, value)| type_of(parameter.kind, value, collation))
            .collect();
        let given = (&buffers.values[..], &types[..]);
        let planned = self.plan_estimated(&parsed, given).await.ok()?;
        let plan = planned.plan;
        let is_for_all = is_cacheable(&plan);
        let is_usable = is_for_all || plan.is_for_values;
        if planned.has_asked_variable || !is_usable || !plan.warnings.is_empty() {
            return None;
        }
        let shared = SharedPlan::new(plan, counted(kind));
        if is_for_all {
            self.share_plan(&buffers.key, &shared, schema_version);
        }
        Some(shared)
    }

    async fn run_found(&mut self, found: Rc<SharedPlan>, values: &[Value]) -> Tried {
        if let Err(error) = self.check_shared_privileges(&found) {
            return Tried::Answered(Err(error.into()));
        }
        self.state.worker.counters().count_statement(found.kind);
        self.state.clear_diagnostics();
        let mut run = StatementRun::new(&self.state, RowProtocol::Text);
        let ran = self.run_shared(&found, values, &mut run, None).await;
        Tried::Answered(match ran {
            Ok(Ran::Reply(reply)) => Ok(reply),
            // The schema changed between finding and running: plan again.
            Ok(Ran::Stale) => return Tried::Not,
            Err(stop) => Err(stop),
        })
    }

    /// Checks the privileges for a plan, unless its last user had the same privileges.
    pub(crate) fn check_shared_privileges(&self, shared: &SharedPlan) -> Result<(), ClientError> {
        let privileges = self.state.privileges();
        if !shared.is_allowed(&privileges) {
            self.check_privileges(shared.plan())?;
            shared.allow(privileges);
        }
        Ok(())
    }
}

/// Puts the literals into the buffers. Returns false if one cannot be a parameter.
fn literals(
    buffers: &mut QueryBuffers,
    text: &[u8],
    mode: settings::SqlMode,
    strings: StringRules,
) -> bool {
    buffers.values.clear();
    let other = (!strings.is_as_written()).then_some(strings);
    for parameter in buffers.canonical.parameters() {
        match literal(parameter, text, mode, other) {
            Some(value) => buffers.values.push(value),
            None => return false,
        }
    }
    true
}

/// The value of a literal; `other` defines strings whose bytes are not their values.
fn literal(
    parameter: &Parameter,
    text: &[u8],
    mode: settings::SqlMode,
    other: Option<StringRules>,
) -> Option<Value> {
    let source = || parameter.span.of(text);
    match parameter.kind {
        // `?` occurs only in prepared statements. A number beyond BIGINT after a minus sign may be
        // in range; as a parameter it would not be.
        ParameterKind::Placeholder | ParameterKind::Unsigned => None,
        ParameterKind::Integer => {
            let number = parameter.integer(text)?;
            Some(Value::Int(i64::try_from(number).ok()?))
        }
        ParameterKind::Decimal => Some(Value::Decimal(Decimal::parse_prefix(source()).value)),
        ParameterKind::Float => {
            let parsed = value::number::parse_double(source());
            Some(Value::Double(parsed.value))
        }
        ParameterKind::String => {
            let bytes = parameter.string(text, mode);
            let is_short = bytes.len() <= stdx::to_usize(STRING_CHARS);
            let is_utf8 = std::str::from_utf8(&bytes).is_ok();
            if !is_short || !is_utf8 {
                return None;
            }
            Some(Value::Bytes(match other {
                None => bytes.into_owned(),
                Some(strings) => strings.value(&bytes).into_owned(),
            }))
        }
    }
}

/// The type of a literal of a kind, as wide as the kind allows. The fractional digits of a decimal
/// determine those of a quotient.
fn type_of(kind: ParameterKind, value: &Value, collation: CollationId) -> ColumnType {
    match kind {
        ParameterKind::Placeholder | ParameterKind::Integer => ColumnType::new(TypeKind::BigInt),
        ParameterKind::Unsigned => ColumnType::unsigned(TypeKind::BigInt),
        ParameterKind::Decimal => {
            let scale = scale_of(value).unwrap_or(Decimal::SCALE_MAX);
            ColumnType::decimal(Decimal::PRECISION_MAX, scale)
        }
        ParameterKind::Float => ColumnType::new(TypeKind::Double),
        ParameterKind::String => ColumnType::varchar(STRING_CHARS, collation),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values_of(text: &str) -> Option<(String, Vec<Value>)> {
        let mut buffers = QueryBuffers::default();
        let mode = settings::SqlMode::default();
        assert!(buffers.canonical.fill(text.as_bytes(), mode));
        let form = String::from_utf8(buffers.canonical.text().to_vec()).unwrap();
        let strings = StringRules::default();
        literals(&mut buffers, text.as_bytes(), mode, strings).then_some((form, buffers.values))
    }

    #[test]
    fn literals_become_values() {
        let (form, values) = values_of("SELECT a FROM t WHERE b = 5 AND c = 'x''y' AND d < 1.50")
            .expect("all can be parameters");
        assert_eq!(form, "SELECT a FROM t WHERE b = ? AND c = ? AND d < ?");
        let decimal = Value::Decimal(Decimal::parse_prefix(b"1.50").value);
        assert_eq!(values, [Value::Int(5), Value::bytes(b"x'y"), decimal]);
    }

    #[test]
    fn what_a_parameter_cannot_be_goes_the_long_way() {
        assert!(values_of("SELECT a FROM t WHERE b = -9223372036854775808").is_none());
        assert!(values_of("SELECT a FROM t WHERE b = ?").is_none());
        let long = "x".repeat(20_000);
        assert!(values_of(&format!("SELECT a FROM t WHERE b = '{long}'")).is_none());
    }
}
