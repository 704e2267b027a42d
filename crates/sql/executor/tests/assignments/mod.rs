//! What an assignment of an UPDATE reads.

use planner::Action;

use crate::bench::Bench;

#[test]
fn an_assignment_reads_what_was_assigned_before_it() {
    let mut bench = Bench::new();
    let reads = |sql: &str| {
        let execution = bench.execution(sql).expect("it has a plan");
        let Action::Update(update) = &execution.plan().action else {
            panic!("{sql} is an UPDATE");
        };
        let assignments = update.targets.iter().flat_map(|target| &target.assignments);
        assignments.map(|it| it.reads_assigned).collect::<Vec<_>>()
    };
    let apart = "UPDATE people SET age = city + 1, city = id, name = CONCAT(name, id)";
    assert_eq!(reads(apart), [false; 3]);
    let after = "UPDATE people SET age = age + 1, city = age, name = id, age = city + 1";
    assert_eq!(reads(after), [false, true, false, true]);

    bench.ok("UPDATE people SET age = age + 1, city = age, name = id, age = city + 1 WHERE id < 3");
    bench.check(
        "SELECT * FROM people WHERE id < 3",
        &["1 1 31 32", "2 2 41 42"],
    );
    bench.ok(
        "UPDATE people SET name = 'x', age = NULL, city = age, name = CONCAT(name, 'y') \
         WHERE id = 1",
    );
    bench.check("SELECT * FROM people WHERE id = 1", &["1 xy NULL NULL"]);
    bench.ok("INSERT INTO people (id, city, age, name) VALUES (9, id + 1, city + 1, age)");
    bench.ok(
        "INSERT INTO people VALUES (9, 'z', 5, 6) ON DUPLICATE KEY UPDATE \
         city = city + VALUES(age), age = city + VALUES(city), name = city",
    );
    bench.check("SELECT * FROM people WHERE id = 9", &["9 16 16 21"]);
    bench.end();
}
