//! Stores into geometry columns, and geometries into others. Errors here are never only warnings.

use errcode::{
    ER_CANT_CREATE_GEOMETRY_OBJECT, ER_TRUNCATED_WRONG_VALUE_FOR_FIELD,
    WORDS_CANNOT_CAST_IN_ASSIGNMENT,
};

use super::{Place, Store};
use crate::geometry::{self, GeometryKind};
use crate::{ColumnType, SqlCondition, TypeKind, Value, ValueRef};

/// The error for types without a conversion: geometries and anything but text.
pub(super) fn cannot_cast(
    from: &ColumnType,
    to: &ColumnType,
    place: Place<'_>,
) -> Option<SqlCondition> {
    let other = if from.kind == TypeKind::Geometry {
        to
    } else {
        from
    };
    if other.kind.is_bytes() || other.kind == TypeKind::Null {
        return None;
    }
    let Place {
        database,
        table,
        column,
        ..
    } = place;
    let (from, to) = (from.type_name(), to.type_name());
    Some(SqlCondition::worded(
        WORDS_CANNOT_CAST_IN_ASSIGNMENT,
        &[&from, &to, &database, &table, &column],
    ))
}

impl Store<'_> {
    pub(super) fn geometry(&mut self, value: ValueRef<'_>) -> Result<Value, SqlCondition> {
        let bytes = match value {
            ValueRef::Bytes(bytes) => bytes,
            _ => &[],
        };
        let Some(kind) = geometry::kind(bytes) else {
            return Err(SqlCondition::new(ER_CANT_CREATE_GEOMETRY_OBJECT, &[]));
        };
        let wanted = self.to.geometry_kind();
        if wanted != GeometryKind::Any && wanted != kind {
            let text = geometry::to_text(bytes).unwrap_or_default();
            let Place {
                database,
                table,
                column,
                row,
            } = self.place;
            let wanted = wanted.name().to_uppercase();
            let shown = String::from_utf8_lossy(&text);
            return Err(SqlCondition::new(
                ER_TRUNCATED_WRONG_VALUE_FOR_FIELD,
                &[&wanted, &shown, &database, &table, &column, &row],
            ));
        }
        Ok(Value::Bytes(bytes.to_vec()))
    }
}
