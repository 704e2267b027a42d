//! Schedules: steps of several sessions, one after the other, run on Plateau and on MariaDB.
//!
//! `data/schedules.txt` has the schedules (see `script`). Each is run in every variant of table and
//! isolation level. For each step both servers must agree whether it blocks, and otherwise on its
//! result; then on the result of each blocked step, and when it comes. A run ends with the contents
//! of the table. `data/schedule_differences.txt` lists the variants that differ, each below its
//! reason, by patterns of their names.
//!
//! Runs are independent: each has its own database, and several run at the same time.

mod play;
mod script;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use sync::Mutex;

use crate::data_files::{read, read_list};
use crate::target::{Running, Target, reference};

use play::Player;
use script::{Script, parse};

/// Concurrent runs: each spends most of its time in commits and lock waits.
const PLAYER_COUNT: usize = 12;

/// One in this many variants is run unless all are requested. It is coprime to the numbers of
/// tables, levels and texts, so each pair of these is covered.
const SAMPLE_STEP: usize = 13;

/// Fewer variants than this would prove too little.
const VARIANTS_MIN: usize = 1000;

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
    let mut scripts = parse(&read("schedules.txt")?)?;
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
    let candidate = match wanted.target.is_plateau() {
        // With one worker, once a watcher is answered, every session that was woken before it has
        // run.
        true => Running::of(
            wanted
                .target
                .launch()
                .with_settings(["workers=1"])
                .start()?,
        ),
        // Who waits for whom is told by the servers' numbers of their connections.
        false => wanted.target.start_private()?,
    };
    let reference = reference()
        .with("--innodb-flush-log-at-trx-commit=0")
        .with("--innodb-file-per-table=0")
        .with("--innodb-stats-persistent=0");
    let reference = Running::of(reference.start()?);
    let differences = play_all(&scripts, reference.port(), candidate.port())?;
    report(wanted, scripts.len(), &differences, &listed)
}

/// Runs each script on the servers of both ports, several at a time. Returns the differences, in
/// the order of the scripts.
fn play_all(scripts: &[Script], reference: u16, candidate: u16) -> Result<Vec<Difference>> {
    let next = Mutex::new(scripts.iter().enumerate());
    let found = Mutex::new(Vec::new());
    let play_some = |number: usize| -> Result<()> {
        let mut left = Player::new(reference, number)?;
        let mut right = Player::new(candidate, number)?;
        loop {
            let taken = next.lock().next();
            let Some((place, script)) = taken else {
                return Ok(());
            };
            let name = &script.name;
            let expected = left.play(script);
            let expected = expected.with_context(|| format!("the reference: {name}"))?;
            let got = right.play(script);
            let got = got.with_context(|| format!("the server under test: {name}"))?;
            // Which of two waiters goes first is sometimes a race in MariaDB itself.
            let differs = expected != got
                && left.play(script)? != got
                && (!right.is_mariadb() || right.play(script)? != expected);
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

/// Whether a pattern of the list matches a variant: each part is the name's, or `*`, or a choice
/// `a|b`. A pattern may omit the last parts.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = name.split('/');
    pattern.split('/').all(|wanted| {
        let part = parts.next();
        part.is_some_and(|part| wanted == "*" || wanted.split('|').any(|it| it == part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_variants_by_their_parts() {
        for pattern in ["s", "s/plain/rc/1", "s/*/rc|rr", "s/*/*/*"] {
            assert!(matches(pattern, "s/plain/rc/1"), "{pattern}");
        }
        for pattern in ["t", "s/pl", "s/*/rr|ser", "s/plain/rc/1/1"] {
            assert!(!matches(pattern, "s/plain/rc/1"), "{pattern}");
        }
    }

    #[test]
    fn there_are_many_variants_and_every_listed_difference_is_one() {
        let scripts = parse(&read("schedules.txt").unwrap()).unwrap();
        assert!(VARIANTS_MIN <= scripts.len(), "{}", scripts.len());
        let names: BTreeSet<_> = scripts.iter().map(|script| &script.name).collect();
        assert_eq!(names.len(), scripts.len(), "each name is one variant's");
        for listed in read_list("schedule_differences.txt").unwrap() {
            let is_one = names.iter().any(|name| matches(&listed, name));
            assert!(is_one, "{listed}");
        }
    }
}
