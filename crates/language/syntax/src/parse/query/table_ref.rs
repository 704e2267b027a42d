//! Tables and other items of `FROM`.

use crate::ast::{
    Ident, IndexHint, IndexHintKind, IndexHintScope, JoinKind, NamedTable, Refused, TableRef,
};
use crate::keyword::Keyword as K;
use crate::parse::cursor::{Cursor, Parsed};
use crate::token::Kind;

/// A tree of joins, and how many steps to the left lead to its first table.
type Joined = (TableRef, u32);

impl Cursor<'_> {
    /// A table with all its joins.
    pub(crate) fn table_ref(&mut self) -> Parsed<TableRef> {
        self.deeper(|this| {
            let first = this.table_factor()?;
            Ok(this.joins(first)?.0)
        })
    }

    /// Joins what follows to `left`.
    #[inline(never)]
    fn joins(&mut self, mut left: TableRef) -> Parsed<Joined> {
        let mut steps = 0;
        while let Some((kind, natural)) = self.join_word()? {
            steps += 1;
            self.check_height(steps)?;
            let right = self.table_factor()?;
            if natural {
                left = join(kind, natural, left, right);
                continue;
            }
            left = self.join_tail(kind, left, right, &mut steps)?;
        }
        Ok((left, steps))
    }

    /// A join without a condition so far: `ON` may come after further joins of the right side.
    #[inline(never)]
    fn join_tail(
        &mut self,
        kind: JoinKind,
        left: TableRef,
        right: TableRef,
        steps: &mut u32,
    ) -> Parsed<TableRef> {
        if self.is_any(&[K::On, K::Using]) {
            let joined = join(kind, false, left, right);
            return self.join_condition(joined);
        }
        let is_outer = matches!(kind, JoinKind::Left | JoinKind::Right);
        let (right, right_steps) = self.deeper(|this| this.joins(right))?;
        if self.is_any(&[K::On, K::Using]) {
            let joined = join(kind, false, left, right);
            return self.join_condition(joined);
        }
        if is_outer {
            return Err(self.fail());
        }
        *steps += right_steps;
        self.check_height(*steps)?;
        Ok(put_leftmost(kind, left, right, right_steps))
    }

    fn join_condition(&mut self, mut joined: TableRef) -> Parsed<TableRef> {
        if let TableRef::Join { on, using, .. } = &mut joined {
            if self.eat(K::On) {
                *on = Some(self.expr()?);
            } else {
                self.expect(K::Using)?;
                *using = self.ident_list()?;
            }
        }
        Ok(joined)
    }

    /// The kind of join whose words come next, and whether it is natural.
    fn join_word(&mut self) -> Parsed<Option<(JoinKind, bool)>> {
        let natural = self.is(K::Natural);
        if natural {
            self.bump();
        }
        let kind = match self.keyword() {
            Some(K::Join) => JoinKind::Inner,
            Some(K::Inner) => {
                self.bump();
                JoinKind::Inner
            }
            Some(K::Cross) if !natural => {
                self.bump();
                JoinKind::Cross
            }
            Some(word @ (K::Left | K::Right)) => {
                self.bump();
                self.eat(K::Outer);
                if word == K::Left {
                    JoinKind::Left
                } else {
                    JoinKind::Right
                }
            }
            Some(K::StraightJoin) => {
                self.bump();
                return Ok(Some((JoinKind::Straight, natural)));
            }
            _ if natural => return Err(self.fail()),
            _ => return Ok(None),
        };
        self.expect(K::Join)?;
        Ok(Some((kind, natural)))
    }

    #[inline(never)]
    fn table_factor(&mut self) -> Parsed<TableRef> {
        match self.kind() {
            Kind::LeftParen if self.is_query_paren() => self.derived(),
            Kind::LeftParen => {
                let mut list = self.paren_list(Self::table_ref)?;
                if list.len() == 1
                    && let Some(only) = list.pop()
                {
                    return Ok(only);
                }
                Ok(TableRef::List(list))
            }
            Kind::LeftBrace => {
                self.bump();
                self.ident()?;
                let inner = self.table_ref()?;
                self.expect_kind(Kind::RightBrace)?;
                Ok(inner)
            }
            Kind::Word if self.is(K::JsonTable) && self.kind_at(1) == Kind::LeftParen => {
                let start = self.bump().span;
                self.skip_parens()?;
                let call = Refused {
                    name: "JSON_TABLE".into(),
                    span: self.span_from(start),
                };
                let alias = self.table_alias()?.ok_or_else(|| self.fail())?;
                Ok(TableRef::JsonTable { call, alias })
            }
            _ => Ok(TableRef::Table(Box::new(self.named_table()?))),
        }
    }

    #[inline(never)]
    fn derived(&mut self) -> Parsed<TableRef> {
        let query = Box::new(self.subquery()?);
        let alias = self.table_alias()?.ok_or_else(|| self.fail())?;
        let columns = if self.kind() == Kind::LeftParen {
            self.ident_list()?
        } else {
            Vec::new()
        };
        Ok(TableRef::Derived {
            lateral: false,
            query,
            alias,
            columns,
        })
    }

    /// A table by name with its alias and hints.
    #[inline(never)]
    pub(crate) fn named_table(&mut self) -> Parsed<NamedTable> {
        let name = self.object_name()?;
        let mut partitions = Vec::new();
        if self.is(K::Partition) && self.kind_at(1) == Kind::LeftParen {
            self.bump();
            partitions = self.ident_list()?;
        }
        let mut system_time = self.system_time()?;
        let alias = self.table_alias()?;
        if system_time.is_none() {
            system_time = self.system_time()?;
        }
        let hints = self.index_hints()?;
        Ok(NamedTable {
            name,
            alias,
            partitions,
            system_time,
            hints,
        })
    }

    fn system_time(&mut self) -> Parsed<Option<Refused>> {
        if !self.are(&[K::For, K::SystemTime]) {
            return Ok(None);
        }
        let start = self.start();
        self.skip(2);
        if self.eat(K::All) {
        } else if self.eat_all(&[K::As, K::Of]) {
            self.history_point()?;
        } else if self.eat(K::Between) {
            self.history_point()?;
            self.expect(K::And)?;
            self.history_point()?;
        } else {
            self.expect(K::From)?;
            self.history_point()?;
            self.expect(K::To)?;
            self.history_point()?;
        }
        Ok(Some(Refused {
            name: "FOR SYSTEM_TIME".into(),
            span: self.span_from(start),
        }))
    }

    /// `[TIMESTAMP | TRANSACTION] e`.
    pub(crate) fn history_point(&mut self) -> Parsed<()> {
        if self.is(K::Transaction) || (self.is(K::Timestamp) && self.kind_at(1) != Kind::String) {
            self.bump();
        }
        self.bit_level().map(|_| ())
    }

    pub(crate) fn table_alias(&mut self) -> Parsed<Option<Ident>> {
        if self.eat(K::As) {
            return self.ident().map(Some);
        }
        let token = self.peek();
        let is_alias = Self::is_name(token) && token.keyword != Some(K::Window);
        if is_alias {
            self.ident().map(Some)
        } else {
            Ok(None)
        }
    }

    fn index_hints(&mut self) -> Parsed<Vec<IndexHint>> {
        let mut hints = Vec::new();
        while self.is_any(&[K::Use, K::Force, K::Ignore])
            && matches!(self.keyword_at(1), Some(K::Index | K::Key))
        {
            let kind = match self.bump().keyword {
                Some(K::Use) => IndexHintKind::Use,
                Some(K::Force) => IndexHintKind::Force,
                _ => IndexHintKind::Ignore,
            };
            self.bump();
            let mut scope = None;
            if self.eat(K::For) {
                scope = Some(self.hint_scope()?);
            }
            self.expect_kind(Kind::LeftParen)?;
            let mut indexes = Vec::new();
            if !(kind == IndexHintKind::Use && self.kind() == Kind::RightParen) {
                indexes = self.list(Self::index_name)?;
            }
            self.expect_kind(Kind::RightParen)?;
            hints.push(IndexHint {
                kind,
                scope,
                indexes,
            });
        }
        Ok(hints)
    }

    fn hint_scope(&mut self) -> Parsed<IndexHintScope> {
        if self.eat(K::Join) {
            return Ok(IndexHintScope::Join);
        }
        if self.eat_all(&[K::Order, K::By]) {
            return Ok(IndexHintScope::OrderBy);
        }
        self.expect_all(&[K::Group, K::By])?;
        Ok(IndexHintScope::GroupBy)
    }

    /// A name, or the word `PRIMARY`.
    pub(crate) fn index_name(&mut self) -> Parsed<Ident> {
        if self.is(K::Primary) {
            let token = self.bump();
            return self.ident_of(token);
        }
        self.ident()
    }
}

fn join(kind: JoinKind, natural: bool, left: TableRef, right: TableRef) -> TableRef {
    let (left, right) = (Box::new(left), Box::new(right));
    TableRef::Join {
        kind,
        natural,
        left,
        right,
        on: None,
        using: Vec::new(),
    }
}

/// `a JOIN b LEFT JOIN c ON ..`: the first join binds first, though the second was parsed as part
/// of its right side. `steps` lead left in `tree` to `b`.
fn put_leftmost(kind: JoinKind, first: TableRef, tree: TableRef, steps: u32) -> TableRef {
    match tree {
        TableRef::Join {
            kind: outer,
            natural,
            left,
            right,
            on,
            using,
        } if 0 < steps => {
            let left = Box::new(put_leftmost(kind, first, *left, steps - 1));
            TableRef::Join {
                kind: outer,
                natural,
                left,
                right,
                on,
                using,
            }
        }
        leaf => join(kind, false, first, leaf),
    }
}
