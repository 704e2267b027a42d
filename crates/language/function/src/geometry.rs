//! Functions of geometries, and geometries in other functions: a geometry is bytes in a function of
//! texts, and is no number, date or time.

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
use crate::registry::{Function, entry};
use crate::text::strings::some;

type Evaluated = Result<Value, SqlCondition>;

/// All functions; aliases come after the function that they stand for.
#[rustfmt::skip]
pub(crate) static FUNCTIONS: &[Function] = &[
    entry("ST_GEOMETRYFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("ST_GEOMFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("ST_POINTFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("ST_LINEFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("ST_LINESTRINGFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("ST_POLYFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("ST_POLYGONFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("ST_MPOINTFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("ST_MULTIPOINTFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("ST_MLINEFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("ST_MULTILINESTRINGFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("ST_MPOLYFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("ST_MULTIPOLYGONFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("ST_GEOMCOLLFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("ST_GEOMETRYCOLLECTIONFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("GEOMETRYFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("GEOMFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("POINTFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("LINEFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("LINESTRINGFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("POLYFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("POLYGONFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("MPOINTFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("MULTIPOINTFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("MLINEFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("MULTILINESTRINGFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("MPOLYFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("MULTIPOLYGONFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("GEOMCOLLFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("GEOMETRYCOLLECTIONFROMTEXT", 1, 2, infer_from_text, from_text),
    entry("ST_GEOMETRYFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("ST_GEOMFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("ST_POINTFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("ST_LINEFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("ST_LINESTRINGFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("ST_POLYFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("ST_POLYGONFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("ST_MPOINTFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("ST_MULTIPOINTFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("ST_MLINEFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("ST_MULTILINESTRINGFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("ST_MPOLYFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("ST_MULTIPOLYGONFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("ST_GEOMCOLLFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("ST_GEOMETRYCOLLECTIONFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("GEOMETRYFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("GEOMFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("POINTFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("LINEFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("LINESTRINGFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("POLYFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("POLYGONFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("MPOINTFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("MULTIPOINTFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("MLINEFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("MULTILINESTRINGFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("MPOLYFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("MULTIPOLYGONFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("GEOMCOLLFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("GEOMETRYCOLLECTIONFROMWKB", 1, 2, infer_from_wkb, from_wkb),
    entry("ST_ASTEXT", 1, 1, infer_text, as_text),
    entry("ST_ASWKT", 1, 1, infer_text, as_text),
    entry("ASTEXT", 1, 1, infer_text, as_text),
    entry("ASWKT", 1, 1, infer_text, as_text),
    entry("ST_ASWKB", 1, 1, infer_wkb, as_wkb),
    entry("ST_ASBINARY", 1, 1, infer_wkb, as_wkb),
    entry("ASWKB", 1, 1, infer_wkb, as_wkb),
    entry("ASBINARY", 1, 1, infer_wkb, as_wkb),
    entry("ST_SRID", 1, 1, infer_srid, srid),
    entry("SRID", 1, 1, infer_srid, srid),
    entry("ST_X", 1, 1, infer_x, x),
    entry("X", 1, 1, infer_x, x),
    entry("ST_Y", 1, 1, infer_y, y),
    entry("Y", 1, 1, infer_y, y),
    entry("ST_GEOMETRYTYPE", 1, 1, infer_type, type_name),
    entry("GEOMETRYTYPE", 1, 1, infer_type, type_name),
    entry("POINT", 2, 2, infer_point, point),
];

/// Refuses geometries if the function or operator does not take them.
///
/// # Errors
/// 4078 for two incompatible types, 4079 for one type.
pub(crate) fn refuse(function: &Function, name: &str, args: &[Arg]) -> Inferred {
    let is_geometry = |arg: &&Arg| arg.column.kind == TypeKind::Geometry;
    let Some(geometry) = args.iter().find(is_geometry) else {
        return Ok(());
    };
    let upper = name.to_uppercase();
    match upper.as_str() {
        "=" | "<=>" | "<>" | "!=" | "<" | "<=" | ">" | ">=" | "BETWEEN" | "IN" | "IFNULL"
        | "NVL" | "COALESCE" | "GREATEST" | "LEAST" => args
            .windows(2)
            .map(|pair| [&pair[0].column, &pair[1].column])
            .try_for_each(|pair| refuse_geometry_with(pair, &upper.to_lowercase())),
        "DATE_ADD" | "DATE_SUB" | "ADDDATE" | "SUBDATE" => Err(illegal_pair(
            geometry.column.type_name(),
            "interval",
            "date_add_interval",
        )),
        "+" | "-" | "*" | "/" | "%" | "MOD" if args.len() == 2 => {
            let operation = if upper == "%" { "MOD" } else { &upper };
            let names = [&args[0], &args[1]].map(|arg| arg.column.type_name());
            Err(illegal_pair(names[0], names[1], operation))
        }
        "CONV" | "CRC32" => Ok(()),
        _ if crate::registry::is_of_numbers(function) => {
            Err(illegal(geometry, &name.to_lowercase()))
        }
        _ => Ok(()),
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

fn infer_from_text(binding: &mut Binding<'_>) -> Inferred {
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

fn infer_from_wkb(binding: &mut Binding<'_>) -> Inferred {
    let operation = "st_geometryfromwkb";
    takes_geometry(binding, operation)?;
    takes_srid(binding, operation)?;
    is_geometry_of(binding, GeometryKind::Any);
    Ok(())
}

fn infer_point(binding: &mut Binding<'_>) -> Inferred {
    for arg in binding.args {
        refuse_geometry(&arg.column, "point")?;
    }
    is_geometry_of(binding, GeometryKind::Point);
    Ok(())
}

fn infer_text(binding: &mut Binding<'_>) -> Inferred {
    takes_geometry(binding, "st_astext")?;
    connection_text(binding, u64::from(u32::MAX))?;
    binding.nullable = true;
    Ok(())
}

fn infer_wkb(binding: &mut Binding<'_>) -> Inferred {
    takes_geometry(binding, "st_aswkb")?;
    is_geometry_of(binding, GeometryKind::Any);
    binding.column = ColumnType::new(TypeKind::LongBlob);
    Ok(())
}

fn infer_srid(binding: &mut Binding<'_>) -> Inferred {
    takes_geometry(binding, "srid")?;
    binding.nullable = true;
    binding.column = of_length(TypeKind::Int, 10, false);
    Ok(())
}

fn infer_x(binding: &mut Binding<'_>) -> Inferred {
    takes_geometry(binding, "st_x")?;
    binding.nullable = true;
    double(binding)
}

fn infer_y(binding: &mut Binding<'_>) -> Inferred {
    takes_geometry(binding, "st_y")?;
    binding.nullable = true;
    double(binding)
}

fn infer_type(binding: &mut Binding<'_>) -> Inferred {
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

fn from_text(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let text = some!(args[0].to_text(&bound.args[0]));
    stored(geometry::from_text(&text, srid_of(args, context)))
}

/// A stored geometry is read as its binary form, without its first four bytes.
fn from_wkb(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let bytes = some!(bytes(args));
    if bound.args[0].kind == TypeKind::Geometry {
        return Ok(Value::bytes(bytes));
    }
    stored(geometry::from_wkb(bytes, srid_of(args, context)))
}

fn point(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let x = some!(args[0].to_f64(context.warnings));
    let y = some!(args[1].to_f64(context.warnings));
    stored(Some(geometry::point(x, y)))
}

fn as_text(_: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    stored(geometry::to_text(some!(bytes(args))))
}

fn as_wkb(_: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    let (_, wkb) = some!(geometry::wkb(some!(bytes(args))));
    Ok(Value::bytes(wkb))
}

fn srid(_: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    let srid = some!(geometry::srid(some!(bytes(args))));
    Ok(Value::Int(i64::from(srid)))
}

fn x(_: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    let (x, _) = some!(geometry::coordinates(some!(bytes(args))));
    Ok(Value::Double(x))
}

fn y(_: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    let (_, y) = some!(geometry::coordinates(some!(bytes(args))));
    Ok(Value::Double(y))
}

fn type_name(_: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    let (kind, _) = some!(geometry::wkb(some!(bytes(args))));
    Ok(Value::bytes(kind.name().to_uppercase()))
}
