//! The tables of the histories, how keys become statements, and how rows become what was seen.
//!
//! Four keys of each kind make a group. Reads of a group go by a range of the primary key (lists),
//! by a secondary index in which each write moves the row (registers), or by one in which it adds
//! an entry (sets).

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use history::{Element, Key, Seen};
use testkit::Client;

/// Keys of a group, of each kind.
pub(super) const GROUP_KEYS: u64 = 4;

/// A second unique number of a register, whose order is that of the keys backwards.
const SECOND_MAX: u64 = 1_000_000_000;

const TABLES: [&str; 3] = [
    "CREATE TABLE lists (k BIGINT NOT NULL PRIMARY KEY, v TEXT NOT NULL) ENGINE = InnoDB",
    "CREATE TABLE registers (k BIGINT NOT NULL PRIMARY KEY, s BIGINT NOT NULL, \
     g BIGINT NOT NULL, n BIGINT NOT NULL, b BIGINT NOT NULL, v BIGINT NOT NULL, \
     UNIQUE KEY by_second (s), KEY by_group (g, v)) ENGINE = InnoDB",
    "CREATE TABLE sets (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, k BIGINT NOT NULL, \
     g BIGINT NOT NULL, v BIGINT NOT NULL, KEY by_set (k), KEY by_group (g)) ENGINE = InnoDB",
];

/// What a read asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    One(Key),
    /// A register by its second unique number.
    Second(u64),
    /// The keys of a group.
    Lists(u64),
    Registers(u64),
    Sets(u64),
}

/// How a write is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// It makes the row if there is none.
    Insert,
    /// It changes no row if there is none.
    Update,
    /// As `Update`, by the second unique number of a register.
    Second,
}

/// Keys of one kind, by their numbers.
type Kind = fn(u64) -> Key;

/// What a read has returned: a key that is not in it was not there.
pub(super) type Rows = BTreeMap<Key, Seen>;

pub(super) fn create(client: &mut Client) -> Result<()> {
    client.run("CREATE DATABASE history")?;
    client.run("USE history")?;
    for table in TABLES {
        client.run(table)?;
    }
    Ok(())
}

/// The statement that writes an element.
pub(super) fn write_statement(key: Key, element: Element, form: Form) -> String {
    match (key, form) {
        (Key::List(k), Form::Insert) => format!(
            "INSERT INTO lists (k, v) VALUES ({k}, '{element}') \
             ON DUPLICATE KEY UPDATE v = CONCAT(v, ',{element}')"
        ),
        (Key::List(k), _) => {
            format!("UPDATE lists SET v = CONCAT(v, ',{element}') WHERE k = {k}")
        }
        (Key::Register(k), Form::Insert) => format!(
            "INSERT INTO registers (k, s, g, n, b, v) \
             VALUES ({k}, {}, {}, 1, 0, {element}) \
             ON DUPLICATE KEY UPDATE n = n + 1, b = v, v = {element}",
            SECOND_MAX - k,
            k / GROUP_KEYS,
        ),
        (Key::Register(k), Form::Update) => {
            format!("UPDATE registers SET n = n + 1, b = v, v = {element} WHERE k = {k}")
        }
        (Key::Register(k), Form::Second) => format!(
            "UPDATE registers SET n = n + 1, b = v, v = {element} WHERE s = {}",
            SECOND_MAX - k
        ),
        (Key::Set(k), _) => format!(
            "INSERT INTO sets (k, g, v) VALUES ({k}, {}, {element})",
            k / GROUP_KEYS
        ),
    }
}

impl Range {
    /// The keys that it covers.
    pub(super) fn keys(self) -> Vec<Key> {
        let of = |group: u64, key: Kind| {
            let first = group * GROUP_KEYS;
            (first..first + GROUP_KEYS).map(key).collect()
        };
        match self {
            Range::One(key) => vec![key],
            Range::Second(k) => vec![Key::Register(k)],
            Range::Lists(group) => of(group, Key::List),
            Range::Registers(group) => of(group, Key::Register),
            Range::Sets(group) => of(group, Key::Set),
        }
    }

    /// The statement that reads it, without a locking clause.
    pub(super) fn statement(self) -> String {
        match self {
            Range::One(Key::List(k)) => format!("SELECT k, v FROM lists WHERE k = {k}"),
            Range::One(Key::Register(k)) => {
                format!("SELECT k, n, b, v FROM registers WHERE k = {k}")
            }
            Range::Second(k) => format!(
                "SELECT k, n, b, v FROM registers WHERE s = {}",
                SECOND_MAX - k
            ),
            Range::One(Key::Set(k)) => {
                format!("SELECT k, v FROM sets FORCE INDEX (by_set) WHERE k = {k}")
            }
            Range::Lists(group) => {
                let first = group * GROUP_KEYS;
                let last = first + GROUP_KEYS - 1;
                format!("SELECT k, v FROM lists WHERE k BETWEEN {first} AND {last}")
            }
            Range::Registers(group) => {
                format!("SELECT k, n, b, v FROM registers FORCE INDEX (by_group) WHERE g = {group}")
            }
            Range::Sets(group) => {
                format!("SELECT k, v FROM sets FORCE INDEX (by_group) WHERE g = {group}")
            }
        }
    }

    /// What the rows of its statement say, and the keys that came twice. Of these the last row
    /// counts.
    pub(super) fn read(self, rows: &[Vec<Option<Vec<u8>>>]) -> Result<(Rows, Vec<Key>)> {
        let kind = match self {
            Range::One(Key::List(_)) | Range::Lists(_) => Key::List,
            Range::One(Key::Set(_)) | Range::Sets(_) => Key::Set,
            Range::One(Key::Register(_)) | Range::Second(_) | Range::Registers(_) => Key::Register,
        };
        rows_of(kind, rows)
    }
}

fn rows_of(kind: Kind, rows: &[Vec<Option<Vec<u8>>>]) -> Result<(Rows, Vec<Key>)> {
    let mut seen = Rows::new();
    let mut twice = Vec::new();
    for row in rows {
        let texts: Vec<&str> = row
            .iter()
            .map(|value| Ok(std::str::from_utf8(value.as_deref().context("NULL")?)?))
            .collect::<Result<_>>()?;
        let (number, rest) = texts.split_first().context("a row without a key")?;
        let key = kind(number.parse()?);
        let value = match (key, rest) {
            (Key::List(_), [text]) => Seen::List(elements(text)?),
            (Key::Set(_), [text]) => {
                let Seen::Set(elements) = seen.entry(key).or_insert(Seen::Set(Vec::new())) else {
                    bail!("a set is read as another kind")
                };
                elements.push(Element(text.parse()?));
                continue;
            }
            (Key::Register(_), [number, before, last]) => Seen::Register {
                number: number.parse()?,
                last: element(last)?,
                before: element(before)?,
            },
            _ => bail!("a row with {} values", texts.len()),
        };
        if seen.insert(key, value).is_some() {
            twice.push(key);
        }
    }
    Ok((seen, twice))
}

fn elements(text: &str) -> Result<Vec<Element>> {
    let parts = text.split(',').map(|it| Ok(Element(it.parse()?)));
    parts
        .collect::<Result<_>>()
        .with_context(|| format!("a list {text:?}"))
}

fn element(text: &str) -> Result<Option<Element>> {
    let number: u64 = text.parse()?;
    Ok((number != 0).then_some(Element(number)))
}

/// Reads all keys of these groups by each index. Returns what is there, and where indexes do not
/// agree.
pub(super) fn read_last(client: &mut Client, groups: (u64, u64)) -> Result<(Rows, Vec<String>)> {
    let (first, last) = (groups.0 * GROUP_KEYS, groups.1 * GROUP_KEYS - 1);
    let by_key = format!("BETWEEN {first} AND {last}");
    let by_group = format!("BETWEEN {} AND {}", groups.0, groups.1 - 1);
    let by_second = format!("BETWEEN {} AND {}", SECOND_MAX - last, SECOND_MAX - first);
    let registers = "SELECT k, n, b, v FROM registers FORCE INDEX";
    let sets = "SELECT k, v FROM sets FORCE INDEX";
    let reads: [(Kind, Vec<String>); 3] = [
        (
            Key::List,
            vec![format!("SELECT k, v FROM lists WHERE k {by_key}")],
        ),
        (
            Key::Register,
            vec![
                format!("{registers} (PRIMARY) WHERE k {by_key}"),
                format!("{registers} (by_second) WHERE s {by_second}"),
                format!("{registers} (by_group) WHERE g {by_group}"),
            ],
        ),
        (
            Key::Set,
            vec![
                format!("{sets} (PRIMARY) WHERE k {by_key}"),
                format!("{sets} (by_set) WHERE k {by_key}"),
                format!("{sets} (by_group) WHERE g {by_group}"),
            ],
        ),
    ];
    let (mut all, mut contradictions) = (Rows::new(), Vec::new());
    for (kind, statements) in reads {
        let mut first: Option<Rows> = None;
        for statement in statements {
            let (mut rows, twice) = rows_of(kind, &client.rows(&statement)?)?;
            contradictions.extend(twice.iter().map(|key| format!("{key} twice: {statement}")));
            rows.values_mut().for_each(sort_set);
            match &first {
                Some(first) if *first != rows => {
                    contradictions.push(disagreement(first, &rows, &statement))
                }
                Some(_) => {}
                None => first = Some(rows),
            }
        }
        all.extend(first.into_iter().flatten());
    }
    Ok((all, contradictions))
}

/// The first key of which two reads differ.
fn disagreement(expected: &Rows, got: &Rows, statement: &str) -> String {
    let mut keys = expected.keys().chain(got.keys());
    let shown = |seen: Option<&Seen>| seen.map_or(String::from("nothing"), Seen::to_string);
    match keys.find(|key| expected.get(key) != got.get(key)) {
        Some(key) => format!(
            "{key} is {}, and {} by {statement}",
            shown(expected.get(key)),
            shown(got.get(key))
        ),
        None => format!("{statement} differs"),
    }
}

fn sort_set(seen: &mut Seen) {
    if let Seen::Set(elements) = seen {
        elements.sort_unstable();
    }
}

/// Removes the rows of all groups before this one.
pub(super) fn remove_before(client: &mut Client, group: u64) -> Result<()> {
    let first = group * GROUP_KEYS;
    for table in ["lists", "registers", "sets"] {
        client.run(&format!("DELETE FROM {table} WHERE k < {first}"))?;
    }
    ensure!(
        client.value("SELECT COUNT(*) FROM sets")?.as_deref() == Some("0"),
        "rows are left"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[&str]) -> Vec<Option<Vec<u8>>> {
        let bytes = values.iter().map(|it| Some(it.as_bytes().to_vec()));
        bytes.collect()
    }

    #[test]
    fn rows_become_what_was_seen() {
        let rows = [row(&["8", "3,1"]), row(&["9", "2"])];
        let (seen, twice) = Range::Lists(2).read(&rows).unwrap();
        let list = Seen::List(vec![Element(3), Element(1)]);
        assert_eq!(seen.get(&Key::List(8)), Some(&list));
        assert_eq!((seen.len(), twice.len()), (2, 0));
        let rows = [row(&["8", "3"]), row(&["8", "4"])];
        let (seen, twice) = Range::Sets(2).read(&rows).unwrap();
        let set = Seen::Set(vec![Element(3), Element(4)]);
        assert_eq!((seen.get(&Key::Set(8)), twice.len()), (Some(&set), 0));
        let rows = [row(&["8", "1", "0", "5"]), row(&["8", "2", "5", "6"])];
        let (seen, twice) = Range::Registers(2).read(&rows).unwrap();
        let register = Seen::Register {
            number: 2,
            last: Some(Element(6)),
            before: Some(Element(5)),
        };
        assert_eq!(seen.get(&Key::Register(8)), Some(&register));
        assert_eq!(twice, [Key::Register(8)]);
    }

    #[test]
    fn rows_of_another_shape_are_refused() {
        let read = |row: Vec<Option<Vec<u8>>>| Range::Lists(2).read(&[row]);
        assert!(read(vec![None]).is_err());
        assert!(read(Vec::new()).is_err());
        assert!(read(row(&["8", "3,"])).is_err());
        assert!(read(row(&["8", "3", "1"])).is_err());
        assert!(read(row(&["x", "3"])).is_err());
    }
}
