//! The table `statements`: what statements of each text and user have cost.

use std::rc::Rc;

use digests::{BUCKETS, Tally};
use env::linux::SystemClock;
use env::{Clock, Instant};
use gateway::{Inside, StatementView};
use value::Value;
use virtual_store::{Declaration, Row};

use super::cells::{
    maybe, micros, number, number_column, rows, text, text_column, time, time_column,
};

/// By which TRUNCATE names it.
pub(super) const NAME: &str = "statements";

pub(super) fn declaration(inside: Inside) -> Declaration {
    let mut columns = vec![
        text_column("digest"),
        text_column("text"),
        text_column("service"),
        text_column("user"),
        text_column("db"),
        number_column("count"),
        number_column("errors"),
        number_column("cache_hits"),
        number_column("sum_us"),
        number_column("min_us"),
        number_column("max_us"),
        number_column("rows_sent"),
        number_column("rows_affected"),
        text_column("servers"),
        time_column("first_seen"),
        time_column("last_seen"),
    ];
    let buckets = BUCKETS.iter().map(|it| format!("time_{}", it.name));
    columns.extend(buckets.map(|name| number_column(&name)));
    let ask = move || {
        let inside = inside.clone();
        rows(async move {
            let statements = inside.statements().await;
            let now = Now {
                monotonic: SystemClock.now(),
                wall_micros: SystemClock.wall_micros(),
            };
            statements.iter().map(|it| row(it, &now)).collect()
        })
    };
    Declaration {
        name: NAME,
        comment: "What statements have cost, by their texts and users",
        columns,
        ask: Rc::new(ask),
    }
}

/// The same moment by both clocks.
struct Now {
    monotonic: Instant,
    wall_micros: u64,
}

impl Now {
    /// Microseconds since 1970 of a moment that has passed.
    fn wall_micros(&self, at: Instant) -> u64 {
        let age = self.monotonic.since(at).as_micros();
        let age = u64::try_from(age).unwrap_or(u64::MAX);
        self.wall_micros.saturating_sub(age)
    }
}

fn row(view: &StatementView, now: &Now) -> Row {
    let digests::Row {
        text: of_text,
        who,
        tally,
    } = &view.row;
    let who = who.as_deref();
    let digest = of_text.as_ref().map(|(number, _)| format!("{number:016x}"));
    let shown = of_text
        .as_ref()
        .map(|(_, bytes)| String::from_utf8_lossy(bytes));
    let mut row = vec![
        maybe(digest),
        maybe(shown),
        maybe(who.map(|it| &*it.service)),
        maybe(who.map(|it| &*it.user)),
        maybe(who.and_then(|it| it.database.as_deref())),
    ];
    row.extend(numbers(tally));
    row.push(text(&view.servers.join(",")));
    row.extend([tally.first, tally.last].map(|at| time(now.wall_micros(at))));
    row.extend(tally.buckets.map(number));
    row
}

fn numbers(tally: &Tally) -> [Value; 8] {
    [
        number(tally.count),
        number(tally.failed),
        number(tally.kept),
        micros(tally.time_sum),
        micros(tally.time_min),
        micros(tally.time_max),
        number(tally.rows_sent),
        number(tally.rows_affected),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_shown_by_the_wall_clock() {
        let now = Now {
            monotonic: Instant::from_nanos(5_000_000_000),
            wall_micros: 1_700_000_000_000_000,
        };
        let at = |nanos| now.wall_micros(Instant::from_nanos(nanos));
        assert_eq!(at(5_000_000_000), 1_700_000_000_000_000);
        assert_eq!(at(4_999_999_000), 1_699_999_999_999_999);
        assert_eq!(at(9_000_000_000), 1_700_000_000_000_000, "it is read later");
    }
}
