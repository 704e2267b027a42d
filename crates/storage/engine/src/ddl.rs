//! Schema changes.
//!
//! A change makes the new parts (a tablespace, trees) and rewrites the dictionary's rows in one
//! transaction. Then it publishes the new dictionary snapshot and removes the old parts. A crash
//! before or after the commit leaves tablespaces that no row names; recovery removes those. The
//! snapshot is published with the commit record, before that is durable. Otherwise, if a statement
//! were given up while it waits for the disk, memory and dictionary would differ until the next
//! start. There is one change at a time. The session's metadata locks keep other users of the table
//! away.

pub(crate) mod index_build;
pub(crate) mod left_space;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use btree::{Tree, space};
use format::row_header::{ROW_HEADER_BYTES, RowHeader};
use format::undo::PurgeItem;
use format::{IndexId, SpaceId, TableId};
use store::{
    ClientId, Durability, Isolation, Outcome, StoreError, TableDefinition, TableName, Transaction,
    TransactionOptions,
};
use tracing::warn;
use value::CollationId;

use crate::ddl::left_space::UnnamedSpace;
use crate::row::write::{NewBody, RowPlace, Written};
use crate::schema::dictionary::{
    self, DICTIONARY_TABLE, Dictionary, Entry, SYSTEM_SPACE, TableEntry, TreePlace,
};
use crate::schema::new_counter::NewCounter;
use crate::schema::table_shape::{LiveTable, Moment, TableShape};
use crate::transaction::EngineTransaction;
use crate::transaction::pending::Pending;
use crate::turns::Turn;
use crate::worker::Worker;

/// Tables by id.
type Shapes = BTreeMap<TableId, Arc<TableShape>>;

/// A change of one row of the dictionary.
#[derive(Debug)]
enum Row {
    /// The row of this key gets this value.
    Put(Entry),
    /// The row of this key is removed.
    Remove(Vec<u8>),
}

/// The changes of one transaction to the dictionary.
#[derive(Debug, Default)]
struct Rewrite {
    /// Its rows.
    rows: Vec<Row>,
    /// A table's counter, set together with them.
    new_counter: Option<Box<NewCounter>>,
    /// The tablespace that these rows are the first to name.
    made: Option<Rc<UnnamedSpace>>,
}

impl From<Vec<Row>> for Rewrite {
    fn from(rows: Vec<Row>) -> Self {
        Self {
            rows,
            ..Self::default()
        }
    }
}

impl Worker {
    pub(crate) async fn create_database(
        self: &Rc<Self>,
        name: &str,
        collation: CollationId,
    ) -> Result<(), StoreError> {
        let turn = self.shared.schema_turns.take().await;
        if self.dictionary().databases.contains_key(name) {
            return Err(StoreError::TableExists);
        }
        let entry = Entry::Database {
            name: name.to_owned(),
            collation,
        };
        let publish = || {
            self.publish(|_, databases| {
                let before = databases.insert(name.to_owned(), collation);
                assert!(before.is_none(), "one schema change at a time");
            });
        };
        self.rewrite(&turn, vec![Row::Put(entry)], publish).await
    }

    pub(crate) async fn drop_database(self: &Rc<Self>, name: &str) -> Result<(), StoreError> {
        let turn = self.shared.schema_turns.take().await;
        if !self.dictionary().databases.contains_key(name) {
            return Err(StoreError::NoSuchTable);
        }
        let rows = vec![Row::Remove(dictionary::database_key(name))];
        let publish = || {
            self.publish(|_, databases| {
                let gone = databases.remove(name);
                assert!(gone.is_some(), "one schema change at a time");
            });
        };
        self.rewrite(&turn, rows, publish).await
    }

    fn check_name_free(&self, name: &TableName) -> Result<(), StoreError> {
        let dictionary = self.dictionary();
        let is_taken = dictionary
            .definitions
            .iter()
            .any(|definition| definition.name == *name);
        if is_taken {
            Err(StoreError::TableExists)
        } else {
            Ok(())
        }
    }

    fn shape(&self, id: TableId) -> Result<Arc<TableShape>, StoreError> {
        self.table_shape(id).ok_or(StoreError::NoSuchTable)
    }

    pub(crate) async fn create_table(
        self: &Rc<Self>,
        mut definition: TableDefinition,
    ) -> Result<TableId, StoreError> {
        let turn = self.shared.schema_turns.take().await;
        self.check_name_free(&definition.name)?;
        let id = self.until_done(|| self.allocate_id()).await?;
        definition.id = TableId(u64::from(id));
        if self.table_shape(definition.id).is_some() {
            return Err(StoreError::damaged("the next id of a table is in use"));
        }
        definition.version = 1;
        if definition.created_us == 0 {
            definition.created_us = self.options.clock.wall_micros();
        }
        let id = definition.id;
        self.make_table(&turn, definition).await.map(|()| id)
    }

    /// Makes an empty tablespace with the trees of a definition. The table of that id then has it.
    /// If this fails, the tablespace is removed.
    async fn make_table(
        self: &Rc<Self>,
        turn: &Rc<Turn>,
        definition: TableDefinition,
    ) -> Result<(), StoreError> {
        let id = definition.id;
        let made = self.make_named_space(turn, definition).await;
        match &made {
            Ok(()) => assert!(
                self.table_shape(id).is_some(),
                "a table that is made is open"
            ),
            // What cannot be removed now is left to the background, which reports it.
            Err(_) => drop(self.remove_left_spaces().await),
        }
        made
    }

    async fn make_named_space(
        self: &Rc<Self>,
        turn: &Rc<Turn>,
        definition: TableDefinition,
    ) -> Result<(), StoreError> {
        let id = self.allocate_space().await?;
        let space = UnnamedSpace::new(self, id);
        let pool = self.pages.pool();
        pool.create_space(&**self.pages.disk(), id).await?;
        let entry = self.fill_space(id, definition).await?;
        let rewrite = Rewrite {
            made: Some(Rc::new(space)),
            ..vec![
                Row::Put(Entry::Table(entry.clone())),
                Row::Remove(dictionary::statistics_key(entry.definition.id)),
            ]
            .into()
        };
        self.rewrite(turn, rewrite, || self.publish_table(entry, None))
            .await
    }

    /// Removes the tablespace that a table had before. If that fails, the background continues: the
    /// schema change itself is done.
    async fn leave_space(&self, id: SpaceId) {
        drop(UnnamedSpace::new(self, id));
        // The background reports what is wrong.
        let _ = self.remove_left_spaces().await;
    }

    async fn fill_space(
        self: &Rc<Self>,
        space: SpaceId,
        definition: TableDefinition,
    ) -> Result<TableEntry, StoreError> {
        self.until_done(|| space::create(&self.pages, space))
            .await?;
        let clustered_count = usize::from(definition.clustered_key().is_some());
        let tree_count = 1 + definition.indexes.len() - clustered_count;
        let mut trees = Vec::new();
        for _ in 0..tree_count {
            trees.push(self.make_tree(space).await?);
        }
        let entry = TableEntry {
            definition: Arc::new(definition),
            space,
            trees,
        };
        let start = entry.definition.auto_increment_start.max(1);
        let shape = TableShape::new(entry.clone(), Arc::default());
        self.until_done(|| self.set_auto(&shape, start)).await?;
        Ok(entry)
    }

    pub(crate) async fn make_tree(&self, space: SpaceId) -> Result<TreePlace, StoreError> {
        let index = IndexId(u64::from(self.until_done(|| self.allocate_id()).await?));
        let tree = self
            .until_done(|| Tree::create(&self.pages, space, index))
            .await?;
        Ok(TreePlace {
            index,
            root: tree.root,
        })
    }

    pub(crate) async fn drop_table(self: &Rc<Self>, id: TableId) -> Result<(), StoreError> {
        let turn = self.shared.schema_turns.take().await;
        let shape = self.shape(id)?;
        let rows = vec![
            Row::Remove(dictionary::table_key(id)),
            Row::Remove(dictionary::statistics_key(id)),
        ];
        let publish = || {
            self.publish(|tables, _| {
                let gone = tables.remove(&id);
                assert!(gone.is_some(), "one schema change at a time");
            });
        };
        self.rewrite(&turn, rows, publish).await?;
        self.leave_space(shape.space()).await;
        Ok(())
    }

    pub(crate) async fn rename_tables(
        self: &Rc<Self>,
        renames: Vec<(TableId, TableName)>,
    ) -> Result<(), StoreError> {
        let turn = self.shared.schema_turns.take().await;
        let mut names: BTreeMap<TableName, TableId> = BTreeMap::new();
        for definition in self.dictionary().definitions.iter() {
            names.insert(definition.name.clone(), definition.id);
        }
        for (id, name) in &renames {
            let old = self.shape(*id)?.entry.definition.name.clone();
            names.retain(|taken, owner| owner != id || taken == name && *taken == old);
            match names.insert(name.clone(), *id) {
                Some(owner) if owner != *id => return Err(StoreError::TableExists),
                _ => {}
            }
        }
        let mut entries = Vec::new();
        // Of several names for one table the last stays.
        let renames: BTreeMap<TableId, TableName> = renames.into_iter().collect();
        for (id, name) in renames {
            let mut entry = self.shape(id)?.entry.clone();
            let definition = Arc::make_mut(&mut entry.definition);
            definition.name = name;
            definition.version += 1;
            entries.push(entry);
        }
        let rows: Vec<Row> = entries
            .iter()
            .cloned()
            .map(|entry| Row::Put(Entry::Table(entry)))
            .collect();
        let publish = || {
            self.publish(|tables, _| {
                for entry in entries {
                    replace(tables, entry);
                }
            });
        };
        self.rewrite(&turn, rows, publish).await
    }

    pub(crate) async fn truncate_table(self: &Rc<Self>, id: TableId) -> Result<(), StoreError> {
        let turn = self.shared.schema_turns.take().await;
        let old = self.shape(id)?;
        let mut definition = TableDefinition::clone(&old.entry.definition);
        definition.version += 1;
        definition.auto_increment_start = 1;
        self.make_table(&turn, definition).await?;
        self.leave_space(old.space()).await;
        Ok(())
    }

    pub(crate) async fn replace_table(
        self: &Rc<Self>,
        old: TableId,
        copy: TableId,
        name: TableName,
    ) -> Result<(), StoreError> {
        let turn = self.shared.schema_turns.take().await;
        let (old_shape, copy_shape) = (self.shape(old)?, self.shape(copy)?);
        let dictionary = self.dictionary();
        let mut others = dictionary.definitions.iter();
        if others.any(|it| it.name == name && it.id != old && it.id != copy) {
            return Err(StoreError::TableExists);
        }
        let mut entry = copy_shape.entry.clone();
        let definition = Arc::make_mut(&mut entry.definition);
        definition.name = name;
        definition.version += 1;
        let rows = vec![
            Row::Remove(dictionary::table_key(old)),
            Row::Remove(dictionary::statistics_key(old)),
            Row::Put(Entry::Table(entry.clone())),
        ];
        let publish = || {
            let rows = copy_shape.clustered.index;
            copy_shape.live.set_remade(rows, self.moment());
            self.publish(|tables, _| {
                let gone = tables.remove(&old);
                assert!(gone.is_some(), "one schema change at a time");
                replace(tables, entry);
            });
        };
        self.rewrite(&turn, rows, publish).await?;
        self.leave_space(old_shape.space()).await;
        Ok(())
    }

    pub(crate) async fn alter_table(
        self: &Rc<Self>,
        mut definition: TableDefinition,
        next_number: Option<u64>,
    ) -> Result<(), StoreError> {
        let turn = self.shared.schema_turns.take().await;
        let old = self.shape(definition.id)?;
        check_rows_stay(&old.entry.definition, &definition)?;
        if old.entry.definition.name != definition.name {
            self.check_name_free(&definition.name)?;
        }
        definition.version = old.entry.definition.version + 1;
        // Until the end: a crash on the way leaves trees that no row of the dictionary names. Trees
        // of an earlier failed change may be there already; then the mark stays for them.
        let space = old.space();
        let has_remains = self.until_done(|| self.is_building(space)).await?;
        if !has_remains {
            self.until_done(|| self.mark_building(space, true)).await?;
        }
        let (mut entry, new) = self.alter_trees(&old, definition).await?;
        let shape = TableShape::new(entry.clone(), Arc::clone(&old.live));
        if let Err(error) = self.fill_indexes(&shape, &new).await {
            for place in new.iter().map(|&at| entry.trees[at]) {
                self.drop_tree(entry.space, place).await?;
            }
            self.end_building(space, has_remains).await?;
            return Err(error);
        }
        Arc::make_mut(&mut entry.definition).created_us = old.entry.definition.created_us;
        let rewrite = Rewrite {
            new_counter: next_number.map(|next| Box::new(NewCounter::new(&old, next))),
            ..vec![Row::Put(Entry::Table(entry.clone()))].into()
        };
        let gone: Vec<TreePlace> = old
            .entry
            .trees
            .iter()
            .copied()
            .filter(|place| !entry.trees.contains(place))
            .collect();
        let publish = || {
            for &made in &new {
                let index = entry.trees[made].index;
                old.live.set_remade(index, self.moment());
            }
            self.publish_table(entry, Some(Arc::clone(&old.live)));
        };
        self.rewrite(&turn, rewrite, publish).await?;
        let mut has_remains = has_remains;
        for place in gone {
            match self.drop_tree(space, place).await {
                Err(failure) if failure.is_unreadable() => {
                    // The change is committed. The next start gives back all other pages.
                    warn!(%failure, "a dropped index keeps its pages until the next start");
                    has_remains = true;
                }
                dropped => dropped?,
            }
        }
        self.end_building(space, has_remains).await
    }

    /// Removes the mark that trees of a space are being made or dropped, unless there are remains
    /// that the next start must find.
    async fn end_building(&self, space: SpaceId, has_remains: bool) -> Result<(), StoreError> {
        if has_remains {
            return Ok(());
        }
        self.until_done(|| self.mark_building(space, false)).await
    }

    /// The entry of a definition with other indexes, and which of its trees are new and empty.
    async fn alter_trees(
        &self,
        old: &TableShape,
        definition: TableDefinition,
    ) -> Result<(TableEntry, Vec<usize>), StoreError> {
        let before = &old.entry.definition;
        let first = usize::from(definition.clustered_key().is_some());
        let mut trees = vec![old.entry.trees[0]];
        let mut new = Vec::new();
        for kept in store::kept_indexes(&before.indexes[first..], &definition.indexes[first..]) {
            match kept {
                Some(position) => trees.push(old.entry.trees[1 + position]),
                None => {
                    new.push(trees.len());
                    trees.push(self.make_tree(old.space()).await?);
                }
            }
        }
        let roots: BTreeSet<_> = trees.iter().map(|tree| tree.root).collect();
        assert_eq!(roots.len(), trees.len(), "no two indexes share a tree");
        let definition = Arc::new(definition);
        Ok((
            TableEntry {
                definition,
                space: old.space(),
                trees,
            },
            new,
        ))
    }

    async fn drop_tree(&self, space: SpaceId, place: TreePlace) -> Result<(), StoreError> {
        let is_named =
            |table: &Arc<TableShape>| table.space() == space && table.entry.trees.contains(&place);
        assert!(
            !self.dictionary().tables.values().any(is_named),
            "a tree is dropped when no table has it"
        );
        let tree = Tree {
            space,
            root: place.root,
            index: place.index,
        };
        self.until_done(|| tree.destroy(&self.pages)).await
    }

    /// Writes down the statistics of a table. No picture of the dictionary changes with them.
    pub(crate) async fn write_statistics(
        self: &Rc<Self>,
        turn: &Rc<Turn>,
        entry: Entry,
    ) -> Result<(), StoreError> {
        self.rewrite(turn, vec![Row::Put(entry)], || {}).await
    }

    /// Changes rows of the dictionary in one durable transaction, and calls `publish` as soon as it
    /// cannot fail any more. If it fails, its changes are undone before the turn passes on;
    /// otherwise the next change would find half of them.
    async fn rewrite(
        self: &Rc<Self>,
        turn: &Rc<Turn>,
        rewrite: impl Into<Rewrite>,
        publish: impl FnOnce(),
    ) -> Result<(), StoreError> {
        let rewrite = rewrite.into();
        let options = TransactionOptions {
            isolation: Isolation::ReadCommitted,
            read_only: false,
            lock_wait_timeout_s: 3600,
            client: ClientId::NONE,
        };
        let mut txn = EngineTransaction::new(Rc::clone(self), options);
        // If the statement is dropped in the middle, or undoing fails, the orphan has it.
        txn.kept = Some(Box::new((rewrite.made.clone(), Rc::clone(turn))));
        txn.new_counter = rewrite.new_counter;
        let made = rewrite.made;
        let named = || {
            if let Some(space) = made {
                space.settle();
            }
            publish();
        };
        let outcome = self.rewrite_rows(&mut txn, &rewrite.rows, named).await;
        if outcome.is_err() {
            // Whether this succeeds or is left to the background, the first failure is returned.
            let _ = self.until_done(|| txn.rollback()).await;
        } else {
            assert!(txn.id.is_none(), "a change that is published is committed");
        }
        outcome
    }

    async fn rewrite_rows(
        &self,
        txn: &mut EngineTransaction,
        rows: &[Row],
        committed: impl FnOnce(),
    ) -> Result<(), StoreError> {
        for row in rows {
            self.until_done(|| txn.rewrite_row(row)).await?;
            txn.pending = Pending::default();
        }
        let mut committed = Some(committed);
        let commit = || {
            let outcome = txn.commit(Durability::Durable);
            // From the commit record on a restart may find the rows, durable or not.
            if (outcome.is_ok() || txn.is_committing())
                && let Some(committed) = committed.take()
            {
                committed();
            }
            outcome
        };
        self.until_done(commit).await?;
        assert!(committed.is_none(), "a committed change is published");
        Ok(())
    }

    /// Publishes a new snapshot of the dictionary.
    fn publish(&self, edit: impl FnOnce(&mut Shapes, &mut BTreeMap<String, CollationId>)) {
        let mut present = self.shared.dictionary.lock();
        let (mut tables, mut databases) = (present.tables.clone(), present.databases.clone());
        edit(&mut tables, &mut databases);
        debug_assert!(
            are_apart(&tables),
            "no two tables share a name or a tablespace"
        );
        let picture = Dictionary::new(present.version + 1, tables, databases);
        self.shared.replace_dictionary(&mut present, picture);
    }

    /// The moment at which a tree that was built is published.
    fn moment(&self) -> Moment {
        // Before the position, which only grows.
        let horizon = self.horizon();
        Moment {
            now: self.pages.reserved(),
            horizon,
        }
    }

    fn publish_table(&self, entry: TableEntry, live: Option<Arc<LiveTable>>) {
        let live = live.unwrap_or_else(|| {
            let live = LiveTable::default();
            let next = entry.definition.auto_increment_start.max(1);
            *live.auto.lock() = crate::schema::table_shape::AutoCounter {
                next,
                ceiling: next,
            };
            if let Some(rows) = entry.trees.first() {
                live.set_remade(rows.index, self.moment());
            }
            Arc::new(live)
        });
        self.publish(|tables, _| {
            tables.insert(entry.definition.id, Arc::new(TableShape::new(entry, live)));
        });
    }
}

/// Replaces a table by the same one with another definition.
fn replace(tables: &mut BTreeMap<TableId, Arc<TableShape>>, entry: TableEntry) {
    let id = entry.definition.id;
    let old = tables.get(&id);
    let live = old.map(|old| Arc::clone(&old.live));
    let live = live.expect("a table that is replaced is there");
    tables.insert(id, Arc::new(TableShape::new(entry, live)));
}

/// Whether all tables have names and tablespaces of their own.
fn are_apart(tables: &Shapes) -> bool {
    let names: BTreeSet<_> = tables
        .values()
        .map(|it| &it.entry.definition.name)
        .collect();
    let spaces: BTreeSet<_> = tables.values().map(|it| it.space()).collect();
    names.len() == tables.len() && spaces.len() == tables.len()
}

/// Refuses changes that would require rows to be rewritten.
fn check_rows_stay(old: &TableDefinition, new: &TableDefinition) -> Result<(), StoreError> {
    let columns = |definition: &TableDefinition| -> Vec<_> {
        let column = definition.columns.iter();
        column
            .map(|column| (column.column_type.clone(), column.nullable))
            .collect()
    };
    let clustered =
        |definition: &TableDefinition| definition.clustered_key().map(|index| index.parts.clone());
    let has_others = new.indexes.iter().skip(1).any(|it| it.is_clustered());
    if columns(old) != columns(new) || clustered(old) != clustered(new) || has_others {
        return Err(StoreError::NotSupported {
            what: "ALTER TABLE in place",
        });
    }
    Ok(())
}

impl EngineTransaction {
    /// Changes a row of the dictionary; called again until it is done.
    fn rewrite_row(&mut self, row: &Row) -> Outcome<()> {
        let tree = dictionary::tree();
        let (key, bytes) = match row {
            Row::Put(entry) => (entry.key(), Some(dictionary::encode(entry))),
            Row::Remove(key) => (key.clone(), None),
        };
        let place = RowPlace {
            table: DICTIONARY_TABLE,
            tree,
            key: &key,
        };
        let mut version = Vec::new();
        let is_there = tree.get(&self.worker.pages, &key, &mut version)?;
        let header = RowHeader::split(&version).filter(|_| is_there);
        let is_live = header.is_some_and(|(header, _)| !header.is_deleted);
        let mut purge_list = Vec::new();
        if let Some((header, body)) = header
            && is_live
            && header.is_spilled
            && let Ok(reference) = format::row_header::LobReference::decode(body)
        {
            let first_page = reference.first_page;
            PurgeItem::Lob {
                space: SYSTEM_SPACE.0,
                first_page,
            }
            .encode(&mut purge_list);
        }
        let Some(bytes) = bytes else {
            if is_live {
                self.delete_row(place, &purge_list)?;
            }
            return Ok(());
        };
        let limit = btree::payload_bytes_max(self.worker.pages.page_bytes()) - ROW_HEADER_BYTES;
        let reference = if limit < bytes.len() {
            Some(
                self.spill_row(SYSTEM_SPACE, DICTIONARY_TABLE, &bytes)?
                    .encode(),
            )
        } else {
            None
        };
        let body = match &reference {
            Some(reference) => NewBody {
                bytes: reference,
                is_spilled: true,
            },
            None => NewBody {
                bytes: &bytes,
                is_spilled: false,
            },
        };
        let written = if is_live {
            self.update_row(place, body, &purge_list)?
        } else {
            self.insert_row(place, body, lock::LockMode::Exclusive)?
        };
        assert!(written == Written::Done, "one schema change at a time");
        Ok(())
    }
}
