//! Random schedules, compared with MariaDB's.
//!
//! A seed determines a schedule: a table, two to four sessions with their levels, and the order of
//! their statements. Many are played at once, each on a table of its own. A difference is played
//! again, reduced, and put into a class by the statements that meet, their indexes, the level, and
//! what differs.
//!
//! What another thread of a server removes in the background would change who waits for whom. So
//! schedules come in rounds. At the begin of a round its tables are made, MariaDB's purge is waited
//! for, and a snapshot is opened on each server, which holds back all purge until the round's end.
//!
//! * `table`, `statement`, `draw`: what is drawn;
//! * `pair`: plays a schedule on both servers, and judges it;
//! * `differing`, `scene`, `sign`: what differs, what the records tell, and of which reason;
//! * `compare`: finds the first difference, and names its class;
//! * `reduce`: finds a smaller schedule that differs in the same way;
//! * `classes`: counts, and knows what is listed.

mod classes;
mod compare;
mod differing;
mod draw;
mod pair;
mod reduce;
mod scene;
mod sign;
mod statement;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use env::Clock as _;
use env::linux::SystemClock;
use sync::Mutex;
use testkit::Client;

use super::stage::{Stage, StageKind, start_pair};
use crate::data_files::read_reasons;
use crate::target::Target;

use classes::Classes;
use draw::Schedule;
use pair::{Pair, Plays, Verdict};
use reduce::reduce;

/// What is drawn, and what is shown.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Where drawing begins; each schedule has the next seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many schedules are drawn. A single one is shown in full.
    #[arg(long, default_value_t = 2000)]
    count: u64,
    /// How many classes are printed, each with its smallest schedule.
    #[arg(long, default_value_t = 20)]
    pub(super) show: usize,
    /// Writes all classes with their smallest schedules to this file.
    #[arg(long)]
    pub(super) write: Option<PathBuf>,
    /// How many differences that look alike are reduced. The others have no class that is listed.
    #[arg(long, default_value_t = 1000)]
    reduce: u64,
    /// Schedules played at once.
    #[arg(long, default_value_t = 32)]
    players: usize,
}

/// Schedules of a round: many times the players, since the end of a round waits for the slowest.
const ROUND: u64 = 512;

/// More classes than this are too many to be understood: reasons of the list, and classes that it
/// does not have.
const CLASSES_MAX: usize = 12;

/// So many of a hundred schedules may differ as listed.
const DIFFER_PERCENT_MAX: u64 = 1;

/// One in so many schedules may have other results behind a race that proves none of them wrong. Of
/// 200,000 two had.
const RACED_ONE_IN: u64 = 10_000;

/// One in so many may differ without a listed reason.
const UNLISTED_ONE_IN: u64 = 10_000;

/// The least percentage of schedules that agree or differ: what ends at a deadlock, or is planned
/// otherwise, proves less.
const COMPARED_PERCENT_MIN: u64 = 90;

/// How many schedules had each verdict.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    agree: u64,
    victim: u64,
    unsteady: u64,
    planned: u64,
    differ: u64,
}

/// What all players share.
#[derive(Default)]
struct Findings {
    counts: Counts,
    classes: Classes,
    /// What was planned otherwise, and how often.
    planned: BTreeMap<String, u64>,
}

/// Draws and compares; fails if a result is wrong, or if there are too many differences or classes.
pub(super) fn run(options: &Options, target: &Target) -> Result<()> {
    let listed = read_reasons("schedule_classes.txt")?;
    let (reference, candidate) = start_pair(target)?;
    let stages = [Stage::new(reference.port())?, Stage::new(candidate.port())?];
    let pairs = (0..options.players.max(1)).map(|_| Pair::new(&stages));
    let mut pairs = pairs.collect::<Result<Vec<_>>>()?;
    let findings = Mutex::new(Findings::default());
    let begun_at = SystemClock.now();
    let end = options.seed + options.count;
    let mut seed = options.seed;
    while seed < end {
        let schedules: Vec<Schedule> = (seed..end.min(seed + ROUND)).map(Schedule::draw).collect();
        seed += ROUND;
        play_round(
            &mut pairs,
            &stages,
            &schedules,
            &|pair, number, schedule| judge(pair, (number, schedule), options, &findings),
        )?;
        let played = end.min(seed) - options.seed;
        let spent_s = SystemClock.now().since(begun_at).as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a rate to be read")]
        let rate = played as f64 / spent_s;
        let Counts {
            agree,
            victim,
            unsteady,
            planned,
            differ,
        } = findings.lock().counts;
        println!(
            "{played} schedules in {spent_s:.0} s, {rate:.1} a second: {agree} agree, \
             {victim} have another victim, {unsteady} are unsteady, {planned} are planned \
             otherwise, {differ} differ"
        );
    }
    report(options, &findings.lock(), &listed)
}

/// Makes the tables of a round and plays its schedules. Each is handed to a player with its number,
/// which names its database.
fn play_round<'s>(
    pairs: &mut [Pair<'s>],
    stages: &'s [Stage; 2],
    schedules: &[Schedule],
    judge: &(impl Fn(&mut Pair<'s>, usize, &Schedule) -> Result<()> + Sync),
) -> Result<()> {
    on_each(pairs, schedules, &|pair, number, schedule| {
        pair.set_up(schedule, &database(number))
    })?;
    let _held = [hold_purge(&stages[0])?, hold_purge(&stages[1])?];
    on_each(pairs, schedules, judge)
}

fn database(number: usize) -> String {
    format!("drawn{number}")
}

/// Hands the schedules to the players, each the next one as soon as it is free.
fn on_each<'s>(
    pairs: &mut [Pair<'s>],
    schedules: &[Schedule],
    act: &(impl Fn(&mut Pair<'s>, usize, &Schedule) -> Result<()> + Sync),
) -> Result<()> {
    let next = Mutex::new(schedules.iter().enumerate());
    let take = |pair: &mut Pair<'s>| {
        loop {
            let taken = next.lock().next();
            let Some((number, schedule)) = taken else {
                return Ok(());
            };
            let acted = act(pair, number, schedule);
            acted.with_context(|| format!("seed {}", schedule.seed))?;
        }
    };
    let take = &take;
    std::thread::scope(|scope| {
        let players: Vec<_> = pairs
            .iter_mut()
            .map(|pair| scope.spawn(move || take(pair)))
            .collect();
        players
            .into_iter()
            .try_for_each(|it| it.join().expect("a player does not panic"))
    })
}

/// Waits until nothing is left to be purged, and opens a snapshot that holds back what comes.
fn hold_purge(stage: &Stage) -> Result<Client> {
    let mut client = stage.connect()?;
    if stage.kind == StageKind::MariaDb {
        client.run("SET GLOBAL innodb_max_purge_lag_wait = 0")?;
    }
    client.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
    Ok(client)
}

fn judge(
    pair: &mut Pair<'_>,
    (number, schedule): (usize, &Schedule),
    options: &Options,
    findings: &Mutex<Findings>,
) -> Result<()> {
    let database = database(number);
    if options.count == 1 {
        let plays = pair.play_again(schedule, &database)?;
        let table = schedule.table.shown();
        println!(
            "{table}\n\nMariaDB:\n{}\nhere:\n{}",
            plays.expected, plays.got
        );
        pair.set_up(schedule, &database)?;
    }
    let verdict = pair.judge(schedule, &database)?;
    let plays = 'plays: {
        let findings = &mut *findings.lock();
        let counts = &mut findings.counts;
        match verdict {
            Verdict::Agree => counts.agree += 1,
            Verdict::Victim => counts.victim += 1,
            Verdict::Unsteady => counts.unsteady += 1,
            Verdict::Planned(how) => {
                counts.planned += 1;
                *findings.planned.entry(how).or_default() += 1;
            }
            Verdict::Differ(plays) => {
                counts.differ += 1;
                break 'plays plays;
            }
        }
        return Ok(());
    };
    sort_in(pair, &database, schedule, (plays, options.reduce), findings)
}

/// Finds the class of a difference.
fn sort_in(
    pair: &mut Pair<'_>,
    database: &str,
    schedule: &Schedule,
    (plays, limit): (Plays, u64),
    findings: &Mutex<Findings>,
) -> Result<()> {
    let difference = plays.difference.context("a difference")?;
    {
        let classes = &mut findings.lock().classes;
        classes.count_lock(&plays);
        if !classes.wants(schedule, difference, limit) {
            classes.count(schedule, difference);
            return Ok(());
        }
    }
    let (smaller, plays) = reduce(pair, database, schedule, plays)?;
    findings.lock().classes.add(smaller, plays);
    Ok(())
}

fn report(
    options: &Options,
    findings: &Findings,
    listed: &[crate::data_files::Reason],
) -> Result<()> {
    let Findings {
        counts,
        classes,
        planned,
    } = findings;
    for (how, count) in planned {
        println!("planned otherwise: {count} times {how}");
    }
    let summary = classes.summary(listed);
    let totals = classes.totals();
    for shown in summary.shown.iter().take(options.show) {
        println!("{shown}");
    }
    println!("{totals}");
    if let Some(path) = &options.write {
        let classes = summary.shown.join("\n");
        let text = format!("{counts:?}\n\n{totals}\n{classes}");
        fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    let (wrong, raced) = (summary.wrong_count, summary.raced_count);
    println!("{raced} have other results where sessions went on at once that were blocked");
    ensure!(wrong == 0, "{wrong} schedules have a wrong result");
    ensure!(
        raced <= allowed(options.count, RACED_ONE_IN),
        "{raced} have other results where sessions went on at once, more than 1 in {RACED_ONE_IN}"
    );
    let unlisted = summary.unlisted_count;
    ensure!(
        unlisted <= allowed(options.count, UNLISTED_ONE_IN),
        "{unlisted} differ in a way that is not listed, more than 1 in {UNLISTED_ONE_IN}"
    );
    ensure!(
        summary.class_count <= CLASSES_MAX,
        "there are {} classes of differences, more than {CLASSES_MAX}",
        summary.class_count
    );
    ensure!(
        counts.differ * 100 <= options.count * DIFFER_PERCENT_MAX,
        "{} of {} differ, more than {DIFFER_PERCENT_MAX} of a hundred",
        counts.differ,
        options.count
    );
    let compared = counts.agree + counts.differ;
    ensure!(
        options.count * COMPARED_PERCENT_MIN <= compared * 100,
        "{compared} of {} were compared to their end, fewer than {COMPARED_PERCENT_MIN} percent",
        options.count
    );
    Ok(())
}

/// How many of so many schedules are one in so many.
fn allowed(count: u64, one_in: u64) -> u64 {
    count.div_ceil(one_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_schedules_may_differ_behind_a_race_or_without_a_reason() {
        let raced = [1, 10_000, 10_001, 200_000].map(|count| allowed(count, RACED_ONE_IN));
        assert_eq!(raced, [1, 1, 2, 20]);
    }
}
