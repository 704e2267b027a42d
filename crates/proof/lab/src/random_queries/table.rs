//! Random tables: columns of every type and collation, keys of every kind, rows.

use crate::random::Random;

use super::constant::Family;

/// A random table; each has a unique NOT NULL column `id` to identify rows.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    /// Names of its keys, including the primary one.
    pub(super) keys: Vec<String>,
    /// Lists of columns that a key orders.
    pub(super) key_columns: Vec<Vec<usize>>,
    /// The statements that create it, one row in each.
    pub(super) setup: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) family: Family,
    /// True if equal values, or a value alone and as an aggregate, may look different.
    pub(super) is_folded: bool,
    declaration: String,
    is_nullable: bool,
    /// True if a key over it needs a length.
    is_long: bool,
    /// True if a key over it may have a length.
    is_string: bool,
}

const COLLATIONS: &[&str] = &[
    "utf8mb4_general_ci",
    "utf8mb4_general_ci",
    "utf8mb4_unicode_ci",
    "utf8mb4_bin",
    "latin1_swedish_ci",
    "latin1_bin",
    "ascii_general_ci",
    "utf8mb3_general_ci",
    "utf8mb3_unicode_ci",
];

const COLUMNS_MAX: u64 = 6;
const ROWS_MIN: u64 = 4;
const ROWS_MORE: u64 = 30;

impl Table {
    pub(super) fn draw(name: &str, random: &mut Random) -> Table {
        let count = 2 + random.below(COLUMNS_MAX - 1);
        let columns: Vec<Column> = (0..count)
            .map(|place| Column::draw(&format!("c{place}"), random))
            .collect();
        let mut table = Table {
            name: name.to_owned(),
            columns,
            keys: Vec::new(),
            key_columns: Vec::new(),
            setup: Vec::new(),
        };
        let keys = table.draw_keys(random);
        let columns: Vec<String> = table.columns.iter().map(Column::definition).collect();
        table.setup.push(format!("DROP TABLE IF EXISTS {name}"));
        table.setup.push(format!(
            "CREATE TABLE {name} (id INT NOT NULL, {}, {}) CHARACTER SET utf8mb4",
            columns.join(", "),
            keys.join(", ")
        ));
        for id in 1..=ROWS_MIN + random.below(ROWS_MORE) {
            let row = table.row(id, random);
            table
                .setup
                .push(format!("INSERT IGNORE INTO {name} VALUES {row}"));
        }
        table
    }

    /// The text of a row, in brackets.
    pub(super) fn row(&self, id: u64, random: &mut Random) -> String {
        let mut values = vec![id.to_string()];
        for column in &self.columns {
            values.push(column.value(random));
        }
        format!("({})", values.join(", "))
    }

    fn draw_keys(&mut self, random: &mut Random) -> Vec<String> {
        let mut keys = Vec::new();
        match random.below(6) {
            0 | 1 => {
                let column = self.draw_part(random, true);
                keys.push(format!("PRIMARY KEY ({column}, id)"));
                keys.push("UNIQUE KEY k_id (id)".to_owned());
                self.keys.extend(["PRIMARY".to_owned(), "k_id".to_owned()]);
            }
            2 => {
                keys.push("UNIQUE KEY k_id (id)".to_owned());
                self.keys.push("k_id".to_owned());
            }
            _ => {
                keys.push("PRIMARY KEY (id)".to_owned());
                self.keys.push("PRIMARY".to_owned());
            }
        }
        for place in 0..1 + random.below(5) {
            let name = format!("k{place}");
            let kind = if random.below(5) == 0 {
                "UNIQUE KEY"
            } else {
                "KEY"
            };
            let mut parts = vec![self.draw_part(random, false)];
            while parts.len() < 3 && random.below(2) == 0 {
                let part = self.draw_part(random, false);
                let bare = |part: &str| part.split('(').next().unwrap_or_default().to_owned();
                if parts.iter().all(|it| bare(it) != bare(&part)) {
                    parts.push(part);
                }
            }
            keys.push(format!("{kind} {name} ({})", parts.join(", ")));
            self.keys.push(name);
            self.key_columns.push(self.places(&parts));
        }
        keys
    }

    fn places(&self, parts: &[String]) -> Vec<usize> {
        let place = |part: &String| {
            let name = part.split('(').next().unwrap_or_default();
            self.columns.iter().position(|column| column.name == name)
        };
        parts.iter().filter_map(place).collect()
    }

    /// A column of a key, with a length if it needs one. A primary key makes it NOT NULL.
    fn draw_part(&mut self, random: &mut Random, is_primary: bool) -> String {
        let place = random.place(self.columns.len());
        let column = &mut self.columns[place];
        if is_primary {
            column.is_nullable = false;
        }
        let has_length = column.is_long || (column.is_string && random.below(5) == 0);
        match has_length {
            true => format!("{}({})", column.name, 1 + random.below(3)),
            false => column.name.clone(),
        }
    }
}

impl Column {
    fn draw(name: &str, random: &mut Random) -> Column {
        let mut column = Column {
            name: name.to_owned(),
            family: Family::Number,
            is_folded: false,
            declaration: String::new(),
            is_nullable: random.below(4) != 0,
            is_long: false,
            is_string: false,
        };
        let fraction = *random.pick(&["", "", "(1)", "(3)", "(6)"]);
        (column.family, column.declaration) = match random.below(16) {
            0..=2 => (Family::Number, draw_integer(random)),
            3 => (
                Family::Number,
                random
                    .of(&[
                        "DECIMAL(5,2)",
                        "DECIMAL(10,0)",
                        "DECIMAL(20,4)",
                        "DECIMAL(4,1) UNSIGNED",
                    ])
                    .to_owned(),
            ),
            4 => (
                Family::Number,
                random
                    .of(&["FLOAT", "DOUBLE", "DOUBLE", "DOUBLE UNSIGNED", "FLOAT(7,2)"])
                    .to_owned(),
            ),
            5 => (
                Family::Bit,
                random
                    .of(&["BIT(1)", "BIT(8)", "BIT(64)", "BIT(5)"])
                    .to_owned(),
            ),
            6 => (Family::Year, "YEAR".to_owned()),
            7 => (Family::Date, "DATE".to_owned()),
            8 => (Family::Time, format!("TIME{fraction}")),
            9 => (Family::DateTime, format!("DATETIME{fraction}")),
            10 => (Family::DateTime, format!("TIMESTAMP{fraction}")),
            11 => (Family::Enum, "ENUM('red','green','blue','2')".to_owned()),
            12 => (Family::Set, "SET('a','b','c')".to_owned()),
            _ => (Family::Text, column.draw_string(random)),
        };
        // MariaDB shows MIN and MAX of a YEAR or a BIT as numbers.
        column.is_folded |= matches!(column.family, Family::Year | Family::Bit);
        if matches!(column.family, Family::Enum | Family::Set) && random.below(2) == 0 {
            column.declaration += &draw_collation(random);
        }
        column
    }

    fn draw_string(&mut self, random: &mut Random) -> String {
        self.is_string = true;
        let size = random.of(&["(3)", "(10)", "(20)", "(20)"]);
        let (kind, is_long) = match random.below(10) {
            0 | 1 => (format!("CHAR{size}"), false),
            2..=4 => (format!("VARCHAR{size}"), false),
            5 => ("TEXT".to_owned(), true),
            6 => (format!("BINARY{size}"), false),
            7 => (format!("VARBINARY{size}"), false),
            8 => ("BLOB".to_owned(), true),
            _ => ("VARCHAR(255)".to_owned(), false),
        };
        self.is_long = is_long;
        if kind.starts_with('B') || kind.starts_with("VARB") {
            return kind;
        }
        self.is_folded = true;
        kind + &draw_collation(random)
    }

    /// True if it compares alike everywhere. When MariaDB keeps the rows of a subquery, it compares
    /// an ENUM with a number by its text, and finds no NULL of a BIT.
    pub(super) fn is_plain(&self) -> bool {
        !matches!(self.family, Family::Enum | Family::Set | Family::Bit)
    }

    /// False for a TIME and a number: in MariaDB a number that is no time is zero in a column, and
    /// the longest time in a constant.
    pub(super) fn meets(&self, other: &Column) -> bool {
        let is = |column: &Column, family| column.family == family;
        !(is(self, Family::Time) && is(other, Family::Number)
            || is(self, Family::Number) && is(other, Family::Time))
    }

    /// True for texts without a collation.
    pub(super) fn is_binary(&self) -> bool {
        self.is_string && !self.is_folded
    }

    fn definition(&self) -> String {
        let null = match self.is_nullable {
            true => "NULL",
            false => "NOT NULL",
        };
        format!("{} {} {null}", self.name, self.declaration)
    }

    /// A literal to store in it.
    pub(super) fn value(&self, random: &mut Random) -> String {
        if self.is_nullable && random.below(6) == 0 {
            return "NULL".to_owned();
        }
        self.family.value(random)
    }
}

fn draw_collation(random: &mut Random) -> String {
    let collation = random.of(COLLATIONS);
    let charset = collation.split('_').next().unwrap_or_default();
    format!(" CHARACTER SET {charset} COLLATE {collation}")
}

fn draw_integer(random: &mut Random) -> String {
    let kind = random.of(&["TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INT", "BIGINT"]);
    match random.below(3) {
        0 => format!("{kind} UNSIGNED"),
        _ => kind.to_owned(),
    }
}
