//! DROP of tables, and of objects that do not exist here. A missing object is an error, or with IF
//! EXISTS a note of the same number.

use catalog::Privilege;
use errcode::{
    ClientError, ER_BAD_TABLE_ERROR, ER_EVENT_DOES_NOT_EXIST, ER_FOREIGN_SERVER_DOESNT_EXIST,
    ER_NOT_SEQUENCE2, ER_SP_DOES_NOT_EXIST, ER_TRG_DOES_NOT_EXIST, ER_UNKNOWN_SEQUENCES,
    ER_UNKNOWN_VIEW, ER_WRONG_OBJECT,
};
use syntax::ast::{self, Dropped};
use value::Level;

use crate::connection::reply::Stop;
use crate::connection::session::Session;

impl Session {
    /// DROP of tables, views, sequences, a trigger, an event or a server.
    pub(crate) async fn drop_named(&mut self, drop: &ast::Drop) -> Result<(), Stop> {
        match drop.what {
            Dropped::Table => self.drop_tables(drop).await,
            Dropped::View => self.drop_views(drop),
            Dropped::Sequence => self.drop_sequences(drop),
            Dropped::Trigger | Dropped::Event => self.drop_program(drop),
            Dropped::Server => self.drop_server(drop),
        }
    }

    /// There are no views, so each name is missing or a table.
    fn drop_views(&mut self, drop: &ast::Drop) -> Result<(), Stop> {
        let mut missing = Vec::new();
        for name in &drop.names {
            let full = self.unchecked_name(name)?;
            self.check_table_privilege(Privilege::Drop, &full)?;
            if drop.if_exists && self.existing(&full).is_some() {
                let facts: [&dyn std::fmt::Display; 3] = [&full.database, &full.table, &"VIEW"];
                let error = ClientError::new(ER_WRONG_OBJECT, &facts);
                self.tell(Level::Warning, error);
            }
            missing.push(full.to_string());
        }
        let error = ClientError::new(ER_UNKNOWN_VIEW, &[&missing.join(",")]);
        Ok(self.tell_missing(drop, error)?)
    }

    /// There are no sequences either.
    fn drop_sequences(&mut self, drop: &ast::Drop) -> Result<(), Stop> {
        let mut missing = Vec::new();
        for name in &drop.names {
            let full = self.unchecked_name(name)?;
            self.check_table_privilege(Privilege::Drop, &full)?;
            if self.existing(&full).is_some() && !drop.temporary {
                self.tell_missing(drop, ClientError::new(ER_NOT_SEQUENCE2, &[&full]))?;
            } else {
                missing.push(full.to_string());
            }
        }
        if !missing.is_empty() {
            let error = ClientError::new(ER_UNKNOWN_SEQUENCES, &[&missing.join(",")]);
            self.tell_missing(drop, error)?;
        }
        Ok(())
    }

    /// A trigger or an event; there are none.
    fn drop_program(&mut self, drop: &ast::Drop) -> Result<(), Stop> {
        for name in &drop.names {
            let full = self.unchecked_name(name)?;
            let error = if drop.what == Dropped::Trigger {
                ClientError::new(ER_TRG_DOES_NOT_EXIST, &[])
            } else {
                self.check_database_privilege(Privilege::Event, &full.database)?;
                if drop.if_exists {
                    ClientError::new(ER_SP_DOES_NOT_EXIST, &[&"Event", &full.table])
                } else {
                    ClientError::new(ER_EVENT_DOES_NOT_EXIST, &[&full.table])
                }
            };
            self.tell_missing(drop, error)?;
        }
        Ok(())
    }

    /// A server of FEDERATED tables; there are none. (MariaDB adds no note.)
    fn drop_server(&self, drop: &ast::Drop) -> Result<(), Stop> {
        for name in &drop.names {
            if !drop.if_exists {
                let code = ER_FOREIGN_SERVER_DOESNT_EXIST;
                return Err(ClientError::new(code, &[&name.name.text]).into());
            }
        }
        Ok(())
    }

    async fn drop_tables(&mut self, drop: &ast::Drop) -> Result<(), Stop> {
        let mut names = Vec::with_capacity(drop.names.len());
        for name in &drop.names {
            let full = self.unchecked_name(name)?;
            self.check_table_privilege(Privilege::Drop, &full)?;
            self.check_may_define(&full)?;
            names.push(full);
        }
        let mut missing = Vec::new();
        let store = self.store();
        for full in names {
            match self.change_existing(&full).await? {
                Some((definition, _hold)) => {
                    store.drop_table(definition.id).await?;
                    self.locked.forget_dropped(definition.id);
                }
                None => missing.push(full.to_string()),
            }
        }
        if !missing.is_empty() {
            self.tell_unknown(drop, &missing)?;
        }
        Ok(())
    }

    /// There are no temporary tables, so each name is unknown. An ordinary table of that name
    /// stays, and the transaction goes on.
    pub(crate) fn drop_temporary_tables(&mut self, drop: &ast::Drop) -> Result<(), ClientError> {
        let mut names = Vec::with_capacity(drop.names.len());
        for name in &drop.names {
            names.push(self.unchecked_name(name)?.to_string());
        }
        self.tell_unknown(drop, &names)
    }

    /// Error 1051, or a note of it.
    fn tell_unknown(&self, drop: &ast::Drop, names: &[String]) -> Result<(), ClientError> {
        let error = ClientError::new(ER_BAD_TABLE_ERROR, &[&names.join(",")]);
        self.tell_missing(drop, error)
    }

    /// Returns the error, or notes it if IF EXISTS was given.
    fn tell_missing(&self, drop: &ast::Drop, error: ClientError) -> Result<(), ClientError> {
        if !drop.if_exists {
            return Err(error);
        }
        self.tell(Level::Note, error);
        Ok(())
    }
}
