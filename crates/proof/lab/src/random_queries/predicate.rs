//! Random conditions, as trees that can be reduced.

use crate::random::Random;

use super::constant::Family;
use super::table::{Column, Table};

/// A condition.
#[derive(Clone, Debug)]
pub(super) enum Predicate {
    /// Anything that is not reduced further.
    Plain(String),
    Not(Box<Predicate>),
    All(Vec<Predicate>),
    Any(Vec<Predicate>),
    In {
        operand: String,
        is_negated: bool,
        list: Vec<String>,
    },
}

const COMPARISONS: &[&str] = &["=", "=", "=", "<=>", "<", "<=", ">", ">=", "<>"];

/// A table that a statement reads, with its alias there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'a> {
    pub(super) alias: &'a str,
    pub(super) table: &'a Table,
}

impl<'a> Named<'a> {
    pub(super) fn column(self, random: &mut Random) -> (String, &'a Column) {
        let column = random.pick(&self.table.columns);
        (format!("{}.{}", self.alias, column.name), column)
    }

    /// Conditions that bind the first columns of one key.
    fn key_conditions(&self, random: &mut Random) -> Predicate {
        if self.table.key_columns.is_empty() {
            return self.leaf(random);
        }
        let places = random.pick(&self.table.key_columns);
        let mut list = Vec::new();
        for (rank, &place) in places.iter().enumerate() {
            let column = &self.table.columns[place];
            let is_last = rank + 1 == places.len() || random.below(3) == 0;
            list.push(if is_last {
                self.leaf_of(column, random)
            } else {
                // In a condition `column <=> year` MariaDB replaces the column by the year's short
                // form.
                let operator = match random.of(&["=", "=", "<=>", "IN"]) {
                    "<=>" if column.family == Family::Year => "=",
                    operator => operator,
                };
                let constant = column.family.constant(random);
                let name = &column.name;
                match operator {
                    "IN" => self.list_of(column, random),
                    _ => Predicate::Plain(format!("{}.{name} {operator} {constant}", self.alias)),
                }
            });
            if is_last {
                break;
            }
        }
        if random.below(4) == 0 {
            list.push(self.leaf(random));
        }
        Predicate::All(list)
    }

    fn leaf(&self, random: &mut Random) -> Predicate {
        if random.below(12) == 0 {
            let operator = random.of(COMPARISONS);
            return Predicate::Plain(format!("{}.id {operator} {}", self.alias, random.below(20)));
        }
        let column = random.pick(&self.table.columns);
        self.leaf_of(column, random)
    }

    fn leaf_of(&self, column: &Column, random: &mut Random) -> Predicate {
        let name = format!("{}.{}", self.alias, column.name);
        let constant = column.family.constant(random);
        let text = match random.below(20) {
            0..=8 => format!("{name} {} {constant}", random.of(COMPARISONS)),
            9 => format!("{constant} {} {name}", random.of(COMPARISONS)),
            10..=12 => {
                let upper = column.family.constant(random);
                let word = random.of(&["BETWEEN", "BETWEEN", "BETWEEN", "NOT BETWEEN"]);
                format!("{name} {word} {constant} AND {upper}")
            }
            13 | 14 => return self.list_of(column, random),
            15 => format!("{name} IS NULL"),
            16 => format!("{name} IS NOT NULL"),
            17 => {
                let (other, other_column) = self.column(random);
                // MariaDB replaces only one side by a constant that equals the other.
                if other_column.name == column.name || !column.meets(other_column) {
                    return Predicate::Plain(format!("{name} IS NOT NULL"));
                }
                format!("{name} {} {other}", random.of(COMPARISONS))
            }
            _ if column.family == Family::Text || random.below(4) == 0 => {
                let word = random.of(&["LIKE", "LIKE", "LIKE", "NOT LIKE"]);
                format!("{name} {word} {}", Family::pattern(random))
            }
            _ => format!("{name} {} {constant}", random.of(COMPARISONS)),
        };
        Predicate::Plain(match column.family {
            Family::Year => text.replace(" <=> ", " = "),
            _ => text,
        })
    }

    fn list_of(&self, column: &Column, random: &mut Random) -> Predicate {
        let count = 1 + random.below(5);
        // In MariaDB the comparison of an ENUM with a list depends on the character sets of all
        // members.
        let list = (0..count).map(|_| match column.is_plain() {
            true => column.family.constant(random),
            false => column.family.value(random),
        });
        let list = list.collect();
        Predicate::In {
            operand: format!("{}.{}", self.alias, column.name),
            is_negated: random.below(6) == 0,
            list,
        }
    }

    /// A condition of some depth.
    pub(super) fn condition(&self, random: &mut Random, depth: u64) -> Predicate {
        let several = |random: &mut Random| {
            let count = 2 + random.below(2);
            (0..count)
                .map(|_| self.condition(random, depth - 1))
                .collect()
        };
        match random.below(10) {
            0..=2 if depth > 0 => Predicate::All(several(random)),
            3 | 4 if depth > 0 => Predicate::Any(several(random)),
            5 if depth > 0 => Predicate::Not(Box::new(self.condition(random, depth - 1))),
            6 | 7 => self.key_conditions(random),
            _ => self.leaf(random),
        }
    }
}

impl Predicate {
    pub(super) fn text(&self) -> String {
        let joined = |list: &[Predicate], word: &str| {
            let texts: Vec<String> = list.iter().map(Predicate::text).collect();
            format!("({})", texts.join(word))
        };
        match self {
            Predicate::Plain(text) => text.clone(),
            Predicate::Not(inner) => format!("NOT ({})", inner.text()),
            Predicate::All(list) => joined(list, " AND "),
            Predicate::Any(list) => joined(list, " OR "),
            Predicate::In {
                operand,
                is_negated,
                list,
            } => {
                let word = if *is_negated { "NOT IN" } else { "IN" };
                format!("{operand} {word} ({})", list.join(", "))
            }
        }
    }

    /// Slightly smaller conditions.
    pub(super) fn smaller(&self) -> Vec<Predicate> {
        match self {
            Predicate::Plain(_) => Vec::new(),
            Predicate::Not(inner) => {
                let mut all = vec![(**inner).clone()];
                all.extend(
                    inner
                        .smaller()
                        .into_iter()
                        .map(|it| Predicate::Not(Box::new(it))),
                );
                all
            }
            Predicate::All(list) => smaller_lists(list, Predicate::All),
            Predicate::Any(list) => smaller_lists(list, Predicate::Any),
            Predicate::In {
                operand,
                is_negated,
                list,
            } => (0..list.len())
                .filter(|_| list.len() > 1)
                .map(|place| {
                    let mut list = list.clone();
                    list.remove(place);
                    let (operand, is_negated) = (operand.clone(), *is_negated);
                    Predicate::In {
                        operand,
                        is_negated,
                        list,
                    }
                })
                .collect(),
        }
    }
}

fn smaller_lists(list: &[Predicate], make: fn(Vec<Predicate>) -> Predicate) -> Vec<Predicate> {
    let mut all = list.to_vec();
    for place in 0..list.len() {
        if list.len() > 2 {
            let mut fewer = list.to_vec();
            fewer.remove(place);
            all.push(make(fewer));
        }
        for smaller in list[place].smaller() {
            let mut changed = list.to_vec();
            changed[place] = smaller;
            all.push(make(changed));
        }
    }
    all
}
