//! `CREATE`: databases, tables, indexes, views, accounts.

use super::data_type::plain;
use crate::ast::{
    ColumnDefinition, CreateDatabase, CreateIndex, CreateTable, CreateView, DatabaseOptions, Expr,
    Generated, IndexDefinition, IndexOptions, Refused, StatementKind, TypeName,
};
use crate::keyword::Keyword as K;
use crate::parse::cursor::{Cursor, Parsed};
use crate::token::{Kind, Span};

/// The words of `CREATE OR REPLACE TEMPORARY` before the object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CreateHead {
    pub(crate) or_replace: bool,
    pub(crate) start: Span,
}

impl Cursor<'_> {
    pub(crate) fn create(&mut self) -> Parsed<StatementKind> {
        let start = self.bump().span;
        let or_replace = self.eat_all(&[K::Or, K::Replace]);
        let head = CreateHead { or_replace, start };
        let Some(word) = self.keyword() else {
            return Err(self.fail());
        };
        match word {
            K::Temporary if self.keyword_at(1) == Some(K::Table) => {
                self.bump();
                self.create_table(head, true)
            }
            K::Table => self.create_table(head, false),
            K::Database | K::Schema => self.create_database(head),
            K::Index | K::Unique | K::Fulltext | K::Spatial => self.create_index(head),
            K::User => self.create_user(head),
            K::Algorithm | K::View | K::Sql => self.create_view(head),
            K::Definer => self.create_defined(head),
            K::Procedure => self.create_routine(head, None),
            K::Function if !self.is_loaded_function() => self.create_routine(head, None),
            _ => self.refused_create(word, head),
        }
    }

    /// `DEFINER = u` before a view or a stored program.
    fn create_defined(&mut self, head: CreateHead) -> Parsed<StatementKind> {
        self.skip(1);
        self.expect_kind(Kind::Equal)?;
        let definer = self.user_name()?;
        match self.keyword() {
            Some(K::View | K::Sql) => self.create_view(head),
            Some(K::Procedure) => self.create_routine(head, Some(definer)),
            Some(K::Function) if !self.is_loaded_function() => {
                self.create_routine(head, Some(definer))
            }
            Some(word) => self.refused_create(word, head),
            None => Err(self.fail()),
        }
    }

    fn create_database(&mut self, head: CreateHead) -> Parsed<StatementKind> {
        self.bump();
        let if_not_exists = self.if_not_exists()?;
        let name = self.ident()?;
        let options = self.database_options()?;
        let or_replace = head.or_replace;
        let create = CreateDatabase {
            or_replace,
            if_not_exists,
            name,
            options,
        };
        Ok(StatementKind::CreateDatabase(create))
    }

    pub(crate) fn database_options(&mut self) -> Parsed<DatabaseOptions> {
        let mut options = DatabaseOptions::default();
        while !self.is_end() {
            let had_default = self.eat(K::Default);
            if self.eat(K::Collate) {
                self.eat_kind(Kind::Equal);
                options.collation = Some(self.charset_name()?);
            } else if !had_default && self.eat(K::Comment) {
                self.eat_kind(Kind::Equal);
                options.comment = Some(self.string()?);
            } else if self.eat_charset_words() {
                self.eat_kind(Kind::Equal);
                if !self.eat(K::Default) {
                    options.charset = Some(self.charset_name()?);
                }
            } else {
                return Err(self.fail());
            }
        }
        Ok(options)
    }

    /// `CHARACTER SET` or `CHARSET`.
    pub(crate) fn eat_charset_words(&mut self) -> bool {
        self.eat_all(&[K::Character, K::Set])
            || self.eat_all(&[K::Char, K::Set])
            || self.eat(K::Charset)
    }

    fn create_table(&mut self, head: CreateHead, temporary: bool) -> Parsed<StatementKind> {
        self.bump();
        let if_not_exists = self.if_not_exists()?;
        let name = self.object_name()?;
        let mut table = CreateTable {
            or_replace: head.or_replace,
            temporary,
            if_not_exists,
            name,
            like: None,
            columns: Vec::new(),
            constraints: Vec::new(),
            period: None,
            options: Vec::new(),
            partitioning: None,
            query: None,
            duplicates: None,
        };
        if self.eat(K::Like) {
            table.like = Some(self.object_name()?);
        } else if self.are_paren_like() {
            self.skip(2);
            table.like = Some(self.object_name()?);
            self.expect_kind(Kind::RightParen)?;
        } else {
            self.table_body(&mut table)?;
        }
        Ok(StatementKind::CreateTable(Box::new(table)))
    }

    /// `(LIKE`.
    fn are_paren_like(&mut self) -> bool {
        self.kind() == Kind::LeftParen && self.keyword_at(1) == Some(K::Like)
    }

    fn table_body(&mut self, table: &mut CreateTable) -> Parsed<()> {
        if self.kind() == Kind::LeftParen && !self.is_query_paren() {
            self.expect_kind(Kind::LeftParen)?;
            loop {
                self.table_element(table)?;
                if !self.eat_kind(Kind::Comma) {
                    break;
                }
            }
            self.expect_kind(Kind::RightParen)?;
        }
        loop {
            self.eat_kind(Kind::Comma);
            match self.table_option()? {
                Some(option) => table.options.push(option),
                None => break,
            }
        }
        if self.are(&[K::Partition, K::By]) {
            table.partitioning = Some(self.partition_by()?);
        }
        table.duplicates = self.load_duplicates();
        let has_as = self.eat(K::As);
        let is_query =
            self.is_any(&[K::Select, K::With, K::Values]) || self.kind() == Kind::LeftParen;
        if has_as || is_query {
            table.query = Some(Box::new(self.query()?));
        } else if table.duplicates.is_some() {
            return Err(self.fail());
        }
        Ok(())
    }

    fn table_element(&mut self, table: &mut CreateTable) -> Parsed<()> {
        if self.are(&[K::Period, K::For]) {
            let start = self.start();
            self.skip(2);
            self.ident()?;
            self.skip_parens()?;
            let span = self.span_from(start);
            table.period = Some(Refused {
                name: "PERIOD FOR".to_owned(),
                span,
            });
            return Ok(());
        }
        if let Some(constraint) = self.table_constraint()? {
            table.constraints.push(constraint);
            return Ok(());
        }
        table.columns.push(self.column_definition()?);
        Ok(())
    }

    /// `name type attributes`.
    pub(crate) fn column_definition(&mut self) -> Parsed<ColumnDefinition> {
        let name = self.ident()?;
        let mut column = ColumnDefinition {
            name,
            data_type: plain(TypeName::BigInt),
            nullable: None,
            default: None,
            on_update: None,
            auto_increment: false,
            primary_key: false,
            unique: false,
            comment: None,
            generated: None,
            check: None,
            references: None,
            invisible: false,
            refused: None,
            others: Vec::new(),
        };
        if self.eat(K::Serial) {
            column.data_type.unsigned = true;
            serial(&mut column);
        } else {
            column.data_type = self.data_type()?;
        }
        while self.column_attribute(&mut column)? {}
        Ok(column)
    }

    /// One attribute. Returns false if there is none.
    fn column_attribute(&mut self, column: &mut ColumnDefinition) -> Parsed<bool> {
        let Some(word) = self.keyword() else {
            return self.engine_attribute(column);
        };
        match word {
            K::Not if self.keyword_at(1) == Some(K::Null) => {
                self.skip(2);
                column.nullable = Some(false);
            }
            K::Null => {
                self.bump();
                column.nullable = Some(true);
            }
            K::Default => {
                self.bump();
                column.default = Some(self.default_value()?);
            }
            K::On if self.keyword_at(1) == Some(K::Update) => {
                self.skip(2);
                column.on_update = Some(self.primary()?);
            }
            K::AutoIncrement => {
                self.bump();
                column.auto_increment = true;
            }
            K::Serial => {
                self.bump();
                self.expect_all(&[K::Default, K::Value])?;
                serial(column);
            }
            K::Unique => {
                self.bump();
                self.eat(K::Key);
                column.unique = true;
            }
            K::Primary | K::Key => {
                self.bump();
                if word == K::Primary {
                    self.expect(K::Key)?;
                }
                column.primary_key = true;
            }
            K::Comment => {
                self.bump();
                column.comment = Some(self.string_literal()?);
            }
            _ => return self.rare_attribute(word, column),
        }
        Ok(true)
    }

    fn rare_attribute(&mut self, word: K, column: &mut ColumnDefinition) -> Parsed<bool> {
        let start = self.start();
        match word {
            K::Collate => {
                self.bump();
                column.data_type.collation = Some(self.charset_name()?);
            }
            K::Check | K::Constraint => {
                if self.eat(K::Constraint) && !self.is(K::Check) {
                    self.ident()?;
                }
                self.expect(K::Check)?;
                column.check = Some(self.paren_expr()?);
            }
            K::Generated | K::As => return self.generated(column),
            K::References => column.references = Some(self.reference()?),
            K::Invisible => {
                self.bump();
                column.invisible = true;
            }
            K::Compressed => {
                self.bump();
                if self.eat_kind(Kind::Equal) {
                    self.option_value()?;
                }
                column.refused = Some(self.refused_since("COMPRESSED", start));
            }
            K::With | K::Without if self.keyword_at(1) == Some(K::System) => {
                self.skip(2);
                self.expect(K::Versioning)?;
                column.refused = Some(self.refused_since("SYSTEM VERSIONING", start));
            }
            K::RefSystemId => {
                self.bump();
                self.expect_kind(Kind::Equal)?;
                self.unsigned()?;
            }
            _ => return self.engine_attribute(column),
        }
        Ok(true)
    }

    pub(crate) fn refused_since(&self, name: &str, start: Span) -> Refused {
        Refused {
            name: name.to_owned(),
            span: self.span_from(start),
        }
    }

    /// An option of an engine: `name = value`.
    fn engine_attribute(&mut self, column: &mut ColumnDefinition) -> Parsed<bool> {
        if !Self::is_name(self.peek()) || self.kind_at(1) != Kind::Equal {
            return Ok(false);
        }
        let name = self.ident()?;
        self.bump();
        column.others.push((name, self.option_value()?));
        Ok(true)
    }

    /// `DEFAULT e`: a signed literal, a call, or an expression in parentheses.
    fn default_value(&mut self) -> Parsed<Expr> {
        if self.kind() == Kind::LeftParen {
            return self.paren_expr();
        }
        let is_next_value = self.is_any(&[K::Next, K::Previous]);
        if is_next_value {
            self.primary()
        } else {
            self.bit_level()
        }
    }

    fn paren_expr(&mut self) -> Parsed<Expr> {
        self.expect_kind(Kind::LeftParen)?;
        let expr = self.expr()?;
        self.expect_kind(Kind::RightParen)?;
        Ok(expr)
    }

    fn generated(&mut self, column: &mut ColumnDefinition) -> Parsed<bool> {
        let start = self.start();
        if self.eat(K::Generated) {
            self.expect(K::Always)?;
        }
        self.expect(K::As)?;
        if self.eat(K::Row) {
            if self.eat_any(&[K::Start, K::End]).is_none() {
                return Err(self.fail());
            }
            column.refused = Some(self.refused_since("GENERATED ALWAYS AS ROW", start));
            return Ok(true);
        }
        let expr = self.paren_expr()?;
        let word = self.eat_any(&[K::Virtual, K::Stored, K::Persistent]);
        let stored = matches!(word, Some(K::Stored | K::Persistent));
        column.generated = Some(Generated { expr, stored });
        Ok(true)
    }

    fn create_index(&mut self, head: CreateHead) -> Parsed<StatementKind> {
        let Some(kind) = self.index_kind()? else {
            return Err(self.fail());
        };
        let if_not_exists = self.if_not_exists()?;
        let name = Some(self.ident()?);
        let mut options = IndexOptions::default();
        self.index_algorithm(&mut options)?;
        self.expect(K::On)?;
        let table = self.object_name()?;
        let (parts, refused) = self.key_parts()?;
        let mut asked = Vec::new();
        loop {
            self.index_options(&mut options)?;
            if self.is_any(&[K::Algorithm, K::Lock]) {
                asked.push(self.algorithm_or_lock()?);
            } else if self.is_any(&[K::Wait, K::Nowait]) {
                self.definition_wait()?;
            } else {
                break;
            }
        }
        let index = IndexDefinition {
            kind,
            name,
            if_not_exists,
            parts,
            options,
            refused,
        };
        let or_replace = head.or_replace;
        Ok(StatementKind::CreateIndex(Box::new(CreateIndex {
            or_replace,
            table,
            index,
            asked,
        })))
    }

    /// `[ALGORITHM = ..] [DEFINER = ..] [SQL SECURITY ..] VIEW v AS ..`.
    pub(crate) fn create_view(&mut self, head: CreateHead) -> Parsed<StatementKind> {
        if self.eat(K::Algorithm) {
            self.expect_kind(Kind::Equal)?;
            if self
                .eat_any(&[K::Undefined, K::Merge, K::Temptable])
                .is_none()
            {
                return Err(self.fail());
            }
        }
        if self.eat(K::Definer) {
            self.expect_kind(Kind::Equal)?;
            self.user_name()?;
        }
        if self.eat_all(&[K::Sql, K::Security]) && self.eat_any(&[K::Definer, K::Invoker]).is_none()
        {
            return Err(self.fail());
        }
        if !self.is(K::View) {
            return match self.keyword() {
                Some(word) => self.refused_create(word, head),
                None => Err(self.fail()),
            };
        }
        self.bump();
        let if_not_exists = self.if_not_exists()?;
        let name = self.object_name()?;
        let columns = if self.kind() == Kind::LeftParen {
            self.ident_list()?
        } else {
            Vec::new()
        };
        self.expect(K::As)?;
        let query = Box::new(self.query()?);
        if self.eat(K::With) {
            self.eat_any(&[K::Cascaded, K::Local]);
            self.expect_all(&[K::Check, K::Option])?;
        }
        let or_replace = head.or_replace;
        let view = CreateView {
            or_replace,
            if_not_exists,
            name,
            columns,
            query,
        };
        Ok(StatementKind::CreateView(Box::new(view)))
    }
}

/// The attributes that `SERIAL` stands for.
fn serial(column: &mut ColumnDefinition) {
    column.nullable = Some(false);
    column.auto_increment = true;
    column.unique = true;
}
