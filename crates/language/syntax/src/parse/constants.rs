//! Long lists of constants, which stay in the text.
//!
//! The first members of a list are parsed as trees. Once there are [`CONSTANTS_MIN`] and all are
//! constants, trees are no longer kept. If a later member is no constant, all members become trees
//! after all. So errors are the same as in a short list.

use std::hash::{DefaultHasher, Hasher};

use super::cursor::{Cursor, Parsed};
use crate::ast::{Constants, Expr, ExprKind, ExprList, Literal, UnaryOperator, ValueRows};
use crate::token::{Kind, Span};

/// Shorter lists are trees: at most 100 KiB.
pub const CONSTANTS_MIN: usize = 1024;

/// After this many rows that are read again the parser asks whether it may continue.
const ROWS_PER_LOOK: usize = 256;

/// Constants that are being counted.
struct Counted {
    start: Span,
    count: u32,
    hasher: DefaultHasher,
}

impl<'a> Cursor<'a> {
    /// `(e, e, ..)`.
    pub(super) fn member_list(&mut self) -> Parsed<ExprList> {
        self.expect_kind(Kind::LeftParen)?;
        let start = self.start();
        let may_leave = self.leaves_constants && self.can_start_here();
        let mut list = vec![self.expr()?];
        let mut are_constants = true;
        while self.eat_kind(Kind::Comma) {
            are_constants &= list.last().is_some_and(is_constant);
            if may_leave && list.len() == CONSTANTS_MIN && are_constants {
                return self.long_list(start, list);
            }
            list.push(self.expr()?);
            if !(are_constants && list.last().is_some_and(is_constant)) {
                self.check_length(list.len() - 1)?;
            }
        }
        self.expect_kind(Kind::RightParen)?;
        Ok(ExprList::Trees(list))
    }

    /// The list that continues after `first`, which are constants.
    #[inline(never)]
    fn long_list(&mut self, start: Span, first: Vec<Expr>) -> Parsed<ExprList> {
        let mut counted = self.counted(start, &first);
        drop(first);
        loop {
            let member = self.expr()?;
            if !is_constant(&member) {
                self.check_length(counted.count as usize)?;
                let mut list: Vec<Expr> = self.trees_of(&counted).collect();
                list.push(member);
                while self.eat_kind(Kind::Comma) {
                    self.check_length(list.len())?;
                    list.push(self.expr()?);
                }
                self.expect_kind(Kind::RightParen)?;
                return Ok(ExprList::Trees(list));
            }
            self.count(&mut counted, &member)?;
            if !self.eat_kind(Kind::Comma) {
                break;
            }
        }
        let constants = self.constants(counted);
        self.expect_kind(Kind::RightParen)?;
        Ok(ExprList::Constants(constants))
    }

    /// `(e, ..), (e, ..), ..`.
    pub(super) fn value_rows(&mut self) -> Parsed<ValueRows> {
        let start = self.start();
        let may_leave = self.leaves_constants && self.can_start_here();
        let first = self.insert_row()?;
        let width = first.len();
        let mut rows = vec![first];
        while self.eat_kind(Kind::Comma) {
            let is_many = CONSTANTS_MIN.div_ceil(width.max(1)) == rows.len();
            if may_leave && is_many && rows.iter().all(|row| are_constants(row, width)) {
                return self.long_rows(start, rows, width);
            }
            rows.push(self.insert_row()?);
        }
        Ok(ValueRows::Trees(rows))
    }

    /// The rows that continue after `first`, which are constants, `width` in each.
    #[inline(never)]
    fn long_rows(&mut self, start: Span, first: Vec<Vec<Expr>>, width: usize) -> Parsed<ValueRows> {
        let mut counted = self.counted(start, first.iter().flatten());
        drop(first);
        loop {
            let row = self.insert_row()?;
            if !are_constants(&row, width) {
                let mut rows = self.rows_of(&counted, width);
                rows.push(row);
                while self.eat_kind(Kind::Comma) {
                    rows.push(self.insert_row()?);
                }
                return Ok(ValueRows::Trees(rows));
            }
            for value in &row {
                self.count(&mut counted, value)?;
            }
            if !self.eat_kind(Kind::Comma) {
                break;
            }
        }
        let fail = self.fail();
        Ok(ValueRows::Constants {
            values: self.constants(counted),
            width: u32::try_from(width).map_err(|_| fail)?,
        })
    }

    fn counted<'e>(&mut self, start: Span, first: impl IntoIterator<Item = &'e Expr>) -> Counted {
        let mut counted = Counted {
            start,
            count: 0,
            hasher: DefaultHasher::new(),
        };
        for constant in first {
            counted.count += 1;
            counted.hasher.write(self.text(constant.span));
        }
        counted
    }

    fn count(&mut self, counted: &mut Counted, constant: &Expr) -> Parsed<()> {
        let fail = self.fail();
        counted.count = counted.count.checked_add(1).ok_or(fail)?;
        counted.hasher.write(self.text(constant.span));
        counted.hasher.write_u8(b',');
        Ok(())
    }

    /// What was counted, up to the last consumed token.
    fn constants(&self, counted: Counted) -> Constants {
        Constants {
            span: self.span_from(counted.start),
            count: counted.count,
            mode: self.mode,
            digest: counted.hasher.finish(),
        }
    }

    fn trees_of(&self, counted: &Counted) -> ConstantReader<'a> {
        let mode = self.mode;
        ConstantReader {
            cursor: Cursor::starting_at(self.source(), counted.start.start as usize, mode),
            left: counted.count,
        }
    }

    /// What was counted, in rows of that width.
    fn rows_of(&mut self, counted: &Counted, width: usize) -> Vec<Vec<Expr>> {
        let mut values = self.trees_of(counted);
        let mut rows: Vec<Vec<Expr>> = Vec::new();
        loop {
            let row: Vec<Expr> = values.by_ref().take(width).collect();
            if row.is_empty() || self.is_stopped() {
                return rows;
            }
            rows.push(row);
            if rows.len().is_multiple_of(ROWS_PER_LOOK) {
                self.look();
            }
        }
    }
}

/// The constants of a list, in order, as trees. `source` is the text from which the list was
/// parsed.
pub fn read_constants<'a>(list: &Constants, source: &'a [u8]) -> ConstantReader<'a> {
    ConstantReader {
        cursor: Cursor::starting_at(source, list.span.start as usize, list.mode),
        left: list.count,
    }
}

/// Reads constants again: see [`read_constants`].
pub struct ConstantReader<'a> {
    cursor: Cursor<'a>,
    left: u32,
}

impl std::fmt::Debug for ConstantReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConstantReader")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl Iterator for ConstantReader<'_> {
    type Item = Expr;

    fn next(&mut self) -> Option<Expr> {
        self.left = self.left.checked_sub(1)?;
        // Commas, and the parentheses of rows and of single members.
        while matches!(
            self.cursor.kind(),
            Kind::Comma | Kind::LeftParen | Kind::RightParen
        ) {
            self.cursor.bump();
        }
        self.cursor.value().ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.left as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for ConstantReader<'_> {}

fn are_constants(row: &[Expr], width: usize) -> bool {
    row.len() == width && !row.is_empty() && row.iter().all(is_constant)
}

/// True for a literal, a number with a sign, and `DEFAULT`.
fn is_constant(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Default(None) => true,
        ExprKind::Unary {
            operator: UnaryOperator::Negate | UnaryOperator::Plus,
            operand,
        } => matches!(
            operand.kind,
            ExprKind::Literal(Literal::Integer(_) | Literal::Decimal(_) | Literal::Float(_))
        ),
        _ => false,
    }
}
