//! A change of load under `auto`, and open transactions that do nothing.

use std::time::Duration;

use anyhow::Result;
use testkit::{Client, Login};

use super::super::verdict::{Outcome, Verdict};
use super::turns::{p95_ms, rate};
use super::{AUTO_SHARE_MIN, Arguments, IDLE_P95_MAX, ROUNDS_MAX, SETTLE, Stand, judged};
use crate::generator::account;

/// How long the first load lasts.
const BEFORE: Duration = Duration::from_secs(15);
/// The pieces in which throughput is looked at.
pub(super) const PIECE: Duration = Duration::from_millis(500);
/// How long the second load lasts, in pieces.
pub(super) const PIECES: usize = 50;
/// The last pieces, whose median is what throughput stays at.
const LAST_PIECES: usize = 20;
/// Pieces that are looked at together: one alone may be a slow moment of the machine.
const TOGETHER: usize = 3;
/// Turns with and without idle transactions.
const IDLE_ROUNDS: u32 = 3;

/// Few clients, then many; and many, then few.
pub(super) fn change_of_load(stand: &mut Stand, (few, many): (u32, u32)) -> Result<Vec<Verdict>> {
    let mut verdicts = Vec::new();
    for (before, after) in [(few, many), (many, few)] {
        stand.set("off")?;
        stand.set("auto")?;
        let mut first = stand.generator(before)?;
        let mut second = stand.generator(after)?;
        first.warm(BEFORE)?;
        // Its clients go, and their open transactions with them.
        drop(first);
        let mut rates = Vec::with_capacity(PIECES);
        for _ in 0..PIECES {
            rates.push(rate(&second.run(PIECE)?));
            stand.show_if_still(&rates)?;
        }
        let told: Vec<String> = rates.iter().map(|it| format!("{it:.0}")).collect();
        let what = format!("{}, {before} clients, then {after}", stand.load);
        println!("\n{what}: limit {}\n  {}", stand.limit()?, told.join(" "));
        verdicts.push(settles(&what, &rates));
        if before < after {
            let what = format!("{}, {after} clients", stand.load);
            verdicts.push(longest_wait(&mut stand.root, &what, (after, &rates))?);
        }
    }
    Ok(verdicts)
}

/// How soon throughput is what it stays at.
pub(super) fn settles(what: &str, rates: &[f64]) -> Verdict {
    let settled = settled_after(rates);
    judged(
        format!("{what}, auto settles"),
        format!("after {:.1} s", settled.as_secs_f64()),
        format!("<= {} s", SETTLE.as_secs()),
        Outcome::of(settled <= SETTLE),
    )
}

/// The longest wait for entry since the server has started, beside what a round of all clients
/// takes. All had the same limit, and fewer clients wait less.
pub(super) fn longest_wait(
    root: &mut Client,
    what: &str,
    (clients, rates): (u32, &[f64]),
) -> Result<Verdict> {
    let longest_us = root.status("Admission_wait_us_max")?;
    let longest_s = stdx::u64_to_f64(longest_us) / 1e6;
    let mean = rates.iter().sum::<f64>() / stdx::u64_to_f64(stdx::to_u64(rates.len()));
    let rounds = longest_s * mean / f64::from(clients);
    Ok(judged(
        format!("{what}, longest wait for entry"),
        format!("{longest_s:.2} s, {rounds:.1} N/X"),
        format!("<= {ROUNDS_MAX} N/X"),
        Outcome::of(rounds <= ROUNDS_MAX),
    ))
}

/// From when on throughput is what it stays at.
fn settled_after(rates: &[f64]) -> Duration {
    let mut last = rates[rates.len().saturating_sub(LAST_PIECES)..].to_vec();
    last.sort_by(f64::total_cmp);
    let stays = last[last.len() / 2];
    let is_low = |pieces: &[f64]| {
        let count = stdx::u64_to_f64(stdx::to_u64(pieces.len()));
        pieces.iter().sum::<f64>() / count < stays * AUTO_SHARE_MIN
    };
    // The first pieces that are high together, and those behind them.
    let first = rates.windows(TOGETHER).position(|it| !is_low(it));
    let pieces = first.unwrap_or(rates.len());
    PIECE * stdx::to_u32(pieces)
}

/// The 95th percentile of transactions beside open ones that do nothing.
pub(super) fn idle_transactions(
    stand: &mut Stand,
    clients: u32,
    arguments: &Arguments,
) -> Result<Verdict> {
    let length = Duration::from_secs(arguments.seconds);
    stand.set("off")?;
    stand.set("auto")?;
    let mut load = stand.generator(clients)?;
    load.warm(SETTLE)?;
    for id in 1..=arguments.idle {
        stand
            .root
            .run(&format!("REPLACE INTO idle VALUES ({id}, 0)"))?;
    }
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..IDLE_ROUNDS {
        load.run_uncounted(SETTLE)?;
        without.push(p95_ms(&load.run(length)?));
        // Meanwhile the load pauses, and its transactions come back all at once.
        let idle = open_transactions(stand, arguments.idle)?;
        load.run_uncounted(SETTLE)?;
        with.push(p95_ms(&load.run(length)?));
        drop(idle);
    }
    without.sort_by(f64::total_cmp);
    with.sort_by(f64::total_cmp);
    let middle = stdx::to_usize(u64::from(IDLE_ROUNDS / 2));
    let ratio = with[middle] / without[middle].max(1e-9);
    println!(
        "\n{}, {clients} clients, p95 in ms: {without:.2?}, beside {} idle transactions: \
         {with:.2?}",
        stand.load, arguments.idle
    );
    Ok(judged(
        format!(
            "{}, {clients} clients beside {} idle transactions, p95",
            stand.load, arguments.idle
        ),
        format!("{ratio:.2} of that without them"),
        format!("< {IDLE_P95_MAX}"),
        Outcome::of(ratio < IDLE_P95_MAX),
    ))
}

/// Transactions that have a snapshot and a lock, and whose clients do nothing more.
fn open_transactions(stand: &Stand, count: u32) -> Result<Vec<Client>> {
    let login = Login {
        user: account(0),
        database: "sbtest".to_owned(),
        ..Login::root(stand.server.port())
    };
    let open = |id: u32| {
        let mut client = Client::connect(&login)?;
        client.run("BEGIN")?;
        client.query("SELECT COUNT(*) FROM sbtest1")?;
        client.run(&format!("UPDATE idle SET n = n + 1 WHERE id = {id}"))?;
        Ok(client)
    };
    (1..=count).map(open).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_settled_where_the_rest_is_what_it_stays_at() {
        let mut rates = vec![100.0; 50];
        assert_eq!(settled_after(&rates), Duration::ZERO);
        rates[..6].fill(50.0);
        assert_eq!(settled_after(&rates), PIECE * 6);
        // A single slow piece later on is the machine's.
        rates[30] = 90.0;
        assert_eq!(settled_after(&rates), PIECE * 6);
        rates.fill(0.0);
        assert_eq!(settled_after(&rates), Duration::ZERO);
    }
}
