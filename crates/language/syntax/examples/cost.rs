//! What the canonical form, the class and a full parse cost, per statement of sysbench.
//!
//! `cargo run --release -p syntax --example cost`
#![expect(clippy::print_stdout, reason = "a tool for people")]
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use syntax::Mode;
use syntax::canonical::Canonical;

const ROUNDS: u32 = 200_000;

fn nanoseconds(mut run: impl FnMut()) -> f64 {
    let best = (0..5).map(|_| {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            run();
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
    });
    best.fold(f64::INFINITY, f64::min)
}

fn main() {
    let c = "68487932199-96439406143-93774651418-41631865787-96406072701-20604855487-25459966574-\
             28203206787-41238978918-19503783441";
    let pad = "22195207048-70116052123-74140395089-76317954521-98694025897";
    let statements = [
        (
            "point select",
            "SELECT c FROM sbtest1 WHERE id=5026".to_owned(),
        ),
        (
            "range",
            "SELECT c FROM sbtest1 WHERE id BETWEEN 4964 AND 5063".to_owned(),
        ),
        (
            "distinct",
            "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN 10 AND 109 ORDER BY c".to_owned(),
        ),
        (
            "update",
            "UPDATE sbtest1 SET k=k+1 WHERE id=5026".to_owned(),
        ),
        (
            "update c",
            format!("UPDATE sbtest1 SET c='{c}' WHERE id=5026"),
        ),
        (
            "insert",
            format!("INSERT INTO sbtest1 (id, k, c, pad) VALUES (5026, 5001, '{c}', '{pad}')"),
        ),
        ("begin", "BEGIN".to_owned()),
    ];
    println!(
        "{:14} {:>10} {:>10} {:>10}",
        "statement", "canonical", "class", "parse"
    );
    let mode = Mode::default();
    let mut form = Canonical::new();
    for (name, sql) in &statements {
        let sql = sql.as_bytes();
        let canonical = nanoseconds(|| {
            black_box(form.fill(black_box(sql), mode));
        });
        let class = nanoseconds(|| {
            black_box(syntax::class::classify(black_box(sql), mode));
        });
        let parse = nanoseconds(|| {
            let _ = black_box(syntax::parse(black_box(sql), mode));
        });
        println!("{name:14} {canonical:7.0} ns {class:7.0} ns {parse:7.0} ns");
    }
}
