//! What statements keep in memory is counted, and given back; what takes long gives way.

use crate::bench::Bench;

const LIMIT: usize = 4 << 20;

/// So many rows of `sbtest1`: `k` from 1, a short text.
fn filled(row_count: usize) -> Bench {
    let mut bench = Bench::new();
    let rows: Vec<String> = (1..=row_count)
        .map(|number| format!("({number}, 'ab')"))
        .collect();
    bench.ok(&format!(
        "INSERT INTO sbtest1 (k, c) VALUES {}",
        rows.join(", ")
    ));
    bench
}

/// The same, whose statements may keep [`LIMIT`].
fn limited(row_count: usize) -> Bench {
    let mut bench = filled(row_count);
    bench.options.kept_bytes_max = LIMIT;
    bench
}

/// Each pause comes before the row's computed strings are forgotten.
#[test]
fn rows_that_pause_the_result_do_not_pile_up() {
    let mut bench = limited(200);
    bench.pauses = true;
    let (rows, _) = bench
        .run("SELECT REPEAT(c, 50000) FROM sbtest1")
        .expect("a row at a time is small");
    assert_eq!(rows.len(), 200);
}
