//! Statements that change rows.

use super::cursor::{Cursor, Parsed};
use crate::ast::{
    Assignment, Delete, Expr, ExprKind, Insert, InsertSource, LoadData, LoadDuplicates, ObjectName,
    Priority, Refused, SelectItem, StatementKind, TableRef, Update, ValueRows,
};
use crate::keyword::Keyword as K;
use crate::token::Kind;

impl Cursor<'_> {
    pub(super) fn insert(&mut self) -> Parsed<StatementKind> {
        let is_replace = self.bump().keyword == Some(K::Replace);
        let priority = self.priority();
        let ignore = !is_replace && self.eat(K::Ignore);
        self.eat(K::Into);
        let table = self.object_name()?;
        let mut partitions = Vec::new();
        if self.is(K::Partition) {
            self.bump();
            partitions = self.ident_list()?;
        }
        let mut insert = Insert {
            is_replace,
            ignore,
            priority,
            table,
            partitions,
            columns: Vec::new(),
            has_columns: false,
            source: InsertSource::Values(ValueRows::Trees(Vec::new())),
            on_duplicate: Vec::new(),
            returning: Vec::new(),
        };
        self.insert_source(&mut insert)?;
        if !is_replace && self.eat(K::On) {
            self.expect_all(&[K::Duplicate, K::Key, K::Update])?;
            insert.on_duplicate = self.list(Self::assignment)?;
        }
        insert.returning = self.returning()?;
        Ok(StatementKind::Insert(Box::new(insert)))
    }

    fn insert_source(&mut self, insert: &mut Insert) -> Parsed<()> {
        if self.kind() == Kind::LeftParen && !self.is_query_paren() {
            insert.has_columns = true;
            insert.columns = self.insert_columns()?;
        } else if self.eat(K::Set) {
            let assignments = self.list(Self::assignment)?;
            insert.has_columns = true;
            let mut row = Vec::with_capacity(assignments.len());
            for assignment in assignments {
                insert.columns.push(assignment.column.column);
                row.push(assignment.value);
            }
            insert.source = InsertSource::Values(ValueRows::Trees(vec![row]));
            return Ok(());
        }
        if self.is_any(&[K::Values, K::Value]) {
            self.bump();
            insert.source = InsertSource::Values(self.value_rows()?);
            return Ok(());
        }
        insert.source = InsertSource::Query(Box::new(self.query()?));
        Ok(())
    }

    /// `(a, t.b)`: a table's name before a column is dropped.
    fn insert_columns(&mut self) -> Parsed<Vec<crate::ast::Ident>> {
        self.expect_kind(Kind::LeftParen)?;
        if self.eat_kind(Kind::RightParen) {
            return Ok(Vec::new());
        }
        let columns = self.list(|this| Ok(this.column_name()?.column))?;
        self.expect_kind(Kind::RightParen)?;
        Ok(columns)
    }

    pub(super) fn insert_row(&mut self) -> Parsed<Vec<Expr>> {
        self.expect_kind(Kind::LeftParen)?;
        if self.eat_kind(Kind::RightParen) {
            return Ok(Vec::new());
        }
        let row = self.list(Self::value)?;
        self.expect_kind(Kind::RightParen)?;
        Ok(row)
    }

    /// An expression, or `DEFAULT`, or `IGNORE`, which means the same there.
    pub(super) fn value(&mut self) -> Parsed<Expr> {
        if self.is(K::Ignore) {
            let span = self.bump().span;
            return Ok(Expr {
                kind: ExprKind::Default(None),
                span,
            });
        }
        self.expr()
    }

    fn priority(&mut self) -> Option<Priority> {
        self.eat_any(&[K::LowPriority, K::Delayed, K::HighPriority])
            .map(|word| match word {
                K::LowPriority => Priority::Low,
                K::Delayed => Priority::Delayed,
                _ => Priority::High,
            })
    }

    fn assignment(&mut self) -> Parsed<Assignment> {
        let column = self.column_name()?;
        if !self.eat_kind(Kind::Assign) {
            self.expect_kind(Kind::Equal)?;
        }
        Ok(Assignment {
            column,
            value: self.value()?,
        })
    }

    fn returning(&mut self) -> Parsed<Vec<SelectItem>> {
        if self.eat(K::Returning) {
            self.list(Self::select_item)
        } else {
            Ok(Vec::new())
        }
    }

    pub(super) fn update(&mut self) -> Parsed<StatementKind> {
        self.bump();
        let low_priority = self.eat(K::LowPriority);
        let ignore = self.eat(K::Ignore);
        let tables = self.list(Self::table_ref)?;
        let portion = self.portion()?;
        self.expect(K::Set)?;
        let assignments = self.list(Self::assignment)?;
        let condition = if self.eat(K::Where) {
            Some(self.expr()?)
        } else {
            None
        };
        let order_by = self.order_by()?;
        let limit = self.limit_count()?;
        Ok(StatementKind::Update(Box::new(Update {
            low_priority,
            ignore,
            tables,
            portion,
            assignments,
            condition,
            order_by,
            limit,
        })))
    }

    /// `FOR PORTION OF p FROM a TO b`, skipped.
    fn portion(&mut self) -> Parsed<Option<Refused>> {
        let start = self.start();
        if !self.eat_all(&[K::For, K::Portion]) {
            return Ok(None);
        }
        self.expect(K::Of)?;
        self.ident()?;
        self.expect(K::From)?;
        self.bit_level()?;
        self.expect(K::To)?;
        self.bit_level()?;
        Ok(Some(Refused {
            name: "FOR PORTION OF".to_owned(),
            span: self.span_from(start),
        }))
    }

    pub(super) fn delete(&mut self) -> Parsed<StatementKind> {
        let start = self.bump().span;
        let mut delete = Delete {
            low_priority: false,
            quick: false,
            ignore: false,
            targets: Vec::new(),
            from: Vec::new(),
            period: None,
            condition: None,
            order_by: Vec::new(),
            limit: None,
            returning: Vec::new(),
        };
        if self.are(&[K::History, K::From]) {
            self.skip(2);
            delete.from = vec![TableRef::Table(Box::new(self.named_table()?))];
            delete.period = Some(self.refuse_rest("DELETE HISTORY", start));
            return Ok(StatementKind::Delete(Box::new(delete)));
        }
        while let Some(word) = self.eat_any(&[K::LowPriority, K::Quick, K::Ignore]) {
            match word {
                K::LowPriority => delete.low_priority = true,
                K::Quick => delete.quick = true,
                _ => delete.ignore = true,
            }
        }
        self.delete_tables(&mut delete)?;
        if self.eat(K::Where) {
            delete.condition = Some(self.expr()?);
        }
        delete.order_by = self.order_by()?;
        delete.limit = self.limit_count()?;
        delete.returning = self.returning()?;
        let is_many = !delete.targets.is_empty();
        let has_tail = !delete.order_by.is_empty() || delete.limit.is_some();
        if is_many && has_tail {
            return Err(self.fail());
        }
        Ok(StatementKind::Delete(Box::new(delete)))
    }

    /// `FROM t`, `t, u FROM ..`, `FROM t, u USING ..`.
    fn delete_tables(&mut self, delete: &mut Delete) -> Parsed<()> {
        if !self.eat(K::From) {
            delete.targets = self.list(Self::delete_target)?;
            self.expect(K::From)?;
            delete.from = self.list(Self::table_ref)?;
            return Ok(());
        }
        let table = self.named_table()?;
        let is_target = table.alias.is_none() && table.hints.is_empty();
        let has_star = self.kind() == Kind::Dot;
        if !(is_target && (has_star || self.kind() == Kind::Comma || self.is(K::Using))) {
            delete.from = vec![TableRef::Table(Box::new(table))];
            delete.period = self.portion()?;
            return Ok(());
        }
        self.target_star()?;
        delete.targets.push(table.name);
        while self.eat_kind(Kind::Comma) {
            delete.targets.push(self.delete_target()?);
        }
        self.expect(K::Using)?;
        delete.from = self.list(Self::table_ref)?;
        Ok(())
    }

    /// `t`, `t.*`, `s.t.*`.
    fn delete_target(&mut self) -> Parsed<ObjectName> {
        let first = self.ident()?;
        let mut target = ObjectName {
            schema: None,
            name: first,
        };
        if self.kind() == Kind::Dot && self.kind_at(1) != Kind::Star {
            self.bump();
            let name = self.ident()?;
            target = ObjectName {
                schema: Some(target.name),
                name,
            };
        }
        self.target_star()?;
        Ok(target)
    }

    fn target_star(&mut self) -> Parsed<()> {
        if self.eat_kind(Kind::Dot) {
            self.expect_kind(Kind::Star)
        } else {
            Ok(())
        }
    }

    pub(super) fn load(&mut self) -> Parsed<StatementKind> {
        let start = self.bump().span;
        if self.is(K::Xml) {
            return Ok(StatementKind::Refused(self.refuse_rest("LOAD XML", start)));
        }
        if self.eat(K::Index) {
            return Ok(StatementKind::Refused(
                self.refuse_rest("LOAD INDEX", start),
            ));
        }
        self.expect(K::Data)?;
        self.load_data()
    }

    fn load_data(&mut self) -> Parsed<StatementKind> {
        let priority = self.priority();
        if priority.is_none() {
            self.eat(K::Concurrent);
        }
        let local = self.eat(K::Local);
        self.expect(K::Infile)?;
        let path = self.string()?;
        let duplicates = self.load_duplicates();
        self.expect_all(&[K::Into, K::Table])?;
        let table = self.object_name()?;
        let mut partitions = Vec::new();
        if self.eat(K::Partition) {
            partitions = self.ident_list()?;
        }
        let charset = self.charset_clause()?;
        let format = self.file_format()?;
        let mut ignore_lines = 0;
        if self.eat(K::Ignore) {
            ignore_lines = self.unsigned()?;
            if self.eat_any(&[K::Lines, K::Rows]).is_none() {
                return Err(self.fail());
            }
        }
        let mut columns = Vec::new();
        if self.eat_kind(Kind::LeftParen) {
            if self.kind() != Kind::RightParen {
                columns = self.list(Self::target_variable)?;
            }
            self.expect_kind(Kind::RightParen)?;
        }
        let assignments = if self.eat(K::Set) {
            self.list(Self::assignment)?
        } else {
            Vec::new()
        };
        Ok(StatementKind::LoadData(Box::new(LoadData {
            local,
            priority,
            path,
            duplicates,
            table,
            partitions,
            charset,
            format,
            ignore_lines,
            columns,
            assignments,
        })))
    }

    /// `REPLACE`, `IGNORE`, or nothing.
    pub(super) fn load_duplicates(&mut self) -> Option<LoadDuplicates> {
        self.eat_any(&[K::Replace, K::Ignore])
            .map(|word| match word {
                K::Replace => LoadDuplicates::Replace,
                _ => LoadDuplicates::Ignore,
            })
    }
}
