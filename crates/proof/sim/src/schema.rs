//! Schema changes in the torture: one session creates, fills, alters, renames, empties and drops
//! small tables, and knows what must exist after a crash.
//!
//! Each step happens completely or not at all. So a recovered store may show one of at most two
//! pictures: before the running step, and after it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use env::Random;
use store::{IndexDefinition, Isolation, SchemaStore, Store, StoreError, TableName, Uniqueness};
use value::Value;

use crate::rows::{self, all, big, index};
use crate::world::Database;

/// Possible names of tables.
const NAMES: [&str; 4] = ["s0", "s1", "s2", "s3"];

/// The expected state of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Picture {
    /// It has its second index.
    has_index: bool,
    /// Its rows' ids.
    rows: BTreeSet<i64>,
    /// The next number of its AUTO_INCREMENT counter, changed only with the index.
    next_number: u64,
}

type Pictures = BTreeMap<String, Picture>;

/// What is known of the tables.
#[derive(Debug, Default)]
pub(crate) struct SchemaHistory {
    /// The acknowledged state.
    certain: Pictures,
    /// The state if the running step has happened.
    possible: Option<Pictures>,
    /// Steps done.
    pub(crate) step_count: u64,
    /// Nothing more is changed.
    pub(crate) is_over: bool,
}

/// A step of the session.
#[derive(Debug, Clone)]
enum Step {
    Create(&'static str, bool),
    Insert(String, Vec<i64>),
    /// The second index is added or dropped, and the counter is set.
    Alter(String, u64),
    Rename(String, &'static str),
    Truncate(String),
    Drop(String),
}

impl Step {
    fn draw(pictures: &Pictures, random: &mut Random) -> Self {
        let name = NAMES[random.index(NAMES.len())];
        let Some(picture) = pictures.get(name) else {
            return Self::Create(name, random.below(2) == 0);
        };
        let other = NAMES[random.index(NAMES.len())];
        match random.below(8) {
            0 => Self::Truncate(name.to_owned()),
            1 => Self::Drop(name.to_owned()),
            2 if !pictures.contains_key(other) => Self::Rename(name.to_owned(), other),
            3 | 4 => Self::Alter(name.to_owned(), 1 + random.below(1 << 40)),
            _ => {
                let last = picture.rows.last().copied().unwrap_or(0);
                let count = i64::try_from(1 + random.below(60)).unwrap_or(1);
                Self::Insert(name.to_owned(), (last + 1..=last + count).collect())
            }
        }
    }

    fn apply(&self, pictures: &mut Pictures) {
        match self {
            Self::Create(name, has_index) => {
                let picture = Picture {
                    has_index: *has_index,
                    next_number: 1,
                    ..Picture::default()
                };
                pictures.insert((*name).to_owned(), picture);
            }
            Self::Insert(name, ids) => pictures.entry(name.clone()).or_default().rows.extend(ids),
            Self::Alter(name, next) => {
                let picture = pictures.entry(name.clone()).or_default();
                picture.has_index = !picture.has_index;
                picture.next_number = *next;
            }
            Self::Rename(name, other) => {
                let picture = pictures.remove(name).unwrap_or_default();
                pictures.insert((*other).to_owned(), picture);
            }
            Self::Truncate(name) => {
                let picture = pictures.entry(name.clone()).or_default();
                picture.rows.clear();
                picture.next_number = 1;
            }
            Self::Drop(name) => drop(pictures.remove(name)),
        }
    }

    async fn run(&self, database: &Database) -> Result<(), StoreError> {
        let engine = &database.engine;
        match self {
            Self::Create(name, has_index) => {
                let mut indexes = vec![index("PRIMARY", Uniqueness::Primary, &[0])];
                indexes.extend(has_index.then(second_index));
                let table = rows::table(name, vec![big("id"), big("v")], indexes);
                engine.create_table(table).await.map(drop)
            }
            Self::Insert(name, ids) => {
                let table = database.table(name);
                let mut session = database.begin(Isolation::RepeatableRead);
                for &id in ids {
                    let row = [Value::Int(id), Value::Int(id % 7)];
                    session.insert(&table, &row).await?;
                }
                session.commit().await
            }
            Self::Alter(name, next) => {
                let mut definition = (**database.table(name).definition()).clone();
                if definition.indexes.len() == 1 {
                    definition.indexes.push(second_index());
                } else {
                    definition.indexes.truncate(1);
                }
                engine.alter_table(definition, Some(*next)).await
            }
            Self::Rename(name, other) => {
                let (id, database) = (database.table(name).definition().id, "test".to_owned());
                let table = (*other).to_owned();
                engine
                    .rename_tables(vec![(id, TableName { database, table })])
                    .await
            }
            Self::Truncate(name) => {
                let id = database.table(name).definition().id;
                engine.truncate_table(id).await
            }
            Self::Drop(name) => {
                let id = database.table(name).definition().id;
                engine.drop_table(id).await
            }
        }
    }
}

fn second_index() -> IndexDefinition {
    index("by_v", Uniqueness::None, &[1])
}

/// Changes the schema until a step fails, or nothing more is to be changed; the caller judges the
/// failure.
pub(crate) async fn change_schema(
    database: &Database,
    history: &Rc<RefCell<SchemaHistory>>,
    random: &mut Random,
) -> Result<(), StoreError> {
    while !history.borrow().is_over {
        let step = Step::draw(&history.borrow().certain, random);
        let mut after = history.borrow().certain.clone();
        step.apply(&mut after);
        history.borrow_mut().possible = Some(after.clone());
        step.run(database).await?;
        let mut history = history.borrow_mut();
        history.certain = after;
        history.possible = None;
        history.step_count += 1;
    }
    Ok(())
}

/// After a crash: the state is one of the two pictures, which is certain from now on.
pub(crate) async fn verify_schema(
    database: &Database,
    history: &Rc<RefCell<SchemaHistory>>,
) -> Result<(), String> {
    let text = |error: StoreError| format!("a table of the schema session: {error}");
    let mut found = Pictures::new();
    for definition in database.engine.definitions().iter() {
        let name = definition.name.table.as_str();
        if !NAMES.contains(&name) {
            continue;
        }
        let mut session = database.begin(Isolation::RepeatableRead);
        let table = database.table(name);
        let rows = session.scan(&table, all()).await.map_err(text)?;
        let picture = Picture {
            has_index: definition.indexes.len() == 2,
            rows: rows.iter().map(|(_, row)| rows::integer(&row[0])).collect(),
            next_number: table.next_auto_increment(),
        };
        found.insert(name.to_owned(), picture);
    }
    let mut history = history.borrow_mut();
    if found != history.certain && Some(&found) != history.possible.as_ref() {
        return Err(format!(
            "the schema is {found:?}, not {:?} or {:?}",
            history.certain, history.possible
        ));
    }
    history.certain = found;
    history.possible = None;
    Ok(())
}
