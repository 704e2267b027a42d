//! [`History`]: the commands that every connection of a session needs.
//!
//! A connection is put right before it is used: it runs the commands that it has not run, in their
//! order. A command that gives a variable another value takes the place of the one before, unless
//! a command between them may have read that value. A role is read by what may need privileges, and
//! `sql_mode` and character sets by each text with a string.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use settings::SqlMode;
use syntax::class::set::{Assignment, Target};
use syntax::class::{Detail, classify};

use crate::command::{
    Command, decides_reading, depends_on_reading, depends_on_role, is_role, names_of, sets_only,
    sets_role,
};
use connection_state::CommandList;

/// Most commands that are kept. Programs set some ten variables.
pub const HISTORY_COMMANDS_MAX: usize = 64;

/// Most bytes of all of them.
pub const HISTORY_BYTES_MAX: usize = 16 << 10;

/// See the module's head.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    entries: VecDeque<Entry>,
    /// Of all commands.
    total_bytes: usize,
    /// All commands.
    list: CommandList,
    /// Those that decide how servers read texts.
    reading: CommandList,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    command: Command,
    /// The names that it sets, sorted. `None`: it may read what others set.
    names: Option<Vec<Box<[u8]>>>,
    /// It is a PREPARE: the database and the variables of its time hold for the statement.
    prepares: bool,
    /// Servers may read the texts behind it in another way.
    decides_reading: bool,
    /// It has a string, which servers may read in another way.
    depends_on_reading: bool,
    /// It may need the role that was set before it.
    depends_on_role: bool,
    sets: Sets,
}

/// What a command gives its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sets {
    /// User variables get NULL, which leaves their types.
    Null,
    /// All else.
    Values,
}

impl Hash for History {
    /// Equal histories have equal lists.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.list.hash(state);
    }
}

impl Entry {
    fn parts(&self) -> (u8, &[u8]) {
        (self.command.byte(), self.command.body())
    }

    /// Whether all its names, if they are known, are among these, which are sorted.
    fn is_covered_by(&self, names: &[Box<[u8]>]) -> bool {
        let own = self.names.as_ref();
        own.is_some_and(|own| own.iter().all(|name| names.binary_search(name).is_ok()))
    }
}

/// A command does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl History {
    /// All commands.
    pub fn list(&self) -> &CommandList {
        &self.list
    }

    /// Those commands that decide how servers read a text: the database, character sets,
    /// `sql_mode`, and all that is not known to leave that alone.
    pub fn reading(&self) -> &CommandList {
        &self.reading
    }

    /// Keeps a command that has succeeded.
    ///
    /// # Errors
    /// If there is no room.
    pub fn keep(&mut self, command: Command, mode: SqlMode) -> Result<(), Full> {
        let parts = (command.byte(), command.body());
        let names = names_of(parts, mode);
        let decides_reading = decides_reading(parts, mode);
        let depends_on_reading = depends_on_reading(parts, mode);
        let sets = sets(&command, mode);
        if let Some(names) = &names {
            self.supersede(names, sets);
            self.forget_unused_roles(names);
        }
        let is_forgotten = match &command {
            // Nothing is left that another connection needs.
            Command::Query(text) => {
                matches!(classify(text, mode).detail, Detail::Deallocate(_))
            }
            _ => false,
        };
        let bytes = self.total_bytes + command.body().len();
        let has_room = self.entries.len() < HISTORY_COMMANDS_MAX && bytes <= HISTORY_BYTES_MAX;
        if !is_forgotten && has_room {
            self.total_bytes = bytes;
            let prepares = matches!(&command, Command::Query(text)
                if matches!(classify(text, mode).detail, Detail::Prepare(..)));
            self.entries.push_back(Entry {
                command,
                depends_on_role: depends_on_role(names.as_deref()),
                names,
                sets,
                prepares,
                decides_reading,
                depends_on_reading,
            });
        }
        self.note_lists();
        match is_forgotten || has_room {
            true => Ok(()),
            false => Err(Full),
        }
    }

    /// Whether a COM_SET_OPTION lets a text have several statements. `None`: as at the login.
    pub fn allows_several(&self) -> Option<bool> {
        self.entries.iter().rev().find_map(|it| match it.command {
            Command::SetOption(option) => Some(option == [0, 0]),
            Command::Query(_) | Command::InitDb(_) => None,
        })
    }

    /// Forgets all commands but COM_SET_OPTION, since the client has logged in anew.
    pub fn log_in_anew(&mut self) {
        self.retain(|it| matches!(it, Command::SetOption(_)));
    }

    /// Forgets all commands but COM_SET_OPTION and the role, which outlive COM_RESET_CONNECTION
    /// (MariaDB 10.11).
    pub fn reset(&mut self) {
        self.retain(|it| match it {
            Command::SetOption(_) => true,
            Command::Query(text) => sets_role(text),
            Command::InitDb(_) => false,
        });
    }

    /// Forgets the databases that were chosen, since the last one is gone.
    pub fn forget_database(&mut self, mode: SqlMode) {
        self.retain(|it| it.database(mode).is_none());
    }

    fn retain(&mut self, is_left: impl Fn(&Command) -> bool) {
        self.entries.retain(|it| is_left(&it.command));
        let lengths = self.entries.iter().map(|it| it.command.body().len());
        self.total_bytes = lengths.sum();
        self.note_lists();
    }

    /// The commands have changed.
    fn note_lists(&mut self) {
        self.list = CommandList::of(self.entries.iter().map(Entry::parts));
        let deciding = self.entries.iter().filter(|it| it.decides_reading);
        self.reading = CommandList::of(deciding.map(Entry::parts));
    }

    /// The database that the kept commands have left; `None` if none has chosen one.
    pub fn database(&self, mode: SqlMode) -> Option<Vec<u8>> {
        let mut commands = self.entries.iter().rev().map(|entry| &entry.command);
        commands.find_map(|it| it.database(mode))
    }

    /// Forgets each role that another one follows before anything that may need it. `next` are the
    /// names of the command that comes.
    fn forget_unused_roles(&mut self, next: &[Box<[u8]>]) {
        let (mut last, mut unused) = (None, Vec::new());
        for (place, entry) in self.entries.iter().enumerate() {
            if is_role(entry.names.as_deref()) {
                unused.extend(last.replace(place));
            } else if entry.depends_on_role {
                last = None;
            }
        }
        unused.extend(last.filter(|_| is_role(Some(next))));
        self.forget(unused);
    }

    /// Forgets commands whose names are all set anew, back to the last that may read them. Roles
    /// are read by more, and a variable that is NULL has the type of its value before.
    fn supersede(&mut self, names: &[Box<[u8]>], sets: Sets) {
        let reads = |entry: &Entry| entry.names.is_none() || entry.prepares;
        let begin = self.entries.iter().rposition(reads).map_or(0, |it| it + 1);
        // What is kept reads no statement.
        let is_set_anew = |place: usize, entry: &Entry| {
            (begin <= place || entry.prepares)
                && !is_role(entry.names.as_deref())
                && (entry.sets == Sets::Null || sets == Sets::Values)
                && entry.is_covered_by(names)
                && !self.is_read(place, entry)
        };
        let entries = self.entries.iter().enumerate();
        let unused = entries.filter(|(place, entry)| is_set_anew(*place, entry));
        let unused = unused.map(|(place, _)| place).collect();
        self.forget(unused);
    }

    /// Whether the command at a place decides how the text of a later one is read, before another
    /// one sets all its names.
    fn is_read(&self, place: usize, entry: &Entry) -> bool {
        let sets_all = |later: &Entry| {
            later
                .names
                .as_ref()
                .is_some_and(|it| entry.is_covered_by(it))
        };
        let later = self.entries.iter().skip(place + 1);
        let mut readers = later.take_while(|it| !sets_all(it));
        entry.decides_reading && readers.any(|it| it.depends_on_reading)
    }

    /// Forgets the commands at these places, in rising order.
    fn forget(&mut self, places: Vec<usize>) {
        for place in places.into_iter().rev() {
            let entry = self.entries.remove(place).expect("it was found there");
            self.total_bytes -= entry.command.body().len();
        }
    }
}

fn sets(command: &Command, mode: SqlMode) -> Sets {
    let Command::Query(text) = command else {
        return Sets::Values;
    };
    let is_null = |it: &Assignment<'_>| {
        matches!(it.target, Target::User(_)) && it.value.text.eq_ignore_ascii_case(b"NULL")
    };
    match sets_only(text, mode, is_null) {
        true => Sets::Null,
        false => Sets::Values,
    }
}

#[cfg(test)]
mod tests {
    use wire::CommandByte;

    use super::*;

    fn kept(texts: &[&str]) -> Vec<String> {
        let mut history = History::default();
        for text in texts {
            let command = Command::Query(text.as_bytes().into());
            history.keep(command, SqlMode::default()).unwrap();
        }
        let text = |(byte, body): (u8, &[u8])| {
            assert_eq!(byte, CommandByte::QUERY);
            String::from_utf8(body.to_vec()).unwrap()
        };
        history.list().iter().map(text).collect()
    }

    #[test]
    fn a_later_value_takes_the_place_of_an_earlier_one() {
        let same = ["SET a = 1", "SET b = 2", "SET @a = 3", "SET NAMES latin1"];
        assert_eq!(kept(&same), same);
        assert_eq!(
            kept(&["SET a = 1, b = 2", "SET A = 3", "SET b = 4"]),
            ["SET a = 1, b = 2", "SET A = 3", "SET b = 4"],
            "a part of what a command sets does not replace it"
        );
        assert_eq!(
            kept(&["SET a = 1", "SET b = 2", "SET b = 3, a = 4"]),
            ["SET b = 3, a = 4"]
        );
        let typed = ["SET @a = 'b'", "SET @a = NULL"];
        assert_eq!(kept(&typed), typed, "NULL leaves the type");
        assert_eq!(
            kept(&["SET @a = 'b'", "SET @a = null", "SET @a = NULL"]),
            typed
        );
        assert_eq!(kept(&[typed[0], typed[1], "SET @a = 1"]), ["SET @a = 1"]);
        assert_eq!(kept(&["SET a = 1", "SET a = NULL"]), ["SET a = NULL"]);
        assert_eq!(
            kept(&["USE a", "SET a = 1", "USE b"]),
            ["SET a = 1", "USE b"]
        );
        assert_eq!(
            kept(&["SET NAMES latin1", "SET NAMES utf8mb4 COLLATE utf8mb4_bin"]),
            ["SET NAMES utf8mb4 COLLATE utf8mb4_bin"]
        );
        assert_eq!(
            kept(&["PREPARE s FROM 'SELECT 1'", "PREPARE s FROM 'SELECT 2'"]),
            ["PREPARE s FROM 'SELECT 2'"]
        );
        assert!(kept(&["PREPARE s FROM 'SELECT 1'", "DEALLOCATE PREPARE s"]).is_empty());
    }

    #[test]
    fn a_text_keeps_the_mode_and_the_character_set_that_it_was_read_in() {
        let kept_all = [
            "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
            r"SET @p = 'C:\temp'",
            "SET sql_mode = ''",
        ];
        assert_eq!(kept(&kept_all), kept_all);
        let named = ["SET NAMES latin1", "SET @a = 'a'", "SET NAMES utf8mb4"];
        assert_eq!(kept(&named), named);
        // A number is read alike, and values that come again and again do not add up.
        let number = ["SET NAMES latin1", "SET @a = 1", "SET NAMES utf8mb4"];
        assert_eq!(kept(&number), number[1..]);
        let again = [&named[..2], &named[..2], &named[..2]].concat();
        assert!(kept(&again).len() <= 3);
    }

    #[test]
    fn what_a_statement_sets_for_itself_takes_no_place() {
        let texts = [
            "SET a = 9",
            "SET STATEMENT a = 1 FOR SET b = 2",
            "SET a = 5",
        ];
        assert_eq!(kept(&texts), texts);
    }

    #[test]
    fn characteristics_roles_and_defaults_take_the_place_of_earlier_ones() {
        let transaction = |rest: &str| format!("SET SESSION TRANSACTION {rest}");
        let [only, write, level, both] = [
            "READ ONLY",
            "read  write",
            "ISOLATION LEVEL READ COMMITTED",
            "READ WRITE, ISOLATION LEVEL SERIALIZABLE",
        ]
        .map(transaction);
        assert_eq!(kept(&[&only, &level, &write]), [&*level, &write]);
        assert_eq!(kept(&[&only, &level, &both]), [&*both]);
        assert_eq!(kept(&[&both, &only]), [&*both, &only]);
        assert_eq!(
            kept(&[
                "SET a = DEFAULT",
                "SET b = DEFAULT",
                "SET a = 1, b = DEFAULT"
            ]),
            ["SET a = 1, b = DEFAULT"]
        );
        assert_eq!(
            kept(&["SET ROLE a", "SET @x = 1, autocommit = 0", "set role none"]),
            ["SET @x = 1, autocommit = 0", "set role none"]
        );
        // Another connection gets there by the role alone.
        let all = ["SET ROLE a", "USE shop", "SET ROLE b"];
        assert_eq!(kept(&all), all);
        let all = ["SET ROLE a", "SET sql_log_bin = 0", "SET ROLE b"];
        assert_eq!(kept(&all), all);
        let again = [&all[..], &["SET sql_log_bin = 1", "SET ROLE c"]].concat();
        assert_eq!(kept(&again), again[2..]);
        // What cannot be read is kept, and so is what stands before it.
        let odd = transaction("READ /* , */ ONLY");
        assert_eq!(kept(&[&only, &odd, &write]), [&*only, &odd, &write]);
    }

    #[test]
    fn the_database_is_the_one_that_was_chosen_last() {
        let mode = SqlMode::default();
        let mut history = History::default();
        assert_eq!(history.database(mode), None);
        for (command, name) in [
            (Command::InitDb(b"a".as_slice().into()), "a"),
            (Command::Query(b"USE `b`".as_slice().into()), "b"),
            (Command::Query(b"USE shop".as_slice().into()), "shop"),
            (Command::Query(b"SET @a = 1".as_slice().into()), "shop"),
        ] {
            history.keep(command, mode).unwrap();
            assert_eq!(history.database(mode), Some(name.into()));
        }
        history.forget_database(mode);
        assert_eq!(history.database(mode), None);
        let left: Vec<_> = history.list().iter().map(|(_, body)| body).collect();
        assert_eq!(left, [b"SET @a = 1"]);
    }

    #[test]
    fn what_may_have_been_read_stays() {
        let all = ["SET @a = 1", "SET @b = @a", "SET @a = 2"];
        assert_eq!(kept(&all), all);
        let all = [
            "SET sql_mode = ''",
            "SET sql_mode = CONCAT(@@sql_mode, ',ANSI')",
            "SET sql_mode = CONCAT(@@sql_mode, ',ANSI')",
        ];
        assert_eq!(kept(&all), all);
    }

    #[test]
    fn a_statement_is_prepared_in_the_database_of_its_time() {
        let all = ["USE a", "PREPARE p FROM 'SELECT x FROM t'", "USE b"];
        assert_eq!(kept(&all), all);
        let again = [&all[..], &["PREPARE p FROM 'SELECT y FROM t'"]].concat();
        assert_eq!(kept(&again), [all[0], all[2], again[3]]);
        let gone = [&again[..], &["DEALLOCATE PREPARE p", "USE c"]].concat();
        assert_eq!(kept(&gone), ["USE c"]);
    }

    #[test]
    fn an_option_outlives_all_and_a_role_a_reset() {
        let mode = SqlMode::default();
        let mut history = History::default();
        let option = Command::SetOption([1, 0]);
        let role = Command::Query(b"SET ROLE boss".as_slice().into());
        for command in [
            Command::InitDb(b"a".as_slice().into()),
            option.clone(),
            Command::Query(b"SET NAMES latin1".as_slice().into()),
            role.clone(),
        ] {
            history.keep(command, mode).unwrap();
        }
        let parts = |command: &Command| (command.byte(), command.body().to_vec());
        let left = |history: &History| {
            let list = history.list().iter();
            list.map(|(byte, body)| (byte, body.to_vec()))
                .collect::<Vec<_>>()
        };
        history.reset();
        assert_eq!(left(&history), [parts(&option), parts(&role)]);
        assert_eq!(history.total_bytes, option.body().len() + role.body().len());
        history.log_in_anew();
        assert_eq!(left(&history), [parts(&option)]);
        assert_eq!(history.total_bytes, option.body().len());
    }

    #[test]
    fn room_is_bounded_by_commands_and_bytes() {
        let keep = |history: &mut History, text: &str| {
            let command = Command::Query(text.as_bytes().into());
            history.keep(command, SqlMode::default())
        };
        let mut history = History::default();
        for number in 0..HISTORY_COMMANDS_MAX {
            assert_eq!(keep(&mut history, &format!("SET @a{number} = 1")), Ok(()));
        }
        assert_eq!(keep(&mut history, "SET @another = 1"), Err(Full));
        assert_eq!(keep(&mut history, "SET @a0 = 2"), Ok(()), "takes a place");
        history.reset();
        assert_eq!(history, History::default());

        let frame = "SET @a = ''".len();
        let of_bytes = |bytes: usize| format!("SET @a = '{}'", "x".repeat(bytes - frame));
        for bytes in [HISTORY_BYTES_MAX - 1, HISTORY_BYTES_MAX] {
            assert_eq!(keep(&mut history, &of_bytes(bytes)), Ok(()));
        }
        assert_eq!(keep(&mut history, "SET @b = 1"), Err(Full));
        assert_eq!(
            keep(&mut history, &of_bytes(HISTORY_BYTES_MAX + 1)),
            Err(Full)
        );
    }
}
