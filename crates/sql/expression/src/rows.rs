//! [`Rows`]: computed rows, side by side in few allocations.
//!
//! Sorts, groups, derived tables and the new row of an INSERT keep their values here. A cell is
//! `Copy`; bytes and decimals are stored separately. So a row needs no allocation of its own, and a
//! value is read back by reference. Everything grows in chunks: millions of rows are never moved.

use stdx::{ByteStore, ChunkedVec, Span};
use value::decimal::DecimalRef;
use value::{Date, DateTime, Decimal, Time, Value, ValueRef};

/// Rows of a fixed number of columns.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    /// Columns of a row; constant.
    width: usize,
    /// `width` cells a row, row after row.
    cells: ChunkedVec<Cell>,
    /// What `Cell::Bytes` points into.
    bytes: ByteStore,
    /// What `Cell::Decimal` points into.
    decimals: ChunkedVec<Decimal>,
}

/// Memory that is kept from one statement to the next.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// One value, or its position.
#[derive(Debug, Clone, Copy)]
enum Cell {
    Null,
    Int(i64),
    UInt(u64),
    Float(f32),
    Double(f64),
    Decimal(usize),
    Bytes(Span),
    Date(Date),
    Time(Time),
    DateTime(DateTime),
}

impl Rows {
    /// No rows, of `width` columns.
    pub fn new(width: usize) -> Self {
        Self {
            width,
            ..Self::default()
        }
    }

    /// Columns of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// How many rows there are. Rows without columns are not counted.
    pub fn len(&self) -> usize {
        self.cells.len().checked_div(self.width).unwrap_or(0)
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Bytes that are allocated.
    pub fn memory_bytes(&self) -> usize {
        self.cells.memory_bytes() + self.bytes.memory_bytes() + self.decimals.memory_bytes()
    }

    /// The approximate bytes of a row.
    pub fn row_bytes(&self, row: usize) -> usize {
        let texts = self.row(row).map(|value| match value {
            ValueRef::Bytes(bytes) => bytes.len(),
            _ => 0,
        });
        texts.sum::<usize>() + self.width * size_of::<Cell>()
    }

    /// Drops the rows and keeps the memory of a few.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.bytes.clear();
        self.decimals.clear();
    }

    /// Drops the rows, and frees their memory if it is large.
    pub fn shrink(&mut self) {
        self.clear();
        if KEPT_BYTES_MAX < self.memory_bytes() {
            *self = Self::new(self.width);
        }
    }

    /// Appends one value; a row exists once it has all its columns.
    pub fn push(&mut self, value: ValueRef<'_>) {
        let cell = self.cell_of(value);
        self.cells.push(cell);
    }

    /// Appends a row of NULLs.
    pub fn push_null_row(&mut self) {
        self.cells
            .extend(std::iter::repeat_n(Cell::Null, self.width));
    }

    /// Appends a copy of a row of other rows of the same width.
    pub fn push_row_of(&mut self, other: &Self, row: usize) {
        assert_eq!(self.width, other.width, "rows of one shape");
        for column in 0..self.width {
            self.push(other.get(row, column));
        }
    }

    /// Drops an unfinished row: values after the last whole one.
    pub fn drop_unfinished(&mut self) {
        let whole = self.len() * self.width;
        self.cells.truncate(whole);
    }

    /// Removes the last row (its bytes are freed with the others).
    pub fn pop(&mut self) {
        assert!(!self.is_empty(), "a row is there");
        let whole = self.cells.len() - self.width;
        self.cells.truncate(whole);
    }

    /// Replaces a value.
    ///
    /// # Panics
    /// If there is no such row or column.
    pub fn set(&mut self, row: usize, column: usize, value: ValueRef<'_>) {
        assert!(column < self.width, "the column is in the row");
        let cell = self.cell_of(value);
        self.cells[row * self.width + column] = cell;
    }

    /// Replaces a value by a copy of another value of the same rows.
    pub fn copy_within(&mut self, row: usize, column: usize, from_row: usize, from_column: usize) {
        self.cells[row * self.width + column] = self.cells[from_row * self.width + from_column];
    }

    /// A value.
    ///
    /// # Panics
    /// If there is no such row or column.
    #[inline]
    pub fn get(&self, row: usize, column: usize) -> ValueRef<'_> {
        debug_assert!(column < self.width, "the column is in the row");
        match self.cells[row * self.width + column] {
            Cell::Null => ValueRef::Null,
            Cell::Int(number) => ValueRef::Int(number),
            Cell::UInt(number) => ValueRef::UInt(number),
            Cell::Float(number) => ValueRef::Float(number),
            Cell::Double(number) => ValueRef::Double(number),
            Cell::Decimal(place) => ValueRef::Decimal(DecimalRef::Whole(&self.decimals[place])),
            Cell::Bytes(span) => ValueRef::Bytes(self.bytes.get(span)),
            Cell::Date(date) => ValueRef::Date(date),
            Cell::Time(time) => ValueRef::Time(time),
            Cell::DateTime(time) => ValueRef::DateTime(time),
        }
    }

    /// A row's values, in order.
    pub fn row(&self, row: usize) -> impl Iterator<Item = ValueRef<'_>> {
        (0..self.width).map(move |column| self.get(row, column))
    }

    /// A row as owned values.
    pub fn to_values(&self, row: usize) -> Vec<Value> {
        self.row(row).map(ValueRef::to_value).collect()
    }

    fn cell_of(&mut self, value: ValueRef<'_>) -> Cell {
        match value {
            ValueRef::Null => Cell::Null,
            ValueRef::Int(number) => Cell::Int(number),
            ValueRef::UInt(number) => Cell::UInt(number),
            ValueRef::Float(number) => Cell::Float(number),
            ValueRef::Double(number) => Cell::Double(number),
            ValueRef::Decimal(number) => {
                self.decimals.push(number.to_decimal());
                Cell::Decimal(self.decimals.len() - 1)
            }
            ValueRef::Bytes(bytes) => Cell::Bytes(self.bytes.push(bytes)),
            ValueRef::Date(date) => Cell::Date(date),
            ValueRef::Time(time) => Cell::Time(time),
            ValueRef::DateTime(time) => Cell::DateTime(time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_went_in() {
        let decimal: Decimal = "1234.50".parse().unwrap();
        let values = [
            Value::Null,
            Value::Int(-1),
            Value::bytes("abc"),
            Value::Decimal(decimal),
            Value::bytes(""),
            Value::Double(2.5),
        ];
        let mut rows = Rows::new(3);
        for value in &values {
            rows.push(value.as_ref());
        }
        assert_eq!(rows.len(), 2);
        assert_eq!(rows.to_values(0), values[..3]);
        assert_eq!(rows.to_values(1), values[3..]);
        rows.set(1, 1, ValueRef::Int(9));
        assert_eq!(rows.get(1, 1), ValueRef::Int(9));
        rows.push(ValueRef::Null);
        rows.drop_unfinished();
        rows.pop();
        assert_eq!(rows.len(), 1);
    }
}
