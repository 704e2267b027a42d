//! Random statements, as trees that can be reduced.

use crate::random::Random;

use super::constant::Family;
use super::predicate::{Named, Predicate};
use super::table::{Column, Table};

/// A statement.
#[derive(Clone, Debug)]
pub(super) enum Statement {
    Select(Select),
    Change(Change),
}

#[derive(Clone, Debug)]
pub(super) struct Select {
    is_distinct: bool,
    items: Vec<String>,
    sources: Vec<Source>,
    filter: Option<Predicate>,
    group: Option<String>,
    order: Vec<String>,
    limit: Option<u64>,
    hint: Option<String>,
}

#[derive(Clone, Debug)]
struct Source {
    /// Table and alias, with the place of hints after them.
    text: String,
    /// `JOIN` or similar; empty for the first.
    join: &'static str,
    on: Option<Predicate>,
}

/// A statement that changes a table; it is always rolled back.
#[derive(Clone, Debug)]
pub(super) struct Change {
    head: String,
    filter: Option<Predicate>,
    tail: String,
    /// The table that is read afterwards.
    pub(super) table: String,
}

/// Where hints of table `t1` may stand.
fn hint_mark(table: &Table) -> String {
    format!("<{}>", table.name)
}

fn source_text(table: &Table, alias: &str) -> String {
    format!("{} AS {alias}{}", table.name, hint_mark(table))
}

impl Statement {
    pub(super) fn draw(tables: &[Table], random: &mut Random) -> Statement {
        match random.below(20) {
            0..=4 => Statement::Select(Select::draw_join(tables, random)),
            5..=7 => Statement::Select(Select::draw_subquery(tables, random)),
            8..=10 => Statement::Select(Select::draw_group(tables, random)),
            11..=13 => Statement::Change(Change::draw(tables, random)),
            _ => Statement::Select(Select::draw_plain(tables, random)),
        }
    }

    /// The text with its own hints.
    pub(super) fn text(&self, tables: &[Table]) -> String {
        let hint = match self {
            Statement::Select(select) => select.hint.clone(),
            Statement::Change(_) => None,
        };
        self.with_hints(tables, |_| hint.clone().unwrap_or_default())
    }

    /// The text with every index ignored, if the statement allows hints.
    pub(super) fn text_without_indexes(&self, tables: &[Table]) -> String {
        self.with_hints(tables, |table| {
            format!(" IGNORE INDEX ({})", table.keys.join(", "))
        })
    }

    fn with_hints(&self, tables: &[Table], hint: impl Fn(&Table) -> String) -> String {
        let mut text = match self {
            Statement::Select(select) => select.text(),
            Statement::Change(change) => change.text(),
        };
        for table in tables {
            text = text.replace(&hint_mark(table), &hint(table));
        }
        text
    }

    /// True if its rows have an order.
    pub(super) fn is_ordered(&self) -> bool {
        matches!(self, Statement::Select(select) if !select.order.is_empty())
    }

    /// Slightly smaller statements.
    pub(super) fn smaller(&self) -> Vec<Statement> {
        match self {
            Statement::Select(select) => {
                let all = select.smaller().into_iter();
                all.map(Statement::Select).collect()
            }
            Statement::Change(change) => {
                let filters = change.filter.iter().flat_map(Predicate::smaller);
                let with = |filter| Change {
                    filter: Some(filter),
                    ..change.clone()
                };
                filters.map(|it| Statement::Change(with(it))).collect()
            }
        }
    }
}

impl Select {
    fn of(table: &Table, items: Vec<String>, filter: Predicate) -> Select {
        let source = Source {
            text: source_text(table, "a"),
            join: "",
            on: None,
        };
        Select {
            is_distinct: false,
            items,
            sources: vec![source],
            filter: Some(filter),
            group: None,
            order: Vec::new(),
            limit: None,
            hint: None,
        }
    }

    fn draw_plain(tables: &[Table], random: &mut Random) -> Select {
        let table = random.pick(tables);
        let named = Named { alias: "a", table };
        let mut items = vec!["a.id".to_owned()];
        if random.below(2) == 0 {
            items.extend(table.columns.iter().map(|it| format!("a.{}", it.name)));
        } else if random.below(3) == 0 {
            items.push(named.column(random).0);
        }
        let filter = named.condition(random, 2);
        let mut select = Select::of(table, items, filter);
        if random.below(12) == 0 {
            select.filter = None;
        }
        if random.below(6) == 0 && !table.keys.is_empty() {
            let word = random.of(&["FORCE", "USE", "IGNORE"]);
            select.hint = Some(format!(" {word} INDEX ({})", random.pick(&table.keys)));
        }
        select.draw_order(named, random);
        select
    }

    fn draw_order(&mut self, named: Named<'_>, random: &mut Random) {
        if random.below(2) == 0 {
            return;
        }
        let direction = random.of(&["", "", " DESC"]);
        let name = |column: &Column| format!("a.{}{direction}", column.name);
        let table = named.table;
        if !table.key_columns.is_empty() && random.below(2) == 0 {
            let places = random.pick(&table.key_columns);
            self.order = places.iter().map(|&it| name(&table.columns[it])).collect();
        } else if random.below(4) != 0 {
            self.order.push(name(named.column(random).1));
        }
        let last = random.of(&[direction, "", " DESC"]);
        self.order.push(format!("a.id{last}"));
        if random.below(2) == 0 {
            self.limit = Some(random.below(6));
        }
    }

    fn draw_group(tables: &[Table], random: &mut Random) -> Select {
        let table = random.pick(tables);
        let named = Named { alias: "a", table };
        let filter = named.condition(random, 1);
        let (name, column) = named.column(random);
        let (other, other_column) = named.column(random);
        let mut items = vec!["COUNT(*)".to_owned(), "MIN(a.id)".to_owned()];
        match random.below(4) {
            0 => {
                items = vec![name.clone()];
                let mut select = Select::of(table, items, filter);
                if column.is_folded {
                    select.items = vec![format!("{name} IS NULL")];
                }
                select.is_distinct = true;
                return select;
            }
            1 => {
                let word = random.of(&["MIN", "MAX"]);
                items = vec![format!("COUNT({name})"), format!("COUNT(DISTINCT {name})")];
                items.push(match column.is_folded {
                    true => format!("{word}({name}) <=> {}", column.family.constant(random)),
                    false => format!("{word}({name})"),
                });
                let mut select = Select::of(table, items, filter);
                if random.below(3) == 0 {
                    select.items.drain(..2);
                    select.filter = None;
                }
                return select;
            }
            2 if !other_column.is_folded => items.push(format!("MAX({other})")),
            _ => {}
        }
        let mut select = Select::of(table, items, filter);
        if random.below(4) == 0 {
            select.filter = None;
        }
        if !column.is_folded {
            select.items.push(name.clone());
        }
        select.group = Some(match random.below(3) {
            0 => format!("{name}, {other}"),
            _ => name,
        });
        select
    }

    fn draw_join(tables: &[Table], random: &mut Random) -> Select {
        let aliases = ["a", "b", "c"];
        let count = if random.below(4) == 0 { 3 } else { 2 };
        let mut sources: Vec<Source> = Vec::new();
        let mut named: Vec<Named<'_>> = Vec::new();
        for alias in &aliases[..count] {
            let next = Named {
                alias,
                table: random.pick(tables),
            };
            let (join, on) = match named.is_empty() {
                true => ("", None),
                false => {
                    let join = random.of(&["JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN"]);
                    let earlier = *random.pick(&named);
                    (join, Some(draw_on(earlier, next, random)))
                }
            };
            sources.push(Source {
                text: source_text(next.table, alias),
                join,
                on,
            });
            named.push(next);
        }
        let filter = random.pick(&named).condition(random, 1);
        let mut items: Vec<String> = named.iter().map(|it| format!("{}.id", it.alias)).collect();
        if random.below(4) == 0 {
            items.push(random.pick(&named).column(random).0);
        }
        let mut select = Select::of(named[0].table, items, filter);
        select.sources = sources;
        if random.below(3) == 0 {
            select.filter = None;
        }
        if random.below(3) == 0 {
            select.order = named.iter().map(|it| format!("{}.id", it.alias)).collect();
            select.limit = Some(random.below(12));
        }
        select
    }

    fn draw_subquery(tables: &[Table], random: &mut Random) -> Select {
        let table = random.pick(tables);
        let named = Named { alias: "a", table };
        let inner = Named {
            alias: "s",
            table: random.pick(tables),
        };
        let (left, left_column) = named.column(random);
        let (right, right_column) = column_like(inner, left_column, random);
        // When MariaDB keeps the inner rows, it compares a text with bytes by the text's own
        // collation.
        let is_mixed = left_column.is_binary() != right_column.is_binary();
        let is_mixed = is_mixed || !left_column.meets(right_column);
        if is_mixed || !left_column.is_plain() || !right_column.is_plain() {
            return Self::draw_plain(tables, random);
        }
        let from = source_text(inner.table, "s");
        let filter = match random.below(3) {
            0 => String::new(),
            _ => format!(" WHERE {}", inner.condition(random, 1).text()),
        };
        // MariaDB converts ANY and ALL to MIN and MAX, which compare like the inner column.
        let is_alike = left_column.family == right_column.family && !left_column.is_folded;
        let operators: &[&str] = match is_alike && left_column.family != Family::Enum {
            true => &["=", "<", "<=", ">", ">=", "<>"],
            false => &["="],
        };
        let operator = random.of(operators);
        let text = match random.below(7) {
            0 | 1 => format!("{left} IN (SELECT {right} FROM {from}{filter})"),
            // MariaDB forgets a NULL of the list if the left side is out of its range.
            2 => format!("{left} NOT IN (SELECT {right} FROM {from} WHERE {right} IS NOT NULL)"),
            3 => format!("{left} {operator} ANY (SELECT {right} FROM {from}{filter})"),
            4 => format!("{left} {operator} ALL (SELECT {right} FROM {from}{filter})"),
            5 => {
                let word = random.of(&["EXISTS", "NOT EXISTS"]);
                format!("{word} (SELECT 1 FROM {from} WHERE {right} {operator} {left})")
            }
            _ => format!("{left} {operator} (SELECT MAX({right}) FROM {from}{filter})"),
        };
        let mut list = vec![Predicate::Plain(text)];
        if random.below(3) == 0 {
            list.push(named.condition(random, 0));
        }
        let filter = match list.len() {
            1 => list.remove(0),
            _ if random.below(2) == 0 => Predicate::All(list),
            _ => Predicate::Any(list),
        };
        Select::of(table, vec!["a.id".to_owned(), left], filter)
    }

    fn text(&self) -> String {
        let mut text = "SELECT ".to_owned();
        if self.is_distinct {
            text += "DISTINCT ";
        }
        text += &self.items.join(", ");
        text += " FROM ";
        for source in &self.sources {
            if !source.join.is_empty() {
                text += &format!(" {} ", source.join);
            }
            text += &source.text;
            if let Some(on) = &source.on {
                text += &format!(" ON {}", on.text());
            }
        }
        if let Some(filter) = &self.filter {
            text += &format!(" WHERE {}", filter.text());
        }
        if let Some(group) = &self.group {
            text += &format!(" GROUP BY {group}");
        }
        if !self.order.is_empty() {
            text += &format!(" ORDER BY {}", self.order.join(", "));
        }
        if let Some(limit) = self.limit {
            text += &format!(" LIMIT {limit}");
        }
        text
    }

    fn smaller(&self) -> Vec<Select> {
        let mut all = Vec::new();
        let mut with = |change: &dyn Fn(&mut Select)| {
            let mut select = self.clone();
            change(&mut select);
            all.push(select);
        };
        if self.limit.is_some() {
            with(&|it| it.limit = None);
        } else if !self.order.is_empty() {
            with(&|it| it.order.clear());
        }
        if self.hint.is_some() {
            with(&|it| it.hint = None);
        }
        if self.filter.is_some() {
            with(&|it| it.filter = None);
        }
        for place in (0..self.items.len()).filter(|_| self.items.len() > 1) {
            with(&|it| drop(it.items.remove(place)));
        }
        for filter in self.filter.iter().flat_map(Predicate::smaller) {
            with(&|it| it.filter = Some(filter.clone()));
        }
        for (place, source) in self.sources.iter().enumerate() {
            for on in source.on.iter().flat_map(Predicate::smaller) {
                with(&|it| it.sources[place].on = Some(on.clone()));
            }
        }
        if self.sources.len() == 3 {
            with(&|it| drop(it.sources.pop()));
        }
        all
    }
}

/// A column of that table, mostly of the same family as another.
fn column_like<'a>(named: Named<'a>, other: &Column, random: &mut Random) -> (String, &'a Column) {
    let alike: Vec<&Column> = named
        .table
        .columns
        .iter()
        .filter(|it| it.family == other.family)
        .collect();
    let column = match alike.is_empty() || random.below(3) == 0 {
        true => random.pick(&named.table.columns),
        false => random.of(&alike),
    };
    let column = match column.meets(other) || alike.is_empty() {
        true => column,
        false => random.of(&alike),
    };
    (format!("{}.{}", named.alias, column.name), column)
}

fn draw_on(earlier: Named<'_>, next: Named<'_>, random: &mut Random) -> Predicate {
    let mut list = Vec::new();
    for _ in 0..1 + random.below(2) {
        let (left, column) = earlier.column(random);
        let (right, right_column) = column_like(next, column, random);
        if !column.meets(right_column) {
            continue;
        }
        let operator = random.of(&["=", "=", "=", "=", "<=>", "<", ">="]);
        list.push(Predicate::Plain(format!("{left} {operator} {right}")));
    }
    if random.below(3) == 0 {
        list.push(random.pick(&[earlier, next]).condition(random, 0));
    }
    if list.is_empty() {
        list.push(Predicate::Plain(format!(
            "{}.id = {}.id",
            earlier.alias, next.alias
        )));
    }
    Predicate::All(list)
}

impl Change {
    fn draw(tables: &[Table], random: &mut Random) -> Change {
        let table = random.pick(tables);
        let name = &table.name;
        let named = Named { alias: name, table };
        let column = random.pick(&table.columns);
        let ignore = random.of(&["", "IGNORE "]);
        let limit = match random.below(3) {
            0 => format!(" ORDER BY id LIMIT {}", random.below(5)),
            // The first row decides which one a duplicate key keeps.
            _ if !ignore.is_empty() => " ORDER BY id".to_owned(),
            _ => String::new(),
        };
        let assignment = format!("{} = {}", column.name, column.value(random));
        let (head, filter, tail) = match random.below(8) {
            0..=2 => {
                let filter = named.condition(random, 1);
                (
                    format!("UPDATE {ignore}{name} SET {assignment}"),
                    Some(filter),
                    limit,
                )
            }
            3 | 4 => (
                format!("DELETE FROM {name}"),
                Some(named.condition(random, 1)),
                limit,
            ),
            5 => {
                let word = random.of(&["REPLACE INTO", "INSERT INTO", "INSERT IGNORE INTO"]);
                let rows: Vec<String> = (0..1 + random.below(3))
                    .map(|_| table.row(1 + random.below(40), random))
                    .collect();
                (
                    format!("{word} {name} VALUES {}", rows.join(", ")),
                    None,
                    String::new(),
                )
            }
            6 => {
                let row = table.row(1 + random.below(40), random);
                let head = format!("INSERT {ignore}INTO {name} VALUES {row}");
                (head, None, format!(" ON DUPLICATE KEY UPDATE {assignment}"))
            }
            _ => {
                let word = random.of(&["REPLACE INTO", "INSERT IGNORE INTO"]);
                let columns: Vec<&str> = table.columns.iter().map(|it| it.name.as_str()).collect();
                let columns = columns.join(", ");
                let head = format!("{word} {name} SELECT id + 20, {columns} FROM {name}");
                (
                    head,
                    Some(named.condition(random, 1)),
                    " ORDER BY id".to_owned(),
                )
            }
        };
        Change {
            head,
            filter,
            tail,
            table: name.clone(),
        }
    }

    pub(super) fn filter_text(&self) -> Option<String> {
        self.filter.as_ref().map(Predicate::text)
    }

    fn text(&self) -> String {
        let filter = match self.filter_text() {
            Some(filter) => format!(" WHERE {filter}"),
            None => String::new(),
        };
        format!("{}{filter}{}", self.head, self.tail)
    }
}
