//! Draws a schedule: its table, its sessions, and how their statements follow one another.

use crate::random::Random;

use super::statement::{Kind, Statement};
use super::table::Table;
use crate::schedules::script::{Action, Busy, LEFT, LEVELS, Script, SessionName, Step};

/// A drawn schedule.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    pub(super) seed: u64,
    pub(super) table: Table,
    /// For each session its level, an index into [`LEVELS`].
    pub(super) levels: Vec<usize>,
    pub(super) moves: Vec<Move>,
}

/// A statement of a session.
#[derive(Clone, Debug)]
pub(super) struct Move {
    /// Its index.
    pub(super) session: usize,
    pub(super) statement: Statement,
}

/// The letters of sessions. Two sessions are the most frequent.
const LETTERS: [char; 4] = ['A', 'B', 'C', 'D'];

/// One in so many sessions has a lock wait timeout of 0.
const IMPATIENT: u64 = 12;

const SNAPSHOT: &str = "START TRANSACTION WITH CONSISTENT SNAPSHOT";

impl Schedule {
    pub(super) fn draw(seed: u64) -> Schedule {
        let mut random = Random::new(seed);
        let table = Table::draw(&mut random);
        let count = random.of(&[2, 2, 2, 2, 2, 3, 3, 3, 4]);
        // READ UNCOMMITTED has little that READ COMMITTED has not.
        let level = |random: &mut Random| random.of(&[0, 0, 0, 1, 1, 1, 1, 2, 2, 3]);
        let common = level(&mut random);
        let is_mixed = random.below(4) == 0;
        let levels = (0..count).map(|_| match is_mixed {
            true => level(&mut random),
            false => common,
        });
        let levels: Vec<usize> = levels.collect();
        let mut programs: Vec<Vec<Statement>> = (0..count)
            .map(|session| program(&table, LEVELS[levels[session]].0, &mut random))
            .collect();
        let mut moves = Vec::new();
        while programs.iter().any(|it| !it.is_empty()) {
            let session = random.place(programs.len());
            if !programs[session].is_empty() {
                let statement = programs[session].remove(0);
                moves.push(Move { session, statement });
            }
        }
        Schedule {
            seed,
            table,
            levels,
            moves,
        }
    }

    /// As it is played.
    pub(super) fn script(&self) -> Script {
        let name = |session: usize| SessionName(LETTERS[session]);
        let levels = self.levels.iter().enumerate();
        let steps = self.moves.iter().map(|it| Step {
            session: name(it.session),
            action: Action::Run(it.statement.text.clone()),
        });
        Script {
            name: format!("seed {}", self.seed),
            number: 0,
            setup: self.table.setup(),
            levels: levels.map(|(at, it)| (name(at), LEVELS[*it].1)).collect(),
            steps: steps.collect(),
            busy: Busy::LeaveOut,
            left: format!("{LEFT}; SELECT COUNT(*), SUM(id), SUM(k) FROM t"),
        }
    }

    /// The index of a session.
    pub(super) fn session(name: SessionName) -> usize {
        let found = LETTERS.iter().position(|it| *it == name.0);
        found.expect("a session of a drawn schedule")
    }

    /// The short name of a session's level.
    pub(super) fn level(&self, session: usize) -> &'static str {
        LEVELS[self.levels[session]].0
    }
}

/// What a session does.
fn program(table: &Table, level: &str, random: &mut Random) -> Vec<Statement> {
    let mut program = Vec::new();
    let is_impatient = random.below(IMPATIENT) == 0;
    if is_impatient {
        let text = "SET innodb_lock_wait_timeout = 0";
        program.push(Statement::plain(Kind::Begin, text));
    }
    let mut body: Vec<Statement> = (0..1 + random.below(3))
        .map(|_| Statement::draw(table, random))
        // SKIP LOCKED without time to wait is error 1180 in MariaDB.
        .filter(|it| !is_impatient || it.kind != Kind::SkipLocked)
        .collect();
    if random.below(4) == 0 {
        // Each statement is a transaction.
        program.append(&mut body);
        return program;
    }
    let begin = random.of(&[
        "BEGIN",
        "BEGIN",
        "BEGIN",
        "BEGIN",
        "BEGIN",
        "SET autocommit = 0",
        SNAPSHOT,
    ]);
    // MariaDB warns that the level has no snapshots.
    let begin = if begin == SNAPSHOT && level == "ru" {
        "BEGIN"
    } else {
        begin
    };
    program.push(Statement::plain(Kind::Begin, begin));
    if 1 < body.len() && random.below(8) == 0 {
        let at = random.place(body.len() - 1);
        body.insert(at, Statement::plain(Kind::Savepoint, "SAVEPOINT s"));
        let back = Statement::plain(Kind::RollbackTo, "ROLLBACK TO s");
        let after = at + 2 + random.place(body.len() - at - 1);
        body.insert(after.min(body.len()), back);
    }
    program.append(&mut body);
    program.push(match random.below(4) {
        0 => Statement::plain(Kind::Rollback, "ROLLBACK"),
        _ => Statement::plain(Kind::Commit, "COMMIT"),
    });
    program
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_repeats_its_schedule_and_all_kinds_are_drawn() {
        let mut kinds = BTreeSet::new();
        let mut counts = BTreeSet::new();
        for seed in 0..500 {
            let schedule = Schedule::draw(seed);
            assert_eq!(schedule.script(), Schedule::draw(seed).script());
            counts.insert(schedule.levels.len());
            kinds.extend(schedule.moves.iter().map(|it| it.statement.kind));
        }
        assert_eq!(kinds.len(), Kind::NoWait as usize + 1);
        assert_eq!(counts, BTreeSet::from([2, 3, 4]));
    }
}
