//! Calls of the function library, each in the statement's context.

use function::{Context, DivisionByZero};
use smallvec::SmallVec;
use value::{DateTime, SqlCondition, ValueRef};

use crate::tree::Call;
use crate::{Evaluator, Failure, Statement, failure};
use settings::SqlMode;

/// The value of a call.
pub(super) fn call<'a>(evaluator: &Evaluator<'a>, call: &'a Call) -> Result<ValueRef<'a>, Failure> {
    let mut arguments: SmallVec<[ValueRef<'a>; 6]> = SmallVec::new();
    let mut argument_bytes = 0;
    for argument in &call.arguments {
        let value = evaluator.evaluate(argument)?;
        evaluator.spend_on(value)?;
        if let ValueRef::Bytes(bytes) = value {
            argument_bytes += bytes.len();
        }
        arguments.push(value);
    }
    let statement = evaluator.statement;
    let is_counted = UNCOUNTED_ARGUMENT_BYTES < argument_bytes;
    if is_counted {
        statement.session.begin_draft();
    }
    let value = with_context(statement, |context| {
        let value = call.bound.eval(&arguments, context)?;
        Ok(call.bound.bounded(value, &arguments, context))
    });
    if is_counted {
        statement.session.end_draft();
    }
    evaluator.keep(value.map_err(failure)?)
}

/// What a function allocates is counted where it gives way, unless its arguments are short: then it
/// allocates little before that.
const UNCOUNTED_ARGUMENT_BYTES: usize = 1 << 10;

/// Passes the statement's context to a function.
fn with_context<T>(statement: &Statement<'_>, call: impl FnOnce(&mut Context<'_>) -> T) -> T {
    let options = statement.options;
    let mode = options.sql_mode;
    let division_by_zero = match (mode.has(SqlMode::ERROR_FOR_DIVISION_BY_ZERO), statement) {
        (true, statement) if statement.is_strict => DivisionByZero::Refuse,
        (true, _) => DivisionByZero::Warn,
        (false, _) => DivisionByZero::Silent,
    };
    let mut scratch = statement.diagnostics.scratch();
    let mut random = || statement.session.random();
    let mut context = Context {
        warnings: &mut statement.diagnostics.warnings(),
        now: statement.now(),
        utc_now: DateTime::from_unix_micros(options.now_us).unwrap_or_default(),
        clock: &|| statement.wall(statement.session.clock_us()),
        zone: &options.zone,
        dates: statement.store_rules().dates,
        division_by_zero,
        default_week_format: options.default_week_format,
        result_bytes_max: options.result_bytes_max,
        random: &mut random,
        seeds: std::mem::take(&mut scratch.seeds),
        patterns: std::mem::take(&mut scratch.patterns),
        session: &mut statement.session.facts(),
        meter: &|bytes| {
            let spent = statement.spend(bytes);
            spent.map_err(|failure| SqlCondition::from(*failure))
        },
    };
    let result = call(&mut context);
    scratch.seeds = std::mem::take(&mut context.seeds);
    scratch.patterns = std::mem::take(&mut context.patterns);
    result
}
