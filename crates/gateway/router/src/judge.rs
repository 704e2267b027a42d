//! [`Judge`]: what texts do, and what rules say about them, remembered for texts that differ in
//! their literals alone.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use digests::{Digest, Digests};
use foldhash::fast::RandomState;
use settings::SqlMode;
use stdx::to_u64;
use syntax::canonical::Canonical;
use syntax::class::{Class, Effect, Facts, Kind, Verdict, classify, verdict};
use syntax::keyword::Keyword;
use syntax::token::{Kind as TokenKind, Lexer};

use crate::rules::{
    Decision, Literals, PATTERN_BYTES_MAX, RuleSet, Rules, Ruling, SessionFacts, digest, folded,
    without_literals,
};
use crate::touched::Touched;

/// Most verdicts that a worker remembers. An application has some hundred distinct texts.
pub const VERDICTS_MAX: usize = 4096;

/// Most bytes of their texts.
const VERDICT_BYTES_MAX: usize = 8 << 20;

/// More is not looked at of a text without a canonical form, to count it. So large loads of a table
/// are alike.
const SHOWN_BYTES_MAX: usize = 1024;

/// Most sets of rules whose rulings are remembered. There are as many as kinds of statements that
/// rules tell apart.
const RULINGS_MAX: usize = 1024;

/// What uses a table without a FROM. A sequence is one.
const USES_TABLES: Facts = Facts::CALLS_UNKNOWN
    .with(Facts::READS_LAST_VALUE)
    .with(Facts::ADVANCES_SEQUENCE);

/// What a text does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// What its first statement is.
    pub class: Class,
    /// What the text reads and changes.
    pub verdict: Verdict,
    /// What its first statement does to the transaction.
    pub effect: Effect,
    /// The rules with conditions that it meets; `None` if there are none.
    pub(crate) rules: Option<Rc<RuleSet>>,
    /// Its first statement is no query and no DO, or one that reads tables.
    pub uses_tables: bool,
    /// What it reads from and changes. `None` if nobody asks.
    pub touched: Option<Rc<Touched>>,
    /// Where it is counted; `None` if the text was not read to its end.
    pub digest: Option<Rc<Digest>>,
}

/// Of a text whose meaning is not known.
const UNREAD: Verdict = Verdict {
    kind: Kind::Write,
    facts: Facts::NOT_UNDERSTOOD,
    is_several: false,
};

impl Judged {
    fn unread(text: &[u8], mode: SqlMode) -> Judged {
        let first = classify(text, mode);
        let class = match is_plain_write(text, mode) {
            true => Class::Write,
            false => Class::Unknown,
        };
        Judged {
            class,
            verdict: UNREAD,
            effect: first.effect,
            rules: None,
            uses_tables: true,
            touched: None,
            digest: None,
        }
    }

    /// The same, with nothing known of what it reads from and changes.
    fn untouched(mut self) -> Judged {
        self.touched = self.touched.map(|_| Rc::new(Touched::unknown()));
        self
    }

    /// Whether another text does the same to the same tables.
    pub fn does_like(&self, other: &Judged) -> bool {
        let of = |it: &Judged| (it.class, it.verdict, it.effect, it.uses_tables);
        of(self) == of(other) && self.touched == other.touched
    }

    /// The same of a text that a server may read in another way.
    #[must_use]
    pub fn distrusted(self) -> Judged {
        Judged {
            class: Class::Unknown,
            verdict: UNREAD,
            uses_tables: true,
            ..self.untouched()
        }
    }

    /// The same of a text that may have other statements behind what is known of it.
    #[must_use]
    pub fn several(mut self) -> Judged {
        self.verdict.is_several = true;
        self.untouched()
    }

    fn of(text: &[u8], mode: SqlMode) -> Judged {
        let first = classify(text, mode);
        let verdict = verdict(text, mode);
        let uses_tables = !matches!(first.class, Class::Query | Class::Do)
            || verdict.facts.has_any(USES_TABLES)
            || reads_tables(text, mode);
        Judged {
            class: first.class,
            verdict,
            effect: first.effect,
            rules: None,
            uses_tables,
            touched: None,
            digest: None,
        }
    }
}

/// Whether a text begins with INSERT, REPLACE, UPDATE or DELETE, whichever server reads it.
fn is_plain_write(text: &[u8], mode: SqlMode) -> bool {
    let first = Lexer::new(text, mode).next_keyword();
    let start = usize::try_from(first.span.start).expect("a text fits into memory");
    // Not every server reads what stands in an executable comment.
    let is_read_by_all = text.get(..start).is_some_and(|it| !it.contains(&b'!'));
    let writes = [
        Keyword::Insert,
        Keyword::Replace,
        Keyword::Update,
        Keyword::Delete,
    ];
    is_read_by_all && first.keyword.is_some_and(|it| writes.contains(&it))
}

/// Whether a query has a table or a subquery. FROM within parentheses belongs to a function, unless
/// a SELECT stands before it.
fn reads_tables(text: &[u8], mode: SqlMode) -> bool {
    let mut lexer = Lexer::new(text, mode);
    let (mut depth, mut selects) = (0_u32, 0_u32);
    let is_do = lexer.clone().next_keyword().keyword == Some(Keyword::Do);
    loop {
        let token = lexer.next_keyword();
        match (token.kind, token.keyword) {
            (TokenKind::End | TokenKind::Invalid, _) => return false,
            (TokenKind::LeftParen, _) => depth += 1,
            (TokenKind::RightParen, _) => depth = depth.saturating_sub(1),
            // The first one stands alone, or in parentheses at the beginning.
            (_, Some(Keyword::Select)) if is_do => return true,
            (_, Some(Keyword::Select)) => selects += 1,
            (_, Some(Keyword::From)) if depth == 0 => {
                return lexer.next_keyword().keyword != Some(Keyword::Dual);
            }
            _ => {}
        }
        if 1 < selects {
            return true;
        }
    }
}

/// The verdicts of a worker, by canonical text. Those that were not asked for while half as many
/// others came as there is room for are forgotten.
#[derive(Debug, Default)]
pub struct Judge {
    /// Constant.
    rules: Arc<Rules>,
    /// Somebody asks what texts read from and change. Constant.
    looks_at_tables: bool,
    canonical: Canonical,
    /// The canonical form is that of the last text.
    has_canonical: bool,
    recent: Verdicts,
    /// Of the texts of the recent ones.
    recent_bytes: usize,
    older: Verdicts,
    /// What sets of rules say together, and how many statements have met just these.
    rulings: HashMap<RuleSet, (Rc<Ruling>, u64), RandomState>,
    /// How many statements have met each rule, by its place, without those that `rulings` counts.
    hits: Vec<u64>,
    /// What the statements have cost. The worker has it, too.
    digests: Rc<RefCell<Digests>>,
}

type Verdicts = HashMap<Box<[u8]>, Judged, RandomState>;

impl Judge {
    /// A judge that goes by these rules.
    pub fn new(rules: Arc<Rules>) -> Judge {
        Judge {
            rules,
            ..Judge::default()
        }
    }

    /// The same judge, which also says what texts read from and change.
    #[must_use]
    pub fn looking_at_tables(self) -> Judge {
        Judge {
            looks_at_tables: true,
            ..self
        }
    }

    /// The same, with these digests for the texts that it is asked about.
    #[must_use]
    pub fn counting(self, digests: Rc<RefCell<Digests>>) -> Judge {
        Judge { digests, ..self }
    }

    /// The rules that it goes by.
    pub fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// Whether a rule has a condition of the default database.
    pub fn looks_at_schema(&self) -> bool {
        self.rules.looks_at_schema()
    }

    /// The rules that a session has to do with.
    pub fn rules_of(&self, session: &SessionFacts<'_>) -> RuleSet {
        match self.rules.is_empty() {
            true => RuleSet::default(),
            false => self.rules.of_session(session),
        }
    }

    /// What the rules of a session say about a statement, which is counted; `None` if that is
    /// nothing.
    pub fn ruling(&mut self, session: &RuleSet, judged: &Judged) -> Option<Rc<Ruling>> {
        let met = self.met(session, judged)?;
        if RULINGS_MAX <= self.rulings.len() && !self.rulings.contains_key(&met) {
            self.hits = self.hits();
            self.rulings.clear();
        }
        let rules = &self.rules;
        let known = self.rulings.entry(met);
        let (ruling, hits) = known.or_insert_with(|| (Rc::new(rules.ruling(&met)), 0));
        *hits += 1;
        Some(Rc::clone(ruling))
    }

    /// The rules of a session that a statement meets; `None` if it meets none.
    fn met(&self, session: &RuleSet, judged: &Judged) -> Option<RuleSet> {
        if session.is_empty() {
            return None;
        }
        let general = self.rules.of_all_texts();
        let of_text = match &judged.rules {
            Some(rules) => general.and(rules),
            None => *general,
        };
        let met = session.within(&of_text);
        (!met.is_empty()).then_some(met)
    }

    /// The rules of a session that a statement would meet, in their order, each with what it
    /// decides. Nothing is counted.
    pub fn explain(&self, session: &RuleSet, judged: &Judged) -> Vec<Decision> {
        let met = self.met(session, judged);
        met.map_or_else(Vec::new, |met| self.rules.decisions(&met))
    }

    /// How many statements have met each rule, in the order of the rules.
    pub fn hits(&self) -> Vec<u64> {
        let count = |place| {
            let met = self.rulings.iter().filter(|(met, _)| met.has(place));
            let before = self.hits.get(place).copied().unwrap_or_default();
            before + met.map(|(_, (_, hits))| hits).sum::<u64>()
        };
        (0..self.rules.all().len()).map(count).collect()
    }

    /// What the rules of a session say about all of its statements.
    pub fn general_ruling(&self, session: &RuleSet) -> Ruling {
        let general = self.rules.of_all_texts();
        self.rules.ruling(&session.within(general))
    }

    /// Whether one of these rules has a condition of the text.
    pub fn looks_at_texts(&self, rules: &RuleSet) -> bool {
        !rules.without(self.rules.of_all_texts()).is_empty()
    }

    /// Of a text that was not read to its end, by its beginning. Nothing is known of what it does.
    /// One that is not surely a single INSERT, REPLACE, UPDATE or DELETE may leave anything.
    pub fn judge_unread(&self, text: &[u8], mode: SqlMode) -> Judged {
        let text = text.get(..PATTERN_BYTES_MAX).unwrap_or(text);
        let seen = match self.rules.is_empty() {
            true => Vec::new(),
            false => folded(text, mode, Literals::Stay),
        };
        let mut judged = Judged::unread(text, mode);
        judged.touched = self.looks_at_tables.then(|| Rc::new(Touched::unknown()));
        self.ruled(judged, &seen, mode)
    }

    /// What a text does, as a server with this mode reads it.
    pub fn judge(&mut self, text: &[u8], mode: SqlMode) -> Judged {
        self.has_canonical = self.canonical.fill(text, mode);
        if !self.has_canonical {
            let seen = match self.rules.is_empty() {
                true => Vec::new(),
                false => folded(text, mode, Literals::Stay),
            };
            let judged = self.ruled(self.read(text, mode), &seen, mode);
            let head = text.get(..PATTERN_BYTES_MAX).unwrap_or(text);
            let shown = folded(head, mode, Literals::Hide);
            let head = shown.get(..SHOWN_BYTES_MAX).unwrap_or(&shown);
            return self.counted(judged, head, mode);
        }
        // The modes that change tokens are rare, and their texts are not remembered.
        if mode != SqlMode::default() {
            return self.judge_canonical(self.canonical.text(), mode);
        }
        let key = self.canonical.text();
        if let Some(known) = self.recent.get(key) {
            return known.clone();
        }
        let judged = match self.older.remove(key) {
            Some(known) => known,
            None => self.judge_canonical(key, mode),
        };
        let bytes = self.recent_bytes + key.len();
        if VERDICTS_MAX / 2 <= self.recent.len() || VERDICT_BYTES_MAX / 2 < bytes {
            self.older = std::mem::take(&mut self.recent);
            self.recent_bytes = 0;
        }
        self.recent_bytes += key.len();
        self.recent.insert(key.into(), judged.clone());
        judged
    }

    /// What a text does, beside rules.
    fn read(&self, text: &[u8], mode: SqlMode) -> Judged {
        let mut judged = Judged::of(text, mode);
        if self.looks_at_tables {
            let touched = Touched::of(text, mode, judged.class, &judged.verdict);
            judged.touched = Some(Rc::new(touched));
        }
        judged
    }

    /// Appends what the last text means that was judged: texts that mean the same have the same
    /// bytes. `source` is that text. Returns `false` if it has no such form.
    pub fn append_meaning(&self, source: &[u8], meaning: &mut Vec<u8>) -> bool {
        if self.has_canonical {
            meaning.extend_from_slice(self.canonical.key());
            for parameter in self.canonical.parameters() {
                let value = parameter.span.of(source);
                meaning.extend_from_slice(&to_u64(value.len()).to_le_bytes());
                meaning.extend_from_slice(value);
            }
        }
        self.has_canonical
    }

    /// What a text does that is canonical.
    fn judge_canonical(&self, text: &[u8], mode: SqlMode) -> Judged {
        let seen = folded(text, mode, Literals::Stay);
        let judged = self.ruled(self.read(text, mode), &seen, mode);
        self.counted(judged, &seen, mode)
    }

    /// Adds the rules that a text meets, as rules see it.
    fn ruled(&self, mut judged: Judged, seen: &[u8], mode: SqlMode) -> Judged {
        if !self.rules.is_empty() {
            let rules = self.rules.of_text(seen, mode);
            judged.rules = (!rules.is_empty()).then(|| Rc::new(rules));
        }
        judged
    }

    /// Adds where a text is counted. It is shown without its literals.
    fn counted(&self, judged: Judged, text: &[u8], mode: SqlMode) -> Judged {
        let make = |text: &[u8]| (digest(text), without_literals(text, mode));
        Judged {
            digest: Some(self.digests.borrow().find(text, make)),
            ..judged
        }
    }

    /// How many verdicts are remembered.
    pub fn len(&self) -> usize {
        self.recent.len() + self.older.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pin, Rule, Session, What, Who};

    #[test]
    fn literals_share_a_verdict() {
        let mut judge = Judge::default();
        let mode = SqlMode::default();
        for id in 0..10 {
            let text = format!("SELECT a FROM t WHERE id = {id}");
            let judged = judge.judge(text.as_bytes(), mode);
            assert_eq!(judged.verdict.kind, Kind::Read);
        }
        assert_eq!(judge.len(), 1);
        assert_eq!(judge.judge(b"COMMIT", mode).verdict.kind, Kind::Transaction);
        assert_eq!(judge.len(), 1, "what is short is read again");
    }

    #[test]
    fn texts_that_mean_the_same_have_one_meaning() {
        let mut judge = Judge::default().looking_at_tables();
        let mut meaning = |text: &str| {
            judge.judge(text.as_bytes(), SqlMode::default());
            let mut meaning = Vec::new();
            judge
                .append_meaning(text.as_bytes(), &mut meaning)
                .then_some(meaning)
        };
        let one = meaning("SELECT a FROM t WHERE b = 1 AND c = 'x'").unwrap();
        for (text, is_same) in [
            ("SELECT a FROM t WHERE b = 1 AND c = 'x'", true),
            ("SELECT a FROM t WHERE /* 7 */ b = 1 AND c = 'x' -- 8", true),
            ("SELECT a FROM t WHERE b = 2 AND c = 'x'", false),
            ("SELECT a FROM t WHERE b = '1' AND c = 'x'", false),
            ("SELECT a FROM t WHERE b = 1 AND c = 'y'", false),
        ] {
            assert_eq!(meaning(text).as_ref() == Some(&one), is_same, "{text}");
        }
        assert_eq!(meaning("SHOW TABLES"), None);
    }

    #[test]
    fn what_is_not_read_may_change_anything() {
        let mode = SqlMode::default();
        let mut judge = Judge::default().looking_at_tables();
        let changes = |judged: Judged| Session::default().plan(b"", mode, &judged).changes;
        let known = judge.judge(b"UPDATE t SET a = 1", mode);
        let unread = judge.judge_unread(b"INSERT INTO t", mode);
        for judged in [known.clone().several(), known.distrusted(), unread] {
            assert_eq!(changes(judged), result_cache::Changes::Anything);
        }
        let judged = Judge::default().judge_unread(b"INSERT INTO t", mode);
        assert_eq!(changes(judged), result_cache::Changes::Nothing);
    }

    #[test]
    fn texts_are_counted_by_what_rules_see_and_show_no_literals() {
        let mut judge = Judge::default();
        let ansi = SqlMode::default().with(SqlMode::ANSI_QUOTES);
        for (text, mode, expected) in [
            (
                "SELECT a  FROM t WHERE b = 5",
                SqlMode::default(),
                "SELECT a FROM t WHERE b = ?",
            ),
            ("COMMIT /* now */", SqlMode::default(), "COMMIT"),
            (
                "SET PASSWORD = 'key'",
                SqlMode::default(),
                "SET PASSWORD = ?",
            ),
            (
                "CALL p(1.5, -2e3, N'x', X'00', 0b1)",
                SqlMode::default(),
                "CALL p(?, -?, ?, ?, ?)",
            ),
            (
                "SET @a = 'it''s' 'two'; SELECT 1",
                SqlMode::default(),
                "SET @a = ? ?; SELECT ?",
            ),
            ("SET x = \"open", SqlMode::default(), "SET x = ?"),
            (
                "SELECT \"a\" FROM t WHERE b = 'c'",
                ansi,
                "SELECT \"a\" FROM t WHERE b = ?",
            ),
        ] {
            let counted = judge.judge(text.as_bytes(), mode).digest.unwrap();
            assert_eq!(String::from_utf8_lossy(counted.shown()), expected);
            assert_eq!(counted.number(), digest(expected.as_bytes()));
        }
        // Rules see the literals that decide a plan, and people do not.
        let secret = b"SELECT AES_DECRYPT(a, 'key') FROM t WHERE b = 'c'";
        let counted = judge.judge(secret, SqlMode::default()).digest.unwrap();
        let shown = b"SELECT AES_DECRYPT(a, ?) FROM t WHERE b = ?";
        assert_eq!(counted.shown(), shown);
        let seen = b"SELECT AES_DECRYPT(a, 'key') FROM t WHERE b = ?";
        assert_eq!(counted.number(), digest(seen));
        // It is found again where it is counted, by another judge of the worker, too.
        let counted = judge.judge(b"BEGIN", ansi).digest.unwrap();
        let finished = digests::Finished::default();
        let who = Arc::new(digests::Who {
            service: "s".into(),
            user: "u".into(),
            database: None,
        });
        let now = env::Instant::default();
        Digests::count(&judge.digests, Some(&counted), &who, now, &finished);
        let mut next = Judge::default().counting(Rc::clone(&judge.digests));
        let again = next.judge(b"BEGIN", SqlMode::default()).digest.unwrap();
        assert!(Rc::ptr_eq(&again, &counted));
        for (rows, expected) in [(507, 1023), (508, 1024), (30_000, 1024)] {
            let text = format!("CALL p({}1)", "'a',".repeat(rows));
            let counted = judge.judge(text.as_bytes(), ansi).digest.unwrap();
            assert_eq!(counted.shown().len(), expected, "{rows}");
        }
        let unread = judge.judge_unread(b"INSERT INTO t", SqlMode::default());
        assert!(unread.digest.is_none());
    }

    #[test]
    fn a_query_without_tables_is_known() {
        let mut judge = Judge::default();
        for (text, expected) in [
            ("SELECT 1", false),
            ("SELECT EXTRACT(YEAR FROM '2020-01-01')", false),
            ("SELECT 1 FROM DUAL", false),
            ("DO 1", false),
            ("DO (SELECT 1 FROM (SELECT 1) t)", true),
            ("SELECT a FROM t", true),
            ("SELECT (SELECT 1)", true),
            ("SELECT f(1)", true),
            ("INSERT INTO t VALUES (1)", true),
        ] {
            let judged = judge.judge(text.as_bytes(), SqlMode::default());
            assert_eq!(judged.uses_tables, expected, "{text}");
        }
    }

    #[test]
    fn a_text_that_is_not_read_is_a_write_if_it_surely_begins_as_one() {
        for (text, expected) in [
            ("INSERT INTO t VALUES (", Class::Write),
            (" /* all */\nreplace t", Class::Write),
            ("update t SET", Class::Write),
            ("-- all\nDELETE FROM", Class::Write),
            ("", Class::Unknown),
            ("INSER", Class::Unknown),
            ("SELECT ", Class::Unknown),
            ("LOAD DATA", Class::Unknown),
            ("CREATE TEMPORARY TABLE t SELECT", Class::Unknown),
            (
                "SET STATEMENT max_statement_time = 1 FOR INSERT",
                Class::Unknown,
            ),
            ("/*!99999 INSERT */ LOCK TABLES t WRITE", Class::Unknown),
            ("/*!50000 INSERT */ INTO t", Class::Unknown),
            ("/* INSERT INTO t", Class::Unknown),
        ] {
            let judged = Judge::default().judge_unread(text.as_bytes(), SqlMode::default());
            assert_eq!(judged.class, expected, "{text}");
            let pins = |judged: &Judged| {
                let plan = Session::default().plan(b"", SqlMode::default(), judged);
                plan.pins.iter().collect::<Vec<_>>()
            };
            let unknown = (expected == Class::Unknown).then_some(Pin::Unknown);
            assert_eq!(pins(&judged), unknown.into_iter().collect::<Vec<_>>());
            assert!(pins(&judged.several()).contains(&Pin::SeveralStatements));
        }
    }

    /// Also when what sets of rules say is forgotten, since there are more of them than room.
    #[test]
    fn statements_are_counted_for_each_rule_that_they_meet() {
        let rule = |place: usize| Rule {
            name: format!("r{place}").into(),
            who: Who::default(),
            what: What {
                pattern: (0 < place).then(|| format!("a{place}z")),
                ..What::default()
            },
            ruling: Ruling {
                multiplexes: Some(true),
                ..Ruling::default()
            },
        };
        let rules = Rules::new((0..=11).map(rule).collect()).unwrap();
        let mut judge = Judge::new(Arc::new(rules));
        let facts = SessionFacts {
            service: "s",
            user: "u",
            schema: None,
            address: [127, 0, 0, 1].into(),
        };
        let session = judge.rules_of(&facts);
        let mut expected = vec![0; 12];
        for set in 0..RULINGS_MAX + 9 {
            expected[0] += 1;
            let met = (0..11).filter(|bit| set >> bit & 1 == 1);
            let columns: Vec<_> = met.map(|bit| format!("a{}z", bit + 1)).collect();
            for bit in (0..11).filter(|bit| set >> bit & 1 == 1) {
                expected[bit + 1] += 1;
            }
            let text = format!("SELECT x{} FROM t", columns.join(""));
            let judged = judge.judge(text.as_bytes(), SqlMode::default());
            assert!(judge.ruling(&session, &judged).is_some());
            assert!(judge.rulings.len() <= RULINGS_MAX);
        }
        assert_eq!(judge.hits(), expected);
        assert_eq!(judge.hits[0], to_u64(RULINGS_MAX));
    }

    #[test]
    fn as_many_are_kept_as_there_is_room_for() {
        let mut judge = Judge::default();
        let mut ask = |number: usize| {
            let text = format!("SELECT a{number} FROM t");
            judge.judge(text.as_bytes(), SqlMode::default());
            judge.len()
        };
        for number in 0..VERDICTS_MAX - 1 {
            assert_eq!(ask(number), number + 1);
        }
        assert_eq!(ask(VERDICTS_MAX - 1), VERDICTS_MAX);
        assert_eq!(ask(VERDICTS_MAX), VERDICTS_MAX / 2 + 1);
        // What is asked for again stays.
        assert_eq!(ask(VERDICTS_MAX / 2), VERDICTS_MAX / 2 + 1);
    }

    #[test]
    fn long_texts_are_kept_as_far_as_their_bytes_fit() {
        let mut judge = Judge::default();
        let columns = "a,".repeat(8 << 10);
        let mut ask = |number: usize| {
            let text = format!("SELECT {columns} a{number:04} FROM t");
            judge.judge(text.as_bytes(), SqlMode::default());
            let key = judge.recent.keys().next().map_or(0, |key| key.len());
            (judge.len(), key)
        };
        let (_, bytes) = ask(0);
        let half = VERDICT_BYTES_MAX / 2 / bytes;
        for number in 1..2 * half {
            assert_eq!(ask(number).0, number + 1);
        }
        assert_eq!(ask(2 * half).0, half + 1);
    }
}
