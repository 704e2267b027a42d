//! Bodies of executions for servers that know more or less of a statement.

use router::Judge;

use super::*;

fn text(bytes: &[u8]) -> Arc<StatementText> {
    Arc::new(StatementText::new(bytes, &RandomState::default()))
}

fn judged() -> Judged {
    Judge::default().judge_unread(b"SELECT ?", SqlMode::default())
}

fn add(statements: &mut Statements, bytes: &[u8], reading: &CommandList) -> u32 {
    statements.add(text(bytes), (reading, SqlMode::default()), judged())
}

fn statement(parameter_count: usize) -> Statement {
    Statement {
        key: StatementKey {
            text: text(b""),
            reading: CommandList::default(),
            copy: 0,
        },
        judged: judged(),
        mode: SqlMode::default(),
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

/// A body of a bulk with these flags, these bytes behind them.
fn bulk(flags: u8, rest: &[u8]) -> Vec<u8> {
    [&[9, 0, 0, 0, flags, 0], rest].concat()
}

/// A body of this kind, for a server that knows no types.
fn with_types(statement: &mut Statement, kind: Kind, body: &[u8]) -> Vec<u8> {
    let Types::Untold(place) = statement.note_types(kind, body) else {
        panic!("it has types");
    };
    let address = Address {
        id: 0x0102_0304,
        types: Some((place, statement.types.clone())),
    };
    assert!(!address.only_renumbers());
    address.body(body)
}

#[test]
fn types_are_kept_and_put_in_where_they_are_missing() {
    let mut two = statement(2);
    let untold = body(&[0, 5, 6]);
    let place = TypePlace::of(Kind::Execute, 2).expect("it has types");
    assert_eq!(two.note_types(Kind::Execute, &untold), Types::Untold(place));
    let told = two.note_types(Kind::Execute, &body(&[1, 3, 0, 8, 0, 7, 8]));
    assert_eq!(told, Types::Told);
    assert_eq!(*two.types, [3, 0, 8, 0]);
    let made = with_types(&mut two, Kind::Execute, &untold);
    assert_eq!(made.get(..4), Some(&[4, 3, 2, 1][..]));
    assert_eq!(made.get(10..), Some(&[1, 3, 0, 8, 0, 5, 6][..]));
}

#[test]
fn bulks_and_executions_have_the_same_types() {
    let mut two = statement(2);
    let told = two.note_types(Kind::Bulk, &bulk(128, &[3, 0, 8, 0, 7, 8]));
    assert_eq!(told, Types::Told);
    assert_eq!(*two.types, [3, 0, 8, 0]);
    let made = with_types(&mut two, Kind::Execute, &body(&[0, 5, 6]));
    assert_eq!(made.get(10..), Some(&[1, 3, 0, 8, 0, 5, 6][..]));
    let told = two.note_types(Kind::Execute, &body(&[1, 1, 0, 2, 0, 7, 8]));
    assert_eq!(told, Types::Told);
    let made = with_types(&mut two, Kind::Bulk, &bulk(64, &[0, 5, 0, 6]));
    let expected = [4, 3, 2, 1, 192, 0, 1, 0, 2, 0, 0, 5, 0, 6];
    assert_eq!(made, expected);
}

#[test]
fn short_bodies_and_statements_without_parameters_have_no_types() {
    for kind in [Kind::Execute, Kind::Bulk] {
        assert_eq!(statement(0).note_types(kind, &[255; 20]), Types::None);
    }
    let mut two = statement(2);
    assert_eq!(two.note_types(Kind::Other, &[255; 20]), Types::None);
    for (kind, head) in [(Kind::Execute, body(&[])), (Kind::Bulk, bulk(0, &[]))] {
        let place = TypePlace::of(kind, 2).expect("it has types");
        for length in 0..=place.flags_at {
            let body = head.get(..length).unwrap_or(&head);
            assert_eq!(two.note_types(kind, body), Types::None);
        }
    }
    assert_eq!(two.note_types(Kind::Execute, &body(&[1, 3])), Types::Told);
    assert_eq!(two.note_types(Kind::Bulk, &bulk(128, &[3])), Types::Told);
    assert!(two.types.is_empty(), "what is cut off is not kept");
    let address = Address { id: 7, types: None };
    assert_eq!(address.body(&[1, 2]), [1, 2]);
    assert!(address.only_renumbers());
}

#[test]
fn numbers_count_up_and_pass_the_one_that_means_the_last() {
    let mut statements = Statements::default();
    let mut add = |last| {
        statements.last = last;
        let number = add(&mut statements, b"", &CommandList::default());
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

#[test]
fn statements_of_one_text_are_told_apart() {
    let mut statements = Statements::default();
    let here = CommandList::default();
    let elsewhere = CommandList::of([(CommandByte::INIT_DB, &b"a"[..])].into_iter());
    let (one, two) = (text(b"SELECT 1"), text(b"SELECT 2"));
    let copy = |statements: &mut Statements, text: &Arc<StatementText>, reading| {
        let reading = (reading, SqlMode::default());
        let number = statements.add(Arc::clone(text), reading, judged());
        (number, statements.by_number[&number].key.copy)
    };
    let (first, copy_of_first) = copy(&mut statements, &one, &here);
    let (second, copy_of_second) = copy(&mut statements, &one, &here);
    assert_eq!((copy_of_first, copy_of_second), (0, 1));
    assert_eq!(copy(&mut statements, &one, &elsewhere).1, 0);
    assert_eq!(copy(&mut statements, &two, &here).1, 0);
    assert_eq!(copy(&mut statements, &one, &here).1, 2);
    for (closed, free) in [(second, 1), (first, 0)] {
        statements.remove(closed).expect("it is there");
        assert_eq!(copy(&mut statements, &one, &here).1, free);
    }
    assert_eq!(copy(&mut statements, &one, &here).1, 3);
}

#[test]
fn room_is_bounded_by_statements_and_bytes() {
    let mut statements = Statements::default();
    let reading = CommandList::default();
    let half = vec![b' '; STATEMENT_BYTES_MAX / 2];
    let first = add(&mut statements, &half, &reading);
    assert!(statements.has_room(&half) && statements.has_room(&half[1..]));
    assert!(!statements.has_room(&[&half[..], b" "].concat()));
    statements.remove(first).expect("it is there");
    assert!(statements.has_room(&[&half[..], &half].concat()));

    let text = text(b"");
    let judged = judged();
    for number in 0..STATEMENTS_MAX {
        assert!(statements.has_room(b""), "{number}");
        let number = u32::try_from(number).expect("few");
        let key = StatementKey {
            text: Arc::clone(&text),
            reading: reading.clone(),
            copy: number,
        };
        let mut statement = statement(0);
        (statement.key, statement.judged) = (key, judged.clone());
        statements.by_number.insert(number, statement);
    }
    assert!(!statements.has_room(b""));
    statements.remove(0).expect("it is there");
    assert!(statements.has_room(b""));
}
