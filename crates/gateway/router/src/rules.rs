//! [`Rules`]: what an operator has said about statements, beyond what they are.
//!
//! A rule has conditions and says what becomes of a statement that meets all of them. Conditions of
//! the session (user, schema, address) are looked at when these change. Conditions of the text are
//! looked at once for each canonical text, whose verdict keeps the result ([`crate::Judge`]). So
//! both are sets of rules, and a statement costs the intersection of two sets.
//!
//! Of the rules that a statement meets, the first one that says where it goes decides where it
//! goes; likewise for all else that a [`Ruling`] has.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use regex_automata::meta::{BuildError, Regex};
use regex_automata::{Input, PatternSet};
use settings::SqlMode;
use sha2::{Digest as _, Sha256};
use stdx::Network;
use syntax::canonical::Canonical;
use syntax::class::qualified_names;

mod fold;
mod table;

pub use fold::without_literals;
pub(crate) use fold::{Literals, folded};
pub use table::{TableName, TableNameError};

/// Most rules of a gateway. A set of them is this many bits.
pub const RULES_MAX: usize = 256;

/// Patterns see no more of a text. Canonical texts are not longer than four times that, and what
/// an operator looks for is at their beginning.
pub const PATTERN_BYTES_MAX: usize = 16 << 10;

/// Largest program of all patterns in memory.
const PROGRAM_BYTES_MAX: usize = 64 << 20;

/// A rule. Constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// By which messages name it.
    pub name: Arc<str>,
    /// Which sessions it is about.
    pub who: Who,
    /// Which texts it is about.
    pub what: What,
    /// What it says about them.
    pub ruling: Ruling,
}

/// Conditions of a session. A list that is empty is met by each session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Who {
    /// Names of services.
    pub services: Vec<Arc<str>>,
    /// Names of users, without their hosts.
    pub users: Vec<String>,
    /// Default databases.
    pub schemas: Vec<String>,
    /// Where clients come from. A unix socket counts as 127.0.0.1.
    pub networks: Vec<Network>,
}

/// Conditions of a text. What is empty is met by each text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct What {
    /// Digests of canonical texts ([`digest`]).
    pub digests: Vec<u64>,
    /// Tables that it names.
    pub tables: Vec<TableName>,
    /// A regular expression for canonical texts; upper and lower case are alike.
    pub pattern: Option<String>,
}

/// What rules say about a statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ruling {
    /// Where it goes.
    pub route: Option<Route>,
    /// How far a replica may be behind that answers it.
    pub lag_max: Option<Duration>,
    /// How long it may run.
    pub time_max: Option<Duration>,
    /// Whether its session may go on sharing connections.
    pub multiplexes: Option<bool>,
    /// It is not carried out, and the client is told this.
    pub refusal: Option<Arc<str>>,
    /// Whether its result is kept, and where.
    pub cache: Option<CacheUse>,
    /// Whether it goes to the query log.
    pub logs: Option<bool>,
}

/// Whether the result of a query is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheUse {
    /// It is not.
    Off,
    /// In the cache of this name, if it can be kept.
    In(Arc<str>),
}

/// A rule that a statement meets, and what it decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// By which messages name the rule.
    pub name: Arc<str>,
    /// What it says, without what an earlier rule has said.
    pub decides: Ruling,
}

impl Decision {
    /// What these rules say together.
    pub fn sum(decisions: &[Decision]) -> Ruling {
        let mut sum = Ruling::default();
        decisions.iter().for_each(|it| sum.merge(&it.decides));
        sum
    }
}

/// Where a statement goes by a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// To the primary.
    Primary,
    /// To a replica, if it is known to be a read.
    Replica,
    /// To the server of this name, whatever it is.
    Server(Arc<str>),
}

impl Ruling {
    /// Adds what a later rule says.
    fn merge(&mut self, later: &Ruling) {
        self.route = self.route.take().or_else(|| later.route.clone());
        self.lag_max = self.lag_max.or(later.lag_max);
        self.time_max = self.time_max.or(later.time_max);
        self.multiplexes = self.multiplexes.or(later.multiplexes);
        self.logs = self.logs.or(later.logs);
        self.refusal = self.refusal.take().or_else(|| later.refusal.clone());
        self.cache = self.cache.take().or_else(|| later.cache.clone());
    }

    /// What it says where an earlier one says nothing.
    fn beyond(&self, earlier: &Ruling) -> Ruling {
        fn unless<T: Clone, E>(said: &Option<T>, earlier: &Option<E>) -> Option<T> {
            said.clone().filter(|_| earlier.is_none())
        }
        Ruling {
            route: unless(&self.route, &earlier.route),
            lag_max: unless(&self.lag_max, &earlier.lag_max),
            time_max: unless(&self.time_max, &earlier.time_max),
            multiplexes: unless(&self.multiplexes, &earlier.multiplexes),
            refusal: unless(&self.refusal, &earlier.refusal),
            cache: unless(&self.cache, &earlier.cache),
            logs: unless(&self.logs, &earlier.logs),
        }
    }
}

/// A set of rules, by their places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct RuleSet([u64; RULES_MAX / 64]);

impl RuleSet {
    fn add(&mut self, rule: usize) {
        if let Some(word) = self.0.get_mut(rule / 64) {
            *word |= 1 << (rule % 64);
        }
    }

    pub(crate) fn has(&self, rule: usize) -> bool {
        let word = self.0.get(rule / 64);
        word.is_some_and(|word| word >> (rule % 64) & 1 != 0)
    }

    /// Whether no rule is in it.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The rules that are in both.
    pub(crate) fn within(&self, other: &RuleSet) -> RuleSet {
        self.joined(other, |one, other| one & other)
    }

    /// The rules that are not in the other.
    pub(crate) fn without(&self, other: &RuleSet) -> RuleSet {
        self.joined(other, |one, other| one & !other)
    }

    /// The rules that are in either.
    pub(crate) fn and(&self, other: &RuleSet) -> RuleSet {
        self.joined(other, |one, other| one | other)
    }

    fn joined(&self, other: &RuleSet, join: impl Fn(u64, u64) -> u64) -> RuleSet {
        let mut joined = *self;
        for (word, other) in joined.0.iter_mut().zip(other.0) {
            *word = join(*word, other);
        }
        joined
    }
}

/// What conditions of a session are about.
#[derive(Debug, Clone, Copy)]
pub struct SessionFacts<'a> {
    /// The name of its service.
    pub service: &'a str,
    /// Its user, without the host.
    pub user: &'a str,
    /// Its default database.
    pub schema: Option<&'a [u8]>,
    /// Where its client comes from.
    pub address: IpAddr,
}

/// All rules of a gateway, in their order. Constant.
#[derive(Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    /// Those without a condition of the text.
    of_all_texts: RuleSet,
    /// All patterns in one, so that a text is read once. `None` if there is none.
    patterns: Option<Regex>,
    /// The rule of each pattern.
    of_patterns: Vec<usize>,
}

/// Why rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// There are more than [`RULES_MAX`].
    #[error("there are more than {RULES_MAX} rules")]
    TooMany,
    /// A pattern is no regular expression, or a very large one.
    #[error("rule `{name}`: `pattern` cannot be used: {reason}")]
    Pattern {
        /// The rule.
        name: Arc<str>,
        /// What is wrong.
        reason: String,
    },
    /// All of them together are too large.
    #[error("all patterns together are too large")]
    PatternsTooLarge(#[source] Box<BuildError>),
}

impl Rules {
    /// These rules.
    ///
    /// # Errors
    ///
    /// If there are too many, or patterns cannot be used: each of these.
    pub fn new(rules: Vec<Rule>) -> Result<Rules, Vec<RulesError>> {
        if RULES_MAX < rules.len() {
            return Err(vec![RulesError::TooMany]);
        }
        let mut errors = Vec::new();
        let mut of_all_texts = RuleSet::default();
        let mut of_patterns = Vec::new();
        let mut patterns = Vec::new();
        for (place, rule) in rules.iter().enumerate() {
            if rule.what == What::default() {
                of_all_texts.add(place);
            }
            let Some(pattern) = &rule.what.pattern else {
                continue;
            };
            if let Err(error) = build(&[pattern]) {
                errors.push(RulesError::Pattern {
                    name: Arc::clone(&rule.name),
                    reason: reason(&error),
                });
            }
            of_patterns.push(place);
            patterns.push(pattern);
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let too_large = |error| vec![RulesError::PatternsTooLarge(error)];
        let patterns = match patterns.is_empty() {
            true => None,
            false => Some(build(&patterns).map_err(too_large)?),
        };
        Ok(Rules {
            rules,
            of_all_texts,
            patterns,
            of_patterns,
        })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// All of them, in their order.
    pub fn all(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether one has a condition of the default database.
    pub(crate) fn looks_at_schema(&self) -> bool {
        self.rules.iter().any(|it| !it.who.schemas.is_empty())
    }

    /// Those whose conditions a session meets.
    pub fn of_session(&self, facts: &SessionFacts<'_>) -> RuleSet {
        self.those(|rule| rule.who.is_met(facts))
    }

    /// Those without a condition of the text.
    pub(crate) fn of_all_texts(&self) -> &RuleSet {
        &self.of_all_texts
    }

    /// Those with conditions of the text that this one meets. `text` is canonical, if it has such a
    /// form, and [`folded`].
    pub(crate) fn of_text(&self, text: &[u8], mode: SqlMode) -> RuleSet {
        let head = text.get(..PATTERN_BYTES_MAX).unwrap_or(text);
        let mut found = PatternSet::new(self.of_patterns.len());
        if let Some(patterns) = &self.patterns {
            patterns.which_overlapping_matches(&Input::new(head), &mut found);
        }
        let mut matching = RuleSet::default();
        for pattern in found.iter() {
            if let Some(place) = self.of_patterns.get(pattern.as_usize()) {
                matching.add(*place);
            }
        }
        let naming = self.naming(text, mode);
        let wants_digest = self.rules.iter().any(|it| !it.what.digests.is_empty());
        let digest = wants_digest.then(|| digest(text));
        let mut places = 0..;
        self.those(|rule| {
            let place = places.next().expect("endless");
            let What {
                digests,
                tables,
                pattern,
            } = &rule.what;
            let by_pattern = pattern.is_none() || matching.has(place);
            let by_table = tables.is_empty() || naming.has(place);
            let by_digest = digests.is_empty() || digest.is_some_and(|it| digests.contains(&it));
            by_pattern && by_table && by_digest && !self.of_all_texts.has(place)
        })
    }

    /// Those of which a text names a table.
    fn naming(&self, text: &[u8], mode: SqlMode) -> RuleSet {
        let mut naming = RuleSet::default();
        if self.rules.iter().all(|it| it.what.tables.is_empty()) {
            return naming;
        }
        for (qualifier, name) in qualified_names(text, mode) {
            for (place, rule) in self.rules.iter().enumerate() {
                let mut tables = rule.what.tables.iter();
                if tables.any(|it| it.is(qualifier.as_deref(), &name)) {
                    naming.add(place);
                }
            }
        }
        naming
    }

    /// What these rules say.
    pub(crate) fn ruling(&self, rules: &RuleSet) -> Ruling {
        let mut ruling = Ruling::default();
        for (place, rule) in self.rules.iter().enumerate() {
            if rules.has(place) {
                ruling.merge(&rule.ruling);
            }
        }
        ruling
    }

    /// What each of these rules decides.
    pub(crate) fn decisions(&self, rules: &RuleSet) -> Vec<Decision> {
        let mut before = Ruling::default();
        let all = self.rules.iter().enumerate();
        let met = all.filter(|(place, _)| rules.has(*place));
        met.map(|(_, rule)| {
            let decides = rule.ruling.beyond(&before);
            before.merge(&rule.ruling);
            Decision {
                name: Arc::clone(&rule.name),
                decides,
            }
        })
        .collect()
    }

    fn those(&self, mut is_one: impl FnMut(&Rule) -> bool) -> RuleSet {
        let mut those = RuleSet::default();
        for (place, rule) in self.rules.iter().enumerate() {
            if is_one(rule) {
                those.add(place);
            }
        }
        those
    }
}

impl Who {
    fn is_met(&self, facts: &SessionFacts<'_>) -> bool {
        fn is_any<T>(list: &[T], is_it: impl Fn(&T) -> bool) -> bool {
            list.is_empty() || list.iter().any(is_it)
        }
        is_any(&self.services, |it| **it == *facts.service)
            && is_any(&self.users, |it| *it == facts.user)
            && is_any(&self.schemas, |it| Some(it.as_bytes()) == facts.schema)
            && is_any(&self.networks, |it| it.contains(facts.address))
    }
}

/// A text as rules see it, and its digest.
pub fn digested(text: &[u8]) -> (Vec<u8>, u64) {
    let mut canonical = Canonical::new();
    let mode = SqlMode::default();
    let seen = match canonical.fill(text, mode) {
        true => folded(canonical.text(), mode, Literals::Stay),
        false => folded(text, mode, Literals::Stay),
    };
    let digest = digest(&seen);
    (seen, digest)
}

/// The digest of a text as rules see it: the first eight bytes of its SHA-256.
pub fn digest(text: &[u8]) -> u64 {
    let hash = Sha256::digest(text);
    let first = hash.first_chunk().expect("it has 32 bytes");
    u64::from_be_bytes(*first)
}

/// Upper and lower case are alike, and bytes need not be UTF-8. `.` is any byte but a line's end.
fn build(patterns: &[&String]) -> Result<Regex, Box<BuildError>> {
    let syntax = regex_automata::util::syntax::Config::new()
        .utf8(false)
        .unicode(false)
        .case_insensitive(true);
    let config = Regex::config()
        .match_kind(regex_automata::MatchKind::All)
        .utf8_empty(false)
        .nfa_size_limit(Some(PROGRAM_BYTES_MAX));
    Regex::builder()
        .syntax(syntax)
        .configure(config)
        .build_many(patterns)
        .map_err(Box::new)
}

fn reason(error: &BuildError) -> String {
    let Some(syntax) = error.syntax_error() else {
        return "it is too large".to_owned();
    };
    let text = syntax.to_string();
    let last = text.lines().last().unwrap_or("its syntax");
    last.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests;
