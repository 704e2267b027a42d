//! Reduces a schedule that differs: sessions, then steps, then rows are left out while the
//! difference stays.

use anyhow::Result;

use super::compare::{Difference, class};
use super::differing::Differing;
use super::draw::Schedule;
use super::pair::{Pair, Plays};

/// How many smaller schedules are played at most.
const TRIES_MAX: usize = 150;

/// A schedule being reduced.
struct Reduction<'p, 's> {
    pair: &'p mut Pair<'s>,
    database: &'p str,
    schedule: Schedule,
    plays: Plays,
    /// What must stay of the difference.
    kept: String,
    tries: usize,
}

/// The smallest schedule found that differs in the same way, and its plays.
pub(super) fn reduce(
    pair: &mut Pair<'_>,
    database: &str,
    schedule: &Schedule,
    plays: Plays,
) -> Result<(Schedule, Plays)> {
    let Some(difference) = plays.difference else {
        return Ok((schedule.clone(), plays));
    };
    let mut reduction = Reduction {
        pair,
        database,
        schedule: schedule.clone(),
        kept: essence(schedule, difference),
        plays,
        tries: 0,
    };
    reduction.cut_after(difference)?;
    reduction.leave_out_sessions()?;
    while reduction.leave_out_moves()? {}
    reduction.one_level()?;
    reduction.leave_out_rows()?;
    Ok((reduction.schedule, reduction.plays))
}

/// The class without the other statement, which may be another than it seems.
fn essence(schedule: &Schedule, difference: Difference) -> String {
    let class = class(schedule, difference);
    let parts: Vec<&str> = class.split('/').collect();
    [parts[0], parts[2], parts[3]].join("/")
}

impl Reduction<'_, '_> {
    /// Whether this schedule differs in the same way; then it is the next to be reduced.
    fn take(&mut self, smaller: Schedule) -> Result<bool> {
        if TRIES_MAX <= self.tries {
            return Ok(false);
        }
        self.tries += 1;
        let plays = self.pair.play_again(&smaller, self.database)?;
        let (Some(before), Some(difference)) = (self.plays.difference, plays.difference) else {
            return Ok(false);
        };
        let found = essence(&smaller, difference);
        let is_taken = stays((&self.kept, before.what), (&found, difference.what));
        if is_taken {
            self.kept = found;
            self.schedule = smaller;
            self.plays = plays;
        }
        Ok(is_taken)
    }

    fn cut_after(&mut self, difference: Difference) -> Result<()> {
        let mut smaller = self.schedule.clone();
        smaller.moves.truncate(difference.step + 1);
        self.take(smaller).map(drop)
    }

    fn leave_out_sessions(&mut self) -> Result<()> {
        for session in 0..self.schedule.levels.len() {
            let mut smaller = self.schedule.clone();
            smaller.moves.retain(|it| it.session != session);
            if smaller.moves.len() < self.schedule.moves.len() {
                self.take(smaller)?;
            }
        }
        Ok(())
    }

    /// Leaves out single steps, the last first. Returns true if there was one.
    fn leave_out_moves(&mut self) -> Result<bool> {
        let mut is_any = false;
        for place in (0..self.schedule.moves.len()).rev() {
            let mut smaller = self.schedule.clone();
            smaller.moves.remove(place);
            is_any |= self.take(smaller)?;
        }
        Ok(is_any)
    }

    /// Gives all sessions one level, if they had several.
    fn one_level(&mut self) -> Result<()> {
        let used = self.schedule.moves.iter();
        let used: Vec<usize> = used.map(|it| self.schedule.levels[it.session]).collect();
        for level in used.iter().copied() {
            if used.iter().all(|it| *it == level) {
                return Ok(());
            }
            let mut smaller = self.schedule.clone();
            smaller.levels.fill(level);
            if self.take(smaller)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Leaves out ever smaller runs of rows.
    fn leave_out_rows(&mut self) -> Result<()> {
        let mut run = self.schedule.table.rows.len();
        while 0 < run {
            let mut start = 0;
            while start < self.schedule.table.rows.len() {
                let mut smaller = self.schedule.clone();
                let end = (start + run).min(smaller.table.rows.len());
                smaller.table.rows.drain(start..end);
                if !self.take(smaller)? {
                    start = end;
                }
            }
            run /= 2;
        }
        Ok(())
    }
}

/// Whether a smaller schedule still differs as it should. A result that differs without the race
/// behind which one has differed is a wrong one, which the race would have hidden.
fn stays((kept, before): (&str, Differing), (found, now): (&str, Differing)) -> bool {
    kept == found || before == Differing::Raced && now.is_wrong()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_race_hides_no_wrong_result() {
        let (raced, rows) = (("raced/s", Differing::Raced), ("rows/s", Differing::Rows));
        assert!(stays(raced, raced) && stays(rows, rows));
        assert!(stays(raced, rows) && !stays(rows, raced));
        assert!(!stays(raced, ("skips/s", Differing::Skips)));
    }
}
