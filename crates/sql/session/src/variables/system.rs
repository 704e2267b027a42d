//! A session's system variables.
//!
//! A session begins with the global values, shared by all sessions that have not changed any; its
//! first `SET SESSION` makes its own copy. What the hot path reads is decoded once into [`Active`].

use std::rc::Rc;
use std::sync::Arc;

use expression::StatementOptions;
use planner::{StatementLimits, StringRules};
use settings::{Scope, Setting, Settings, SqlMode, TABLE, VariableScope};
use store::Isolation;
use value::temporal::Zone;
use value::{Charset, CollationId};

use super::idle_times::IdleTimes;

/// The longest `timestamp` that can be set, in seconds: the end of 32-bit TIMESTAMP.
const TIMESTAMP_S_MAX: f64 = 2_147_483_647.0;

/// Variables that exist only in a session and are no settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Extra {
    /// `SET timestamp`: microseconds since 1970 that NOW() returns; `None`: the clock.
    pub timestamp_us: Option<i64>,
    /// `SET insert_id`: the next AUTO_INCREMENT value of this session's next insert.
    pub insert_id: Option<u64>,
}

/// Decoded values that statements read all the time.
#[derive(Debug, Clone)]
pub struct Active {
    /// The words of `sql_mode`, joined by commas.
    pub sql_mode: Rc<str>,
    /// Each statement is a transaction.
    pub autocommit: bool,
    /// Of later transactions.
    pub isolation: Isolation,
    /// Later transactions are read-only.
    pub read_only: bool,
    /// For row locks.
    pub row_lock_wait_timeout_s: u64,
    /// For metadata locks.
    pub lock_wait_timeout_s: u64,
    /// How strings of a text are read: the client's character set and the connection's collation.
    pub strings: StringRules,
    /// Text in results is converted to it; `None`: left as stored.
    pub results_charset: Option<Charset>,
    /// Limits against statements that do too much.
    pub limits: StatementLimits,
    /// `max_statement_time` in microseconds, 0 for none.
    pub statement_time_us_max: u64,
    /// `max_error_count`.
    pub warning_count_max: usize,
    /// `sql_notes`.
    pub has_notes: bool,
    /// `sql_warnings`.
    pub tells_insert_warnings: bool,
    /// Which changes are reported to the client.
    pub tracked: Tracked,
    /// How long the client may be silent.
    pub idle_times: IdleTimes,
    /// Options of expressions; each statement fills in the time.
    pub options: StatementOptions,
}

/// Which changes of the session are reported to the client.
#[derive(Debug, Clone, Default)]
pub struct Tracked {
    /// `session_track_schema`.
    pub schema: bool,
    /// `session_track_state_change`.
    pub state: bool,
    /// `session_track_transaction_info`.
    pub transaction: bool,
    /// `session_track_system_variables`.
    pub variables: Rc<str>,
}

impl Tracked {
    /// True if changes of a setting are reported to the client.
    pub fn has_variable(&self, setting: &Setting) -> bool {
        let mut words = self.variables.split(',').map(str::trim);
        words.any(|word| word == "*" || visible(word).is_ok_and(|of| of.name == setting.name))
    }
}

/// All of a session's variables.
#[derive(Debug, Clone)]
pub struct Variables {
    /// Values by setting; shared until the session changes one.
    values: Arc<Settings>,
    /// Those that are no settings.
    pub extra: Extra,
    /// Decoded from `values` at each change.
    active: Rc<Active>,
}

/// What a session with some collation derived from the global values at its login or its `USE`, for
/// the next session. A copy of all values in each session would be the larger part of an idle
/// client's memory, and cold when its next statement reads it.
#[derive(Debug, Default)]
pub struct LoginVariables {
    last: Option<LoginVariablesOf>,
}

#[derive(Debug)]
struct LoginVariablesOf {
    globals: Variables,
    collation: CollationId,
    made: Variables,
}

impl LoginVariables {
    /// The variables kept for these global values and this collation.
    pub fn find(&self, globals: &Variables, collation: CollationId) -> Option<Variables> {
        let last = self.last.as_ref()?;
        let is_same = Arc::ptr_eq(&last.globals.values, &globals.values)
            && last.globals.extra == globals.extra
            && last.collation == collation;
        is_same.then(|| last.made.clone())
    }

    /// Keeps the derived variables.
    pub fn keep(&mut self, globals: Variables, collation: CollationId, made: Variables) {
        self.last = Some(LoginVariablesOf {
            globals,
            collation,
            made,
        });
    }
}

/// Why a variable cannot be read or set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VariableError {
    /// 1193.
    Unknown,
    /// 1238: it can only be read.
    ReadOnly,
    /// 1621: a session takes it from the global one at login.
    ReadOnlyInSession,
    /// 1235: only one value is built.
    NotBuilt {
        /// The value as the message shows it.
        text: String,
    },
    /// 1229: the variable has no session value.
    GlobalOnly,
    /// 1228: the variable has no global value.
    SessionOnly,
    /// 1238: it was read at the level that it lacks.
    WrongLevel {
        /// The level that it has.
        level: &'static str,
    },
    /// 1231: it cannot have this value.
    WrongValue {
        /// The value as the message shows it.
        text: String,
    },
    /// 1232: the value is of the wrong type.
    WrongType,
}

/// A new value, as its expression returned it.
#[derive(Debug, Clone, PartialEq)]
pub enum NewValue {
    /// `DEFAULT`: the global value for a session, the built-in one globally.
    Default,
    /// NULL.
    Null,
    /// A whole number.
    Number(i128),
    /// A number with a fraction.
    Fraction(f64),
    /// Text, or a bare word.
    Text(String),
}

impl Variables {
    /// A session's variables at login.
    pub fn new(globals: Arc<Settings>) -> Self {
        let active = Rc::new(decode(&globals));
        Self {
            values: globals,
            extra: Extra::default(),
            active,
        }
    }

    /// Back to the global values, as COM_RESET_CONNECTION and COM_CHANGE_USER do.
    pub fn reset(&mut self, globals: Arc<Settings>) {
        *self = Self::new(globals);
    }

    /// The decoded values.
    pub fn active(&self) -> &Rc<Active> {
        &self.active
    }

    /// All values.
    pub fn settings(&self) -> &Settings {
        &self.values
    }

    /// Sets a session variable. Returns true if the number was clamped to its range (warning 1292).
    pub fn set(
        &mut self,
        name: &str,
        value: &NewValue,
        globals: &Settings,
    ) -> Result<bool, VariableError> {
        let setting = writable(name, VariableScope::Session)?;
        let (text, bent) = match value {
            NewValue::Default => (shown(globals, setting), false),
            value => text_of(setting, value)?,
        };
        let values = Arc::make_mut(&mut self.values);
        put(values, setting, &text)?;
        follow(values, setting.name, &text)?;
        self.active = Rc::new(decode(&self.values));
        Ok(bent)
    }
}

impl Variables {
    /// Restores the former values of variables; names that are no settings are those of [`Extra`].
    pub fn restore<'n>(&mut self, from: &Self, names: impl Iterator<Item = &'n str>) {
        let values = Arc::make_mut(&mut self.values);
        for name in names {
            let Ok(setting) = visible(name) else {
                self.extra = from.extra.clone();
                continue;
            };
            let partner = partner_of(setting.name).and_then(|name| visible(name).ok());
            for setting in std::iter::once(setting).chain(partner) {
                let restored = values.set(setting.name, &shown(&from.values, setting));
                restored.expect("a value that was there before");
            }
        }
        self.active = Rc::new(decode(&self.values));
    }
}

/// True if there is a system variable of that name, in any case.
pub fn is_known(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    is_extra(&name) || !matches!(visible(&name), Err(VariableError::Unknown))
}

/// True for what a session can set that is no setting.
fn is_extra(name: &str) -> bool {
    matches!(
        name,
        "timestamp" | "insert_id" | "last_insert_id" | "identity" | "rand_seed1" | "rand_seed2"
    )
}

/// Whether MariaDB has a session value for what is fixed here.
pub fn is_fixed_in_sessions(name: &str) -> bool {
    matches!(
        name,
        "server_id"
            | "binlog_format"
            | "character_set_filesystem"
            | "max_user_connections"
            | "slow_query_log"
            | "wsrep_on"
    )
}

/// Sets a global variable. Returns true if the number was clamped to its range.
pub fn set_global(
    globals: &mut Settings,
    name: &str,
    value: &NewValue,
) -> Result<bool, VariableError> {
    match name.to_ascii_lowercase().as_str() {
        "warning_count" | "error_count" | "in_transaction" => return Err(VariableError::ReadOnly),
        "pseudo_thread_id" => return Err(VariableError::SessionOnly),
        name if is_extra(name) => return Err(VariableError::SessionOnly),
        _ => {}
    }
    let setting = writable(name, VariableScope::Global)?;
    let (text, bent) = match value {
        NewValue::Default => (setting.default.to_owned(), false),
        value => text_of(setting, value)?,
    };
    put(globals, setting, &text)?;
    follow(globals, setting.name, &text)?;
    Ok(bent)
}

/// The setting of that name, if it can be set in that scope.
fn writable(name: &str, scope: VariableScope) -> Result<&'static Setting, VariableError> {
    let setting = visible(name)?;
    match (setting.scope, scope) {
        (Scope::Fixed | Scope::Start, _) => Err(VariableError::ReadOnly),
        (Scope::Session, VariableScope::Session) if is_taken_at_login(setting.name) => {
            Err(VariableError::ReadOnlyInSession)
        }
        (Scope::Global, VariableScope::Session) => Err(VariableError::GlobalOnly),
        (Scope::Global | Scope::Session, _) => Ok(setting),
    }
}

/// Variables that each session has and none can change.
fn is_taken_at_login(name: &str) -> bool {
    matches!(name, "max_allowed_packet" | "net_buffer_length")
}

/// The setting of that name, if it is visible to SQL.
pub fn visible(name: &str) -> Result<&'static Setting, VariableError> {
    let found = settings::find(name).map(|(_, setting)| setting);
    found
        .filter(|setting| setting.is_variable)
        .ok_or(VariableError::Unknown)
}

/// The value as text that the setting's kind can parse, and whether it had to be clamped.
fn text_of(setting: &Setting, value: &NewValue) -> Result<(String, bool), VariableError> {
    let wrong_value = |text: String| VariableError::WrongValue { text };
    match (&setting.kind, value) {
        (settings::Kind::Unsigned { min, .. } | settings::Kind::Bytes { min, .. }, value) => {
            let NewValue::Number(number) = value else {
                return Err(VariableError::WrongType);
            };
            let (number, bent) = match u64::try_from(*number) {
                Ok(number) => setting.kind.clamp(number),
                Err(_) if *number < 0 => (*min, true),
                Err(_) => setting.kind.clamp(u64::MAX),
            };
            Ok((number.to_string(), bent))
        }
        (settings::Kind::Seconds { max }, value) => seconds_of(*max, value),
        (settings::Kind::Choice(words), NewValue::Number(number)) => {
            let word = usize::try_from(*number)
                .ok()
                .and_then(|index| words.get(index));
            let word = word.ok_or_else(|| wrong_value(number.to_string()))?;
            Ok(((*word).to_owned(), false))
        }
        (settings::Kind::Flags { words, .. }, NewValue::Number(mask)) => {
            let mask = u64::try_from(*mask).map_err(|_| wrong_value(mask.to_string()))?;
            let chosen: Vec<_> = words
                .iter()
                .enumerate()
                .filter(|(bit, _)| mask >> bit & 1 == 1)
                .map(|(_, word)| *word)
                .collect();
            Ok((chosen.join(","), false))
        }
        (_, NewValue::Number(number)) => Ok((number.to_string(), false)),
        (_, NewValue::Fraction(_)) => Err(VariableError::WrongType),
        (_, NewValue::Null) if setting.name == "character_set_results" => {
            Ok(("NULL".to_owned(), false))
        }
        (_, NewValue::Null) => Err(wrong_value("NULL".to_owned())),
        (_, NewValue::Text(text)) => Ok((text.clone(), false)),
        (_, NewValue::Default) => Ok((setting.default.to_owned(), false)),
    }
}

/// Seconds with a fraction, as text, and whether they had to be clamped.
fn seconds_of(max: u64, value: &NewValue) -> Result<(String, bool), VariableError> {
    let seconds = match value {
        NewValue::Fraction(seconds) => *seconds,
        NewValue::Number(seconds) => stdx::u64_to_f64(u64::try_from(*seconds).unwrap_or(0)),
        _ => return Err(VariableError::WrongType),
    };
    let is_negative = seconds < 0.0 || matches!(value, NewValue::Number(..0));
    let bent = seconds.clamp(0.0, stdx::u64_to_f64(max));
    #[allow(clippy::float_cmp, reason = "clamp gives a number back as it is")]
    let is_bent = is_negative || bent != seconds;
    Ok((format!("{bent:.6}"), is_bent))
}

pub(crate) fn put(
    values: &mut Settings,
    setting: &Setting,
    text: &str,
) -> Result<(), VariableError> {
    let wrong = || match setting.kind {
        settings::Kind::Only(_) | settings::Kind::Choice([_] | ["OFF", "STATE"]) => {
            VariableError::NotBuilt {
                text: text.to_owned(),
            }
        }
        _ => VariableError::WrongValue {
            text: text.to_owned(),
        },
    };
    let normal = normalized(setting.name, text).ok_or_else(|| match setting.name {
        "session_track_system_variables" => VariableError::Unknown,
        _ => wrong(),
    })?;
    if setting.name == "sql_mode"
        && let Some(word) = SqlMode::of(&normal).and(SqlMode::NOT_BUILT).words().next()
    {
        let text = word.to_owned();
        return Err(VariableError::NotBuilt { text });
    }
    values.set(setting.name, &normal).map_err(|_| wrong())
}

/// The text in its normal spelling, or `None` if it means nothing.
fn normalized(name: &str, text: &str) -> Option<String> {
    match name {
        "collation_connection" | "collation_server" | "collation_database" => {
            let collation = CollationId::from_name(text)?;
            let can_be = name == "collation_connection" || collation.charset().is_of_columns();
            can_be.then(|| collation.name().to_owned())
        }
        "character_set_results" if text.eq_ignore_ascii_case("null") => Some("NULL".to_owned()),
        "character_set_results" | "character_set_client" | "character_set_connection" => {
            Charset::from_name(text).map(|charset| charset.name().to_owned())
        }
        "character_set_server" | "character_set_database" => {
            let charset = Charset::from_name(text).filter(|charset| charset.is_of_columns())?;
            Some(charset.name().to_owned())
        }
        "session_track_system_variables" => {
            let mut words = text
                .split(',')
                .map(str::trim)
                .filter(|word| !word.is_empty());
            let is_known = |word: &str| word == "*" || visible(word).is_ok();
            words.all(is_known).then(|| text.to_owned())
        }
        "sql_mode" => Some(SqlMode::expanded(text)),
        "time_zone" => Some(Zone::from_name(text)?.name_of(text)),
        _ => Some(text.to_owned()),
    }
}

/// Keeps paired variables in step: a collation has one character set, a character set has a default
/// collation.
pub(crate) fn follow(values: &mut Settings, name: &str, text: &str) -> Result<(), VariableError> {
    let is_unlimited = text.parse() == Ok(u64::MAX);
    let Some(partner) = partner_of(name) else {
        return Ok(());
    };
    let partner_text = match name {
        "max_join_size" => Some(if is_unlimited { "ON" } else { "OFF" }),
        "collation_connection" | "collation_server" | "collation_database" => charset_of(text),
        _ => default_collation(text),
    };
    let wrong = || VariableError::WrongValue {
        text: text.to_owned(),
    };
    values
        .set(partner, partner_text.ok_or_else(wrong)?)
        .map_err(|_| wrong())
}

/// The variable that changes with another one.
pub fn partner_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "max_join_size" => "sql_big_selects",
        "character_set_connection" => "collation_connection",
        "character_set_server" => "collation_server",
        "character_set_database" => "collation_database",
        "collation_connection" => "character_set_connection",
        "collation_server" => "character_set_server",
        "collation_database" => "character_set_database",
        _ => return None,
    })
}

pub(crate) fn default_collation(charset: &str) -> Option<&'static str> {
    let charset = Charset::from_name(charset)?;
    Some(charset.default_collation().name())
}

pub(crate) fn charset_of(collation: &str) -> Option<&'static str> {
    Some(CollationId::from_name(collation)?.charset().name())
}

/// True of what `time_zone` can be: `SYSTEM`, an offset of at most 13 hours, or a zone's name.
#[must_use]
pub fn is_time_zone(text: &str) -> bool {
    Zone::from_name(text).is_some()
}

fn shown(values: &Settings, setting: &Setting) -> String {
    values
        .value(setting.name)
        .map(ToString::to_string)
        .unwrap_or_default()
}

fn decode(values: &Settings) -> Active {
    let charset = |name| Charset::from_name(values.text(name));
    let isolation = match values.text("tx_isolation") {
        "READ-UNCOMMITTED" => Isolation::ReadUncommitted,
        "READ-COMMITTED" => Isolation::ReadCommitted,
        "SERIALIZABLE" => Isolation::Serializable,
        _ => Isolation::RepeatableRead,
    };
    Active {
        sql_mode: values.text("sql_mode").into(),
        autocommit: values.is_on("autocommit"),
        isolation,
        read_only: values.is_on("tx_read_only"),
        row_lock_wait_timeout_s: values.unsigned("row_lock_wait_timeout"),
        lock_wait_timeout_s: values.unsigned("lock_wait_timeout"),
        strings: StringRules {
            client: charset("character_set_client").unwrap_or(Charset::Utf8mb4),
            collation: CollationId::from_name(values.text("collation_connection"))
                .unwrap_or(CollationId::UTF8MB4_GENERAL_CI),
        },
        results_charset: charset("character_set_results"),
        limits: limits(values),
        statement_time_us_max: values.micros("max_statement_time"),
        warning_count_max: usize::try_from(values.unsigned("max_error_count"))
            .unwrap_or(usize::MAX),
        has_notes: values.is_on("sql_notes"),
        tells_insert_warnings: values.is_on("sql_warnings"),
        tracked: Tracked {
            schema: values.is_on("session_track_schema"),
            state: values.is_on("session_track_state_change"),
            transaction: values.text("session_track_transaction_info") != "OFF",
            variables: values.text("session_track_system_variables").into(),
        },
        idle_times: IdleTimes::of(values),
        options: options(values),
    }
}

/// The client's limits against statements that do too much.
fn limits(values: &Settings) -> StatementLimits {
    let limit = |name| Some(values.unsigned(name)).filter(|&rows| rows != u64::MAX);
    StatementLimits {
        select_rows: limit("sql_select_limit"),
        join_rows: limit("max_join_size").filter(|_| !values.is_on("sql_big_selects")),
        safe_updates: values.is_on("sql_safe_updates"),
    }
}

fn options(values: &Settings) -> StatementOptions {
    let bytes = |name| usize::try_from(values.unsigned(name)).unwrap_or(usize::MAX);
    StatementOptions {
        sql_mode: SqlMode::of(values.text("sql_mode")),
        now_us: 0,
        zone: zone(values.text("time_zone")),
        division_increment: u8::try_from(values.unsigned("div_precision_increment"))
            .unwrap_or(u8::MAX),
        group_concat_bytes_max: bytes("group_concat_max_len"),
        kept_bytes_max: bytes("max_session_mem_used"),
        collation: CollationId::from_name(values.text("collation_connection"))
            .unwrap_or(CollationId::UTF8MB4_GENERAL_CI),
        auto_increment_step: values.unsigned("auto_increment_increment"),
        auto_increment_offset: values.unsigned("auto_increment_offset"),
        insert_id: None,
        default_week_format: u8::try_from(values.unsigned("default_week_format")).unwrap_or(0),
        result_bytes_max: bytes("max_allowed_packet"),
    }
}

/// The zone of a name that was valid when it was set; UTC if the zone database no longer has it.
fn zone(name: &str) -> Zone {
    Zone::from_name(name).unwrap_or_default()
}

/// The microseconds of `SET timestamp = seconds`; `None` for 0, which ends the setting.
pub fn timestamp_us(seconds: f64) -> Result<Option<i64>, VariableError> {
    if !(0.0..=TIMESTAMP_S_MAX).contains(&seconds) {
        return Err(VariableError::WrongValue {
            text: seconds.to_string(),
        });
    }
    let micros = std::time::Duration::from_secs_f64(seconds).as_micros();
    let micros = i64::try_from(micros).expect("at most 2^31 seconds");
    Ok((micros != 0).then_some(micros))
}

/// Every name that SQL can read, with its setting, for `SHOW VARIABLES`.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    TABLE.iter().filter(|setting| setting.is_variable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> (Variables, Settings) {
        let globals = Settings::default();
        (Variables::new(Arc::new(globals.clone())), globals)
    }

    fn text(text: &str) -> NewValue {
        NewValue::Text(text.to_owned())
    }

    #[test]
    fn a_change_is_the_sessions_own_and_default_takes_it_back() {
        let (mut variables, globals) = session();
        assert_eq!(
            variables.set("autocommit", &NewValue::Number(0), &globals),
            Ok(false)
        );
        assert!(!variables.active().autocommit);
        assert!(globals.is_on("autocommit"));
        variables
            .set("AUTOCOMMIT", &NewValue::Default, &globals)
            .unwrap();
        assert!(variables.active().autocommit);
    }

    #[test]
    fn numbers_are_bent_into_their_range_and_say_so() {
        let (mut variables, globals) = session();
        let name = "innodb_lock_wait_timeout";
        assert_eq!(
            variables.set(name, &NewValue::Number(-4), &globals),
            Ok(true)
        );
        assert_eq!(variables.active().row_lock_wait_timeout_s, 0);
        assert_eq!(
            variables.set(name, &NewValue::Number(7), &globals),
            Ok(false)
        );
        assert_eq!(variables.active().row_lock_wait_timeout_s, 7);
        assert_eq!(
            variables.set(name, &text("7"), &globals),
            Err(VariableError::WrongType)
        );
    }

    #[test]
    fn character_sets_and_collations_stay_in_step() {
        let (mut variables, globals) = session();
        variables
            .set("collation_connection", &text("latin1_swedish_ci"), &globals)
            .unwrap();
        assert_eq!(
            variables.settings().text("character_set_connection"),
            "latin1"
        );
        variables
            .set("character_set_connection", &text("utf8"), &globals)
            .unwrap();
        let collation = variables.active().strings.collation;
        assert_eq!(collation.name(), "utf8mb3_general_ci");
        variables
            .set("character_set_results", &NewValue::Null, &globals)
            .unwrap();
        assert_eq!(variables.active().results_charset, None);
        let unknown = variables.set("character_set_client", &text("klingon"), &globals);
        assert_eq!(
            unknown,
            Err(VariableError::WrongValue {
                text: "klingon".to_owned()
            })
        );
    }

    #[test]
    fn what_cannot_be_set_says_why() {
        let (mut variables, globals) = session();
        let mut set = |name| variables.set(name, &NewValue::Number(1), &globals);
        assert_eq!(set("no_such_thing"), Err(VariableError::Unknown));
        assert_eq!(set("version"), Err(VariableError::ReadOnly));
        assert_eq!(set("max_connections"), Err(VariableError::GlobalOnly));
        let mut globals = Settings::default();
        assert_eq!(
            set_global(&mut globals, "max_connections", &NewValue::Number(5)),
            Ok(true)
        );
        assert_eq!(globals.unsigned("max_connections"), 10);
    }

    #[test]
    fn isolation_and_mode_are_decoded() {
        let (mut variables, globals) = session();
        variables
            .set("tx_isolation", &text("read-committed"), &globals)
            .unwrap();
        assert_eq!(variables.active().isolation, Isolation::ReadCommitted);
        variables.set("sql_mode", &text("ansi"), &globals).unwrap();
        assert!(variables.active().sql_mode.contains("PIPES_AS_CONCAT"));
        variables.set("sql_mode", &text(""), &globals).unwrap();
        assert_eq!(&*variables.active().sql_mode, "");
    }

    #[test]
    fn a_timestamp_is_set_and_taken_back() {
        assert_eq!(timestamp_us(1.5), Ok(Some(1_500_000)));
        assert_eq!(timestamp_us(0.0), Ok(None));
        assert!(timestamp_us(-1.0).is_err() && timestamp_us(TIMESTAMP_S_MAX + 1.0).is_err());
    }

    #[test]
    fn time_zones_are_offsets_or_names() {
        for (zone, expected) in [
            ("SYSTEM", true),
            ("+13:00", true),
            ("+13:01", false),
            ("-05:30", true),
            ("Europe/Paris", true),
            ("CET", true),
            ("nonsense", false),
            ("Europe/Nowhere", false),
        ] {
            assert_eq!(is_time_zone(zone), expected, "{zone}");
        }
    }
}
