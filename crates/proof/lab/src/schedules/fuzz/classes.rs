//! The classes of differences: how many schedules each has, its smallest schedule, and whether
//! `data/schedule_classes.txt` lists it.
//!
//! The list has reasons, and patterns of classes below each. A class with a wrong result cannot be
//! listed. One that is not proven wrong is neither listed nor told as such: it is counted apart.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::compare::{Difference, class};
use super::differing::Differing;
use super::draw::Schedule;
use super::pair::Plays;
use crate::data_files::{Reason, matches};
use crate::schedules::record::{Event, Record, What};

/// All classes that were found, by their names.
#[derive(Default)]
pub(super) struct Classes {
    found: BTreeMap<String, Class>,
    /// What MariaDB waits for where nothing waits here, as it says itself.
    locks: BTreeMap<String, u64>,
    /// How many differences were reduced, by the beginnings of their classes.
    reduced: BTreeMap<String, u64>,
}

/// A class.
struct Class {
    what: Differing,
    count: u64,
    /// The smallest schedule; `None`: none was reduced.
    example: Option<Example>,
}

struct Example {
    schedule: Schedule,
    plays: Plays,
}

/// How the classes stand to the list.
pub(super) struct Summary {
    pub(super) wrong_count: u64,
    pub(super) unlisted_count: u64,
    /// Results behind a race, which prove nothing.
    pub(super) raced_count: u64,
    /// Reasons of the list that were met, and classes that are not listed.
    pub(super) class_count: usize,
    /// A line for each class and its example, wrong results first, then those behind a race, then
    /// by their counts.
    pub(super) shown: Vec<String>,
}

impl Classes {
    /// Counts what MariaDB waits for, if the difference is that it does.
    pub(super) fn count_lock(&mut self, plays: &Plays) {
        let lock = plays.difference.and_then(|it| {
            let waits = [Differing::WaitsThere, Differing::WakesHere].contains(&it.what);
            let lock = plays.expected.locks.get(&(it.step, it.session?));
            lock.filter(|_| waits)
        });
        if let Some(lock) = lock {
            *self.locks.entry(lock.clone()).or_default() += 1;
        }
    }

    /// Whether a difference is to be reduced, which is so for the first `limit` that look alike.
    pub(super) fn wants(
        &mut self,
        schedule: &Schedule,
        difference: Difference,
        limit: u64,
    ) -> bool {
        let count = self
            .reduced
            .entry(beginning(schedule, difference))
            .or_default();
        *count += 1;
        *count <= limit || difference.what.is_wrong() || difference.what == Differing::Raced
    }

    /// Counts a difference that was not reduced.
    pub(super) fn count(&mut self, schedule: &Schedule, difference: Difference) {
        let name = format!("{}/unreduced", beginning(schedule, difference));
        self.class(name, difference.what).count += 1;
    }

    /// Counts a difference that was reduced to this schedule.
    pub(super) fn add(&mut self, schedule: Schedule, plays: Plays) {
        let Some(difference) = plays.difference else {
            return;
        };
        let class = self.class(class(&schedule, difference), difference.what);
        class.count += 1;
        let size = |it: &Schedule| (it.moves.len(), it.table.rows.len());
        let is_smaller = |it: &Example| size(&schedule) < size(&it.schedule);
        if class.example.as_ref().is_none_or(is_smaller) {
            class.example = Some(Example { schedule, plays });
        }
    }

    fn class(&mut self, name: String, what: Differing) -> &mut Class {
        self.found.entry(name).or_insert(Class {
            what,
            count: 0,
            example: None,
        })
    }

    /// Sorts the classes and compares them with the list.
    pub(super) fn summary(&self, listed: &[Reason]) -> Summary {
        let mut classes: Vec<(&String, &Class)> = self.found.iter().collect();
        let rank = |what: Differing| match what {
            _ if what.is_wrong() => 0,
            Differing::Raced => 1,
            _ => 2,
        };
        classes.sort_by_key(|(_, it)| (rank(it.what), std::cmp::Reverse(it.count)));
        let mut summary = Summary {
            wrong_count: 0,
            unlisted_count: 0,
            raced_count: 0,
            class_count: 0,
            shown: Vec::new(),
        };
        let mut met = vec![false; listed.len()];
        for (name, class) in classes {
            if class.what == Differing::Raced {
                summary.raced_count += class.count;
                summary.shown.push(class.shown(name, "not proven wrong"));
                continue;
            }
            let is_of = |reason: &Reason| reason.lines.iter().any(|it| matches(it, name));
            let place = listed.iter().position(is_of);
            let place = place.filter(|_| !class.what.is_wrong());
            let state = match place {
                Some(place) => {
                    met[place] = true;
                    format!("listed: {}", listed[place].text)
                }
                None if class.what.is_wrong() => "WRONG RESULT".to_owned(),
                None => "not listed".to_owned(),
            };
            if place.is_none() {
                summary.unlisted_count += class.count;
                summary.class_count += 1;
            }
            if class.what.is_wrong() {
                summary.wrong_count += class.count;
            }
            summary.shown.push(class.shown(name, &state));
        }
        summary.class_count += met.iter().filter(|it| **it).count();
        summary
    }

    /// Counts by kind of difference, level and statement, and by what MariaDB waits for.
    pub(super) fn totals(&self) -> String {
        let mut totals = BTreeMap::<String, u64>::new();
        for (name, class) in &self.found {
            let parts: Vec<&str> = name.split('/').take(3).collect();
            *totals.entry(parts.join("/")).or_default() += class.count;
        }
        let (totals, locks) = (sorted(&totals), sorted(&self.locks));
        format!("by what differs, level and statement:\n{totals}\nMariaDB waits for:\n{locks}")
    }
}

/// A line for each count, the greatest first.
fn sorted(counts: &BTreeMap<String, u64>) -> String {
    let mut counts: Vec<(&String, &u64)> = counts.iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let lines = counts
        .iter()
        .map(|(name, count)| format!("{count:>8} {name}\n"));
    lines.collect()
}

/// The class without the other statement.
fn beginning(schedule: &Schedule, difference: Difference) -> String {
    let class = class(schedule, difference);
    class.split('/').take(4).collect::<Vec<_>>().join("/")
}

impl Class {
    fn shown(&self, name: &str, state: &str) -> String {
        let mut text = format!("{:>8} {name} ({state})\n", self.count);
        if let Some(example) = &self.example {
            text += &example.shown();
        }
        text
    }
}

impl Example {
    fn shown(&self) -> String {
        let Example { schedule, plays } = self;
        let script = schedule.script();
        let mut text = format!("seed {}: {}\n", schedule.seed, schedule.table.shown());
        let used = script.levels.iter().filter(|(name, _)| {
            let mut moves = schedule.moves.iter();
            moves.any(|it| it.session == Schedule::session(*name))
        });
        for (name, level) in used {
            writeln!(text, "{}: {level}", name.0).expect("a text takes all");
        }
        let (expected, got) = (&plays.expected, &plays.got);
        let both = expected.events.iter().zip(&got.events);
        let same: Vec<&Event> = both.take_while(|(a, b)| a == b).map(|it| it.0).collect();
        same.iter().for_each(|it| text += &it.to_string());
        let step = plays.difference.map_or(0, |it| it.step);
        let rest = |record: &Record| {
            let rest = record.events.iter().skip(same.len());
            let rest = rest.filter(|it| it.step == step);
            let lock = |it: &Event| record.locks.get(&(step, it.session?));
            rest.fold(String::new(), |text, it| match lock(it) {
                Some(lock) if it.what == What::Blocked => {
                    format!("{text}{} by {lock}\n", it.to_string().trim_end())
                }
                _ => text + &it.to_string(),
            })
        };
        text + &format!("MariaDB:\n{}here:\n{}\n", rest(expected), rest(got))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results behind a race are shown behind wrong ones, and no list can excuse either.
    #[test]
    fn results_behind_a_race_are_counted_apart() {
        let mut classes = Classes::default();
        for (name, what, count) in [
            ("raced/rr/select/plain/insert", Differing::Raced, 1),
            ("waits-here/rr/insert/plain/lock", Differing::WaitsHere, 3),
            ("rows/rr/select/plain/insert", Differing::Rows, 1),
            ("wakes-here/rr/insert/plain/lock", Differing::WakesHere, 2),
        ] {
            classes.class(name.to_owned(), what).count = count;
        }
        let listed = [Reason {
            text: "a reason".to_owned(),
            lines: ["raced/*", "rows/*", "waits-here/*"]
                .map(str::to_owned)
                .into(),
        }];
        let summary = classes.summary(&listed);
        assert_eq!(summary.raced_count, 1);
        assert_eq!(summary.wrong_count, 1);
        // What is wrong, and what wakes here.
        assert_eq!(summary.unlisted_count, 3);
        assert_eq!(summary.class_count, 3);
        let begins = ["rows/", "raced/", "waits-here/", "wakes-here/"];
        let mut both = summary.shown.iter().zip(begins);
        assert!(both.all(|(shown, begin)| shown.contains(&format!(" {begin}"))));
        assert!(summary.shown[1].contains("(not proven wrong)"));
    }
}
