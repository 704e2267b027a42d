//! No text causes a panic, and canonical forms keep their meaning.

#![forbid(unsafe_code)]

use proptest::prelude::*;
use syntax::canonical::Canonical;
use syntax::print::{print, print_expr, print_with};
use syntax::token::{Kind, Lexer, MODE_WORDS};
use syntax::{SqlMode, parse, parse_expr, parse_one};

/// Runs every stage; the results must fit the text.
fn all_stages(text: &[u8], mode: SqlMode) {
    let mut lexer = Lexer::new(text, mode);
    let mut end = 0;
    loop {
        let token = lexer.next_keyword();
        assert!(end <= token.span.start && token.span.start <= token.span.end);
        end = token.span.end;
        assert!(end as usize <= text.len());
        if token.kind == Kind::End {
            break;
        }
    }
    classes(text, mode);
    match parse_one(text, mode) {
        Ok((statement, end)) => {
            assert!(0 < end && end <= text.len());
            let _ = print(&statement);
        }
        Err(error) => assert!(error.offset <= text.len()),
    }
    canonical_keeps_meaning(text, mode);
}

/// The canonical text parses if and only if the original does, and to the same tree.
fn canonical_keeps_meaning(text: &[u8], mode: SqlMode) {
    let mut form = Canonical::new();
    if !form.fill(text, mode) {
        return;
    }
    let tree = match parse(text, mode) {
        Ok(tree) => tree,
        Err(error) => {
            let canonical = parse(form.text(), mode);
            assert!(
                canonical.is_err(),
                "{error}, and yet {}",
                text.escape_ascii()
            );
            return;
        }
    };
    let canonical = parse(form.text(), mode).expect("the canonical text of a statement parses");
    let parameters = form.parameters().iter();
    let literals: Vec<_> = parameters
        .map(|parameter| parameter.literal(text, mode))
        .collect();
    assert_eq!(print_with(&canonical, &literals), print(&tree));
}

/// The words that [`fragment`] joins.
const WORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "a",
    "b",
    "t",
    "`c d`",
    "1",
    "2.5",
    "1e3",
    "'x'",
    "\"y\"",
    "?",
    "(",
    ")",
    ",",
    "=",
    "<=>",
    "+",
    "-",
    "*",
    "/",
    "AND",
    "OR",
    "NOT",
    "XOR",
    "IN",
    "LIKE",
    "BETWEEN",
    "IS",
    "NULL",
    "GROUP BY",
    "ORDER BY",
    "HAVING",
    "LIMIT",
    "UNION",
    "JOIN",
    "ON",
    "USING",
    "INSERT INTO",
    "VALUES",
    "UPDATE",
    "SET",
    "DELETE",
    "AS",
    "CASE",
    "WHEN",
    "THEN",
    "END",
    "INTERVAL",
    "DAY",
    "CAST",
    "CHAR",
    "COUNT(",
    "NOW(",
    "DATE",
    "@a",
    ":=",
    "@@b",
    "COLLATE",
    "DISTINCT",
    "EXISTS",
    "FOR UPDATE",
    "/* c */",
    "-- d\n",
    "/*! e */",
    ";",
    "x'41'",
    "0x41",
    "_utf8'z'",
    "N'n'",
    ".",
    "WITH",
    "CREATE TABLE",
    "INT",
    "DEFAULT",
    "SHOW",
    "ROUND(",
    "ESCAPE",
    "VALUE",
    "INTO",
    "ROW",
    "||",
    "&&",
    "!",
    "~",
    "BINARY",
    "SUBSTRING(",
    "TRIM(",
];

/// Words and signs that resemble SQL when joined.
fn fragment() -> impl Strategy<Value = String> {
    let words = prop::sample::select(WORDS);
    prop::collection::vec(words, 0..24).prop_map(|words| words.join(" "))
}

/// Expressions that parse.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a",
        "t.b",
        "`c d`",
        "1",
        "2.5",
        "1e3",
        "'x'",
        "'it''s'",
        "NULL",
        "TRUE",
        "?",
        "@v",
        "@@global.w",
        "0x41",
        "x'41'",
        "b'01'",
        "DATE '2020-01-01'",
        "NOW()",
        "COUNT(*)",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(5, 40, 3, |inner| {
        let operator = prop::sample::select(vec![
            "+",
            "-",
            "*",
            "/",
            "%",
            "DIV",
            "MOD",
            "^",
            "|",
            "&",
            "<<",
            ">>",
            "=",
            "<=>",
            "<>",
            "<",
            "<=",
            ">",
            ">=",
            "AND",
            "OR",
            "XOR",
            "&&",
            "||",
            "LIKE",
            "NOT LIKE",
            "REGEXP",
            "NOT REGEXP",
        ]);
        let prefix = prop::sample::select(vec!["- ", "+ ", "~ ", "! ", "BINARY ", ""]);
        prop_oneof![
            (inner.clone(), operator, inner.clone()).prop_map(|(a, o, b)| format!("{a} {o} {b}")),
            (prefix, inner.clone()).prop_map(|(p, a)| format!("{p}({a})")),
            inner.clone().prop_map(|a| format!("NOT {a}")),
            inner.clone().prop_map(|a| format!("({a}) IS NOT NULL")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("IF({a}, {b}, 'no')")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) IN ({b}, 2)")),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| format!("CASE WHEN {a} THEN {b} ELSE 0 END")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) BETWEEN 1 AND ({b})")),
            inner
                .clone()
                .prop_map(|a| format!("CAST({a} AS DECIMAL(10,2))")),
            inner.prop_map(|a| format!("({a}) + INTERVAL 1 DAY")),
        ]
    })
}

/// A mode with those of the words that are read by the parser whose bits are set.
fn mode_of(bits: u8) -> SqlMode {
    MODE_WORDS
        .iter()
        .enumerate()
        .filter(|(place, _)| bits >> place & 1 == 1)
        .fold(SqlMode::default(), |mode, (_, word)| mode.with(*word))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_do_no_harm(text in prop::collection::vec(any::<u8>(), 0..200), bits: u8) {
        all_stages(&text, mode_of(bits));
    }

    #[test]
    fn any_words_do_no_harm(text in fragment(), bits: u8) {
        all_stages(text.as_bytes(), mode_of(bits));
    }

    #[test]
    fn printed_expressions_parse_to_the_same_tree(text in expression()) {
        if let Ok(tree) = parse_expr(text.as_bytes(), SqlMode::default()) {
            let printed = print_expr(&tree);
            let again = parse_expr(printed.as_bytes(), SqlMode::default());
            prop_assert_eq!(Ok(tree), again, "{}", printed);
        }
    }

    #[test]
    fn conditions_keep_their_meaning(left in expression(), right in expression()) {
        let text = format!(
            "SELECT {left}, 'n' FROM t JOIN u ON {right} WHERE {left} GROUP BY {right} \
             ORDER BY {left}, 1 LIMIT 5, 6"
        );
        canonical_keeps_meaning(text.as_bytes(), SqlMode::default());
        let text = format!("INSERT INTO t VALUES ({left}, {right}), (1, 'x')");
        canonical_keeps_meaning(text.as_bytes(), SqlMode::default());
    }
}

/// Statements of the corpus, cut and joined.
#[test]
fn cut_statements_do_no_harm() {
    let corpus = include_str!("corpus.sql");
    let lines: Vec<&str> = corpus
        .lines()
        .filter(|line| !line.starts_with("-- @"))
        .collect();
    for (index, line) in lines.iter().enumerate() {
        let other = lines[(index * 7 + 3) % lines.len()];
        for cut in (0..line.len())
            .step_by(5)
            .filter(|&cut| line.is_char_boundary(cut))
        {
            all_stages(&line.as_bytes()[..cut], SqlMode::default());
            let splice = format!("{}{}", &line[..cut], &other[other.len() / 2..]);
            all_stages(splice.as_bytes(), SqlMode::default());
        }
    }
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
