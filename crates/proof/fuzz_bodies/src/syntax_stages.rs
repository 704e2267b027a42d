//! Tokens, class, canonical form, tree and back to text.

use syntax::ast::Statement;
use syntax::canonical::Canonical;
use syntax::parse::SyntaxErrorKind;
use syntax::print::{print, print_with};
use syntax::token::{Kind, Lexer};
use syntax::{SqlMode, parse, parse_expr, parse_one};

use crate::choices::Choices;

pub(crate) fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    let mode = choices.sql_mode();
    let text = choices.rest();
    tokens(text, mode);
    classes(text, mode);
    match parse_one(text, mode) {
        Ok((statement, end)) => {
            assert!(0 < end && end <= text.len());
            printed_reads_back(&statement);
        }
        Err(error) => assert!(error.offset <= text.len()),
    }
    let _ = parse_expr(text, mode);
    canonical_keeps_meaning(text, mode);
}

fn tokens(text: &[u8], mode: SqlMode) {
    let mut lexer = Lexer::new(text, mode);
    let mut end = 0;
    loop {
        let token = lexer.next_keyword();
        assert!(end <= token.span.start && token.span.start <= token.span.end);
        end = token.span.end;
        assert!(usize::try_from(end).is_ok_and(|end| end <= text.len()));
        if token.kind == Kind::End {
            return;
        }
    }
}

/// Printed text parses, unless its parentheses nest too deep, and prints the same.
fn printed_reads_back(statement: &Statement) {
    let Some(text) = print(statement) else {
        return;
    };
    match parse(text.as_bytes(), SqlMode::default()) {
        Ok(again) => assert_eq!(print(&again).as_deref(), Some(text.as_str())),
        Err(error) => assert!(error.kind == SyntaxErrorKind::TooDeep, "{error}: {text}"),
    }
}

/// The canonical text parses if and only if the original does, and to the same tree.
fn canonical_keeps_meaning(text: &[u8], mode: SqlMode) {
    let mut form = Canonical::new();
    if !form.fill(text, mode) {
        return;
    }
    let Ok(tree) = parse(text, mode) else {
        let canonical = parse(form.text(), mode);
        assert!(canonical.is_err(), "only the canonical text parses");
        return;
    };
    let canonical = parse(form.text(), mode).expect("the canonical text of a statement parses");
    let parameters = form.parameters().iter();
    let literals: Vec<_> = parameters
        .map(|parameter| parameter.literal(text, mode))
        .collect();
    assert_eq!(print_with(&canonical, &literals), print(&tree));
}

/// Both stages of the classification read any text, and agree with each other and with the parser.
fn classes(text: &[u8], mode: SqlMode) {
    use syntax::ast::StatementKind;
    use syntax::class::{Class, Effect, Kind, State, Statements, classify, is_several, verdict};

    let first = classify(text, mode);
    let mut state = State::new();
    for statement in Statements::new(text, mode) {
        state = state
            .done(statement.effect)
            .or_else(state.failed(statement.effect));
    }
    let verdict = verdict(text, mode);
    if verdict.kind == Kind::Read && !is_several(text, mode) {
        assert!(!matches!(
            first.effect,
            Effect::ImplicitCommit | Effect::Lock
        ));
    }
    if let Ok((statement, _)) = parse_one(text, mode)
        && matches!(statement.kind, StatementKind::Query(_))
    {
        assert_eq!(first.class, Class::Query);
    }
}
