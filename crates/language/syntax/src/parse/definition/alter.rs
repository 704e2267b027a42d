//! `ALTER`.

use super::create::CreateHead;
use crate::ast::{
    AlterAction, AlterTable, ColumnPosition, Refused, Renaming, RowOrder, StatementKind,
};
use crate::keyword::Keyword as K;
use crate::parse::cursor::{Cursor, Parsed};
use crate::token::{Kind, Span};

impl Cursor<'_> {
    pub(crate) fn alter(&mut self) -> Parsed<StatementKind> {
        let start = self.bump().span;
        self.eat(K::Online);
        let ignore = self.eat(K::Ignore);
        let Some(word) = self.keyword() else {
            return Err(self.fail());
        };
        match word {
            K::Table => self.alter_table(ignore),
            K::Database | K::Schema => self.alter_database(),
            K::User => self.alter_user(),
            K::Algorithm | K::View | K::Sql | K::Definer => self.create_view(CreateHead {
                or_replace: true,
                start,
            }),
            _ => self.refused_alter(word, start),
        }
    }

    fn alter_database(&mut self) -> Parsed<StatementKind> {
        self.bump();
        let is_option = self.is_any(&[K::Character, K::Charset, K::Char, K::Collate, K::Default])
            || (self.is(K::Comment) && self.kind_at(1) != Kind::Word);
        let name = if is_option { None } else { Some(self.ident()?) };
        Ok(StatementKind::AlterDatabase {
            name,
            options: self.database_options()?,
        })
    }

    fn alter_table(&mut self, ignore: bool) -> Parsed<StatementKind> {
        self.bump();
        let if_exists = self.if_exists()?;
        let name = self.object_name()?;
        self.definition_wait()?;
        let mut alter = AlterTable {
            if_exists,
            ignore,
            name,
            actions: Vec::new(),
        };
        if self.is_end() {
            return Ok(StatementKind::AlterTable(Box::new(alter)));
        }
        loop {
            self.alter_actions(&mut alter.actions)?;
            // Options may follow each other without a comma.
            let is_option = matches!(alter.actions.last(), Some(AlterAction::Option(_)));
            if !(self.eat_kind(Kind::Comma) || (is_option && !self.is_end())) {
                break;
            }
        }
        Ok(StatementKind::AlterTable(Box::new(alter)))
    }

    fn alter_actions(&mut self, actions: &mut Vec<AlterAction>) -> Parsed<()> {
        let start = self.start();
        let Some(word) = self.keyword() else {
            return self.alter_option(actions);
        };
        if let Some(refused) = self.partition_action(word, start)? {
            actions.push(AlterAction::Refused(refused));
            return Ok(());
        }
        let action = match word {
            K::Add => return self.alter_add(actions),
            K::Change | K::Modify => self.alter_change(word)?,
            K::Drop => self.alter_drop()?,
            K::Alter => self.alter_alter()?,
            K::Rename => self.alter_rename()?,
            K::Convert => self.alter_convert()?,
            K::Order => self.alter_order()?,
            K::Enable | K::Disable => {
                self.bump();
                self.expect(K::Keys)?;
                AlterAction::EnableKeys(word == K::Enable)
            }
            K::Force => {
                self.bump();
                AlterAction::Force
            }
            K::Algorithm | K::Lock => self.algorithm_or_lock()?,
            _ => return self.alter_option(actions),
        };
        actions.push(action);
        Ok(())
    }

    /// `ORDER BY` of columns; the commas behind it are its own.
    fn alter_order(&mut self) -> Parsed<AlterAction> {
        self.bump();
        self.expect(K::By)?;
        let order = self.list(|parser| {
            let column = parser.column_name()?;
            let descending = parser.eat(K::Desc);
            if !descending {
                parser.eat(K::Asc);
            }
            Ok(RowOrder { column, descending })
        })?;
        Ok(AlterAction::OrderBy(order))
    }

    fn alter_option(&mut self, actions: &mut Vec<AlterAction>) -> Parsed<()> {
        match self.table_option()? {
            Some(option) => {
                actions.push(AlterAction::Option(option));
                Ok(())
            }
            None => Err(self.fail()),
        }
    }

    /// Partitions, tablespaces and versioning, skipped.
    fn partition_action(&mut self, word: K, start: Span) -> Parsed<Option<Refused>> {
        let second = self.keyword_at(1);
        let name = match (word, second) {
            (K::Discard | K::Import, Some(K::Tablespace)) => "TABLESPACE",
            (K::Partition, Some(K::By)) | (K::Remove, Some(K::Partitioning)) => "PARTITION BY",
            (
                K::Add
                | K::Drop
                | K::Truncate
                | K::Coalesce
                | K::Reorganize
                | K::Exchange
                | K::Rebuild
                | K::Optimize
                | K::Analyze
                | K::Check
                | K::Repair
                | K::Discard
                | K::Import
                | K::Convert,
                Some(K::Partition),
            ) => "ALTER TABLE .. PARTITION",
            (K::Add | K::Drop, Some(K::System)) => "SYSTEM VERSIONING",
            (K::Add | K::Drop, Some(K::Period)) => "PERIOD FOR",
            _ => return Ok(None),
        };
        Ok(Some(self.refuse_rest(name, start)))
    }

    fn alter_add(&mut self, actions: &mut Vec<AlterAction>) -> Parsed<()> {
        self.bump();
        let has_column = self.eat(K::Column);
        if !has_column && let Some(constraint) = self.table_constraint()? {
            actions.push(AlterAction::AddConstraint(constraint));
            return Ok(());
        }
        let if_not_exists = self.if_not_exists()?;
        if self.kind() != Kind::LeftParen {
            let column = Box::new(self.column_definition()?);
            let position = self.column_position()?;
            actions.push(AlterAction::AddColumn {
                column,
                position,
                if_not_exists,
            });
            return Ok(());
        }
        self.bump();
        loop {
            match self.table_constraint()? {
                Some(constraint) => actions.push(AlterAction::AddConstraint(constraint)),
                None => {
                    let column = Box::new(self.column_definition()?);
                    let position = None;
                    actions.push(AlterAction::AddColumn {
                        column,
                        position,
                        if_not_exists,
                    });
                }
            }
            if !self.eat_kind(Kind::Comma) {
                break;
            }
        }
        self.expect_kind(Kind::RightParen)
    }

    fn column_position(&mut self) -> Parsed<Option<ColumnPosition>> {
        if self.eat(K::First) {
            return Ok(Some(ColumnPosition::First));
        }
        if self.eat(K::After) {
            return Ok(Some(ColumnPosition::After(self.ident()?)));
        }
        Ok(None)
    }

    fn alter_change(&mut self, word: K) -> Parsed<AlterAction> {
        self.bump();
        self.eat(K::Column);
        let if_exists = self.if_exists()?;
        let from = if word == K::Change {
            Some(self.ident()?)
        } else {
            None
        };
        let column = Box::new(self.column_definition()?);
        let from = from.unwrap_or_else(|| column.name.clone());
        let position = self.column_position()?;
        Ok(AlterAction::ChangeColumn {
            from,
            column,
            position,
            if_exists,
        })
    }

    fn alter_drop(&mut self) -> Parsed<AlterAction> {
        self.bump();
        if self.eat_all(&[K::Primary, K::Key]) {
            return Ok(AlterAction::DropPrimaryKey);
        }
        let word = self.keyword();
        match word {
            Some(K::Foreign) => {
                self.skip(1);
                self.expect(K::Key)?;
                let if_exists = self.if_exists()?;
                Ok(AlterAction::DropForeignKey {
                    name: self.ident()?,
                    if_exists,
                })
            }
            Some(K::Constraint) => {
                self.bump();
                let if_exists = self.if_exists()?;
                Ok(AlterAction::DropConstraint {
                    name: self.index_name()?,
                    if_exists,
                })
            }
            Some(K::Index | K::Key) => {
                self.bump();
                let if_exists = self.if_exists()?;
                Ok(AlterAction::DropIndex {
                    index: self.index_name()?,
                    if_exists,
                })
            }
            _ => {
                self.eat(K::Column);
                let if_exists = self.if_exists()?;
                let column = self.ident()?;
                self.eat_any(&[K::Restrict, K::Cascade]);
                Ok(AlterAction::DropColumn { column, if_exists })
            }
        }
    }

    /// `ALGORITHM [=] ..`, `LOCK [=] ..`, which come next.
    pub(crate) fn algorithm_or_lock(&mut self) -> Parsed<AlterAction> {
        let is_algorithm = self.is(K::Algorithm);
        self.bump();
        self.eat_kind(Kind::Equal);
        let value = self.option_value()?.to_ascii_uppercase();
        Ok(if is_algorithm {
            AlterAction::Algorithm(value)
        } else {
            AlterAction::Lock(value)
        })
    }

    fn alter_alter(&mut self) -> Parsed<AlterAction> {
        self.bump();
        if self.eat_any(&[K::Index, K::Key]).is_some() {
            self.if_exists()?;
            let index = self.ident()?;
            let ignored = !self.eat(K::Not);
            self.expect(K::Ignored)?;
            return Ok(AlterAction::IgnoreIndex(index, ignored));
        }
        self.eat(K::Column);
        let if_exists = self.if_exists()?;
        let column = self.ident()?;
        let default = if self.eat(K::Set) {
            self.expect(K::Default)?;
            Some(self.bit_level()?)
        } else {
            self.expect_all(&[K::Drop, K::Default])?;
            None
        };
        Ok(AlterAction::AlterDefault {
            column,
            default,
            if_exists,
        })
    }

    fn alter_rename(&mut self) -> Parsed<AlterAction> {
        self.bump();
        if self.eat(K::Column) {
            return Ok(AlterAction::RenameColumn(self.renaming()?));
        }
        if self.eat_any(&[K::Index, K::Key]).is_some() {
            return Ok(AlterAction::RenameIndex(self.renaming()?));
        }
        if self.eat_any(&[K::To, K::As]).is_none() {
            self.eat_kind(Kind::Equal);
        }
        Ok(AlterAction::RenameTable(self.object_name()?))
    }

    fn renaming(&mut self) -> Parsed<Renaming> {
        let if_exists = self.if_exists()?;
        let from = self.ident()?;
        self.expect(K::To)?;
        let to = self.ident()?;
        Ok(Renaming {
            from,
            to,
            if_exists,
        })
    }

    fn alter_convert(&mut self) -> Parsed<AlterAction> {
        self.bump();
        self.expect(K::To)?;
        if !self.eat_charset_words() {
            return Err(self.fail());
        }
        let charset = if self.eat(K::Default) {
            None
        } else {
            Some(self.charset_name()?)
        };
        let collation = if self.eat(K::Collate) {
            Some(self.charset_name()?)
        } else {
            None
        };
        Ok(AlterAction::ConvertCharset { charset, collation })
    }
}
