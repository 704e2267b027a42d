//! The cost of comparing values, making keys and formatting: `cargo run --release -p value
//! --example measure`. Prints nanoseconds for each operation, the best of five rounds.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a tool that people run")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use value::digits::{append_f64, append_int};
use value::key::KeyPart;
use value::{CollationId, ColumnType, Comparison, Date, Decimal, TypeKind, ValueRef, Warnings};

/// Operations of a round.
const COUNT: u32 = 1_000_000;

fn main() {
    let mut out = Vec::with_capacity(256);
    measure("integer as text", |index| {
        out.clear();
        append_int(black_box(i64::from(index) * 1_000), &mut out);
    });
    measure("double as text", |index| {
        out.clear();
        append_f64(black_box(f64::from(index) / 7.0), &mut out);
    });
    let decimal: Decimal = "12345678.90".parse().expect("a decimal");
    measure("decimal as text", |_| {
        out.clear();
        black_box(&decimal).append_text(&mut out);
    });
    let other: Decimal = "-0.25".parse().expect("a decimal");
    measure("decimal sum", |_| {
        black_box(black_box(&decimal).add(&other).is_ok());
    });
    let left = b"68487932199-96439406143-93774651418".as_slice();
    let right = b"68487932199-96439406143-93774651419".as_slice();
    for collation in CollationId::all() {
        measure(collation.name(), |_| {
            black_box(collation.compare(black_box(left), black_box(right)));
        });
    }
    let part = KeyPart::whole(
        ColumnType::varchar(40, CollationId::UTF8MB4_GENERAL_CI),
        true,
    );
    measure("key of 35 characters, general_ci", |_| {
        out.clear();
        part.append(ValueRef::Bytes(black_box(left)), &mut out);
    });
    let part = KeyPart::whole(ColumnType::new(TypeKind::Int), false);
    measure("key of INT", |index| {
        out.clear();
        part.append(ValueRef::Int(black_box(i64::from(index))), &mut out);
    });
    let integer = ColumnType::new(TypeKind::Int);
    let comparison = Comparison::of(
        &integer,
        &integer,
        CollationId::BINARY,
        Date::new(2024, 1, 1),
    );
    let mut warnings = Warnings::default();
    measure("INT compared with INT", |index| {
        let (left, right) = (ValueRef::Int(i64::from(index)), ValueRef::Int(500));
        black_box(comparison.compare(black_box(left), black_box(right), &mut warnings));
    });
}

fn measure(name: &str, mut operation: impl FnMut(u32)) {
    let round = |operation: &mut dyn FnMut(u32)| {
        let start = now();
        for index in 0..COUNT {
            operation(index);
        }
        start.elapsed()
    };
    let best = (0..5)
        .map(|_| round(&mut operation))
        .min()
        .unwrap_or(Duration::ZERO);
    println!(
        "{name:<36} {:>8.1} ns",
        best.as_secs_f64() * 1e9 / f64::from(COUNT)
    );
}

#[allow(
    clippy::disallowed_methods,
    reason = "a measurement asks the real clock"
)]
fn now() -> Instant {
    Instant::now()
}
