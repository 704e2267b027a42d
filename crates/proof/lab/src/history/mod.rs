//! Random transactions of many sessions with `kill -9` between them, judged by crate `history`.
//!
//! Periods follow each other, each with keys of its own and with one level for all sessions, or
//! with all levels at once. A period ends when so many transactions have ended. In it the server is
//! killed at random moments and started again, and the sessions go on with the same keys. Then all
//! keys are read, and the period is judged while the next one runs: so memory is bounded.
//!
//! `--server mariadb` runs the same against the real server, which proves the table of levels.
//!
//! * `tables`: the tables, and how keys become statements and rows become what was seen;
//! * `draw`: draws transactions;
//! * `session`: plays transactions on a connection, and records them;
//! * `period`: sessions, kills, and the last read.

mod draw;
mod period;
mod session;
mod tables;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use anyhow::{Context, Result, bail, ensure};
use env::Clock as _;
use env::linux::SystemClock;
use history::{Anomaly, Level, Verdict, check};
use testkit::process::run as run_program;
use testkit::server::plateau_program;
use testkit::{Server, ServerKind};

use crate::random::Random;
use crate::target::Target;
use draw::{KINDS, Kind};
use period::{Period, Played};

/// `cargo xtask history`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// No period begins later than this.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Chooses the transactions and after how many of them the server is killed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, default_value_t = 64)]
    sessions: u32,
    /// Transactions of a period. More of them find longer cycles, and take more memory.
    #[arg(long, default_value_t = 8000)]
    transactions: u64,
    /// How often the server is killed in a period, at most; once at least, unless this is 0.
    #[arg(long, default_value_t = 2)]
    kills: u64,
    /// Only periods of this level, or of all levels at once (`mixed`); may be repeated.
    #[arg(long = "level", value_enum)]
    levels: Vec<Plan>,
    /// Only keys of this kind, to reduce what was found; may be repeated.
    #[arg(long = "kind", value_enum)]
    kinds: Vec<Kind>,
    /// Writes each finding to this file.
    #[arg(long)]
    write: Option<PathBuf>,
}

/// The levels of a period's sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
enum Plan {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
    Mixed,
}

/// The plans, by which periods take turns.
const PLANS: [Plan; 5] = [
    Plan::RepeatableRead,
    Plan::Mixed,
    Plan::ReadCommitted,
    Plan::Serializable,
    Plan::ReadUncommitted,
];

/// Lines of the server's log that are shown with an error: a failed assertion and its trace.
const LOG_LINES_SHOWN: usize = 60;

/// Findings of a period that are printed.
const SHOWN_MAX: usize = 2;

impl Plan {
    /// The level of all sessions, if there is one.
    fn level(self) -> Option<Level> {
        match self {
            Plan::ReadUncommitted => Some(Level::ReadUncommitted),
            Plan::ReadCommitted => Some(Level::ReadCommitted),
            Plan::RepeatableRead => Some(Level::RepeatableRead),
            Plan::Serializable => Some(Level::Serializable),
            Plan::Mixed => None,
        }
    }

    fn name(self) -> &'static str {
        self.level().map_or("MIXED", Level::sql)
    }
}

/// What all periods had.
#[derive(Debug, Default)]
struct Summary {
    periods: u64,
    kills: u64,
    transactions: u64,
    committed: u64,
    inferred: u64,
    lost_reads: u64,
    /// Time for judging alone.
    judged_s: f64,
    met: BTreeMap<Plan, BTreeMap<Anomaly, u64>>,
    findings: BTreeMap<String, u64>,
    /// The text of each finding.
    texts: String,
}

/// Plays and judges; fails if anything was found that must not be.
pub fn run(arguments: &Arguments) -> Result<()> {
    ensure!(
        arguments.target.is_own(),
        "the server is killed: it must be started here"
    );
    let mut server = arguments.target.launch().start()?;
    tables::create(&mut server.connect()?)?;
    let begun_at = SystemClock.now();
    let summary = std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(1);
        let judge = scope.spawn(move || judge(&receiver));
        let played = play(arguments, &mut server, &sender);
        drop(sender);
        let summary = judge.join();
        played?;
        match summary {
            Ok(summary) => Ok(summary),
            Err(_) => bail!("the judge panicked"),
        }
    })?;
    server.stop()?;
    if server.kind() == ServerKind::Plateau {
        let mut command = Command::new(plateau_program()?);
        run_program(command.arg("check").arg(server.data())).context("check of what is left")?;
    }
    let spent_s = SystemClock.now().since(begun_at).as_secs_f64();
    report(arguments, &summary, spent_s)
}

/// Plays periods until the time is over, and hands each to the judge.
fn play(arguments: &Arguments, server: &mut Server, sender: &SyncSender<Played>) -> Result<()> {
    let plans = match arguments.levels.is_empty() {
        true => PLANS.to_vec(),
        false => arguments.levels.clone(),
    };
    let kinds = match arguments.kinds.is_empty() {
        true => KINDS.to_vec(),
        false => arguments.kinds.clone(),
    };
    let mut random = Random::new(arguments.seed);
    let begun_at = SystemClock.now();
    let mut first_group = 1;
    for (number, plan) in (1_u64..).zip(plans.iter().cycle()) {
        let period = Period {
            number,
            plan: *plan,
            kinds: &kinds,
            session_count: arguments.sessions,
            transaction_count: arguments.transactions,
            kills_max: arguments.kills,
            first_group,
        };
        let played = period.play(server, &mut random);
        let played = played.with_context(|| {
            let seed = arguments.seed;
            format!(
                "period {number}, seed {seed}; the server's log ends:\n{}",
                log_end(server)
            )
        })?;
        first_group = played.next_group;
        // The judge has panicked; its end says so.
        if sender.send(played).is_err() {
            return Ok(());
        }
        if arguments.seconds <= SystemClock.now().since(begun_at).as_secs() {
            break;
        }
    }
    Ok(())
}

/// The end of the log, or what follows the server's first panic.
fn log_end(server: &Server) -> String {
    let log = server.log();
    let lines: Vec<&str> = log.lines().collect();
    let last = lines.len().saturating_sub(LOG_LINES_SHOWN);
    let panic = lines.iter().position(|line| line.contains("panicked at"));
    let shown = lines.iter().skip(panic.unwrap_or(last));
    let shown: Vec<&str> = shown.take(LOG_LINES_SHOWN).copied().collect();
    shown.join("\n")
}

/// Judges periods as they come.
fn judge(receiver: &Receiver<Played>) -> Summary {
    let mut summary = Summary::default();
    for played in receiver {
        let begun_at = SystemClock.now();
        let verdict = check(&played.history, played.plan.level());
        summary.judged_s += SystemClock.now().since(begun_at).as_secs_f64();
        summary.take(&played, &verdict);
    }
    summary
}

impl Summary {
    fn take(&mut self, played: &Played, verdict: &Verdict) {
        let count = stdx::to_u64(played.history.transactions.len());
        self.periods += 1;
        self.kills += played.kills;
        self.transactions += count;
        self.committed += verdict.committed_count;
        self.inferred += verdict.inferred_count;
        self.lost_reads += verdict.lost_read_count;
        let met = self.met.entry(played.plan).or_default();
        for (anomaly, count) in &verdict.met {
            *met.entry(*anomaly).or_default() += count;
        }
        let wrong_count = verdict.finding_count + stdx::to_u64(played.contradictions.len());
        println!(
            "period {:>3} {:<16} {} kills, {count} transactions, {} committed, {} of them \
             unanswered, {wrong_count} findings",
            played.number,
            played.plan.name(),
            played.kills,
            verdict.committed_count,
            verdict.inferred_count,
        );
        let own = played.contradictions.iter();
        let own = own.map(|text| ("contradiction", text.as_str()));
        let judged = verdict.findings.iter();
        let judged = judged.map(|it| (it.anomaly.name(), it.text.as_str()));
        for (place, (name, text)) in own.chain(judged).enumerate() {
            let name = format!("{name} at {}", played.plan.name());
            if place < SHOWN_MAX {
                println!("  {name}: {text}");
            }
            writeln!(self.texts, "period {}: {name}: {text}\n", played.number).ok();
            *self.findings.entry(name).or_default() += 1;
        }
    }
}

fn report(arguments: &Arguments, summary: &Summary, spent_s: f64) -> Result<()> {
    for (plan, met) in &summary.met {
        let met: Vec<String> = met
            .iter()
            .map(|(anomaly, count)| format!("{anomaly} {count}"))
            .collect();
        println!("{:<16} allows and shows: {}", plan.name(), met.join(", "));
    }
    let count = stdx::u64_to_f64(summary.transactions);
    println!(
        "{} periods with {} kills: {} transactions, {} committed, {} of them unanswered; {:.0} \
         transactions played a second, {:.0} judged; {} without changes had read what a kill took",
        summary.periods,
        summary.kills,
        summary.transactions,
        summary.committed,
        summary.inferred,
        count / spent_s,
        count / summary.judged_s.max(1e-9),
        summary.lost_reads,
    );
    if let Some(path) = &arguments.write {
        fs::write(path, &summary.texts).with_context(|| path.display().to_string())?;
    }
    let findings: Vec<String> = summary
        .findings
        .iter()
        .map(|(name, count)| format!("{count} x {name}"))
        .collect();
    ensure!(findings.is_empty(), "found {}", findings.join(", "));
    ensure!(0 < summary.committed, "no transaction was committed");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;
    use history::{Element, History, Key, Seen};
    use testkit::Launch;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn arguments(server: &str) -> Arguments {
        let line = "history --seconds 0 --sessions 16 --transactions 400 --kills 1 --level mixed";
        let words = line.split(' ').chain(["--server", server]);
        Line::parse_from(words).arguments
    }

    #[test]
    fn a_short_history_with_a_kill_is_clean() {
        run(&arguments("mariadb")).unwrap();
        // It is built where all packages are tested.
        if plateau_program().is_ok() {
            run(&arguments("plateau")).unwrap();
        }
    }

    /// What a server might lose, taken from a real history.
    #[test]
    fn what_is_taken_from_a_history_is_missed() {
        let mut server = Launch::new(ServerKind::MariaDb).start().unwrap();
        tables::create(&mut server.connect().unwrap()).unwrap();
        let period = Period {
            number: 1,
            plan: Plan::RepeatableRead,
            kinds: &KINDS,
            session_count: 8,
            transaction_count: 200,
            kills_max: 0,
            first_group: 1,
        };
        let played = period.play(&mut server, &mut Random::new(1)).unwrap();
        let found = |history: &History| check(history, played.plan.level()).findings;
        assert!(found(&played.history).is_empty());
        let keys: Vec<Key> = played.history.last.keys().copied().collect();
        for kind in [Key::List, Key::Set, Key::Register] {
            let is_kind = |key: &&Key| kind(key_number(**key)) == **key;
            let key = *keys.iter().find(is_kind).expect("each kind is written");
            let mut history = played.history.clone();
            let seen = history.last.get_mut(&key).expect("it is there");
            match seen {
                Seen::List(elements) | Seen::Set(elements) => {
                    elements.pop();
                }
                Seen::Register { number, .. } => *number -= 1,
            }
            assert!(!found(&history).is_empty(), "{key}");
            let mut history = played.history.clone();
            let foreign = Element(u64::MAX);
            match history.last.get_mut(&key).expect("it is there") {
                Seen::List(elements) | Seen::Set(elements) => elements.push(foreign),
                Seen::Register { last, .. } => *last = Some(foreign),
            }
            assert!(!found(&history).is_empty(), "{key}");
        }
    }

    fn key_number(key: Key) -> u64 {
        match key {
            Key::List(number) | Key::Register(number) | Key::Set(number) => number,
        }
    }

    #[test]
    fn a_finding_fails_the_run() {
        let mut summary = Summary::default();
        assert!(
            report(&arguments("mariadb"), &summary, 1.0).is_err(),
            "nothing was done"
        );
        summary.committed = 1;
        report(&arguments("mariadb"), &summary, 1.0).unwrap();
        summary.findings.insert(String::from("G0 at MIXED"), 2);
        let error = report(&arguments("mariadb"), &summary, 1.0).expect_err("a finding");
        assert_eq!(error.to_string(), "found 2 x G0 at MIXED");
    }
}
