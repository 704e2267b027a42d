//! Statements of drawn schedules.
//!
//! Only such forms are drawn of which the access path is sure: SELECT and UPDATE name their index,
//! DELETE and INSERT have short ranges of keys.

use crate::random::Random;

use super::table::{ID_LIMIT, K_COUNT, K_STEP, Primary, Secondary, Table, V_LIMIT};

/// The kind of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Begin,
    /// COMMIT.
    Commit,
    Rollback,
    Savepoint,
    RollbackTo,
    Insert,
    InsertRows,
    InsertIgnore,
    /// INSERT .. ON DUPLICATE KEY UPDATE.
    InsertUpdate,
    Replace,
    InsertSelect,
    Update,
    /// Changes a column of the primary key or of the key on k.
    UpdateKey,
    Delete,
    Select,
    SelectForUpdate,
    SelectShare,
    SkipLocked,
    NoWait,
}

/// A statement.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) kind: Kind,
    /// By which index it finds rows, and `-` and in which form; of an INSERT, the table's keys.
    pub(super) access: String,
    pub(super) text: String,
}

/// How a statement finds its rows.
struct Access {
    /// The index, as classes name it.
    index: &'static str,
    form: &'static str,
    /// Behind the table's name; DELETE has no place for it.
    hint: &'static str,
    condition: String,
    /// ORDER BY and LIMIT, or nothing.
    limit: String,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Begin => "begin",
            Kind::Commit => "commit",
            Kind::Rollback => "rollback",
            Kind::Savepoint => "savepoint",
            Kind::RollbackTo => "rollback-to",
            Kind::Insert => "insert",
            Kind::InsertRows => "insert-rows",
            Kind::InsertIgnore => "insert-ignore",
            Kind::InsertUpdate => "insert-update",
            Kind::Replace => "replace",
            Kind::InsertSelect => "insert-select",
            Kind::Update => "update",
            Kind::UpdateKey => "update-key",
            Kind::Delete => "delete",
            Kind::Select => "select",
            Kind::SelectForUpdate => "select-for-update",
            Kind::SelectShare => "select-share",
            Kind::SkipLocked => "skip-locked",
            Kind::NoWait => "nowait",
        }
    }

    /// What it does, as classes name it: some kinds meet others in the same way.
    pub(super) fn family(self) -> &'static str {
        match self {
            Kind::InsertRows => Kind::Insert.name(),
            Kind::SelectForUpdate | Kind::SelectShare | Kind::NoWait => "lock",
            _ => self.name(),
        }
    }

    /// Whether it reads or changes rows.
    pub(super) fn is_about_rows(self) -> bool {
        !matches!(
            self,
            Kind::Begin | Kind::Commit | Kind::Rollback | Kind::Savepoint | Kind::RollbackTo
        )
    }

    /// Whether its plan chooses an access path.
    pub(super) fn has_plan(self) -> bool {
        use Kind::{Insert, InsertIgnore, InsertRows, InsertUpdate, Replace};
        let inserts = [Insert, InsertIgnore, InsertRows, InsertUpdate, Replace];
        self.is_about_rows() && !inserts.contains(&self)
    }
}

/// What is drawn, each as often as it is named.
const KINDS: &[Kind] = &[
    Kind::Insert,
    Kind::Insert,
    Kind::InsertRows,
    Kind::InsertIgnore,
    Kind::InsertUpdate,
    Kind::Replace,
    Kind::InsertSelect,
    Kind::Update,
    Kind::Update,
    Kind::Update,
    Kind::UpdateKey,
    Kind::UpdateKey,
    Kind::Delete,
    Kind::Delete,
    Kind::Delete,
    Kind::Select,
    Kind::Select,
    Kind::SelectForUpdate,
    Kind::SelectForUpdate,
    Kind::SelectShare,
    Kind::SkipLocked,
    Kind::NoWait,
];

impl Statement {
    /// A statement without rows.
    pub(super) fn plain(kind: Kind, text: &str) -> Statement {
        Statement {
            kind,
            access: "none".to_owned(),
            text: text.to_owned(),
        }
    }

    /// The kind of its index, as classes name it: of an INSERT, that of the key on k, if any.
    pub(super) fn index(&self) -> &'static str {
        let by = self.access.split('-').next().unwrap_or_default();
        let last = by.rsplit('+').next().unwrap_or_default();
        match last {
            "primary" | "composite" => "primary",
            "plain" | "wide" | "rowid" => "plain",
            "unique" => "unique",
            "scan" => "scan",
            _ => "none",
        }
    }

    pub(super) fn draw(table: &Table, random: &mut Random) -> Statement {
        let kind = random.of(KINDS);
        match kind {
            Kind::Update | Kind::UpdateKey => update(kind, table, random),
            Kind::Delete => delete(table, random),
            Kind::InsertSelect => insert_select(table, random),
            Kind::Select
            | Kind::SelectForUpdate
            | Kind::SelectShare
            | Kind::SkipLocked
            | Kind::NoWait => select(kind, table, random),
            _ => insert(kind, table, random),
        }
    }
}

fn insert(kind: Kind, table: &Table, random: &mut Random) -> Statement {
    let row = |random: &mut Random| table.draw_row(random).text();
    let text = match kind {
        Kind::InsertRows => {
            let rows = [row(random), row(random)].join(", ");
            format!("INSERT INTO t VALUES {rows}")
        }
        Kind::InsertIgnore => format!("INSERT IGNORE INTO t VALUES {}", row(random)),
        Kind::InsertUpdate => {
            let change = random.of(&["v = v + 10", "v = VALUES(v) + 20", "k = k + 5"]);
            let row = row(random);
            format!("INSERT INTO t VALUES {row} ON DUPLICATE KEY UPDATE {change}")
        }
        Kind::Replace => format!("REPLACE INTO t VALUES {}", row(random)),
        _ => format!("INSERT INTO t VALUES {}", row(random)),
    };
    Statement {
        kind,
        access: table.name(),
        text,
    }
}

fn insert_select(table: &Table, random: &mut Random) -> Statement {
    let access = Access {
        limit: String::new(),
        ..Access::draw(table, random)
    };
    let (hint, condition) = (access.hint, &access.condition);
    let shift = 1 + random.below(ID_LIMIT);
    let columns = format!("id + {shift}, (id + {shift}) % 3, k + {K_STEP}, v");
    Statement {
        kind: Kind::InsertSelect,
        access: access.name(),
        text: format!("INSERT INTO t SELECT {columns} FROM t{hint} WHERE {condition}"),
    }
}

fn update(kind: Kind, table: &Table, random: &mut Random) -> Statement {
    let access = Access::draw(table, random);
    let is_of_k = table.secondary != Secondary::Absent && random.below(3) != 0;
    let change = match (kind, is_of_k) {
        (Kind::UpdateKey, true) if random.below(4) == 0 => "k = NULL".to_owned(),
        (Kind::UpdateKey, true) if random.below(2) == 0 => format!("k = {}", table.draw_k(random)),
        (Kind::UpdateKey, true) => format!("k = k + {}", random.of(&[1, K_STEP, 40])),
        (Kind::UpdateKey, false) => {
            let id = table.draw_id(random);
            format!("id = {id}, g = {}", id % 3)
        }
        _ => format!("v = v + {}", 10 * (1 + random.below(9))),
    };
    let change = match table.is_nullable() {
        false => change.replace("NULL", "7"),
        true => change,
    };
    let Access {
        hint,
        condition,
        limit,
        ..
    } = &access;
    Statement {
        kind,
        access: access.name(),
        text: format!("UPDATE t{hint} SET {change} WHERE {condition}{limit}"),
    }
}

fn delete(table: &Table, random: &mut Random) -> Statement {
    let access = Access::draw(table, random);
    let (condition, limit) = (&access.condition, &access.limit);
    Statement {
        kind: Kind::Delete,
        access: access.name(),
        text: format!("DELETE FROM t WHERE {condition}{limit}"),
    }
}

fn select(kind: Kind, table: &Table, random: &mut Random) -> Statement {
    let access = Access::draw(table, random);
    let columns = random.of(&["*", "*", "k", "id, k", "COUNT(*), SUM(v)"]);
    let columns = match access.limit.is_empty() {
        false if columns.starts_with("COUNT") => "*",
        _ => columns,
    };
    let modes = ["FOR UPDATE", "LOCK IN SHARE MODE"];
    let lock = match kind {
        Kind::SelectForUpdate => " FOR UPDATE".to_owned(),
        Kind::SelectShare => " LOCK IN SHARE MODE".to_owned(),
        Kind::SkipLocked => format!(" {} SKIP LOCKED", random.of(&modes)),
        Kind::NoWait => format!(" {} NOWAIT", random.of(&modes)),
        _ => String::new(),
    };
    let Access {
        hint,
        condition,
        limit,
        ..
    } = &access;
    Statement {
        kind,
        access: access.name(),
        text: format!("SELECT {columns} FROM t{hint} WHERE {condition}{limit}{lock}"),
    }
}

impl Access {
    fn draw(table: &Table, random: &mut Random) -> Access {
        let has_k = table.secondary != Secondary::Absent;
        match random.below(10) {
            0..5 if has_k => Access::by_k(table, random),
            5..9 => Access::by_id(table, random),
            _ => Access {
                index: "scan",
                form: "all",
                hint: " USE INDEX ()",
                condition: format!("v = {}", 1 + random.below(V_LIMIT)),
                limit: match random.below(4) {
                    0 => format!(" LIMIT {}", 1 + random.below(2)),
                    _ => String::new(),
                },
            },
        }
    }

    fn by_k(table: &Table, random: &mut Random) -> Access {
        let index = table.secondary.name();
        let value = |random: &mut Random| table.draw_k(random) + random.of(&[0, 0, 0, 2]);
        if table.is_nullable() && random.below(12) == 0 {
            let condition = "k IS NULL".to_owned();
            return Access::of(
                index,
                " FORCE INDEX (k)",
                ("null", condition, String::new()),
            );
        }
        // Rows of one `k` have an order in the index alone: MariaDB may sort them for a backward
        // UPDATE, and then LIMIT takes another one of them.
        let directions: &[&str] = match table.secondary {
            Secondary::Unique => &EACH_DIRECTION,
            _ => &[""],
        };
        let drawn = draw_form("k", value, K_STEP * (K_COUNT + 4), directions, random);
        Access::of(index, " FORCE INDEX (k)", drawn)
    }

    fn by_id(table: &Table, random: &mut Random) -> Access {
        let value = |random: &mut Random| table.draw_id(random);
        // Without a primary key rows may have one `id`, as they may have one `k`.
        let directions: &[&str] = match table.primary {
            Primary::Absent => &[""],
            Primary::Id | Primary::Composite => &EACH_DIRECTION,
        };
        let drawn = draw_form("id", value, ID_LIMIT + 4, directions, random);
        match table.primary {
            Primary::Id => Access::of("primary", " FORCE INDEX (PRIMARY)", drawn),
            Primary::Absent => Access::of("rowid", " FORCE INDEX (id)", drawn),
            Primary::Composite => {
                let (form, condition, limit) = drawn;
                let (form, g) = match form {
                    "point" if random.below(2) == 0 => {
                        let id = value(random);
                        let condition = format!("g = {} AND id = {id}", id % 3);
                        let drawn = ("point", condition, String::new());
                        return Access::of("composite", " FORCE INDEX (PRIMARY)", drawn);
                    }
                    _ => (form, random.below(3)),
                };
                let condition = format!("g = {g} AND {condition}");
                let drawn = (form, condition, limit);
                Access::of("composite", " FORCE INDEX (PRIMARY)", drawn)
            }
        }
    }

    fn of(
        index: &'static str,
        hint: &'static str,
        (form, condition, limit): (&'static str, String, String),
    ) -> Access {
        Access {
            index,
            form,
            hint,
            condition,
            limit,
        }
    }

    /// As classes name it.
    fn name(&self) -> String {
        let limited = if self.limit.is_empty() { "" } else { "-limit" };
        format!("{}-{}{limited}", self.index, self.form)
    }
}

/// Both orders of a column.
const EACH_DIRECTION: [&str; 2] = ["", " DESC"];

/// The form of a condition on a column with an index, the condition, and its ORDER BY and LIMIT.
fn draw_form(
    column: &str,
    value: impl Fn(&mut Random) -> u64,
    end: u64,
    directions: &[&str],
    random: &mut Random,
) -> (&'static str, String, String) {
    let (a, b) = (value(random), value(random));
    let (low, high) = (a.min(b), a.max(b));
    let (form, condition) = match random.below(10) {
        0..4 => ("point", format!("{column} = {a}")),
        4 => ("range", format!("{column} < {a}")),
        5 => ("range", format!("{column} > {a} AND {column} <= {end}")),
        6 => ("range", format!("{column} >= {a} AND {column} < {end}")),
        7 => ("points", format!("{column} IN ({low}, {})", high + 1)),
        _ => ("range", format!("{column} BETWEEN {low} AND {high}")),
    };
    let limit = match random.below(5) {
        0 if form == "range" => {
            let direction = random.of(directions);
            format!(
                " ORDER BY {column}{direction} LIMIT {}",
                1 + random.below(3)
            )
        }
        _ => String::new(),
    };
    (form, condition, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_name_kinds_of_indexes() {
        for (access, index) in [
            ("primary-point", "primary"),
            ("composite+unique", "unique"),
            ("wide-range-limit", "plain"),
            ("rowid", "plain"),
            ("scan-all", "scan"),
            ("none", "none"),
        ] {
            let mut statement = Statement::plain(Kind::Update, "");
            access.clone_into(&mut statement.access);
            assert_eq!(statement.index(), index, "{access}");
        }
    }
}
