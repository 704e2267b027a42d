//! Bodies of stored programs: names, labels, refused statements, and that no input overflows.

#![forbid(unsafe_code)]

use syntax::SqlMode;
use syntax::ast::{
    Direction, ExprKind, LoopKind, Program, RoutineKind, StatementKind, Step, StepKind,
};
use syntax::parse::{RoutineError, SyntaxErrorKind, parse, parse_one};

fn program(body: &str) -> Program {
    let text = format!("CREATE PROCEDURE p(a INT, OUT b CHAR(3)) {body}");
    match parse(text.as_bytes(), SqlMode::default()).map(|statement| statement.kind) {
        Ok(StatementKind::CreateRoutine(create)) => create.program,
        other => panic!("{other:?}"),
    }
}

fn steps(program: &Program) -> &[Step] {
    match &program.body.kind {
        StepKind::Block(block) => &block.body,
        other => panic!("{other:?}"),
    }
}

fn error(body: &str) -> (SyntaxErrorKind, String) {
    let text = format!("CREATE PROCEDURE p(a INT) {body}");
    let error = parse(text.as_bytes(), SqlMode::default()).expect_err("it contradicts itself");
    (error.kind, error.name)
}

#[test]
fn a_definition_has_its_parts() {
    let text = b"CREATE OR REPLACE DEFINER = u@h PROCEDURE IF NOT EXISTS d.p ( IN a INT )\n\
                 COMMENT 'c' DETERMINISTIC READS SQL DATA SQL SECURITY INVOKER SELECT a; SELECT 2";
    let (statement, end) = parse_one(text, SqlMode::default()).unwrap();
    let StatementKind::CreateRoutine(create) = statement.kind else {
        panic!("no routine");
    };
    assert_eq!(create.kind, RoutineKind::Procedure);
    assert!(create.or_replace && create.if_not_exists && create.definer.is_some());
    assert_eq!(create.parameters_span.of(text), b" IN a INT ");
    assert_eq!(create.body_span.of(text), b"SELECT a");
    assert_eq!(create.characteristics.invoker, Some(true));
    assert_eq!(create.program.parameter_count, 1);
    assert!(text[end..].starts_with(b" SELECT 2"));
}

#[test]
fn a_variable_in_sight_hides_a_column() {
    let program = program("BEGIN DECLARE c INT; SELECT a, x, t.a, c, a FROM t; END");
    assert_eq!(program.variables.len(), 3);
    assert_eq!(program.variables[1].direction, Direction::Out);
    let StepKind::Statement(statement) = &steps(&program)[0].kind else {
        panic!("no statement");
    };
    let slots: Vec<u32> = statement.locals.iter().map(|local| local.slot).collect();
    assert_eq!(slots, [0, 2, 0]);
    assert_eq!(statement.statement.parameter_count, 3);
}

#[test]
fn each_declaration_has_a_slot_of_its_own() {
    let program = program(
        "BEGIN DECLARE v INT; BEGIN DECLARE v INT; SET v = 1; END; SET v = v + 2; SET x = 3; END",
    );
    let [
        StepKind::Block(inner),
        StepKind::SetLocal { slot, value },
        other,
    ] = [0, 1, 2].map(|place| steps(&program)[place].kind.clone())
    else {
        panic!("other steps");
    };
    assert!(matches!(
        inner.body[0].kind,
        StepKind::SetLocal { slot: 3, .. }
    ));
    assert_eq!((slot, value.locals[0].slot), (2, 2));
    assert!(matches!(other, StepKind::SetSystem { .. }));
}

#[test]
fn a_case_compares_with_what_it_keeps() {
    let program = program("CASE a WHEN 1 THEN SET b = 2; ELSE SET b = 3; END CASE");
    let StepKind::Case(case) = &program.body.kind else {
        panic!("no CASE");
    };
    let (slot, _) = case.operand.as_ref().unwrap();
    let (condition, _) = &case.branches[0];
    assert_eq!(condition.locals[0].slot, *slot);
    assert!(matches!(condition.expr.kind, ExprKind::Binary { .. }));
    assert!(program.variables[2].data_type.is_none());
}

#[test]
fn loops_are_known_by_their_labels() {
    let program = program(
        "BEGIN l: LOOP ITERATE l; k: WHILE 1 DO LEAVE l; LEAVE k; END WHILE k; END LOOP; END",
    );
    let StepKind::Loop(outer) = &steps(&program)[0].kind else {
        panic!("no loop");
    };
    assert_eq!((outer.label, &outer.kind), (Some(0), &LoopKind::Endless));
    assert_eq!(outer.body[0].kind, StepKind::Iterate(0));
    let StepKind::Loop(inner) = &outer.body[1].kind else {
        panic!("no loop");
    };
    assert_eq!(inner.body[0].kind, StepKind::Leave(0));
    assert_eq!(inner.body[1].kind, StepKind::Leave(1));
}

#[test]
fn programs_that_contradict_themselves_are_told_how() {
    let wrong = [
        ("LEAVE l", RoutineError::LeaveLabel, "l"),
        ("l: BEGIN ITERATE l; END", RoutineError::IterateLabel, "l"),
        ("l: BEGIN l: BEGIN END; END", RoutineError::LabelAgain, "l"),
        ("l: BEGIN END k", RoutineError::EndLabel, "k"),
        ("RETURN 1", RoutineError::Return, "RETURN"),
        (
            "SELECT 1 INTO `x y`",
            RoutineError::UndeclaredVariable,
            "x y",
        ),
        ("BEGIN OPEN c; END", RoutineError::UndeclaredCursor, "c"),
        ("SIGNAL x", RoutineError::UndeclaredCondition, "x"),
        ("SIGNAL SQLSTATE '00000'", RoutineError::BadState, "00000"),
        (
            "BEGIN DECLARE a INT; DECLARE A INT; END",
            RoutineError::VariableAgain,
            "A",
        ),
        ("USE d", RoutineError::Statement("USE"), "USE"),
        (
            "FOR i IN x..2 DO SELECT i; END FOR",
            RoutineError::UndeclaredVariable,
            "x",
        ),
        (
            "FOR r IN c DO SELECT r.a; END FOR",
            RoutineError::UndeclaredVariable,
            "c",
        ),
        (
            "BEGIN DECLARE c CURSOR (x INT) FOR SELECT x; OPEN c; END",
            RoutineError::CursorParameterCount,
            "c",
        ),
        (
            "BEGIN DECLARE c CURSOR (x INT, X INT) FOR SELECT x; END",
            RoutineError::ParameterAgain,
            "X",
        ),
    ];
    for (body, kind, name) in wrong {
        let expected = (SyntaxErrorKind::Routine(kind), name.to_owned());
        assert_eq!(error(body), expected, "{body}");
    }
    for body in [
        "SELECT ?",
        "BEGIN",
        "IF 1 THEN END IF",
        "BEGIN SELECT 1 END",
        "FOR i IN 1..2 DO",
        "FOR i IN 1..2 DO END FOR",
        "FOR i IN (SELECT 1)..(SELECT 3) DO SELECT i; END FOR",
        "BEGIN DECLARE c CURSOR () FOR SELECT 1; END",
        "FOR r IN 1 DO SELECT 1; END FOR",
    ] {
        assert_eq!(error(body).0, SyntaxErrorKind::Unexpected, "{body}");
    }
}

#[test]
fn loops_over_integers_and_rows_declare_what_runs() {
    let program = program(
        "BEGIN DECLARE c CURSOR (x INT, y CHAR(1)) FOR SELECT x, z FROM t; \
         FOR i IN REVERSE 1..a DO SET b = i; END FOR; \
         l: FOR r IN c(1, 'y') DO SET b = r.one; SET r.Two = R.ONE; END FOR l; \
         FOR r IN (SELECT 1 AS n) DO SELECT r.n, r, i; END FOR; END",
    );
    let StepKind::Loop(integers) = &steps(&program)[0].kind else {
        panic!("no loop");
    };
    let LoopKind::Range(range) = &integers.kind else {
        panic!("no range");
    };
    assert!(range.is_reverse && range.last.locals.is_empty());
    assert_eq!(range.first.locals[0].slot, 0, "from the parameter down");
    let StepKind::Loop(rows) = &steps(&program)[1].kind else {
        panic!("no loop");
    };
    let LoopKind::Rows(range) = &rows.kind else {
        panic!("no rows");
    };
    let slots: Vec<u32> = range.open.arguments.iter().map(|(slot, _)| *slot).collect();
    assert_eq!(slots, [2, 3], "behind the procedure's own");
    assert_eq!(program.cursors[0].locals[0].slot, 2);
    let fields: Vec<&str> = range
        .row
        .fields
        .iter()
        .map(|(name, _)| &*name.text)
        .collect();
    assert_eq!(fields, ["one", "Two"]);
    let StepKind::Loop(rows) = &steps(&program)[2].kind else {
        panic!("no loop");
    };
    let StepKind::Statement(statement) = &rows.body[0].kind else {
        panic!("no statement");
    };
    assert_eq!(
        statement.locals.len(),
        1,
        "neither the row nor what is gone"
    );
}

#[test]
fn a_range_has_its_own_token() {
    for body in [
        "FOR i IN 1..3 DO SELECT i; END FOR",
        "FOR i IN 1 .. 3 DO SELECT i; END FOR",
        "FOR i IN 1...5 DO SELECT i; END FOR",
        "FOR i IN a..a+1 DO SELECT i; END FOR",
        "FOR i IN REVERSE(1)..3 DO SELECT i; END FOR",
        "FOR i IN (1)..(3) DO SELECT i; END FOR",
    ] {
        program(body);
    }
}

#[test]
fn many_names_are_found_without_a_walk_over_all() {
    let count = 100_000;
    let mut body = String::from("BEGIN ");
    for number in 0..count {
        body.push_str(&format!("DECLARE a{number} INT; "));
    }
    body.push_str("DECLARE x, y, z ENUM('a', 'b') DEFAULT 'a'; ");
    for number in 0..count {
        body.push_str(&format!("SET a{number} = 1; "));
    }
    let program = program(&format!("{body} END"));
    let StepKind::SetLocal { slot, .. } = &steps(&program)[count - 1].kind else {
        panic!("no assignment");
    };
    assert_eq!(*slot as usize, 2 + count - 1, "behind the parameters");
    let StepKind::Block(block) = &program.body.kind else {
        panic!("no block");
    };
    let last = block.variables.last().unwrap();
    assert_eq!(last.slots.len(), 3);
    assert!(last.value.is_some());
}

#[test]
fn deep_nesting_is_refused() {
    for part in [
        "BEGIN ",
        "IF 1 THEN ",
        "LOOP ",
        "CASE WHEN 1 THEN ",
        "BEGIN DECLARE EXIT HANDLER FOR 1 ",
    ] {
        assert_eq!(
            error(&part.repeat(10_000)).0,
            SyntaxErrorKind::TooDeep,
            "{part}"
        );
    }
}
