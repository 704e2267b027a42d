//! What the gateway makes of a text: both stages of the classifier, hints, calls that are replaced,
//! assignments, and the verdicts and rules of the router.
//!
//! What has to be so, of any bytes:
//!
//! * Other literals, blanks at the ends and a comment before a text change no verdict.
//! * What changes data by its tree is no read.
//! * A text whose calls were replaced still parses, and has no such call left.
//! * A judge says the same of a text the second time.
//! * What is counted of a text without a canonical form shows no literals.
//! * A text that was cut at any place is read, too.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use builtin::Reach;
use router::{
    Judge, Judged, Rule, RuleSet, Rules, Ruling, SessionFacts, What, Who, digest, digested,
};
use syntax::ast::StatementKind;
use syntax::canonical::{Canonical, Parameter, ParameterKind};
use syntax::class::{
    COMMENT_BYTES_MAX, Hint, HintRoute, Kind, classify, find_hint, is_several, replace_calls, set,
    verdict,
};
use syntax::token::{Kind as TokenKind, Lexer};
use syntax::{SqlMode, parse};

use crate::choices::Choices;

/// Longest text that is also read cut at each place.
const CUT_BYTES_MAX: usize = 64;

pub(crate) fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    let mode = choices.sql_mode();
    let text = choices.rest();
    read(text, mode);
    for end in 0..text.len().min(CUT_BYTES_MAX) {
        read(text.get(..end).unwrap_or_default(), mode);
    }
    surroundings_do_not_matter(text, mode);
    literals_do_not_matter(text, mode);
    what_changes_data_is_no_read(text, mode);
    replaced_calls_are_gone(text, mode);
    hints_are_what_they_say(text);
    judges_say_the_same(text, mode);
}

/// Each stage reads the text, and points into it.
fn read(text: &[u8], mode: SqlMode) {
    let first = classify(text, mode);
    let verdict = verdict(text, mode);
    if !text.contains(&b';') {
        assert!(!verdict.is_several && !is_several(text, mode));
    }
    let mut count = 0;
    for assignment in set::assignments(text, mode) {
        count += 1;
        let within: Range<*const u8> = text.as_ptr_range();
        let value = assignment.value.text.as_ptr_range();
        let is_within = within.start <= value.start && value.end <= within.end;
        assert!(assignment.value.text.is_empty() || is_within);
    }
    assert!(count <= text.len(), "{first:?}");
    let _ = find_hint(text);
    let same = replace_calls(text, mode, |_| None);
    assert!(same == text, "nothing was replaced");
}

/// Blanks at the ends and a comment before a text are no part of what it does.
fn surroundings_do_not_matter(text: &[u8], mode: SqlMode) {
    let around = [b" \t/* a comment */\r\n", text].concat();
    assert_eq!(verdict(&around, mode), verdict(text, mode));
    let (one, other) = (classify(&around, mode), classify(text, mode));
    assert_eq!((one.class, one.effect), (other.class, other.effect));
    let mut form = Canonical::new();
    if form.fill(text, mode) {
        let key = form.key().to_vec();
        let around = [around.as_slice(), b"\n\t "].concat();
        assert!(form.fill(&around, mode) && form.key() == key);
    }
}

/// A text with other literals has the same form, and that has the verdict of both.
fn literals_do_not_matter(text: &[u8], mode: SqlMode) {
    let (seen, seen_digest) = digested(text);
    assert_eq!(digested(&seen), (seen.clone(), seen_digest));
    assert_eq!(digest(&seen), seen_digest);
    let mut form = Canonical::new();
    if !form.fill(text, mode) {
        return;
    }
    let mut other = Vec::new();
    let mut copied = 0;
    for parameter in form.parameters() {
        let Some(literal) = other_literal(parameter) else {
            continue;
        };
        let (start, end) = (parameter.span.start, parameter.span.end);
        let (start, end) = (place(start), place(end));
        other.extend_from_slice(text.get(copied..start).unwrap_or_default());
        other.extend_from_slice(literal);
        copied = end;
    }
    other.extend_from_slice(text.get(copied..).unwrap_or_default());
    let of_form = verdict(form.text(), mode);
    assert_eq!(verdict(text, mode), of_form);
    assert_eq!(verdict(&other, mode), of_form);
    let first = |text: &[u8]| {
        let first = classify(text, mode);
        (first.class, first.effect)
    };
    assert_eq!(first(text), first(form.text()));
    let mut again = Canonical::new();
    assert!(again.fill(&other, mode) && again.key() == form.key());
}

/// A literal of the same kind; `None` of a placeholder, which has no other.
fn other_literal(parameter: &Parameter) -> Option<&'static [u8]> {
    match parameter.kind {
        ParameterKind::Placeholder => None,
        ParameterKind::Integer => Some(b"70"),
        ParameterKind::Unsigned => Some(b"18446744073709551614"),
        ParameterKind::Decimal => Some(b"7.25"),
        ParameterKind::Float => Some(b"7e1"),
        ParameterKind::String => Some(b"'it''s'"),
    }
}

/// The parser knows what a statement is; a guess without it has to be on the safe side.
fn what_changes_data_is_no_read(text: &[u8], mode: SqlMode) {
    let Ok(statement) = parse(text, mode) else {
        return;
    };
    let writes = matches!(
        statement.kind,
        StatementKind::Insert(_)
            | StatementKind::Update(_)
            | StatementKind::Delete(_)
            | StatementKind::Truncate(_)
            | StatementKind::LoadData(_)
            | StatementKind::Call(_)
            | StatementKind::CreateTable(_)
            | StatementKind::AlterTable(_)
            | StatementKind::Drop(_)
            | StatementKind::RenameTables(_)
            | StatementKind::CreateIndex(_)
            | StatementKind::DropIndex(_)
            | StatementKind::CreateDatabase(_)
            | StatementKind::DropDatabase { .. }
            | StatementKind::CreateView(_)
            | StatementKind::CreateRoutine(_)
            | StatementKind::DropRoutine(_)
    );
    if writes {
        assert_eq!(verdict(text, mode).kind, Kind::Write);
    }
}

/// What the gateway knows by itself is a number in its place.
fn replaced_calls_are_gone(text: &[u8], mode: SqlMode) {
    let value = |reach| match reach {
        Reach::RowCount => Some("-1".to_owned()),
        Reach::FoundRows => Some("70".to_owned()),
        Reach::ConnectionId => Some("1073741824".to_owned()),
        _ => None,
    };
    let replaced = replace_calls(text, mode, value);
    if parse(text, mode).is_ok() {
        let again = parse(&replaced, mode);
        let is_right = again.is_ok_and(|_| replace_calls(&replaced, mode, value) == replaced);
        assert!(is_right, "{}", String::from_utf8_lossy(&replaced));
    }
}

/// A hint that is written again says the same.
fn hints_are_what_they_say(text: &[u8]) {
    let Some(Ok(hint)) = find_hint(text) else {
        return;
    };
    let Hint {
        server,
        route,
        max_lag_ms,
        pins,
    } = hint;
    let mut parts = Vec::new();
    parts.extend(server.map(|it| format!("server={it}")));
    parts.extend(route.map(|it| match it {
        HintRoute::Primary => "route=primary".to_owned(),
        HintRoute::Replica => "route=replica".to_owned(),
    }));
    parts.extend(max_lag_ms.map(|it| format!("max_lag={it}")));
    parts.extend(pins.then(|| "pin".to_owned()));
    let written = format!("/*plateau:{}*/ SELECT 1", parts.join(","));
    let is_comment = server.is_none_or(|it| !it.contains("*/") && !it.ends_with('*'));
    if is_comment && written.len() < COMMENT_BYTES_MAX {
        assert_eq!(find_hint(written.as_bytes()), Some(Ok(hint)));
    }
}

/// One of the text's own digest, which each text of that form meets.
fn of_digest(text: &[u8]) -> Rules {
    let (_, digest) = digested(text);
    let what = What {
        digests: vec![digest],
        ..What::default()
    };
    Rules::new(vec![rule(what)]).expect("it can be used")
}

/// One of a pattern, which is costly to make.
fn of_pattern() -> Arc<Rules> {
    static RULES: OnceLock<Arc<Rules>> = OnceLock::new();
    let rules = RULES.get_or_init(|| {
        let what = What {
            tables: vec!["t".parse().expect("a name")],
            pattern: Some("^select .* where a = \\?$".to_owned()),
            ..What::default()
        };
        Arc::new(Rules::new(vec![rule(what)]).expect("it can be used"))
    });
    Arc::clone(rules)
}

fn rule(what: What) -> Rule {
    Rule {
        name: Arc::from("rule"),
        who: Who::default(),
        what,
        ruling: Ruling {
            refusal: Some(Arc::from("no")),
            ..Ruling::default()
        },
    }
}

/// What is remembered is what was said.
fn judges_say_the_same(text: &[u8], mode: SqlMode) {
    let mut judge = Judge::new(Arc::new(of_digest(text)));
    let facts = SessionFacts {
        service: "all",
        user: "app",
        schema: None,
        address: [127, 0, 0, 1].into(),
    };
    let session: RuleSet = judge.rules_of(&facts);
    let once = judge.judge(text, mode);
    assert_eq!(judge.judge(text, mode), once);
    assert_eq!(once.verdict, verdict(text, mode));
    let around = [b" ", text].concat();
    let other = judge.judge(&around, mode);
    assert_eq!(other.verdict, once.verdict);
    assert_eq!(other.uses_tables, once.uses_tables);
    // Digests are of texts in the mode that servers have unless they are told another one.
    if mode == SqlMode::default() {
        assert!(judge.ruling(&session, &once).is_some(), "it has its digest");
    }
    let mut judge = Judge::new(of_pattern());
    let once = judge.judge(text, mode);
    let mut form = Canonical::new();
    if form.fill(text, mode) {
        // What a pattern sees has no literals.
        let of_form = judge.judge(form.text(), mode);
        assert_eq!(
            judge.ruling(&session, &once),
            judge.ruling(&session, &of_form)
        );
    }
    shows_no_literals(&once, mode);
    let unread = judge.judge_unread(text, mode);
    assert_eq!(unread.verdict.kind, Kind::Write);
}

/// What people see of a text that is counted has no literals: there are passwords.
fn shows_no_literals(judged: &Judged, mode: SqlMode) {
    let digest = judged.digest.as_ref().expect("it was read to its end");
    let mut lexer = Lexer::new(digest.shown(), mode);
    loop {
        let token = lexer.next_token();
        assert!(
            !matches!(
                token.kind,
                TokenKind::String
                    | TokenKind::NationalString
                    | TokenKind::HexString
                    | TokenKind::BitString
                    | TokenKind::HexNumber
                    | TokenKind::BitNumber
                    | TokenKind::Integer
                    | TokenKind::Decimal
                    | TokenKind::Float
            ),
            "{:?}",
            String::from_utf8_lossy(digest.shown())
        );
        if matches!(token.kind, TokenKind::End | TokenKind::Invalid) {
            return;
        }
    }
}

fn place(place: u32) -> usize {
    usize::try_from(place).expect("a text fits into memory")
}
