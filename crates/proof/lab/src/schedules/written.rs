//! Compares the written schedules on Plateau and on MariaDB.
//!
//! `data/schedules.txt` and `data/hermitage.txt` have the schedules (see `script`). Each is run in
//! every variant of table and isolation level. `data/schedule_differences.txt` lists the variants
//! that differ, each below its reason, by patterns of their names.
//!
//! Runs are independent: each player has its own database, and several run at the same time.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use sync::Mutex;

use crate::data_files::{matches, read, read_list};
use crate::target::Target;

use super::play::Player;
use super::script::{Script, parse};
use super::stage::{Stage, StageKind, start_pair};

/// Concurrent runs: each spends most of its time in commits and lock waits.
const PLAYER_COUNT: usize = 12;

/// One in this many variants is run unless all are requested. It is coprime to the numbers of
/// tables, levels and texts, so each pair of these is covered.
const SAMPLE_STEP: usize = 13;

/// Fewer variants than this would prove too little.
const VARIANTS_MIN: usize = 1000;

/// What the names of the schedules of the Hermitage matrix have in common.
pub(crate) const HERMITAGE: &str = "hermitage_";

/// What to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// The server under test.
    pub(crate) target: &'a Target,
    /// Only variants whose name contains this.
    pub(crate) name: &'a str,
    /// All variants, not a sample.
    pub(crate) is_thorough: bool,
    /// How many differences are printed.
    pub(crate) show: usize,
    /// Where the names of the variants that differ are written.
    pub(crate) write: Option<&'a Path>,
}

/// A variant with different results.
struct Difference {
    name: String,
    expected: String,
    got: String,
}

/// Runs all schedules; fails if an unlisted variant differs, or a listed one agrees.
pub(crate) fn run(wanted: &Wanted<'_>) -> Result<()> {
    let mut scripts = written()?;
    ensure!(
        VARIANTS_MIN <= scripts.len(),
        "there are {} variants of schedules",
        scripts.len()
    );
    scripts.retain(|script| script.name.contains(wanted.name));
    if wanted.name.is_empty() && !wanted.is_thorough {
        scripts.retain(|script| script.number.is_multiple_of(SAMPLE_STEP));
    }
    // Through a gateway nothing may differ.
    let listed = match wanted.target.is_gateway() {
        true => BTreeSet::new(),
        false => read_list("schedule_differences.txt")?,
    };
    let (reference, candidate) = start_pair(wanted.target)?;
    let stages = [Stage::new(reference.port())?, Stage::new(candidate.port())?];
    let differences = play_all(&scripts, &stages)?;
    report(wanted, scripts.len(), &differences, &listed)
}

/// Every variant of every schedule.
fn written() -> Result<Vec<Script>> {
    let mut files = read("schedules.txt")?;
    files += &read("hermitage.txt")?;
    parse(&files)
}

/// Runs each script on both servers, the reference first, several at a time. Returns the
/// differences, in the order of the scripts.
fn play_all(scripts: &[Script], stages: &[Stage; 2]) -> Result<Vec<Difference>> {
    let next = Mutex::new(scripts.iter().enumerate());
    let found = Mutex::new(Vec::new());
    let play_some = |number: usize| -> Result<()> {
        let [reference, candidate] = stages;
        let database = format!("schedule{number}");
        let mut left = Player::new(reference, &database)?;
        let mut right = Player::new(candidate, &database)?;
        loop {
            let taken = next.lock().next();
            let Some((place, script)) = taken else {
                return Ok(());
            };
            let name = &script.name;
            let expected = record(&mut left, script);
            let expected = expected.with_context(|| format!("the reference: {name}"))?;
            let got = record(&mut right, script);
            let got = got.with_context(|| format!("the server under test: {name}"))?;
            // Which of two waiters goes first is sometimes a race in MariaDB itself.
            let differs = expected != got
                && record(&mut left, script)? != got
                && (candidate.kind == StageKind::Plateau
                    || record(&mut right, script)? != expected);
            if differs {
                let name = name.clone();
                let difference = Difference {
                    name,
                    expected,
                    got,
                };
                found.lock().push((place, difference));
            }
        }
    };
    std::thread::scope(|scope| {
        let players: Vec<_> = (0..PLAYER_COUNT)
            .map(|number| scope.spawn(move || play_some(number)))
            .collect();
        players.into_iter().try_for_each(|player| {
            let played = player.join();
            played.expect("a player does not panic")
        })
    })?;
    let mut found = std::mem::take(&mut *found.lock());
    found.sort_by_key(|(place, _)| *place);
    Ok(found.into_iter().map(|(_, it)| it).collect())
}

/// Makes the table of a script and plays it.
fn record(player: &mut Player<'_>, script: &Script) -> Result<String> {
    player.set_up(script)?;
    Ok(player.play(script)?.to_string())
}

fn report(
    wanted: &Wanted<'_>,
    played: usize,
    differences: &[Difference],
    listed: &BTreeSet<String>,
) -> Result<()> {
    let is_listed = |name: &str| listed.iter().any(|pattern| matches(pattern, name));
    let is_new = |it: &&Difference| !is_listed(&it.name);
    let new: Vec<_> = differences.iter().filter(is_new).collect();
    for it in new.iter().take(wanted.show) {
        println!("[{}]\n{}--- but got\n{}", it.name, it.expected, it.got);
    }
    if let Some(path) = wanted.write {
        let lines = new.iter().map(|it| format!("{}\n", it.name));
        let lines: String = lines.collect();
        fs::write(path, lines).with_context(|| path.display().to_string())?;
    }
    // A sample is no evidence about a pattern of which it has few variants.
    let is_complete = wanted.is_thorough && wanted.name.is_empty();
    let is_met = |pattern: &&String| differences.iter().any(|it| matches(pattern, &it.name));
    let agreeing: Vec<_> = match is_complete {
        true => listed.iter().filter(|it| !is_met(it)).collect(),
        false => Vec::new(),
    };
    for pattern in &agreeing {
        println!("listed as different, but agrees now: {pattern}");
    }
    println!(
        "{played} variants of schedules: {} agree, {} differ as listed, {} differ",
        played - differences.len(),
        differences.len() - new.len(),
        new.len()
    );
    ensure!(
        new.is_empty() && agreeing.is_empty(),
        "{} schedules differ from MariaDB and are not listed, {} are listed and agree",
        new.len(),
        agreeing.len()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_many_variants_and_every_listed_difference_is_one() {
        let scripts = written().unwrap();
        assert!(VARIANTS_MIN <= scripts.len(), "{}", scripts.len());
        let names: BTreeSet<_> = scripts.iter().map(|script| &script.name).collect();
        assert_eq!(names.len(), scripts.len(), "each name is one variant's");
        for listed in read_list("schedule_differences.txt").unwrap() {
            let is_one = names.iter().any(|name| matches(&listed, name));
            assert!(is_one, "{listed}");
        }
    }
}
