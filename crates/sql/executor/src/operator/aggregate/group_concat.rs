//! `GROUP_CONCAT`.

use std::cmp::Ordering;

use errcode::{ClientError, ER_CUT_VALUE_GROUP_CONCAT};
use expression::{AggregateCall, Failure, Rows, Share, Statement, compare_values_metered};
use stdx::{ChunkedVec, merge_sort};
use value::{Value, ValueRef};

use crate::Outcome;
use crate::context::Context;
use crate::keys::Keys;

/// The texts of a group, each with its sort keys.
#[derive(Debug, Default)]
pub(super) struct Concatenation {
    /// The text, then the keys; empty before the first.
    rows: Rows,
    share: Share,
}

impl Concatenation {
    /// Adds the current row, unless an argument is NULL or, for DISTINCT, the same texts, each for
    /// itself, were added before.
    pub(super) fn add(
        &mut self,
        call: &AggregateCall,
        seen: Option<&mut Keys>,
        cx: &Context<'_>,
    ) -> Outcome<()> {
        if !super::arguments_are_there(call, cx)? {
            return Ok(());
        }
        let evaluator = cx.evaluator();
        if let Some(seen) = seen {
            seen.begin();
            for argument in &call.arguments {
                seen.push(evaluator.text(argument)?, &call.column_type, cx)?;
            }
            let (_, is_new) = seen.insert(cx)?;
            if !is_new {
                return Ok(());
            }
        }
        let mut text = Vec::new();
        for argument in &call.arguments {
            if let ValueRef::Bytes(bytes) = evaluator.text(argument)? {
                text.extend_from_slice(bytes);
            }
        }
        if self.rows.width() == 0 {
            self.rows = Rows::new(1 + call.order.len());
        }
        self.rows.push(ValueRef::Bytes(&text));
        for (key, _) in &call.order {
            self.rows.push(evaluator.evaluate(key)?);
        }
        cx.keep(&mut self.share, self.rows.memory_bytes())
    }

    /// The texts in order, joined by the separator; NULL if there are none.
    pub(super) fn finish(
        &mut self,
        call: &AggregateCall,
        statement: &Statement<'_>,
    ) -> Outcome<Value> {
        if self.rows.is_empty() {
            return Ok(Value::Null);
        }
        let count = u32::try_from(self.rows.len()).expect("kept rows are bounded by their bytes");
        let mut order: ChunkedVec<u32> = (0..count).collect();
        if !call.order.is_empty() {
            merge_sort(
                &mut order,
                |a, b| self.compare(call, a, b, statement),
                |count| statement.spend(count * size_of::<u32>()),
            )?;
        }
        let (count, offset) = call.limit.unwrap_or((u64::MAX, 0));
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let bytes_max = statement.group_concat_bytes_max();
        let mut text = Vec::new();
        for (place, &row) in order.iter().skip(offset).take(count).enumerate() {
            let row = row as usize;
            statement.spend(self.rows.row_bytes(row))?;
            if place > 0 {
                text.extend_from_slice(&call.separator);
            }
            if let ValueRef::Bytes(bytes) = self.rows.get(row, 0) {
                text.extend_from_slice(bytes);
            }
            if text.len() > bytes_max {
                cut(&mut text, bytes_max, call);
                let warning =
                    ClientError::new(ER_CUT_VALUE_GROUP_CONCAT, &[&(row + 1), &"group_concat("]);
                statement.warn(warning);
                break;
            }
        }
        Ok(Value::Bytes(text))
    }

    fn compare(
        &self,
        call: &AggregateCall,
        a: u32,
        b: u32,
        statement: &Statement<'_>,
    ) -> Result<Ordering, Failure> {
        for (key, (expression, descending)) in call.order.iter().enumerate() {
            let value = |row: u32| self.rows.get(row as usize, key + 1);
            let column_type = &expression.column_type;
            let order = compare_values_metered(value(a), value(b), column_type, statement)?;
            if order.is_ne() {
                return Ok(if *descending { order.reverse() } else { order });
            }
        }
        Ok(Ordering::Equal)
    }
}

/// Cuts a text at a character's end.
fn cut(text: &mut Vec<u8>, bytes_max: usize, call: &AggregateCall) {
    let charset = call.column_type.charset();
    let mut end = 0;
    while let Some(rest) = text.get(end..).filter(|rest| !rest.is_empty()) {
        let step = charset.decode(rest).map_or(1, |(_, step)| step);
        if end + step > bytes_max {
            break;
        }
        end += step;
    }
    text.truncate(end);
}
