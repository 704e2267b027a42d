//! Stores into geometry columns, and geometries into others. Errors here are never only warnings.

use super::{Place, Store};
use crate::geometry::{self, GeometryKind};
use crate::{ColumnType, Trouble, TypeKind, Value, ValueRef};

/// The error for types without a conversion: geometries and anything but text.
pub(super) fn cannot_cast(from: &ColumnType, to: &ColumnType, place: Place<'_>) -> Option<Trouble> {
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
    Some(Trouble::new(
        4078,
        format!(
            "Cannot cast '{}' as '{}' in assignment of `{database}`.`{table}`.`{column}`",
            from.type_name(),
            to.type_name()
        ),
    ))
}

impl Store<'_> {
    pub(super) fn geometry(&mut self, value: ValueRef<'_>) -> Result<Value, Trouble> {
        let bytes = match value {
            ValueRef::Bytes(bytes) => bytes,
            _ => &[],
        };
        let Some(kind) = geometry::kind(bytes) else {
            return Err(Trouble::new(
                1416,
                "Cannot get geometry object from data you send to the GEOMETRY field",
            ));
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
            return Err(Trouble::new(
                1366,
                format!(
                    "Incorrect {} value: '{}' for column `{database}`.`{table}`.`{column}` at row \
                     {row}",
                    wanted.name().to_uppercase(),
                    String::from_utf8_lossy(&text)
                ),
            ));
        }
        Ok(Value::Bytes(bytes.to_vec()))
    }
}
