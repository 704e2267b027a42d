//! The sweep: a turn of each setting in each round.

use std::time::Duration;

use anyhow::{Context, Result};

use super::super::verdict::{Outcome, Verdict};
use super::{AUTO_SHARE_MIN, Arguments, Stand, judged};
use crate::generator::{Generator, Tally};

/// The uncounted beginning of a turn with a fixed limit or none.
const TURN_SETTLE: Duration = Duration::from_millis(700);

/// A setting, and what its turns have counted.
struct Setting {
    text: String,
    /// Transactions a second of each turn.
    rates: Vec<f64>,
    tally: Tally,
    /// Processor time of the server.
    cpu_us: u64,
    /// The limit at the end of each turn.
    limits: Vec<u64>,
}

impl Setting {
    fn new(text: &str) -> Setting {
        Setting {
            text: text.to_owned(),
            rates: Vec::new(),
            tally: Tally::default(),
            cpu_us: 0,
            limits: Vec::new(),
        }
    }

    fn take_turn(
        &mut self,
        stand: &mut Stand,
        load: &mut Generator,
        arguments: &Arguments,
    ) -> Result<()> {
        stand.set(&self.text)?;
        if self.text == "auto" {
            load.run_uncounted(Duration::from_secs(arguments.settle_seconds))?;
        }
        load.run_uncounted(TURN_SETTLE)?;
        let before_us = stand.server.process().cpu_us()?;
        let counted = load.run(Duration::from_secs(arguments.seconds))?;
        self.cpu_us += stand.server.process().cpu_us()? - before_us;
        self.rates.push(rate(&counted));
        self.limits.push(stand.limit()?);
        self.tally.append(&counted);
        Ok(())
    }

    /// The median of the turns.
    fn rate(&self) -> f64 {
        let mut rates = self.rates.clone();
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    }

    fn p95_ms(&self) -> f64 {
        p95_ms(&self.tally)
    }

    fn longest_s(&self) -> f64 {
        stdx::u64_to_f64(self.tally.longest_us) / 1e6
    }

    /// Of the server, for each transaction.
    fn cpu_us(&self) -> f64 {
        let count = self.tally.latency_us.count().max(1);
        stdx::u64_to_f64(self.cpu_us) / stdx::u64_to_f64(count)
    }

    fn measured(&self) -> Measured {
        Measured {
            text: self.text.clone(),
            rate: self.rate(),
            cpu_us: self.cpu_us(),
        }
    }
}

/// What a setting gave.
pub(super) struct Measured {
    pub(super) text: String,
    /// Transactions a second: the median of the turns.
    pub(super) rate: f64,
    /// Of the server, for each transaction.
    pub(super) cpu_us: f64,
}

impl Measured {
    fn is_fixed(&self) -> bool {
        self.text.parse::<u32>().is_ok()
    }
}

/// Transactions a second.
pub(super) fn rate(tally: &Tally) -> f64 {
    stdx::u64_to_f64(tally.latency_us.count()) / tally.seconds.max(1e-9)
}

pub(super) fn p95_ms(tally: &Tally) -> f64 {
    stdx::u64_to_f64(tally.latency_us.quantile(950)) / 1e3
}

/// Measures `off`, `auto` and the fixed limits with so many clients.
pub(super) fn sweep(
    stand: &mut Stand,
    clients: u32,
    arguments: &Arguments,
) -> Result<Vec<Verdict>> {
    let mut load = stand.generator(clients)?;
    load.warm(TURN_SETTLE)?;
    let fixed = arguments.limits.iter().filter(|it| **it <= clients);
    let texts = ["off".to_owned(), "auto".to_owned()];
    let texts = texts.into_iter().chain(fixed.map(ToString::to_string));
    let mut settings: Vec<Setting> = texts.map(|text| Setting::new(&text)).collect();
    for round in 0..arguments.rounds {
        // Each round begins with another one, so that none is always behind the same one.
        let first = stdx::to_usize(u64::from(round)) % settings.len();
        settings.rotate_left(first);
        for setting in &mut settings {
            setting.take_turn(stand, &mut load, arguments)?;
        }
    }
    settings.sort_by_key(|it| it.text.parse::<u32>().unwrap_or(0));
    let what = format!("{}, {} rows, {clients} clients", stand.load, stand.rows);
    println!("\n{what}");
    for setting in &settings {
        println!(
            "  {:>6}  {:>6.0} transactions/s  {:>7.2} us CPU  p95 {:>8.2} ms  longest {:>6.2} s  \
             restarts {:>6}  limits {:?}",
            setting.text,
            setting.rate(),
            setting.cpu_us(),
            setting.p95_ms(),
            setting.longest_s(),
            setting.tally.restart_count,
            setting.limits,
        );
    }
    let measured: Vec<Measured> = settings.iter().map(Setting::measured).collect();
    judge(&measured, &what)
}

/// Measures `off` and `auto` alone. Returns transactions a second of both.
pub(super) fn off_and_auto(
    stand: &mut Stand,
    clients: u32,
    arguments: &Arguments,
) -> Result<(f64, f64)> {
    let mut load = stand.generator(clients)?;
    load.warm(TURN_SETTLE)?;
    let mut settings = ["off", "auto"].map(Setting::new);
    for _ in 0..arguments.rounds {
        for setting in &mut settings {
            setting.take_turn(stand, &mut load, arguments)?;
        }
    }
    let [off, auto] = &settings;
    Ok((off.rate(), auto.rate()))
}

/// `auto` beside the best fixed limit, and beside none.
pub(super) fn judge(settings: &[Measured], what: &str) -> Result<Vec<Verdict>> {
    let of = |text: &str| settings.iter().find(|it| it.text == text);
    let (auto, off) = (
        of("auto").context("it had its turns")?,
        of("off").context("it had its turns")?,
    );
    let fixed = settings.iter().filter(|it| it.is_fixed());
    let best = fixed.max_by(|a, b| a.rate.total_cmp(&b.rate));
    let best = best.context("a fixed limit of at most as many as there are clients")?;
    let share = auto.rate / best.rate;
    let (of_off, cpu) = (auto.rate / off.rate, auto.cpu_us / off.cpu_us);
    Ok(vec![
        judged(
            format!("{what}, auto"),
            format!("{share:.3} of the best fixed limit, {}", best.text),
            format!(">= {AUTO_SHARE_MIN}"),
            Outcome::of(AUTO_SHARE_MIN <= share),
        ),
        Verdict {
            what: format!("{what}, auto"),
            measured: format!("{of_off:.3} of off, {cpu:.3} of its CPU a transaction"),
            limit: "no limit".to_owned(),
            outcome: Outcome::Shown,
        },
    ])
}
