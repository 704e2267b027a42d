//! Keys and constraints.

use crate::ast::{
    ForeignKey, Ident, IndexDefinition, IndexKind, IndexOptions, IndexPart, Reference,
    ReferenceAction, Refused, TableConstraint,
};
use crate::keyword::Keyword as K;
use crate::parse::cursor::{Cursor, Parsed};
use crate::token::Kind;

impl Cursor<'_> {
    /// A key or a constraint, if the next words start one.
    pub(crate) fn table_constraint(&mut self) -> Parsed<Option<TableConstraint>> {
        let mut name = None;
        let has_constraint = self.eat(K::Constraint);
        let mut if_not_exists = false;
        if has_constraint {
            if_not_exists = self.if_not_exists()?;
            if !self.is_any(&[K::Primary, K::Unique, K::Foreign, K::Check]) {
                name = Some(self.ident()?);
            }
        }
        if self.eat_all(&[K::Foreign, K::Key]) {
            return self.foreign_key(name).map(Some);
        }
        if self.is(K::Check) {
            self.bump();
            self.expect_kind(Kind::LeftParen)?;
            let expr = self.expr()?;
            self.expect_kind(Kind::RightParen)?;
            return Ok(Some(TableConstraint::Check {
                name,
                expr,
                if_not_exists,
            }));
        }
        match self.index_kind()? {
            Some(kind) => {
                let mut index = self.index_definition(kind)?;
                index.name = index.name.or(name);
                index.if_not_exists |= if_not_exists;
                Ok(Some(TableConstraint::Index(index)))
            }
            None if has_constraint => Err(self.fail()),
            None => Ok(None),
        }
    }

    fn foreign_key(&mut self, constraint: Option<Ident>) -> Parsed<TableConstraint> {
        let if_not_exists = self.if_not_exists()?;
        let mut name = constraint;
        if self.kind() != Kind::LeftParen {
            let own = self.ident()?;
            name = name.or(Some(own));
        }
        let columns = self.index_parts()?;
        let references = self.reference()?;
        Ok(TableConstraint::ForeignKey(ForeignKey {
            name,
            if_not_exists,
            columns,
            references,
        }))
    }

    pub(crate) fn index_kind(&mut self) -> Parsed<Option<IndexKind>> {
        let kind = match self.keyword() {
            Some(K::Primary) => {
                self.bump();
                self.expect(K::Key)?;
                return Ok(Some(IndexKind::Primary));
            }
            Some(K::Unique) => IndexKind::Unique,
            Some(K::Fulltext) => IndexKind::Fulltext,
            Some(K::Spatial) => IndexKind::Spatial,
            Some(K::Key | K::Index) => IndexKind::Plain,
            _ => return Ok(None),
        };
        self.bump();
        if kind != IndexKind::Plain {
            self.eat_any(&[K::Key, K::Index]);
        }
        Ok(Some(kind))
    }

    /// What follows the words of an index: name, algorithm, parts, options.
    fn index_definition(&mut self, kind: IndexKind) -> Parsed<IndexDefinition> {
        let if_not_exists = self.if_not_exists()?;
        let mut name = None;
        if !(self.kind() == Kind::LeftParen || self.is_any(&[K::Using, K::Type])) {
            name = Some(self.ident()?);
        }
        let mut options = IndexOptions::default();
        self.index_algorithm(&mut options)?;
        let (parts, refused) = self.key_parts()?;
        self.index_options(&mut options)?;
        Ok(IndexDefinition {
            kind,
            name,
            if_not_exists,
            parts,
            options,
            refused,
        })
    }

    /// `(a, b(10) DESC)`, and `p WITHOUT OVERLAPS` as the last part.
    pub(crate) fn key_parts(&mut self) -> Parsed<(Vec<IndexPart>, Option<Refused>)> {
        self.expect_kind(Kind::LeftParen)?;
        let mut parts = vec![self.index_part()?];
        let mut refused = None;
        while self.eat_kind(Kind::Comma) {
            if self.keyword_at(1) == Some(K::Without) {
                let start = self.start();
                self.ident()?;
                self.expect_all(&[K::Without, K::Overlaps])?;
                let span = self.span_from(start);
                refused = Some(Refused {
                    name: "WITHOUT OVERLAPS".to_owned(),
                    span,
                });
                break;
            }
            parts.push(self.index_part()?);
        }
        self.expect_kind(Kind::RightParen)?;
        Ok((parts, refused))
    }

    fn index_parts(&mut self) -> Parsed<Vec<IndexPart>> {
        self.paren_list(Self::index_part)
    }

    fn index_part(&mut self) -> Parsed<IndexPart> {
        let column = self.ident()?;
        let mut length = None;
        if self.eat_kind(Kind::LeftParen) {
            length = Some(self.length()?);
            self.expect_kind(Kind::RightParen)?;
        }
        let descending = self.eat(K::Desc);
        if !descending {
            self.eat(K::Asc);
        }
        Ok(IndexPart {
            column,
            length,
            descending,
        })
    }

    pub(crate) fn index_algorithm(&mut self, options: &mut IndexOptions) -> Parsed<()> {
        if self.eat_any(&[K::Using, K::Type]).is_some() {
            options.algorithm = Some(self.ident()?);
        }
        Ok(())
    }

    pub(crate) fn index_options(&mut self, options: &mut IndexOptions) -> Parsed<()> {
        loop {
            if self.is_any(&[K::Using, K::Type]) {
                self.index_algorithm(options)?;
            } else if self.eat(K::Comment) {
                self.eat_kind(Kind::Equal);
                options.comment = Some(self.string()?);
            } else if self.eat(K::KeyBlockSize) {
                self.eat_kind(Kind::Equal);
                options.key_block_size = Some(self.unsigned()?);
            } else if self.eat_all(&[K::With, K::Parser]) {
                options.parser = Some(self.ident()?);
            } else if self.eat(K::Ignored) {
                options.ignored = true;
            } else if self.are(&[K::Not, K::Ignored]) {
                self.skip(2);
                options.ignored = false;
            } else if Self::is_name(self.peek())
                && self.kind_at(1) == Kind::Equal
                && !self.is_any(&[K::Algorithm, K::Lock])
            {
                let name = self.ident()?;
                self.bump();
                let value = self.option_value()?;
                options.others.push((name, value));
            } else {
                return Ok(());
            }
        }
    }

    pub(crate) fn reference(&mut self) -> Parsed<Reference> {
        self.expect(K::References)?;
        let table = self.object_name()?;
        let columns = if self.kind() == Kind::LeftParen {
            self.index_parts()?
        } else {
            Vec::new()
        };
        if self.eat(K::Match) {
            self.bump();
        }
        let (mut on_delete, mut on_update) = (None, None);
        while self.is(K::On) && matches!(self.keyword_at(1), Some(K::Delete | K::Update)) {
            let is_delete = self.keyword_at(1) == Some(K::Delete);
            self.skip(2);
            let action = self.reference_action()?;
            *(if is_delete {
                &mut on_delete
            } else {
                &mut on_update
            }) = Some(action);
        }
        Ok(Reference {
            table,
            columns,
            on_delete,
            on_update,
        })
    }

    fn reference_action(&mut self) -> Parsed<ReferenceAction> {
        if self.eat(K::Restrict) {
            return Ok(ReferenceAction::Restrict);
        }
        if self.eat(K::Cascade) {
            return Ok(ReferenceAction::Cascade);
        }
        if self.eat_all(&[K::No, K::Action]) {
            return Ok(ReferenceAction::NoAction);
        }
        self.expect(K::Set)?;
        match self.eat_any(&[K::Null, K::Default]) {
            Some(K::Null) => Ok(ReferenceAction::SetNull),
            Some(_) => Ok(ReferenceAction::SetDefault),
            None => Err(self.fail()),
        }
    }
}
