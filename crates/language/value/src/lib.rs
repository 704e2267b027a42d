//! SQL types and values with MySQL's semantics, as pure functions: no I/O, no clock.
//!
//! Start reading at [`ColumnType`] (what a column or an expression may hold) and [`ValueRef`] (one
//! value, borrowed). If servers differ, MariaDB 10.11 is the reference.

#![forbid(unsafe_code)]

mod column_type;
mod value;

pub mod collation;
pub mod decimal;
pub mod flag;
pub mod geometry;
pub mod json;
pub mod temporal;

mod condition;
mod warning;

pub mod compare;
pub mod convert;
pub mod digits;
pub mod key;
pub mod number;
pub mod store;
pub mod text;

pub use collation::{Charset, CollationId};
pub use column_type::{ColumnType, TypeKind};
pub use compare::{Comparison, compare_same};
pub use condition::SqlCondition;
pub use decimal::{Decimal, DecimalRef};
pub use geometry::GeometryKind;
pub use store::{Place, StoreRules, compared_year, store_value};
pub use temporal::{Date, DateTime, Time, Zone};
pub use value::{Value, ValueRef};
pub use warning::{Level, Warnings};
