//! `IN`, `ANY` and `ALL`: a lookup returns the same as a comparison with each row.

use std::fmt::Write;
use std::rc::Rc;

use expression::LookupKind;
use planner::Plan;
use value::{ColumnType, TypeKind, Value};

use crate::bench::Bench;

fn planned(bench: &Bench, sql: &str) -> Rc<Plan> {
    let execution = bench.execution(sql).expect("it has a plan");
    Rc::clone(execution.plan())
}

/// The lookup kind of the first subquery.
fn lookup(bench: &Bench, sql: &str) -> Option<LookupKind> {
    let plan = planned(bench, sql);
    let subquery = plan.subqueries[0].as_ref()?;
    subquery.lookup.as_ref().map(|lookup| lookup.kind)
}

fn bench_of_many_kinds() -> Bench {
    let mut bench = Bench::new();
    bench.ok(
        "INSERT INTO cities VALUES (4, 'turku '), (5, NULL), (6, '30'), (7, '40.0'), (8, ''), \
         (9, 'b'), (20, 'BERT'), (30, '2'), (40, NULL)",
    );
    bench.ok("INSERT INTO people VALUES (6, '', 2, 40), (7, '2', NULL, NULL), (8, 'turku', 4, 2)");
    bench
}

#[test]
fn a_set_that_holds_is_looked_up() {
    let bench = Bench::new();
    let kind = |condition: &str| {
        let sql = format!("SELECT 1 FROM cities c WHERE {condition}");
        lookup(&bench, &sql)
    };
    let keys = Some(LookupKind::Keys);
    assert_eq!(kind("id IN (SELECT city FROM people)"), keys);
    assert_eq!(kind("id NOT IN (SELECT city FROM people)"), keys);
    assert_eq!(kind("(id, title) IN (SELECT id, name FROM people)"), keys);
    let extremes = Some(LookupKind::Extremes);
    assert_eq!(kind("id > ALL (SELECT city FROM people)"), extremes);
    assert_eq!(kind("id <> ANY (SELECT city FROM people)"), extremes);
    let correlated = "id IN (SELECT city FROM people p WHERE p.id < c.id)";
    assert_eq!(kind(correlated), None);
}

#[test]
fn a_set_answers_as_its_rows_do() {
    let mut bench = bench_of_many_kinds();
    let mut comparisons = vec!["IN".to_owned(), "NOT IN".to_owned()];
    for operator in ["=", "<>", "<", "<=", ">", ">="] {
        comparisons.extend(["ANY", "ALL"].map(|word| format!("{operator} {word}")));
    }
    let filters = ["q.id < 4", "q.id > 2"];
    let mut asked = 0;
    let mut check = |left: &str, comparison: &str, right: &str, filter: &str| {
        let text = |filter: &str| {
            let set =
                format!("SELECT {right} FROM people q JOIN cities r ON r.id = q.id WHERE {filter}");
            format!("SELECT o.id, {left} {comparison} ({set}) FROM people o ORDER BY o.id")
        };
        // With a condition that reads the outer row, each row of the set is compared.
        let compared = bench.rows(&text(&format!("{filter} AND o.id > 0")));
        assert_eq!(bench.rows(&text(filter)), compared, "{}", text(filter));
        asked += 1;
    };
    for left in ["o.name", "o.age", "o.city", "o.id / 2", "NULL"] {
        for right in ["q.name", "q.age", "q.age / 3", "r.title", "q.city"] {
            for comparison in &comparisons {
                for filter in filters {
                    check(left, comparison, right, filter);
                }
            }
        }
    }
    check("o.id", "> ALL", "q.id", "q.id < 0");
    check("o.id", "IN", "q.id", "q.id < 0");
    for left in ["(o.name, o.age)", "(o.city, o.age)", "(o.city, NULL)"] {
        for right in [
            "q.name, q.age",
            "q.city, q.age",
            "r.title, q.id",
            "q.city, r.title",
        ] {
            for comparison in ["IN", "NOT IN"] {
                for filter in filters {
                    check(left, comparison, right, filter);
                }
            }
        }
    }
    assert_eq!(asked, 2 + 5 * 5 * 14 * 2 + 3 * 4 * 2 * 2);
    bench.end();
}

#[test]
fn a_set_keeps_equal_rows_once_and_counts_what_it_keeps() {
    let mut bench = Bench::new();
    let mut rows = String::new();
    for id in 1..=1000 {
        let comma = if id == 1 { "" } else { ", " };
        write!(rows, "{comma}({id}, {})", id % 3).expect("a string takes all");
    }
    bench.ok(&format!("INSERT INTO sbtest1 (id, k) VALUES {rows}"));
    bench.options.kept_bytes_max = 16 << 10;
    let few = [
        ("id IN (SELECT k FROM sbtest1)", "2"),
        ("(id, 1) IN (SELECT k, 1 FROM sbtest1)", "2"),
        ("(id, 1) NOT IN (SELECT k, NULLIF(1, k) FROM sbtest1)", "1"),
        ("id >= ALL (SELECT id FROM sbtest1)", "0"),
        ("id <= ANY (SELECT id FROM sbtest1)", "3"),
    ];
    for (condition, count) in few {
        bench.check(
            &format!("SELECT COUNT(*) FROM cities WHERE {condition}"),
            &[count],
        );
    }
    let many = [
        "id IN (SELECT id FROM sbtest1)",
        "(id, 1) IN (SELECT id, 1 FROM sbtest1)",
    ];
    for condition in many {
        let refused = bench.rows(&format!("SELECT COUNT(*) FROM cities WHERE {condition}"));
        assert!(refused.starts_with("ERROR 1290"), "{refused}");
    }
    bench.end();
}

#[test]
fn a_long_list_answers_as_a_short_one_does() {
    let mut bench = bench_of_many_kinds();
    let lists = [
        "1, 2, 30, 40, NULL",
        "1, 2, 30, 40",
        "'anna', 'BERT ', '2', '40.0'",
        "'anna', NULL",
        "1.0, 2.5, 3e1, 4",
        "NULL, NULL",
    ];
    // Members that match nothing make a list long and change no result.
    let filling = |count: usize, member: fn(usize) -> String| {
        let members: Vec<String> = (0..count).map(member).collect();
        members.join(", ")
    };
    let numbers = filling(40, |number| format!("{}", 1000 + number % 30));
    let texts = filling(40, |number| format!("'none {}'", number % 30));
    for list in lists {
        let filling = if list.contains('\'') {
            &texts
        } else {
            &numbers
        };
        for operand in [
            "a.age",
            "a.name",
            "a.city",
            "a.id / 2",
            "NULL",
            "b.title",
            "a.id + b.id",
        ] {
            for word in ["IN", "NOT IN"] {
                let text = |list: &str| {
                    format!(
                        "SELECT a.id, b.id, {operand} {word} ({list}) FROM people a, cities b \
                         ORDER BY a.id, b.id"
                    )
                };
                let short = bench.rows(&text(list));
                let long = bench.rows(&text(&format!("{list}, {filling}")));
                assert_eq!(long, short, "{}", text(list));
            }
        }
    }
    bench.end();
}

#[test]
fn a_long_list_is_made_anew_for_other_parameters() {
    let mut bench = Bench::new();
    let places = vec!["?"; 30].join(", ");
    let sql =
        format!("SELECT COUNT(*) FROM people a, cities b WHERE a.city + b.id - b.id IN ({places})");
    let types = vec![ColumnType::new(TypeKind::BigInt); 30];
    bench.settings.parameter_types = types;
    let mut execution = bench.execution(&sql).expect("it has a plan");
    let mut count = |members: &[i64]| {
        let mut members: Vec<Value> = members.iter().copied().map(Value::Int).collect();
        members.resize(30, Value::Int(1000));
        let (rows, _) = bench.execute(&mut execution, &members).expect("it runs");
        rows[0][0].clone()
    };
    assert_eq!(count(&[1]), Value::bytes("6"));
    assert_eq!(count(&[2, 1]), Value::bytes("12"));
    assert_eq!(count(&[3]), Value::bytes("0"));
}

#[test]
fn a_long_list_is_not_compared_with_each_row() {
    let mut bench = Bench::new();
    let numbers = (1..=64).map(|id| format!("({id}, 0)")).collect::<Vec<_>>();
    bench.ok(&format!(
        "INSERT INTO sbtest1 (id, k) VALUES {}",
        numbers.join(", ")
    ));
    let members = (1000..21_000)
        .map(|number| number.to_string())
        .collect::<Vec<_>>();
    let sql = format!(
        "SELECT COUNT(*) FROM sbtest1 a, sbtest1 b WHERE a.id + b.id IN ({})",
        members.join(", ")
    );
    let before = bench.look_count();
    bench.check(&sql, &["0"]);
    // 4096 rows by 20,000 members of 8 bytes would be 20,000 looks at the clock.
    let looks = bench.look_count() - before;
    assert!((1..1000).contains(&looks), "{looks} looks");
    bench.end();
}
