//! Functions of geometries, and geometries in other functions: a geometry is bytes in a function of
//! texts, and is no number, date or time.

use builtin::{Builtin, Geometries};
use errcode::{
    ER_ILLEGAL_PARAMETER_DATA_TYPE_FOR_OPERATION, ER_ILLEGAL_PARAMETER_DATA_TYPES2_FOR_OPERATION,
};
use value::collation::{Coercibility, TextRule};
use value::{
    CollationId, ColumnType, GeometryKind, SqlCondition, TypeKind, Value, ValueRef, geometry,
};

use crate::bind::{Arg, Binding, Bound};
use crate::context::Context;
use crate::infer::{Inferred, connection_text, double, of_length};
use crate::null::some;

type Evaluated = Result<Value, SqlCondition>;

/// Refuses geometries if the function or operator does not take them.
///
/// # Errors
/// 4078 for two incompatible types, 4079 for one type.
pub(crate) fn refuse(function: &Builtin, name: &str, args: &[Arg]) -> Inferred {
    let is_geometry = |arg: &&Arg| arg.column.kind == TypeKind::Geometry;
    let Some(geometry) = args.iter().find(is_geometry) else {
        return Ok(());
    };
    match (function.geometries, args) {
        (Geometries::Taken, _) => Ok(()),
        (Geometries::Compared, _) => args
            .windows(2)
            .map(|pair| [&pair[0].column, &pair[1].column])
            .try_for_each(|pair| refuse_geometry_with(pair, &name.to_lowercase())),
        (Geometries::BesideInterval, _) => Err(illegal_pair(
            geometry.column.type_name(),
            "interval",
            "date_add_interval",
        )),
        (Geometries::Arithmetic, [left, right]) => {
            let (left, right) = (left.column.type_name(), right.column.type_name());
            Err(illegal_pair(left, right, function.name()))
        }
        (Geometries::Arithmetic | Geometries::Refused, _) => {
            Err(illegal(geometry, &name.to_lowercase()))
        }
    }
}

/// Refuses a geometry as a number, date or time: for SUM, or for a CAST.
///
/// # Errors
/// 4079
pub fn refuse_geometry(column: &ColumnType, operation: &str) -> Result<(), SqlCondition> {
    match column.kind {
        TypeKind::Geometry => Err(illegal_type(column, operation)),
        _ => Ok(()),
    }
}

/// Refuses a geometry together with a value that is neither geometry nor text, if both need a
/// common type.
///
/// # Errors
/// 4078
pub fn refuse_geometry_with(types: [&ColumnType; 2], operation: &str) -> Result<(), SqlCondition> {
    let [left, right] = types;
    let is_geometry = |column: &ColumnType| column.kind == TypeKind::Geometry;
    let meets = |column: &ColumnType| column.kind.is_string() || column.kind == TypeKind::Null;
    if !is_geometry(left) && !is_geometry(right) || meets(left) && meets(right) {
        return Ok(());
    }
    Err(illegal_pair(left.type_name(), right.type_name(), operation))
}

fn illegal_pair(left: &str, right: &str, operation: &str) -> SqlCondition {
    SqlCondition::new(
        ER_ILLEGAL_PARAMETER_DATA_TYPES2_FOR_OPERATION,
        &[&left, &right, &operation],
    )
}

fn illegal(arg: &Arg, operation: &str) -> SqlCondition {
    illegal_type(&arg.column, operation)
}

fn illegal_type(column: &ColumnType, operation: &str) -> SqlCondition {
    let name = column.type_name();
    SqlCondition::new(
        ER_ILLEGAL_PARAMETER_DATA_TYPE_FOR_OPERATION,
        &[&name, &operation],
    )
}

/// The first argument is a geometry, or bytes that may be one.
fn takes_geometry(binding: &Binding<'_>, operation: &str) -> Inferred {
    let arg = &binding.args[0];
    let kind = arg.column.kind;
    let is_bytes = kind.is_bytes() && arg.column.collation == CollationId::BINARY;
    if is_bytes || kind == TypeKind::Null {
        return Ok(());
    }
    Err(illegal(arg, operation))
}

fn is_geometry_of(binding: &mut Binding<'_>, kind: GeometryKind) {
    binding.nullable = true;
    binding.rule = TextRule {
        collation: CollationId::BINARY,
        coercibility: Coercibility::Coercible,
        ascii_only: false,
    };
    binding.column = ColumnType::geometry(kind);
}

fn takes_srid(binding: &Binding<'_>, operation: &str) -> Inferred {
    let srid = binding.args.get(1);
    srid.map_or(Ok(()), |arg| refuse_geometry(&arg.column, operation))
}

pub(crate) fn infer_from_text(binding: &mut Binding<'_>) -> Inferred {
    let operation = "st_geometryfromtext";
    let arg = &binding.args[0];
    let kind = arg.column.kind;
    if kind == TypeKind::Geometry || !(kind.is_string() || kind == TypeKind::Null) {
        return Err(illegal(arg, operation));
    }
    takes_srid(binding, operation)?;
    is_geometry_of(binding, GeometryKind::Any);
    Ok(())
}

pub(crate) fn infer_from_wkb(binding: &mut Binding<'_>) -> Inferred {
    let operation = "st_geometryfromwkb";
    takes_geometry(binding, operation)?;
    takes_srid(binding, operation)?;
    is_geometry_of(binding, GeometryKind::Any);
    Ok(())
}

pub(crate) fn infer_point(binding: &mut Binding<'_>) -> Inferred {
    for arg in binding.args {
        refuse_geometry(&arg.column, "point")?;
    }
    is_geometry_of(binding, GeometryKind::Point);
    Ok(())
}

pub(crate) fn infer_text(binding: &mut Binding<'_>) -> Inferred {
    takes_geometry(binding, "st_astext")?;
    connection_text(binding, u64::from(u32::MAX))?;
    binding.nullable = true;
    Ok(())
}

pub(crate) fn infer_wkb(binding: &mut Binding<'_>) -> Inferred {
    takes_geometry(binding, "st_aswkb")?;
    is_geometry_of(binding, GeometryKind::Any);
    binding.column = ColumnType::new(TypeKind::LongBlob);
    Ok(())
}

pub(crate) fn infer_srid(binding: &mut Binding<'_>) -> Inferred {
    takes_geometry(binding, "srid")?;
    binding.nullable = true;
    binding.column = of_length(TypeKind::Int, 10, false);
    Ok(())
}

pub(crate) fn infer_x(binding: &mut Binding<'_>) -> Inferred {
    takes_geometry(binding, "st_x")?;
    binding.nullable = true;
    double(binding)
}

pub(crate) fn infer_y(binding: &mut Binding<'_>) -> Inferred {
    takes_geometry(binding, "st_y")?;
    binding.nullable = true;
    double(binding)
}

pub(crate) fn infer_type(binding: &mut Binding<'_>) -> Inferred {
    takes_geometry(binding, "st_geometrytype")?;
    connection_text(binding, 20)?;
    binding.nullable = true;
    Ok(())
}

/// The bytes of an argument; `None` for a number, which binding refuses.
fn bytes<'v>(args: &[ValueRef<'v>]) -> Option<&'v [u8]> {
    match args[0] {
        ValueRef::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

/// The low 32 bits of the second argument; 0 without one and for NULL.
fn srid_of(args: &[ValueRef<'_>], context: &mut Context<'_>) -> u32 {
    let number = args.get(1).and_then(|arg| arg.to_integer(context.warnings));
    number.map_or(0, |number| stdx::low_u32(number.bits()))
}

fn stored(found: Option<Vec<u8>>) -> Evaluated {
    Ok(found.map_or(Value::Null, Value::Bytes))
}

pub(crate) fn from_text(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let text = some!(args[0].to_text(&bound.args[0]));
    stored(geometry::from_text(&text, srid_of(args, context)))
}

/// A stored geometry is read as its binary form, without its first four bytes.
pub(crate) fn from_wkb(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let bytes = some!(bytes(args));
    if bound.args[0].kind == TypeKind::Geometry {
        return Ok(Value::bytes(bytes));
    }
    stored(geometry::from_wkb(bytes, srid_of(args, context)))
}

pub(crate) fn point(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let x = some!(args[0].to_f64(context.warnings));
    let y = some!(args[1].to_f64(context.warnings));
    stored(Some(geometry::point(x, y)))
}

pub(crate) fn as_text(_: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    stored(geometry::to_text(some!(bytes(args))))
}

pub(crate) fn as_wkb(_: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    let (_, wkb) = some!(geometry::wkb(some!(bytes(args))));
    Ok(Value::bytes(wkb))
}

pub(crate) fn srid(_: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    let srid = some!(geometry::srid(some!(bytes(args))));
    Ok(Value::Int(i64::from(srid)))
}

pub(crate) fn x(_: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    let (x, _) = some!(geometry::coordinates(some!(bytes(args))));
    Ok(Value::Double(x))
}

pub(crate) fn y(_: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    let (_, y) = some!(geometry::coordinates(some!(bytes(args))));
    Ok(Value::Double(y))
}

pub(crate) fn type_name(_: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    let (kind, _) = some!(geometry::wkb(some!(bytes(args))));
    Ok(Value::bytes(kind.name().to_uppercase()))
}
