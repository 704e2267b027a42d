//! Bodies of executions for servers that know more or less of a statement.

use router::Judge;

use super::*;

fn text() -> Arc<StatementText> {
    Arc::new(StatementText::new(b"", &RandomState::default()))
}

fn statement(parameter_count: usize) -> Statement {
    Statement {
        text: text(),
        judged: Judge::default().judge_unread(b"SELECT ?", SqlMode::default()),
        parameter_count,
        types: SmallVec::new(),
        data_at: None,
        has_lost_data: false,
        cursor_at: None,
    }
}

/// A body of an execution with one NULL byte, these bytes behind it.
fn body(rest: &[u8]) -> Vec<u8> {
    let mut body = vec![9, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    body.extend_from_slice(rest);
    body
}

#[test]
fn types_are_kept_and_put_in_where_they_are_missing() {
    let mut statement = statement(2);
    assert_eq!(statement.note_types(&body(&[0, 7, 8])), Types::Untold(10));
    assert_eq!(
        statement.note_types(&body(&[1, 3, 0, 8, 0, 7, 8])),
        Types::Told
    );
    assert_eq!(*statement.types, [3, 0, 8, 0]);
    let Types::Untold(at) = statement.note_types(&body(&[0, 5, 6])) else {
        panic!("no types");
    };
    let address = Address {
        id: 0x0102_0304,
        types: Some((at, statement.types.clone())),
    };
    let made = address.body(&body(&[0, 5, 6]));
    assert_eq!(made.get(..4), Some(&[4, 3, 2, 1][..]));
    assert_eq!(made.get(10..), Some(&[1, 3, 0, 8, 0, 5, 6][..]));
    assert!(!address.only_renumbers());
}

#[test]
fn short_bodies_and_statements_without_parameters_have_no_types() {
    assert_eq!(statement(0).note_types(&body(&[1])), Types::None);
    let mut two = statement(2);
    for length in 0..=10 {
        let body = body(&[]);
        assert_eq!(
            two.note_types(body.get(..length).unwrap_or(&body)),
            Types::None
        );
    }
    assert_eq!(two.note_types(&body(&[1, 3])), Types::Told);
    assert!(two.types.is_empty(), "what is cut off is not kept");
    let address = Address { id: 7, types: None };
    assert_eq!(address.body(&[1, 2]), [1, 2]);
    assert!(address.only_renumbers());
}

#[test]
fn numbers_count_up_and_pass_the_one_that_means_the_last() {
    let mut statements = Statements::default();
    let judged = Judge::default().judge_unread(b"SELECT 1", SqlMode::default());
    let mut add = |last| {
        statements.last = last;
        let number = statements.add(text(), judged.clone());
        (number, statements.resolve(LAST_PREPARED))
    };
    assert_eq!(add(0), (1, 1));
    assert_eq!(
        add(LAST_PREPARED - 2),
        (LAST_PREPARED - 1, LAST_PREPARED - 1)
    );
    assert_eq!(add(LAST_PREPARED - 1), (1, 1));
    assert_eq!(statements.resolve(5), 5);
}
