//! Both servers, and the verdict about one schedule.

use anyhow::{Context, Result};

use super::compare::{Difference, first_difference};
use super::differing::Differing;
use super::draw::Schedule;
use crate::schedules::play::Player;
use crate::schedules::record::Record;
use crate::schedules::stage::Stage;

/// A player on each server.
pub(super) struct Pair<'s> {
    reference: Player<'s>,
    candidate: Player<'s>,
}

/// What two plays of one schedule show.
#[derive(Clone, Debug)]
pub(super) struct Plays {
    /// `None` if they agree.
    pub(super) difference: Option<Difference>,
    pub(super) expected: Record,
    pub(super) got: Record,
}

/// How a schedule compares.
pub(super) enum Verdict {
    Agree,
    /// Both have the same deadlock, and choose different victims. What follows is not compared.
    Victim,
    /// Played again, one of the servers does what the other did.
    Unsteady,
    /// The servers find the rows of this kind of statement by different indexes.
    Planned(String),
    Differ(Plays),
}

impl<'s> Pair<'s> {
    /// Connects. The reference is the first of the stages.
    pub(super) fn new(stages: &'s [Stage; 2]) -> Result<Self> {
        let [reference, candidate] = stages;
        Ok(Self {
            reference: Player::new(reference, "drawn")?,
            candidate: Player::new(candidate, "drawn")?,
        })
    }

    /// Makes the table of a schedule, in this database.
    pub(super) fn set_up(&mut self, schedule: &Schedule, database: &str) -> Result<()> {
        let script = schedule.script();
        for player in [&mut self.reference, &mut self.candidate] {
            player.enter(database)?;
            player.set_up(&script)?;
        }
        Ok(())
    }

    /// Plays a schedule once on each server, whose table is made in this database.
    pub(super) fn play(&mut self, schedule: &Schedule, database: &str) -> Result<Plays> {
        let script = schedule.script();
        let play = |player: &mut Player<'s>, name: &'static str| {
            player.enter(database)?;
            let played = player.play(&script);
            played.with_context(|| format!("{name}: seed {}", schedule.seed))
        };
        let expected = play(&mut self.reference, "the reference")?;
        let got = play(&mut self.candidate, "the server under test")?;
        Ok(Plays {
            difference: first_difference(schedule, &expected, &got),
            expected,
            got,
        })
    }

    /// Makes the table and plays.
    pub(super) fn play_again(&mut self, schedule: &Schedule, database: &str) -> Result<Plays> {
        self.set_up(schedule, database)?;
        self.play(schedule, database)
    }

    /// Plays a schedule whose table is made; a difference is played again.
    pub(super) fn judge(&mut self, schedule: &Schedule, database: &str) -> Result<Verdict> {
        let plays = self.play(schedule, database)?;
        let Some(difference) = plays.difference else {
            return Ok(Verdict::Agree);
        };
        if difference.what == Differing::Victim {
            return Ok(Verdict::Victim);
        }
        for _ in 0..replays(difference.what) {
            let again = self.play_again(schedule, database)?;
            if again.difference != plays.difference {
                return Ok(Verdict::Unsteady);
            }
        }
        self.set_up(schedule, database)?;
        let [there, here] = [&mut self.reference, &mut self.candidate]
            .map(|player| plans(player, schedule, difference.step));
        let (there, here) = (there?, here?);
        let mut both = there.iter().zip(&here);
        let other =
            both.find(|(there, here)| there != here && there.1 != NO_ROW && here.1 != NO_ROW);
        Ok(match other {
            None => Verdict::Differ(plays),
            Some(((statement, there), (_, here))) => {
                Verdict::Planned(format!("{statement}: {there} there, {here} here"))
            }
        })
    }
}

/// How often a difference is played again. Which of two woken sessions runs first is a race in
/// MariaDB: of 8,192 schedules played on two of it, five differed twice.
fn replays(what: Differing) -> u32 {
    match what {
        Differing::WaitsHere | Differing::WaitsThere | Differing::Skips => 1,
        _ if what.is_wrong() => 1,
        _ => 4,
    }
}

/// A kind of statement, and how a server finds its rows.
type Plan = (String, String);

/// How a server finds the rows of each statement up to a step: its index, and whether it sorts.
fn plans(player: &mut Player<'_>, schedule: &Schedule, step: usize) -> Result<Vec<Plan>> {
    let moves = schedule.moves.iter().take(step + 1);
    let explained = moves.filter(|it| it.statement.kind.has_plan()).map(|it| {
        let rows = player.rows(&format!("EXPLAIN {}", it.statement.text))?;
        // The last row is that of the table which is read.
        let row = rows.last().context("EXPLAIN has a row")?;
        let field = |place: usize| {
            let value = row.get(place).and_then(Option::as_deref);
            String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
        };
        let statement = format!("{} by {}", it.statement.kind.name(), it.statement.access);
        Ok((statement, plan(&field(3), &field(5), &field(row.len() - 1))))
    });
    explained.collect()
}

/// The path where no row can match, which MariaDB finds out by looking for a row when it plans.
const NO_ROW: &str = "none";

/// A plan from the columns `type`, `key` and `Extra`.
fn plan(kind: &str, key: &str, extra: &str) -> String {
    let path = match (kind, key) {
        ("ALL", _) | ("index", "PRIMARY") => "all",
        ("" | "NULL", _) => NO_ROW,
        _ => key,
    };
    let sorted = if extra.contains("filesort") {
        " sorted"
    } else {
        ""
    };
    format!("{path}{sorted}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_compare_by_their_paths() {
        assert_eq!(plan("ALL", "", "Using where"), plan("index", "PRIMARY", ""));
        assert_eq!(plan("ref", "k", ""), plan("range", "k", "Using where"));
        assert_ne!(plan("ref", "k", ""), plan("ref", "id", ""));
        assert_ne!(plan("ALL", "", ""), plan("ALL", "", "Using filesort"));
    }
}
