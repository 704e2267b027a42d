//! Tables of drawn schedules: their keys and rows.
//!
//! Each has the columns id, g (`id % 3`), k and v. Rows have small ids with gaps between them; k is
//! a multiple of five. Sixty rows far away are there so that both servers read ranges of keys by
//! their indexes. A key on g would have few values, so g is only the first part of a primary key.

use std::fmt::Write;

use crate::random::Random;

/// What identifies a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Primary {
    Id,
    /// (g, id).
    Composite,
    /// There is no primary key, and a plain key on id.
    Absent,
}

/// The key on k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Secondary {
    Absent,
    Plain,
    Unique,
    /// (k, v).
    Wide,
}

/// A table.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) primary: Primary,
    pub(super) secondary: Secondary,
    /// The type of k.
    k_type: &'static str,
    /// Half of all drawn values are at most [`NEAR`] above these, so that statements meet.
    focus_id: u64,
    focus_k: u64,
    pub(super) rows: Vec<Row>,
}

/// A row; `None` is NULL.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) id: u64,
    pub(super) k: Option<u64>,
    pub(super) v: u64,
}

/// Ids of rows are below this.
pub(super) const ID_LIMIT: u64 = 32;

/// Values of k are multiples of this.
pub(super) const K_STEP: u64 = 5;

/// Distinct values of k.
pub(super) const K_COUNT: u64 = 32;

/// Values of v are below this.
pub(super) const V_LIMIT: u64 = 6;

/// How near to the focus half of all values are.
const NEAR: u64 = 5;

const ROWS_MIN: u64 = 5;
const ROWS_MAX: u64 = 15;

/// Rows far from the others.
const FAR_ROWS: std::ops::Range<u64> = 1000..1060;

/// The far rows' g, which no other row has.
const FAR_G: u64 = 9;

impl Table {
    pub(super) fn draw(random: &mut Random) -> Table {
        let primary = random.of(&[
            Primary::Id,
            Primary::Id,
            Primary::Id,
            Primary::Composite,
            Primary::Absent,
        ]);
        let secondary = random.of(&[
            Secondary::Absent,
            Secondary::Plain,
            Secondary::Plain,
            Secondary::Unique,
            Secondary::Unique,
            Secondary::Wide,
        ]);
        let k_type = random.of(&["INT NOT NULL", "INT"]);
        let mut table = Table {
            primary,
            secondary,
            k_type,
            focus_id: random.below(ID_LIMIT - NEAR),
            focus_k: random.below(K_COUNT - NEAR),
            rows: Vec::new(),
        };
        for _ in 0..ROWS_MIN + random.below(ROWS_MAX - ROWS_MIN + 1) {
            let row = table.draw_row(random);
            if table.has_room(&row) {
                table.rows.push(row);
            }
        }
        table
    }

    pub(super) fn is_nullable(&self) -> bool {
        self.k_type == "INT"
    }

    /// Whether InnoDB keeps the rows by the unique key on k, since there is no primary key.
    pub(super) fn is_kept_by_k(&self) -> bool {
        let is_unique = self.secondary == Secondary::Unique && !self.is_nullable();
        self.primary == Primary::Absent && is_unique
    }

    /// Any row, which may be there already.
    pub(super) fn draw_row(&self, random: &mut Random) -> Row {
        let is_null = self.is_nullable() && random.below(8) == 0;
        Row {
            id: self.draw_id(random),
            k: (!is_null).then(|| self.draw_k(random)),
            v: 1 + random.below(V_LIMIT - 1),
        }
    }

    /// An id, of a row or not.
    pub(super) fn draw_id(&self, random: &mut Random) -> u64 {
        1 + near(self.focus_id, ID_LIMIT - 1, random)
    }

    /// A value of k, of a row or not.
    pub(super) fn draw_k(&self, random: &mut Random) -> u64 {
        K_STEP * (1 + near(self.focus_k, K_COUNT, random))
    }

    fn has_room(&self, row: &Row) -> bool {
        self.rows.iter().all(|it| {
            let is_same = it.k.is_some() && it.k == row.k;
            it.id != row.id && !(self.secondary == Secondary::Unique && is_same)
        })
    }

    /// The statements that make and fill it.
    pub(super) fn setup(&self) -> Vec<String> {
        let primary = match self.primary {
            Primary::Id => ", PRIMARY KEY (id)",
            Primary::Composite => ", PRIMARY KEY (g, id)",
            Primary::Absent => ", KEY id (id)",
        };
        let secondary = match self.secondary {
            Secondary::Absent => "",
            Secondary::Plain => ", KEY k (k)",
            Secondary::Unique => ", UNIQUE KEY k (k)",
            Secondary::Wide => ", KEY k (k, v)",
        };
        let k_type = self.k_type;
        let columns = format!("id INT NOT NULL, g INT NOT NULL, k {k_type}, v INT");
        let mut rows = self.rows.iter().fold(String::new(), |mut rows, row| {
            write!(rows, "{}, ", row.text()).expect("a text takes all");
            rows
        });
        for id in FAR_ROWS {
            let comma = if id + 1 < FAR_ROWS.end { ", " } else { "" };
            write!(rows, "({id}, {FAR_G}, {}, 0){comma}", id * 10).expect("a text takes all");
        }
        vec![
            format!("CREATE OR REPLACE TABLE t ({columns}{primary}{secondary}) ENGINE=InnoDB"),
            format!("INSERT INTO t VALUES {rows}"),
        ]
    }

    /// What a reader of a report has to know of it.
    pub(super) fn shown(&self) -> String {
        let setup = self.setup();
        let rows: Vec<String> = self.rows.iter().map(Row::text).collect();
        format!("{}\nrows {}, and those far away", setup[0], rows.join(", "))
    }

    /// Its keys, as classes name them.
    pub(super) fn name(&self) -> String {
        let primary = match self.primary {
            Primary::Id => "primary",
            Primary::Composite => "composite",
            Primary::Absent => "rowid",
        };
        match self.secondary {
            Secondary::Absent => primary.to_owned(),
            secondary => format!("{primary}+{}", secondary.name()),
        }
    }
}

impl Secondary {
    pub(super) fn name(self) -> &'static str {
        match self {
            Secondary::Absent => "none",
            Secondary::Plain => "plain",
            Secondary::Unique => "unique",
            Secondary::Wide => "wide",
        }
    }
}

impl Row {
    /// As it stands in VALUES.
    pub(super) fn text(&self) -> String {
        let k = self.k.map_or("NULL".to_owned(), |k| k.to_string());
        format!("({}, {}, {k}, {})", self.id, self.id % 3, self.v)
    }
}

/// A number below a limit, often one near the focus.
fn near(focus: u64, limit: u64, random: &mut Random) -> u64 {
    match random.below(2) {
        0 => (focus + random.below(NEAR)).min(limit - 1),
        _ => random.below(limit),
    }
}
