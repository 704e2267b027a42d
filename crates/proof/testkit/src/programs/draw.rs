//! [`Program`]: the grammar.
//!
//! A client's part is a row of phases. In most, the gateway may give the client's connection to
//! others after each statement. In some, statements pin the client, as `docs/gateway.md` lists;
//! these end with what lifts each pin. Many statements fail, which is as good: what a failure
//! leaves is compared, too.
//!
//! Not drawn, because the gateway's answers are other ones, as documented: ways to read warnings
//! other than SHOW WARNINGS, long after their statement; numbers of connections other than the
//! client's own; commands for statements and cursors that there are not, since the error is the
//! gateway's own and in no server's SHOW WARNINGS; statements that are prepared under other
//! variables than they are executed in, which not all can be given back; FOUND_ROWS()
//! behind anything but a plain SELECT or SHOW; routines that read of the statement before their
//! call; definitions of routines, since one empties the server's cache of routines, and the next
//! call in any session then has a warning.

use env::Random;

use super::action::{Action, Execution, SLOTS, Value};
use super::{ACCOUNTS, mark};

mod items;

/// Parts of several clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Decides whose turn it is.
    pub seed: u64,
    /// What each client does.
    pub parts: Vec<Vec<Action>>,
}

/// Draws the part of one client.
struct Draw<'r> {
    random: &'r mut Random,
    /// See [`mark`].
    mark: String,
    /// Counts values, so that each is another one.
    count: u64,
    /// Its prepared statements.
    slots: [Option<Statement>; SLOTS],
}

/// Draws what belongs together.
type Item = fn(&mut Draw<'_>) -> Vec<Action>;

/// A prepared statement.
#[derive(Debug, Clone, Copy)]
struct Statement {
    text: &'static str,
    /// It was executed last with texts, and has told that type.
    has_texts: bool,
    /// It was executed with a number.
    has_numbers: bool,
}

impl Statement {
    /// Where a parameter was a number before, MariaDB 10.11 takes an address of its memory for the
    /// long data of that parameter. No two answers are alike.
    fn takes_long_data(self) -> bool {
        !self.has_numbers
    }
}

impl Program {
    /// The program of a seed.
    pub fn draw(seed: u64) -> Program {
        let mut random = Random::new(seed);
        let clients = 3 + random.index(4);
        let parts = (0..clients)
            .map(|client| {
                let mut draw = Draw {
                    random: &mut random,
                    mark: mark(client),
                    count: 0,
                    slots: Default::default(),
                };
                draw.part()
            })
            .collect();
        Program { seed, parts }
    }
}

impl Draw<'_> {
    fn part(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        for _ in 0..2 + self.random.index(3) {
            let is_pinned = self.random.chance(300);
            // A few kinds of items at a time, so that they meet.
            let mut kinds: Vec<Item> = Vec::new();
            for _ in 0..3 + self.random.index(5) {
                kinds.push(self.one_of(items::FREE));
            }
            if is_pinned {
                for _ in 0..2 {
                    kinds.push(self.one_of(items::PINNED));
                }
            }
            for _ in 0..6 + self.random.index(10) {
                let kind = match self.random.chance(300) {
                    true => self.one_of(items::FREE),
                    false => self.one_of(&kinds),
                };
                actions.extend(kind(self));
            }
            if is_pinned || self.random.chance(300) {
                actions.push(self.begin_anew());
            }
        }
        actions
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.random.index(all.len())]
    }

    /// A text with the client's mark in the place of `{c}`, a new value in that of `{v}`, and a
    /// small number in that of `{n}`.
    fn fill(&mut self, text: &str) -> String {
        let mut text = text.replace("{c}", &self.mark);
        while text.contains("{v}") {
            let value = format!("'{}'", self.value());
            text = text.replacen("{v}", &value, 1);
        }
        while text.contains("{n}") {
            let number = self.random.below(5).to_string();
            text = text.replacen("{n}", &number, 1);
        }
        text
    }

    /// A value that is the client's own, and new.
    fn value(&mut self) -> String {
        self.count += 1;
        format!("{}v{}", self.mark, self.count)
    }

    /// Closes its prepared statements.
    fn close_all(&mut self) -> Vec<Action> {
        let known = std::mem::take(&mut self.slots);
        let open = (0..SLOTS).filter(|slot| known[*slot].is_some());
        open.map(Action::Close).collect()
    }

    fn query(&mut self, texts: &[&str]) -> Vec<Action> {
        let text = self.one_of(texts);
        vec![Action::Query(self.fill(text))]
    }

    /// The session is as after its login, or nearly so.
    fn begin_anew(&mut self) -> Action {
        self.slots = Default::default();
        match self.random.below(4) {
            0 | 1 => Action::Reset,
            2 => {
                let database = self.one_of(&["{c}db", "{c}db", ""]);
                let database = self.fill(database);
                Action::ChangeUser(self.one_of(&ACCOUNTS).to_owned(), database)
            }
            _ => Action::Reconnect,
        }
    }

    fn prepare(&mut self, texts: &[&'static str]) -> Vec<Action> {
        let text = self.one_of(texts);
        let slot = self.random.index(SLOTS);
        let mut actions = Vec::new();
        if self.slots[slot].is_some() && self.random.coin() {
            actions.push(Action::Close(slot));
        }
        self.slots[slot] = Some(Statement {
            text,
            has_texts: false,
            has_numbers: false,
        });
        actions.push(Action::Prepare(slot, self.fill(text)));
        actions
    }

    /// A command for a statement that was prepared, or was not.
    fn use_statement(&mut self) -> Vec<Action> {
        let slot = self.random.index(SLOTS);
        let known = self.slots[slot];
        let count = known.map_or(0, |it| it.text.matches('?').count());
        let has_texts = known.is_some_and(|it| it.has_texts);
        match self.random.below(12) {
            0 => return vec![Action::ResetStatement(slot)],
            1 => {
                self.slots[slot] = None;
                return vec![Action::Close(slot)];
            }
            2 if 0 < count && known.is_some_and(Statement::takes_long_data) => {
                let (one, two) = (self.value(), self.value());
                let mut values: Vec<_> = (1..count).map(|_| self.parameter()).collect();
                values.insert(0, Value::Sent);
                self.slots[slot] = known.map(|it| Statement {
                    has_texts: false,
                    ..it
                });
                return vec![
                    Action::LongData(slot, 0, one),
                    Action::LongData(slot, 0, two),
                    Action::Execute(slot, values, Execution::Plain),
                ];
            }
            _ => {}
        }
        if has_texts && self.random.coin() {
            let values = (0..count).map(|_| Value::Text(self.value())).collect();
            return vec![Action::Execute(slot, values, Execution::Untyped)];
        }
        let is_text = self.random.coin();
        let values = (0..count)
            .map(|_| match is_text {
                true => Value::Text(self.value()),
                false => self.parameter(),
            })
            .collect();
        self.slots[slot] = known.map(|it| Statement {
            has_texts: is_text,
            has_numbers: it.has_numbers || !is_text,
            ..it
        });
        if self.random.chance(300) {
            let mut actions = vec![Action::Execute(slot, values, Execution::Cursor)];
            for _ in 0..self.random.index(4) {
                actions.push(Action::Fetch(slot, 1 + u32::from(self.random.coin())));
            }
            if self.random.chance(700) {
                actions.push(Action::ResetStatement(slot));
            }
            return actions;
        }
        vec![Action::Execute(slot, values, Execution::Plain)]
    }

    fn parameter(&mut self) -> Value {
        match self.random.below(4) {
            0 => Value::Null,
            1 => Value::Text(self.value()),
            _ => Value::Number(i64::from(self.random.coin()) * 1000 + 2),
        }
    }
}
