//! Changes of tables: each goes to the store that has the table, or the table's database.

use std::rc::Rc;

use store::{LocalFuture, SchemaStore, StoreError, TableDefinition, TableId, TableName};
use value::CollationId;

use crate::RoutedStore;

impl RoutedStore {
    /// What changes the tables of a member.
    fn schema_at(&self, place: usize) -> Result<Rc<dyn SchemaStore>, StoreError> {
        let schema = self.members[place].schema.clone();
        let what = "a schema change of a table that is not the server's own";
        schema.ok_or(StoreError::NotSupported { what })
    }

    fn schema_of(&self, id: TableId) -> Result<Rc<dyn SchemaStore>, StoreError> {
        self.schema_at(self.place_of(id)?)
    }

    /// The place of the member that has the database, or that would make it.
    fn place_of_database(&self, name: &str) -> usize {
        self.with_known(|known| known.of_database.get(name).copied().unwrap_or(0))
    }

    /// Fails if a table of another store has the name.
    fn check_name(&self, name: &TableName) -> Result<(), StoreError> {
        let is_taken = self.with_known(|known| known.definitions.iter().any(|it| it.name == *name));
        match is_taken {
            true => Err(StoreError::TableExists),
            false => Ok(()),
        }
    }

    /// The member that has all these tables, and the databases that they shall be in.
    fn schema_of_all(
        &self,
        renames: &[(TableId, TableName)],
    ) -> Result<Rc<dyn SchemaStore>, StoreError> {
        let Some((first, _)) = renames.first() else {
            return self.schema_at(0);
        };
        let place = self.place_of(*first)?;
        for (id, name) in renames {
            if self.place_of(*id)? != place || self.place_of_database(&name.database) != place {
                let what = "a change of a table's name from one store to another";
                return Err(StoreError::NotSupported { what });
            }
        }
        self.schema_at(place)
    }
}

impl SchemaStore for RoutedStore {
    fn create_database(
        &self,
        name: &str,
        collation: CollationId,
    ) -> LocalFuture<'_, Result<(), StoreError>> {
        let name = name.to_owned();
        Box::pin(async move {
            let schema = self.schema_at(self.place_of_database(&name))?;
            schema.create_database(&name, collation).await
        })
    }

    fn drop_database(&self, name: &str) -> LocalFuture<'_, Result<(), StoreError>> {
        let name = name.to_owned();
        Box::pin(async move {
            let schema = self.schema_at(self.place_of_database(&name))?;
            schema.drop_database(&name).await
        })
    }

    fn create_table(
        &self,
        definition: TableDefinition,
    ) -> LocalFuture<'_, Result<TableId, StoreError>> {
        Box::pin(async move {
            self.check_name(&definition.name)?;
            let schema = self.schema_at(self.place_of_database(&definition.name.database))?;
            schema.create_table(definition).await
        })
    }

    fn drop_table(&self, id: TableId) -> LocalFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.schema_of(id)?.drop_table(id).await })
    }

    fn rename_tables(
        &self,
        renames: Vec<(TableId, TableName)>,
    ) -> LocalFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let schema = self.schema_of_all(&renames)?;
            schema.rename_tables(renames).await
        })
    }

    fn truncate_table(&self, id: TableId) -> LocalFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.schema_of(id)?.truncate_table(id).await })
    }

    fn alter_table(
        &self,
        definition: TableDefinition,
        next_number: Option<u64>,
    ) -> LocalFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let schema = self.schema_of(definition.id)?;
            schema.alter_table(definition, next_number).await
        })
    }

    fn replace_table(
        &self,
        old: TableId,
        copy: TableId,
        name: TableName,
    ) -> LocalFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let both = [(old, name.clone()), (copy, name.clone())];
            let schema = self.schema_of_all(&both)?;
            schema.replace_table(old, copy, name).await
        })
    }

    fn renew_statistics(&self, id: TableId) -> LocalFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.schema_of(id)?.renew_statistics(id).await })
    }
}
