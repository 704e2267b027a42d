//! [`Matcher`]: a compiled regular expression, and searches that yield to other tasks.
//!
//! The crate `regex-automata` searches in one go. Its rate depends on expression and text and may
//! be gigabytes a second or bytes a millisecond. A search that is short even at the worst rate is
//! left to it. A longer one is made here, byte by byte, over its lazy automata, and reports its
//! work on the way: forward to the end of the leftmost match, then back to its beginning.
//!
//! The automata do not support Unicode word boundaries: on a long text that is not ASCII they give
//! up. Then the search is made in one go too, unless it would take far too long.

use errcode::ER_REGEXP_ERROR;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::meta::Regex;
use regex_automata::nfa::thompson;
use regex_automata::util::{interpolate, syntax};
use regex_automata::{Anchored, Input, MatchKind, Span};
use value::{Charset, CollationId, SqlCondition};

/// Is called with the work, in bytes read. It fails if the statement has to end.
pub type Meter<'m> = &'m dyn Fn(usize) -> Result<(), SqlCondition>;

/// Largest program of one expression in memory.
const PROGRAM_BYTES_MAX: usize = 1 << 20;

/// The most work of a search in one go: bytes of text times [`states`] of the program. Some 2 ms at
/// the worst rate.
const DIRECT_WORK_MAX: usize = 1 << 20;

/// The same for searches that cannot be made in steps; beyond it error 1139. Some 100 ms.
const INDIVISIBLE_WORK_MAX: usize = 64 << 20;

/// The approximate bytes of a program for one of its states.
const STATE_BYTES: usize = 48;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Matcher {
    regex: Regex,
    /// The approximate number of the program's states.
    states: usize,
    pattern: String,
    syntax: syntax::Config,
    /// Built at the first long text.
    automata: Option<Box<Automata>>,
}

#[derive(Debug)]
struct Automata {
    forward: DFA,
    forward_cache: Cache,
    /// For the reversed expression, anchored at the end of the match.
    reverse: DFA,
    reverse_cache: Cache,
}

/// The automata cannot decide.
struct GaveUp;

/// Why a search had no result.
enum Failed {
    GaveUp,
    SqlCondition(SqlCondition),
}

impl From<SqlCondition> for Failed {
    fn from(condition: SqlCondition) -> Self {
        Self::SqlCondition(condition)
    }
}

impl From<GaveUp> for Failed {
    fn from(_: GaveUp) -> Self {
        Self::GaveUp
    }
}

fn refused(reason: &str) -> SqlCondition {
    SqlCondition::new(ER_REGEXP_ERROR, &[&reason])
}

/// The client's error for an expression that does not compile.
fn build_error(error: &regex_automata::meta::BuildError) -> SqlCondition {
    let Some(syntax) = error.syntax_error() else {
        return refused(&format!(
            "Compiled regex exceeds size limit of {PROGRAM_BYTES_MAX} bytes."
        ));
    };
    let text = syntax.to_string();
    let last = text.lines().last().unwrap_or("syntax");
    refused(last.trim_start_matches("error: "))
}

impl Matcher {
    /// Compiles an expression; the collation decides whether case matters.
    ///
    /// # Errors
    /// 1139 for an expression that is ill-formed or too large.
    pub(crate) fn new(pattern: &[u8], collation: CollationId) -> Result<Self, SqlCondition> {
        let syntax = syntax::Config::new()
            .case_insensitive(collation.equal(b"a", b"A"))
            .unicode(collation.charset() != Charset::Binary)
            .utf8(false);
        let pattern = collation.charset().to_utf8_lossy(pattern).into_owned();
        let config = Regex::config()
            .nfa_size_limit(Some(PROGRAM_BYTES_MAX))
            .utf8_empty(false);
        let regex = Regex::builder()
            .syntax(syntax)
            .configure(config)
            .build(&pattern)
            .map_err(|error| build_error(&error))?;
        Ok(Self {
            states: (regex.memory_usage() / STATE_BYTES).max(1),
            regex,
            pattern,
            syntax,
            automata: None,
        })
    }

    /// The leftmost match from `start` on.
    ///
    /// # Errors
    /// If the statement has to end; 1139 if the search would take far too long.
    pub(crate) fn find(
        &mut self,
        text: &[u8],
        start: usize,
        meter: Meter<'_>,
    ) -> Result<Option<Span>, SqlCondition> {
        let work = self.work(text.len() - start);
        meter(work.min(text.len() - start))?;
        let input = Input::new(text).range(start..);
        if work <= DIRECT_WORK_MAX {
            return Ok(self.regex.search(&input).map(|found| found.span()));
        }
        match self.find_in_steps(text, start, meter) {
            Ok(found) => Ok(found),
            Err(Failed::SqlCondition(condition)) => Err(condition),
            Err(Failed::GaveUp) => {
                self.check_indivisible(work)?;
                Ok(self.regex.search(&input).map(|found| found.span()))
            }
        }
    }

    /// Appends a template filled from a match: `$0` is the whole match, `$1` its first group.
    ///
    /// # Errors
    /// If the statement has to end; 1139 if groups are needed in a match that is far too long.
    pub(crate) fn append_filled(
        &self,
        text: &[u8],
        found: Span,
        template: &[u8],
        meter: Meter<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), SqlCondition> {
        meter(found.len())?;
        if self.regex.captures_len() == 1 {
            let append = |group: usize, out: &mut Vec<u8>| {
                if group == 0 {
                    out.extend_from_slice(&text[found.range()]);
                }
            };
            interpolate::bytes(template, append, |_| None, out);
            return Ok(());
        }
        self.check_indivisible(self.work(found.len()))?;
        let mut captures = self.regex.create_captures();
        let input = Input::new(text).span(found).anchored(Anchored::Yes);
        self.regex.search_captures(&input, &mut captures);
        captures.interpolate_bytes_into(text, template, out);
        Ok(())
    }

    fn work(&self, bytes: usize) -> usize {
        bytes.saturating_mul(self.states)
    }

    fn check_indivisible(&self, work: usize) -> Result<(), SqlCondition> {
        if work <= INDIVISIBLE_WORK_MAX {
            return Ok(());
        }
        Err(refused("match limit exceeded"))
    }

    fn find_in_steps(
        &mut self,
        text: &[u8],
        start: usize,
        meter: Meter<'_>,
    ) -> Result<Option<Span>, Failed> {
        let automata = match self.automata.take() {
            Some(automata) => automata,
            None => Box::new(Automata::new(&self.pattern, self.syntax)?),
        };
        let automata = self.automata.insert(automata);
        let pace = Pace::new(self.states, meter);
        let Some(end) = automata.end_of_match(text, start, &pace)? else {
            return Ok(None);
        };
        let begin = automata.begin_of_match(text, start, end, &pace)?;
        Ok(Some(Span { start: begin, end }))
    }
}

/// How often a search reports its work.
struct Pace<'m> {
    /// Bytes of text between two reports.
    step: usize,
    /// Their cost in the worst case; the clock shows the real one.
    cost: usize,
    meter: Meter<'m>,
}

impl<'m> Pace<'m> {
    fn new(states: usize, meter: Meter<'m>) -> Self {
        // A byte that leads to a new state costs as much as the program has states.
        let step = (DIRECT_WORK_MAX / 64 / states).clamp(16, 1024);
        let cost = step * (1 + states / 64);
        Self { step, cost, meter }
    }

    fn spend(&self, at: usize) -> Result<(), SqlCondition> {
        if at.is_multiple_of(self.step) {
            (self.meter)(self.cost)?;
        }
        Ok(())
    }
}

impl Automata {
    fn new(pattern: &str, syntax: syntax::Config) -> Result<Self, GaveUp> {
        let automaton = |is_reverse: bool, kind: MatchKind| {
            let config = thompson::Config::new()
                .reverse(is_reverse)
                .utf8(false)
                .nfa_size_limit(Some(PROGRAM_BYTES_MAX * 2));
            DFA::builder()
                .syntax(syntax)
                .thompson(config)
                .configure(
                    DFA::config()
                        .match_kind(kind)
                        .unicode_word_boundary(true)
                        .skip_cache_capacity_check(true),
                )
                .build(pattern)
                .map_err(|_| GaveUp)
        };
        let forward = automaton(false, MatchKind::LeftmostFirst)?;
        let reverse = automaton(true, MatchKind::All)?;
        Ok(Self {
            forward_cache: forward.create_cache(),
            reverse_cache: reverse.create_cache(),
            forward,
            reverse,
        })
    }

    /// The end of the leftmost match.
    fn end_of_match(
        &mut self,
        text: &[u8],
        start: usize,
        pace: &Pace<'_>,
    ) -> Result<Option<usize>, Failed> {
        let (dfa, cache) = (&self.forward, &mut self.forward_cache);
        let input = Input::new(text).range(start..);
        let mut state = dfa.start_state_forward(cache, &input).map_err(|_| GaveUp)?;
        let mut end = None;
        for (at, &byte) in text.iter().enumerate().skip(start) {
            pace.spend(at)?;
            state = dfa.next_state(cache, state, byte).map_err(|_| GaveUp)?;
            match judge(state)? {
                // An automaton reports a match one byte late.
                Judged::Match => end = Some(at),
                Judged::Dead => return Ok(end),
                Judged::Open => {}
            }
        }
        let last = dfa.next_eoi_state(cache, state).map_err(|_| GaveUp)?;
        if let Judged::Match = judge(last)? {
            end = Some(text.len());
        }
        Ok(end)
    }

    /// The beginning of the match that ends at `end`.
    fn begin_of_match(
        &mut self,
        text: &[u8],
        start: usize,
        end: usize,
        pace: &Pace<'_>,
    ) -> Result<usize, Failed> {
        let (dfa, cache) = (&self.reverse, &mut self.reverse_cache);
        let input = Input::new(text).range(start..end).anchored(Anchored::Yes);
        let mut state = dfa.start_state_reverse(cache, &input).map_err(|_| GaveUp)?;
        let mut begin = None;
        for at in (start..end).rev() {
            pace.spend(at)?;
            state = dfa.next_state(cache, state, text[at]).map_err(|_| GaveUp)?;
            match judge(state)? {
                Judged::Match => begin = Some(at + 1),
                Judged::Dead => return begin.ok_or(Failed::GaveUp),
                Judged::Open => {}
            }
        }
        let last = match start.checked_sub(1) {
            Some(before) => dfa.next_state(cache, state, text[before]),
            None => dfa.next_eoi_state(cache, state),
        };
        if let Judged::Match = judge(last.map_err(|_| GaveUp)?)? {
            begin = Some(start);
        }
        begin.ok_or(Failed::GaveUp)
    }
}

/// What a state means for the text before it.
enum Judged {
    Match,
    Dead,
    Open,
}

fn judge(state: LazyStateID) -> Result<Judged, GaveUp> {
    if !state.is_tagged() {
        return Ok(Judged::Open);
    }
    if state.is_match() {
        Ok(Judged::Match)
    } else if state.is_dead() {
        Ok(Judged::Dead)
    } else if state.is_quit() {
        Err(GaveUp)
    } else {
        Ok(Judged::Open)
    }
}

/// Compiled expressions of a statement, so that a constant one is compiled once.
#[derive(Debug, Default)]
pub struct Patterns {
    known: Vec<(Vec<u8>, CollationId, Matcher)>,
}

/// Expressions kept for a statement; the oldest is dropped first.
const PATTERNS_MAX: usize = 16;

impl Patterns {
    /// The expression, compiled if necessary.
    ///
    /// # Errors
    /// As [`Matcher::new`].
    pub(crate) fn find(
        &mut self,
        pattern: &[u8],
        collation: CollationId,
    ) -> Result<&mut Matcher, SqlCondition> {
        let known = self
            .known
            .iter()
            .position(|(text, of, _)| text == pattern && *of == collation);
        let index = match known {
            Some(index) => index,
            None => {
                let matcher = Matcher::new(pattern, collation)?;
                if self.known.len() == PATTERNS_MAX {
                    self.known.remove(0);
                }
                self.known.push((pattern.to_vec(), collation, matcher));
                self.known.len() - 1
            }
        };
        Ok(&mut self.known[index].2)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Runs with a meter that counts the work and fails beyond `limit`.
    fn metered<T>(limit: usize, run: impl FnOnce(Meter<'_>) -> T) -> (T, usize) {
        let spent = Cell::new(0);
        let ran = run(&|bytes| {
            spent.set(spent.get() + bytes);
            if limit < spent.get() {
                return Err(SqlCondition::new(errcode::ER_QUERY_INTERRUPTED, &[]));
            }
            Ok(())
        });
        (ran, spent.get())
    }

    fn matcher(pattern: &str) -> Matcher {
        Matcher::new(pattern.as_bytes(), CollationId::UTF8MB4_GENERAL_CI).unwrap()
    }

    #[test]
    fn steps_find_what_one_go_finds() {
        let texts = [
            "",
            "a",
            "abc",
            "xaxbxc",
            "aaab aab ab b",
            "foo bar",
            "line\none\ntwo",
            "AbAbAb",
            "caf\u{e9} na\u{ef}ve",
            "\u{1F600}x\u{1F600}",
            "aXbXc-aYbYc",
        ];
        let patterns = [
            "a",
            "b+",
            "a*",
            "a*?b",
            "^a",
            "c$",
            "(a|ab)(c|bcd)?",
            "(?m)^t",
            "x|",
            "[a-c]+x?",
            "(?-u:\\b)ab",
            "\\w+",
            ".",
            "e\u{301}?",
            "\u{1F600}.",
            "b.*?c",
            "$",
        ];
        for pattern in patterns {
            let mut matcher = matcher(pattern);
            for text in texts.map(str::as_bytes) {
                for start in 0..=text.len() {
                    let input = Input::new(text).range(start..);
                    let expected = matcher.regex.search(&input).map(|found| found.span());
                    let (found, _) = metered(usize::MAX, |meter| {
                        matcher.find_in_steps(text, start, meter)
                    });
                    let found = found.unwrap_or_else(|_| panic!("{pattern} gave up"));
                    assert_eq!(found, expected, "{pattern} in {text:?} from {start}");
                }
            }
        }
    }

    #[test]
    fn a_long_search_says_what_it_does_and_can_be_ended() {
        let text = vec![b'a'; 4 << 20];
        let mut matcher = matcher("a[ab]{200}c");
        let (found, spent) = metered(usize::MAX, |meter| matcher.find(&text, 0, meter));
        assert_eq!(found, Ok(None));
        assert!(text.len() < spent);
        let (ended, spent) = metered(6 << 20, |meter| matcher.find(&text, 0, meter));
        assert_eq!(ended.unwrap_err().code, errcode::ER_QUERY_INTERRUPTED);
        assert!(spent < 7 << 20);
    }

    #[test]
    fn what_cannot_be_made_in_steps_is_bounded() {
        let mut matcher = matcher("\\bzz\\b");
        let mut text = "\u{e9}".repeat(20_000).into_bytes();
        text.extend_from_slice(b" zz");
        let at = text.len() - 2;
        let free = |matcher: &mut Matcher, text: &[u8]| {
            metered(usize::MAX, |meter| matcher.find(text, 0, meter)).0
        };
        let found = free(&mut matcher, &text);
        assert_eq!(
            found,
            Ok(Some(Span {
                start: at,
                end: at + 2
            }))
        );
        let text = "\u{e9}".repeat(4 << 20).into_bytes();
        assert_eq!(free(&mut matcher, &text).unwrap_err().code, ER_REGEXP_ERROR);
        // ASCII is searched in steps, whatever its length.
        let text = vec![b'z'; 4 << 20];
        assert_eq!(free(&mut matcher, &text), Ok(None));
    }
}
