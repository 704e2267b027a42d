//! [`Pending`]: changes that the log has told of, and that not all sessions of the server can see
//! yet. [`Progress`]: whether the log is sent as it is written.

use std::collections::VecDeque;
use std::time::Duration;

use binary_log::Place;
use env::Instant;
use result_cache::Changing;

/// More of them are kept as one change of any table.
pub(super) const PENDING_MAX: usize = 256;

/// See the module's head. In the order of the log.
#[derive(Debug, Default)]
pub(super) struct Pending {
    changes: VecDeque<Change>,
}

#[derive(Debug)]
struct Change {
    changing: Changing,
    /// Behind the event that has told of it. It stands before the end of its transaction.
    place: Place,
    at: Instant,
}

/// Which changes all sessions can see.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Those of transactions that end before or at a place.
    UpTo(Place),
    /// Those that the log has told of before this moment.
    Before(Instant),
}

impl Pending {
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        PENDING_MAX < self.changes.len()
    }

    /// The log has told of a change.
    pub(super) fn begin(&mut self, changing: Changing, place: Place, at: Instant) {
        self.changes.push_back(Change {
            changing,
            place,
            at,
        });
    }

    /// One change that has begun stands for all.
    pub(super) fn replace(&mut self, changing: Changing, place: Place, at: Instant) {
        let before = std::mem::take(&mut self.changes);
        self.begin(changing, place, at);
        before.into_iter().for_each(|it| it.changing.end());
    }

    /// The log is lost: all is void, and whatever comes is read again.
    pub(super) fn give_up(&mut self) {
        self.changes.drain(..).for_each(|it| it.changing.end());
    }

    /// Ends those that can be seen.
    pub(super) fn end(&mut self, seen: &Seen) {
        let is_seen = |it: &Change| match seen {
            Seen::UpTo(place) => it.place.is_reached_by(place),
            Seen::Before(moment) => it.at <= *moment,
        };
        while self.changes.front().is_some_and(is_seen) {
            if let Some(change) = self.changes.pop_front() {
                change.changing.end();
            }
        }
    }
}

/// The server's own word of its log, beside what is read of it. MariaDB goes on with a dump in
/// silence after RESET MASTER.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// What the server has said last.
    seen: Place,
    /// A place that is not read yet, and when the server was there.
    unread: Option<(Place, Instant)>,
}

/// A log that is read so much later than it was written is lost.
pub(super) const LATENESS_MAX: Duration = Duration::from_secs(3);

impl Progress {
    /// Whether the log is the same as before and was read in time up to a place.
    pub(super) fn check(
        &mut self,
        read: &Place,
        seen: &Seen,
        now: Instant,
    ) -> Result<(), &'static str> {
        let Seen::UpTo(place) = seen else {
            return Ok(());
        };
        let before = std::mem::replace(&mut self.seen, place.clone());
        if !before.file.is_empty() && !before.is_reached_by(place) {
            return Err("its binary log begins again");
        }
        let is_read = |(place, _): &(Place, Instant)| place.is_reached_by(read);
        if self.unread.as_ref().is_none_or(is_read) {
            self.unread = (!place.is_reached_by(read)).then(|| (place.clone(), now));
        }
        match &self.unread {
            Some((_, since)) if LATENESS_MAX <= now.since(*since) => {
                Err("its binary log comes too late")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use result_cache::{Changes, TableSlot, Tables};

    use super::*;

    fn place(file: &str, offset: u64) -> Place {
        Place::new(file.as_bytes(), offset)
    }

    struct Scene {
        tables: Arc<Tables>,
        pending: Pending,
    }

    impl Scene {
        fn new() -> Scene {
            let tables: Arc<Tables> = Arc::default();
            tables.learn(tables.doubts(), &[]);
            Scene {
                tables,
                pending: Pending::default(),
            }
        }

        fn begin(&mut self, name: &str, place: Place, seconds: u64) {
            let changes = Changes::of_tables([name.as_bytes()]);
            let changing = self.tables.begin_change(changes);
            self.pending.begin(changing, place, at(seconds));
        }

        /// Which of these tables results are kept of.
        fn kept(&self, names: &str) -> String {
            let is_kept = |name: &char| {
                let slot = TableSlot::of(name.to_string().as_bytes()).unwrap();
                self.tables.begin_query(&[slot], at(0)).is_ok()
            };
            names.chars().filter(is_kept).collect()
        }
    }

    fn at(seconds: u64) -> Instant {
        Instant::default() + Duration::from_secs(seconds)
    }

    #[test]
    fn changes_end_when_the_server_is_behind_them() {
        let mut scene = Scene::new();
        scene.begin("a", place("l.1", 100), 0);
        scene.begin("b", place("l.1", 200), 0);
        scene.begin("c", place("l.2", 50), 0);
        for (seen, kept) in [
            (place("l.1", 99), "d"),
            (place("l.1", 150), "ad"),
            (place("l.2", 4), "abd"),
            (place("l.1", 999), "abd"),
            (place("l.2", 50), "abcd"),
        ] {
            scene.pending.end(&Seen::UpTo(seen));
            assert_eq!(scene.kept("abcd"), kept);
        }
        assert!(scene.pending.is_empty());
    }

    #[test]
    fn changes_end_when_their_time_is_over() {
        let mut scene = Scene::new();
        scene.begin("a", place("l.1", 100), 3);
        scene.begin("b", place("l.1", 100), 5);
        for (moment, kept) in [(2, ""), (3, "a"), (4, "a"), (5, "ab")] {
            scene.pending.end(&Seen::Before(at(moment)));
            assert_eq!(scene.kept("ab"), kept);
        }
    }

    #[test]
    fn a_log_that_begins_again_or_comes_late_is_lost() {
        let last = LATENESS_MAX.as_secs();
        let mut progress = Progress::default();
        for (read, seen, seconds, expected) in [
            (("l.2", 100), ("l.2", 100), 0, Ok(())),
            (("l.2", 100), ("l.2", 200), 10, Ok(())),
            (("l.2", 150), ("l.2", 300), 10 + last - 1, Ok(())),
            // It was behind, and is so again.
            (("l.2", 200), ("l.2", 300), 10 + last, Ok(())),
            (("l.2", 250), ("l.3", 4), 10 + 2 * last - 1, Ok(())),
            (
                ("l.2", 250),
                ("l.3", 4),
                10 + 2 * last,
                Err("its binary log comes too late"),
            ),
            (("l.3", 4), ("l.3", 4), 99, Ok(())),
            (
                ("l.3", 4),
                ("l.1", 900),
                99,
                Err("its binary log begins again"),
            ),
        ] {
            let seen = Seen::UpTo(place(seen.0, seen.1));
            let found = progress.check(&place(read.0, read.1), &seen, at(seconds));
            assert_eq!(found, expected, "{seen:?}");
        }
        let settled = Seen::Before(at(0));
        assert_eq!(progress.check(&place("", 0), &settled, at(0)), Ok(()));
    }

    #[test]
    fn too_many_changes_become_one_of_any_table() {
        let mut scene = Scene::new();
        for count in 1..=PENDING_MAX + 1 {
            scene.begin("a", place("l.1", 100), 0);
            assert_eq!(scene.pending.is_full(), PENDING_MAX < count, "{count}");
        }
        assert_eq!(scene.kept("ab"), "b");
        let changing = scene.tables.begin_change(Changes::AnyTable);
        scene.pending.replace(changing, place("l.1", 300), at(0));
        assert_eq!(scene.kept("ab"), "");
        scene.pending.end(&Seen::UpTo(place("l.1", 200)));
        assert_eq!(scene.kept("ab"), "");
        scene.pending.end(&Seen::UpTo(place("l.1", 300)));
        assert_eq!(scene.kept("ab"), "ab");
    }
}
