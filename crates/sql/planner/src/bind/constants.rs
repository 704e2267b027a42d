//! Long lists of constants, read from the text and bound one by one, stored side by side.
//!
//! The types of the members decide what a list means, and there are few types. A short list is
//! instead bound member by member (`term`).

use std::rc::Rc;

use errcode::ER_WRONG_VALUE_COUNT_ON_ROW;
use expression::{
    Class, Compare, CompareOperator, Constants, Expression, ExpressionKind, InList, ListMembers,
};
use syntax::ast::{self, Expr, ExprKind};
use syntax::parse::read_constants;
use value::{Charset, CollationId, TypeKind, Value, ValueRef};

use super::literal::as_compared;
use super::term::{Bound, any_of, negated_if};
use super::{Binder, error};
use crate::PlanError;
use crate::plan::ValueRows;

/// How many texts of a list take part in choosing its collation: more than an error's message
/// names.
const TEXTS_MIN: usize = 4;

impl Binder<'_> {
    /// `value [NOT] IN (..)` of constants that were left in the text.
    pub(super) fn in_constants(
        &mut self,
        negated: bool,
        value: &Expr,
        list: &ast::Constants,
    ) -> Bound {
        let operand = self.term(value)?;
        let by_type = [TypeKind::Year, TypeKind::BigInt];
        let is_read_by_column =
            operand.as_column().is_some() && by_type.contains(&operand.column_type.kind);
        let members = self.constants_of(list, operand.column_type.kind.is_number())?;
        let has_dates = |members: &Constants| {
            let mut types = members.column_types();
            types.any(|it| it.kind.is_temporal())
        };
        match members {
            // A YEAR reads each member on its own, a BIGINT those that are dates.
            Some(members)
                if !(is_read_by_column
                    && (operand.column_type.kind == TypeKind::Year || has_dates(&members))) =>
            {
                self.in_bound_constants(negated, operand, members)
            }
            _ => {
                let trees: Vec<Expr> = read_constants(list, self.source).collect();
                self.in_trees(negated, value, &trees)
            }
        }
    }

    /// The values of a list, or `None` if they are not constants or have too many types.
    fn constants_of(
        &mut self,
        list: &ast::Constants,
        are_compared_as_numbers: bool,
    ) -> Result<Option<Constants>, PlanError> {
        let mut constants = Constants::default();
        for expr in read_constants(list, self.source) {
            let mut member = self.term(&expr)?;
            if are_compared_as_numbers {
                member = as_compared(member);
            }
            if !push(&mut constants, &member) {
                return Ok(None);
            }
        }
        Ok(Some(constants))
    }

    fn in_bound_constants(
        &mut self,
        negated: bool,
        mut operand: Expression,
        members: Constants,
    ) -> Bound {
        let are_numbers = members.column_types().all(|it| it.kind.is_number());
        if !operand.column_type.kind.is_number() && are_numbers {
            operand = as_compared(operand);
        }
        let samples = self.samples(&members)?;
        for sample in &samples {
            let types = [&operand.column_type, &sample.column_type];
            function::refuse_geometry_with(types, "in").map_err(expression::failure)?;
        }
        let collation = self.constants_collation(&operand, &members, &samples)?;
        let class_of = |sample: &Expression| self.class_of_types(&operand, sample);
        let is_null = |sample: &&Expression| sample.column_type.kind == TypeKind::Null;
        let mut known = samples.iter().filter(|sample| !is_null(sample));
        let class = match known.next() {
            None => class_of(&samples[0]),
            Some(first) => class_of(first),
        };
        if !known.all(|sample| class_of(sample) == class) {
            return self.in_mixed_constants(negated, &operand, (members, &samples), collation);
        }
        let class = match (class, collation) {
            (Class::Text(_), Some(collation)) => Class::Text(collation),
            _ => class,
        };
        Ok(self.in_class(negated, operand, members, class))
    }

    /// A member of each type, in the order of the types.
    fn samples(&self, members: &Constants) -> Result<Vec<Expression>, PlanError> {
        let type_count = members.column_types().count();
        let mut samples: Vec<Option<Expression>> = vec![None; type_count];
        let mut missing = type_count;
        for place in 0..members.len() {
            if missing == 0 {
                break;
            }
            self.spend()?;
            let sample = &mut samples[members.type_number(place)];
            if sample.is_none() {
                *sample = Some(members.expression(place));
                missing -= 1;
            }
        }
        Ok(samples.into_iter().flatten().collect())
    }

    fn in_class(
        &mut self,
        negated: bool,
        operand: Expression,
        members: Constants,
        class: Class,
    ) -> Expression {
        let nullable = operand.nullable || members.has_null();
        self.list_count += 1;
        let list = InList {
            operand,
            list: ListMembers::Constants(Rc::new(members)),
            class,
            negated,
            table: Some(self.list_count - 1),
        };
        Expression::condition(ExpressionKind::In(Box::new(list)), nullable)
    }

    /// The collation in which a list is searched, or `None` if nothing is compared as text.
    fn constants_collation(
        &self,
        operand: &Expression,
        members: &Constants,
        samples: &[Expression],
    ) -> Result<Option<CollationId>, PlanError> {
        let is_text =
            |sample: &Expression| matches!(self.class_of_types(operand, sample), Class::Text(_));
        if !samples.iter().any(is_text) {
            return Ok(None);
        }
        // For each collation one ASCII text and one that is not: they mix differently.
        let mut texts: Vec<Expression> = vec![operand.clone()];
        let mut seen: Vec<(TypeKind, CollationId, bool)> = Vec::new();
        for place in 0..members.len() {
            self.spend()?;
            let (value, column_type) = members.value(place);
            let is_ascii = bytes_of(value).is_none_or(<[u8]>::is_ascii);
            let key = (column_type.kind, column_type.collation, is_ascii);
            if !seen.contains(&key) {
                seen.push(key);
                texts.push(members.expression(place));
            }
        }
        while texts.len() < TEXTS_MIN {
            texts.push(texts[1].clone());
        }
        let texts: Vec<&Expression> = texts.iter().collect();
        let collation = self.texts_collation(&texts, "in")?;
        self.check_constants(members, collation, &texts)?;
        Ok(Some(collation))
    }

    /// Refuses a text that the character set of the comparison lacks.
    fn check_constants(
        &self,
        members: &Constants,
        collation: CollationId,
        texts: &[&Expression],
    ) -> Result<(), PlanError> {
        let to = collation.charset();
        if to == Charset::Binary {
            return Ok(());
        }
        for place in 0..members.len() {
            self.spend()?;
            let (value, column_type) = members.value(place);
            let from = column_type.charset();
            let is_other = column_type.kind.is_string() && from != to && from != Charset::Binary;
            if let Some(bytes) = bytes_of(value).filter(|_| is_other)
                && !to.can_hold(from, bytes)
            {
                return Err(self.illegal_mix(texts, "in"));
            }
        }
        Ok(())
    }

    /// Members of different classes: one list for each class, joined by `OR`.
    fn in_mixed_constants(
        &mut self,
        negated: bool,
        operand: &Expression,
        (members, samples): (Constants, &[Expression]),
        collation: Option<CollationId>,
    ) -> Bound {
        let mut ways: Vec<(Class, Expression)> = Vec::new();
        let mut way_of = Vec::with_capacity(samples.len());
        for sample in samples {
            let way = self.way_of(operand, sample, collation)?;
            let known = ways.iter().position(|known| *known == way);
            way_of.push(known.unwrap_or(ways.len()));
            if known.is_none() {
                ways.push(way);
            }
        }
        let mut lists: Vec<Constants> = vec![Constants::default(); ways.len()];
        for place in 0..members.len() {
            self.spend()?;
            let (value, column_type) = members.value(place);
            let is_kept = lists[way_of[members.type_number(place)]].push(value, column_type);
            assert!(is_kept, "a part has no more types than the whole");
        }
        drop(members);
        let lists = ways.into_iter().zip(lists);
        let lists =
            lists.map(|((class, operand), list)| self.in_class(false, operand, list, class));
        let any = any_of(lists.collect());
        Ok(negated_if(negated, any))
    }

    /// How the operand is compared with members of this type.
    fn way_of(
        &self,
        operand: &Expression,
        sample: &Expression,
        collation: Option<CollationId>,
    ) -> Result<(Class, Expression), PlanError> {
        if let (Class::Text(_), Some(collation)) = (self.class_of_types(operand, sample), collation)
        {
            return Ok((Class::Text(collation), operand.clone()));
        }
        let compared =
            self.plain_comparison(CompareOperator::Equal, operand.clone(), sample.clone())?;
        match compared.kind {
            ExpressionKind::Compare(compare) => {
                let Compare { class, left, .. } = *compare;
                Ok((class, left))
            }
            _ => unreachable!("a comparison was made"),
        }
    }

    /// Rows of `VALUES` that were left in the text, for this many columns.
    pub(crate) fn constant_rows(
        &mut self,
        values: &ast::Constants,
        width: usize,
        column_count: usize,
    ) -> Result<ValueRows, PlanError> {
        if width != column_count {
            return Err(error(ER_WRONG_VALUE_COUNT_ON_ROW, &[&1]));
        }
        let mut constants = Constants::default();
        for expr in read_constants(values, self.source) {
            let is_kept = match expr.kind {
                ExprKind::Default(None) => constants.push_default(),
                _ => push(&mut constants, &self.term(&expr)?),
            };
            if !is_kept {
                return self.tree_rows(values, width).map(ValueRows::Expressions);
            }
        }
        Ok(ValueRows::Constants {
            values: constants,
            width,
        })
    }

    /// The same for rows that are not constants, or have too many types.
    fn tree_rows(
        &mut self,
        values: &ast::Constants,
        width: usize,
    ) -> Result<Vec<Vec<Option<Expression>>>, PlanError> {
        let mut rows = Vec::with_capacity(stdx::to_usize(values.count) / width);
        let mut row = Vec::with_capacity(width);
        for expr in read_constants(values, self.source) {
            row.push(self.assigned(&expr)?);
            if row.len() == width {
                rows.push(std::mem::replace(&mut row, Vec::with_capacity(width)));
            }
        }
        Ok(rows)
    }
}

/// Adds a bound member. Returns false if it is not a constant, or has one type too many.
fn push(constants: &mut Constants, member: &Expression) -> bool {
    match &member.kind {
        ExpressionKind::Constant(value) => {
            let is_plain = member.nullable == matches!(value, Value::Null);
            is_plain && constants.push(value.as_ref(), &member.column_type)
        }
        _ => false,
    }
}

fn bytes_of(value: ValueRef<'_>) -> Option<&[u8]> {
    match value {
        ValueRef::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}
