//! From the tree of a definition to the definition: types, keys, limits, and MySQL's errors.
//!
//! Pure except for defaults, whose expressions the caller has evaluated.

mod key_length;

use std::collections::HashMap;

use builtin::Function;
use errcode::{
    ClientError, ER_COLLATION_CHARSET_MISMATCH, ER_DUP_FIELDNAME, ER_DUP_KEYNAME,
    ER_DUPLICATED_VALUE_IN_TYPE, ER_KEY_COLUMN_DOES_NOT_EXIST, ER_M_BIGGER_THAN_D,
    ER_MULTIPLE_PRI_KEY, ER_TABLE_MUST_HAVE_COLUMNS, ER_TOO_BIG_DISPLAYWIDTH,
    ER_TOO_BIG_FIELDLENGTH, ER_TOO_BIG_PRECISION, ER_TOO_BIG_SCALE, ER_TOO_BIG_SET,
    ER_TOO_LONG_FIELD_COMMENT, ER_TOO_LONG_IDENT, ER_TOO_LONG_INDEX_COMMENT,
    ER_TOO_LONG_TABLE_COMMENT, ER_TOO_MANY_FIELDS, ER_TOO_MANY_KEY_PARTS, ER_TOO_MANY_KEYS,
    ER_UNKNOWN_CHARACTER_SET, ER_UNKNOWN_COLLATION, ER_UNKNOWN_DATA_TYPE, ER_UNKNOWN_OPTION,
    ER_WRONG_AUTO_KEY, ER_WRONG_FIELD_SPEC, ER_WRONG_NAME_FOR_INDEX, ER_WRONG_SUB_KEY,
};
use store::{ColumnDefinition, IndexDefinition, IndexPart, TableDefinition, Uniqueness};
use syntax::ast::{self, DataType, ExprKind, Ident, IndexKind, TypeName};
use value::{Charset, CollationId, ColumnType, GeometryKind, TypeKind};

use crate::define::key_length::fit_keys;

/// Characters in a name (MySQL's limit).
pub(crate) const NAME_CHARS_MAX: usize = 64;
/// Columns of a table (InnoDB's limit).
pub(crate) const COLUMN_COUNT_MAX: usize = 1017;
/// Indexes of a table (MySQL's limit).
pub(crate) const INDEX_COUNT_MAX: usize = 64;
/// Columns of an index (MariaDB's limit).
pub(crate) const INDEX_PART_COUNT_MAX: usize = 32;
/// Characters of a column's comment.
pub(crate) const COLUMN_COMMENT_CHARS_MAX: usize = 1024;
/// Characters of an index's comment.
pub(crate) const INDEX_COMMENT_CHARS_MAX: usize = 1024;
/// Characters of a table's comment.
pub(crate) const TABLE_COMMENT_CHARS_MAX: usize = 2048;
/// Digits of DECIMAL.
const DECIMAL_DIGITS_MAX: u32 = 65;
/// Digits behind the point of DECIMAL. (MariaDB takes 38; the storage form holds 30.)
const DECIMAL_SCALE_MAX: u32 = 30;
/// Members of a SET.
const SET_MEMBERS_MAX: usize = 64;
/// Members of an ENUM.
const ENUM_MEMBERS_MAX: usize = 65_535;
/// Bytes of a row that count towards VARCHAR (MySQL's limit).
const VARCHAR_BYTES_MAX: u64 = 65_535;

/// What a statement defines, or the error.
pub(crate) type Defined<T> = Result<T, ClientError>;

/// A name that is not empty, not too long, and does not end with a blank.
pub(crate) fn checked_name(name: &Ident, error: errcode::ErrorCode) -> Defined<String> {
    let text = &name.text;
    if NAME_CHARS_MAX < text.chars().count() {
        return Err(ClientError::new(ER_TOO_LONG_IDENT, &[text]));
    }
    if text.is_empty() || text.ends_with(' ') {
        return Err(ClientError::new(error, &[text]));
    }
    Ok(text.clone())
}

/// The collation that a character set and a collation determine; either may be missing.
pub(crate) fn collation_of(
    charset: Option<&Ident>,
    collation: Option<&Ident>,
    default: CollationId,
) -> Defined<CollationId> {
    let charset = match charset {
        None => None,
        Some(name) => {
            let unknown = || ClientError::new(ER_UNKNOWN_CHARACTER_SET, &[&name.text]);
            Some(of_columns(
                Charset::from_name(&name.text).ok_or_else(unknown)?,
            )?)
        }
    };
    let Some(name) = collation else {
        return Ok(charset.map_or(default, Charset::default_collation));
    };
    let unknown = || ClientError::new(ER_UNKNOWN_COLLATION, &[&name.text]);
    let named = CollationId::from_name(&name.text).ok_or_else(unknown)?;
    of_columns(named.charset())?;
    match charset {
        Some(charset) if charset != named.charset() => {
            let code = ER_COLLATION_CHARSET_MISMATCH;
            Err(ClientError::new(code, &[&name.text, &charset.name()]))
        }
        _ => Ok(named),
    }
}

/// Error 1235 for a character set that only clients have.
pub(crate) fn of_columns(charset: Charset) -> Defined<Charset> {
    if charset.is_of_columns() {
        return Ok(charset);
    }
    let what = format!("columns of the character set {}", charset.name());
    Err(ClientError::not_supported(&what))
}

/// The type of a column. `table` is the table's collation.
pub(crate) fn column_type(
    name: &str,
    data_type: &DataType,
    table: CollationId,
) -> Defined<ColumnType> {
    let mut collation = collation_of(
        data_type.charset.as_ref(),
        data_type.collation.as_ref(),
        table,
    )?;
    if data_type.binary {
        collation = collation.binary_twin();
    }
    let length = data_type.length;
    let mut column = match &data_type.name {
        TypeName::Bit => bits(name, length.unwrap_or(1))?,
        TypeName::Decimal => decimal(name, length, data_type.decimals)?,
        TypeName::Float | TypeName::Double => float(name, data_type)?,
        TypeName::Char => characters(name, TypeKind::Char, length.unwrap_or(1), collation)?,
        TypeName::Varchar => {
            let length = length.ok_or_else(|| ClientError::syntax("", 1))?;
            characters(name, TypeKind::VarChar, length, collation)?
        }
        TypeName::Binary => characters(
            name,
            TypeKind::Binary,
            length.unwrap_or(1),
            CollationId::BINARY,
        )?,
        TypeName::Varbinary => {
            let length = length.ok_or_else(|| ClientError::syntax("", 1))?;
            characters(name, TypeKind::VarBinary, length, CollationId::BINARY)?
        }
        TypeName::Enum | TypeName::Set => members(name, data_type, collation)?,
        TypeName::Time | TypeName::Datetime | TypeName::Timestamp => {
            temporal(name, &data_type.name, data_type.decimals.or(length))?
        }
        TypeName::Json => ColumnType::text(TypeKind::LongText, u32::MAX, CollationId::UTF8MB4_BIN),
        TypeName::Year if length == Some(2) => ColumnType::year(2),
        TypeName::Other(other) if GeometryKind::from_name(&other.text).is_some() => {
            ColumnType::geometry(GeometryKind::from_name(&other.text).unwrap_or(GeometryKind::Any))
        }
        TypeName::Other(other) if planner::is_reference_type(&other.text) => {
            return Err(ClientError::not_supported(&other.text.to_uppercase()));
        }
        TypeName::Other(other) => {
            return Err(ClientError::new(ER_UNKNOWN_DATA_TYPE, &[&other.text]));
        }
        plain => plain_type(plain, length, collation),
    };
    column.unsigned |= data_type.unsigned || data_type.zerofill;
    column.zerofill |= data_type.zerofill;
    if column.kind.is_integer() {
        column.length = match length {
            Some(255..) => return Err(too_wide(name, 255)),
            Some(length) => length,
            None if column.unsigned => ColumnType::unsigned(column.kind).length,
            None => column.length,
        };
    }
    Ok(column)
}

fn too_wide(name: &str, limit: u32) -> ClientError {
    ClientError::new(ER_TOO_BIG_DISPLAYWIDTH, &[&name, &limit])
}

fn bits(name: &str, length: u32) -> Defined<ColumnType> {
    if 64 < length {
        return Err(too_wide(name, 64));
    }
    Ok(ColumnType {
        length: length.max(1),
        ..ColumnType::new(TypeKind::Bit)
    })
}

fn decimal(name: &str, length: Option<u32>, decimals: Option<u32>) -> Defined<ColumnType> {
    let precision = length.filter(|&length| length != 0).unwrap_or(10);
    let scale = decimals.unwrap_or(0);
    if DECIMAL_DIGITS_MAX < precision {
        let limit = DECIMAL_DIGITS_MAX;
        return Err(ClientError::new(ER_TOO_BIG_PRECISION, &[&name, &limit]));
    }
    if DECIMAL_SCALE_MAX < scale {
        let limit = DECIMAL_SCALE_MAX;
        return Err(ClientError::new(ER_TOO_BIG_SCALE, &[&name, &limit]));
    }
    if precision < scale {
        return Err(ClientError::new(ER_M_BIGGER_THAN_D, &[&name]));
    }
    let small = |number: u32| u8::try_from(number).expect("limited above");
    Ok(ColumnType::decimal(small(precision), small(scale)))
}

fn float(name: &str, data_type: &DataType) -> Defined<ColumnType> {
    let is_float = data_type.name == TypeName::Float;
    let kind = match (is_float, data_type.length, data_type.decimals) {
        // FLOAT(p) is a precision in bits and no display width.
        (true, Some(25..=53), None) => TypeKind::Double,
        (true, ..) => TypeKind::Float,
        (false, ..) => TypeKind::Double,
    };
    let mut column = ColumnType::new(kind);
    if let (Some(length), Some(decimals)) = (data_type.length, data_type.decimals) {
        if 255 < length {
            return Err(too_wide(name, 255));
        }
        if DECIMAL_SCALE_MAX < decimals {
            let limit = DECIMAL_SCALE_MAX;
            return Err(ClientError::new(ER_TOO_BIG_SCALE, &[&name, &limit]));
        }
        if length < decimals {
            return Err(ClientError::new(ER_M_BIGGER_THAN_D, &[&name]));
        }
        column.length = length;
        column.decimals = u8::try_from(decimals).expect("limited above");
    }
    Ok(column)
}

fn characters(
    name: &str,
    kind: TypeKind,
    length: u32,
    collation: CollationId,
) -> Defined<ColumnType> {
    let is_fixed = matches!(kind, TypeKind::Char | TypeKind::Binary);
    let char_bytes = u64::try_from(collation.char_bytes_max()).expect("a few bytes");
    let is_too_long = if is_fixed {
        255 < length
    } else {
        VARCHAR_BYTES_MAX < u64::from(length) * char_bytes
    };
    if is_too_long {
        let limit = if is_fixed {
            255
        } else {
            VARCHAR_BYTES_MAX / char_bytes
        };
        return Err(ClientError::new(ER_TOO_BIG_FIELDLENGTH, &[&name, &limit]));
    }
    let kind = match (kind, collation == CollationId::BINARY) {
        (TypeKind::Char, true) => TypeKind::Binary,
        (TypeKind::VarChar, true) => TypeKind::VarBinary,
        (kind, _) => kind,
    };
    Ok(ColumnType::text(kind, length, collation))
}

fn members(name: &str, data_type: &DataType, collation: CollationId) -> Defined<ColumnType> {
    let is_set = data_type.name == TypeName::Set;
    let limit = if is_set {
        SET_MEMBERS_MAX
    } else {
        ENUM_MEMBERS_MAX
    };
    if limit < data_type.members.len() {
        return Err(ClientError::new(ER_TOO_BIG_SET, &[&name]));
    }
    let kind = if is_set {
        TypeKind::Set
    } else {
        TypeKind::Enum
    };
    let to_charset = |member: &Vec<u8>| {
        let mut converted = Vec::new();
        collation
            .charset()
            .append_converted(Charset::Utf8mb4, member, &mut converted);
        while converted.last() == Some(&b' ') {
            converted.pop();
        }
        converted.into_boxed_slice()
    };
    let members: Vec<Box<[u8]>> = data_type.members.iter().map(to_charset).collect();
    let mut known = HashMap::with_capacity(members.len());
    let again = |(place, member): (usize, &[u8])| {
        let mut key = Vec::with_capacity(member.len());
        collation.append_key(member, &mut key);
        let first = *known.entry(key).or_insert(place);
        (first != place).then_some(first)
    };
    if let Some(place) = members
        .iter()
        .map(AsRef::as_ref)
        .enumerate()
        .filter_map(again)
        .min()
    {
        let shown = String::from_utf8_lossy(&data_type.members[place]).into_owned();
        let type_name = if is_set { "SET" } else { "ENUM" };
        let arguments: [&dyn std::fmt::Display; 3] = [&name, &shown, &type_name];
        return Err(ClientError::new(ER_DUPLICATED_VALUE_IN_TYPE, &arguments));
    }
    Ok(ColumnType::named(kind, members, collation))
}

fn temporal(name: &str, of: &TypeName, decimals: Option<u32>) -> Defined<ColumnType> {
    let decimals = decimals.unwrap_or(0);
    if 6 < decimals {
        return Err(ClientError::new(ER_TOO_BIG_PRECISION, &[&name, &6]));
    }
    let kind = match of {
        TypeName::Time => TypeKind::Time,
        TypeName::Timestamp => TypeKind::Timestamp,
        _ => TypeKind::DateTime,
    };
    Ok(ColumnType::temporal(
        kind,
        u8::try_from(decimals).expect("limited above"),
    ))
}

/// Types that need no check of their own.
fn plain_type(of: &TypeName, length: Option<u32>, collation: CollationId) -> ColumnType {
    let text = |kind: TypeKind, blob: TypeKind, bytes: u32| {
        if collation == CollationId::BINARY {
            return ColumnType::text(blob, bytes, collation);
        }
        ColumnType::text(kind, bytes, collation)
    };
    let blob = |kind: TypeKind| ColumnType::new(kind);
    match of {
        TypeName::TinyInt => ColumnType::new(TypeKind::TinyInt),
        TypeName::SmallInt => ColumnType::new(TypeKind::SmallInt),
        TypeName::MediumInt => ColumnType::new(TypeKind::MediumInt),
        TypeName::Int => ColumnType::new(TypeKind::Int),
        TypeName::BigInt => ColumnType::new(TypeKind::BigInt),
        TypeName::TinyText => text(TypeKind::TinyText, TypeKind::TinyBlob, 255),
        TypeName::MediumText => text(TypeKind::MediumText, TypeKind::MediumBlob, 16_777_215),
        TypeName::LongText => text(TypeKind::LongText, TypeKind::LongBlob, u32::MAX),
        TypeName::TinyBlob => blob(TypeKind::TinyBlob),
        TypeName::MediumBlob => blob(TypeKind::MediumBlob),
        TypeName::LongBlob => blob(TypeKind::LongBlob),
        TypeName::Blob => sized(length, false, collation),
        TypeName::Date => ColumnType::new(TypeKind::Date),
        TypeName::Year => ColumnType::new(TypeKind::Year),
        _ => sized(length, collation != CollationId::BINARY, collation),
    }
}

/// TEXT(n) and BLOB(n): the smallest type that holds n.
fn sized(length: Option<u32>, is_text: bool, collation: CollationId) -> ColumnType {
    let char_bytes = u32::try_from(collation.char_bytes_max()).unwrap_or(4);
    let bytes = length.map_or(65_535, |length| {
        if is_text {
            length.saturating_mul(char_bytes)
        } else {
            length
        }
    });
    let (text, blob, limit) = match bytes {
        0..=255 => (TypeKind::TinyText, TypeKind::TinyBlob, 255),
        256..=65_535 => (TypeKind::Text, TypeKind::Blob, 65_535),
        65_536..=16_777_215 => (TypeKind::MediumText, TypeKind::MediumBlob, 16_777_215),
        _ => (TypeKind::LongText, TypeKind::LongBlob, u32::MAX),
    };
    if is_text {
        ColumnType::text(text, limit, collation)
    } else {
        ColumnType::new(blob)
    }
}

/// Whether the column is JSON: by its type, or by its CHECK, as in dumps.
pub(crate) fn is_json(column: &ast::ColumnDefinition, kind: TypeKind) -> Defined<bool> {
    let Some(check) = &column.check else {
        return Ok(column.data_type.name == TypeName::Json);
    };
    let refused = || ClientError::not_supported(&"CHECK constraint");
    let ExprKind::Function(call) = &check.kind else {
        return Err(refused());
    };
    let is_own = match call.arguments.as_slice() {
        [argument] => matches!(&argument.kind, ExprKind::Column(name)
            if name.column.text.eq_ignore_ascii_case(&column.name.text)),
        _ => false,
    };
    let is_text = kind.is_bytes() && kind != TypeKind::Geometry;
    let is_plain = call.schema.is_none() && call.over.is_none() && !call.is_detached;
    if is_own && is_plain && Function::JsonValid.has_name(&call.name.text) && is_text {
        return Ok(true);
    }
    Err(refused())
}

/// Error 1911: this engine has no options of its own for columns and indexes.
pub(crate) fn no_engine_options(options: &[(Ident, String)]) -> Defined<()> {
    match options.first() {
        Some((name, _)) => Err(ClientError::new(ER_UNKNOWN_OPTION, &[&name.text])),
        None => Ok(()),
    }
}

/// An index over columns of `columns`; `taken` are the names of the other indexes.
pub(crate) fn index(
    of: &ast::IndexDefinition,
    columns: &[ColumnDefinition],
    taken: &[IndexDefinition],
) -> Defined<IndexDefinition> {
    // An index needs a name that no other has. ALTER TABLE may drop as many as it adds.
    if 2 * INDEX_COUNT_MAX <= taken.len() {
        return Err(ClientError::new(ER_TOO_MANY_KEYS, &[&INDEX_COUNT_MAX]));
    }
    let uniqueness = match of.kind {
        IndexKind::Primary => Uniqueness::Primary,
        IndexKind::Unique => Uniqueness::Unique,
        IndexKind::Plain => Uniqueness::None,
        IndexKind::Fulltext => return Err(ClientError::not_supported(&"FULLTEXT index")),
        IndexKind::Spatial => return Err(ClientError::not_supported(&"SPATIAL index")),
    };
    if let Some(refused) = &of.refused {
        return Err(ClientError::not_supported(&refused.name));
    }
    if of.options.ignored {
        return Err(ClientError::not_supported(&"IGNORED index"));
    }
    if of.options.parser.is_some() {
        return Err(ClientError::not_supported(&"WITH PARSER"));
    }
    no_engine_options(&of.options.others)?;
    if INDEX_PART_COUNT_MAX < of.parts.len() {
        return Err(ClientError::new(
            ER_TOO_MANY_KEY_PARTS,
            &[&INDEX_PART_COUNT_MAX],
        ));
    }
    let parts: Vec<_> = of
        .parts
        .iter()
        .map(|part| index_part(part, columns))
        .collect::<Defined<_>>()?;
    for (position, part) in parts.iter().enumerate() {
        if parts[..position]
            .iter()
            .any(|other| other.column == part.column)
        {
            return Err(ClientError::new(
                ER_DUP_FIELDNAME,
                &[&columns[part.column].name],
            ));
        }
    }
    let name = index_name(of, uniqueness, &columns[parts[0].column].name, taken)?;
    let comment = of.options.comment.as_deref().unwrap_or_default();
    let comment = String::from_utf8_lossy(comment).into_owned();
    if INDEX_COMMENT_CHARS_MAX < comment.chars().count() {
        let limit = INDEX_COMMENT_CHARS_MAX;
        return Err(ClientError::new(
            ER_TOO_LONG_INDEX_COMMENT,
            &[&name, &limit],
        ));
    }
    Ok(IndexDefinition {
        name,
        uniqueness,
        parts,
        comment,
    })
}

/// The name of an index: as written, or derived from its first column; error if it is taken.
fn index_name(
    of: &ast::IndexDefinition,
    uniqueness: Uniqueness,
    first_column: &str,
    taken: &[IndexDefinition],
) -> Defined<String> {
    let is_taken = |name: &str| {
        taken
            .iter()
            .any(|other| other.name.eq_ignore_ascii_case(name))
    };
    if uniqueness == Uniqueness::Primary {
        let is_first = !is_taken("PRIMARY");
        let name = is_first.then(|| "PRIMARY".to_owned());
        return name.ok_or_else(|| ClientError::new(ER_MULTIPLE_PRI_KEY, &[]));
    }
    let Some(name) = &of.name else {
        return Ok(free_name(first_column, is_taken));
    };
    let name = checked_name(name, ER_WRONG_NAME_FOR_INDEX)?;
    if name.eq_ignore_ascii_case("primary") {
        return Err(ClientError::new(ER_WRONG_NAME_FOR_INDEX, &[&name]));
    }
    if is_taken(&name) {
        return Err(ClientError::new(ER_DUP_KEYNAME, &[&name]));
    }
    Ok(name)
}

/// The column's name, with `_2`, `_3`, ... appended if it is taken.
fn free_name(column: &str, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(column) {
        return column.to_owned();
    }
    (2..)
        .map(|number| format!("{column}_{number}"))
        .find(|name| !is_taken(name))
        .expect("there are more numbers than indexes")
}

fn index_part(part: &ast::IndexPart, columns: &[ColumnDefinition]) -> Defined<IndexPart> {
    let name = &part.column.text;
    let unknown = || ClientError::new(ER_KEY_COLUMN_DOES_NOT_EXIST, &[name]);
    let position = columns
        .iter()
        .position(|column| column.name.eq_ignore_ascii_case(name))
        .ok_or_else(unknown)?;
    if part.descending {
        return Err(ClientError::not_supported(&"DESC in an index"));
    }
    let column_type = &columns[position].column_type;
    let kind = column_type.kind;
    if kind == TypeKind::Geometry {
        return Err(ClientError::not_supported(&"index of a geometry column"));
    }
    let prefix_length = match part.length {
        Some(0) => return Err(ClientError::new(errcode::ER_KEY_PART_0, &[name])),
        Some(_) if !kind.is_bytes() => return Err(ClientError::new(ER_WRONG_SUB_KEY, &[])),
        Some(length) if !kind.is_blob() && column_type.length < length => {
            return Err(ClientError::new(ER_WRONG_SUB_KEY, &[]));
        }
        Some(length) if !kind.is_blob() && column_type.length == length => None,
        Some(length) => Some(length),
        None => None,
    };
    Ok(IndexPart {
        column: position,
        prefix_length,
    })
}

/// Checks a whole definition, puts the primary key first and makes its columns NOT NULL. Returns
/// the notes.
pub(crate) fn finish(definition: &mut TableDefinition) -> Defined<Vec<ClientError>> {
    let columns = &definition.columns;
    if columns.is_empty() {
        return Err(ClientError::new(ER_TABLE_MUST_HAVE_COLUMNS, &[]));
    }
    if COLUMN_COUNT_MAX < columns.len() {
        return Err(ClientError::new(ER_TOO_MANY_FIELDS, &[]));
    }
    if INDEX_COUNT_MAX < definition.indexes.len() {
        return Err(ClientError::new(ER_TOO_MANY_KEYS, &[&INDEX_COUNT_MAX]));
    }
    for (position, column) in columns.iter().enumerate() {
        let is_same = |other: &ColumnDefinition| other.name.eq_ignore_ascii_case(&column.name);
        if columns[..position].iter().any(is_same) {
            return Err(ClientError::new(ER_DUP_FIELDNAME, &[&column.name]));
        }
        if COLUMN_COMMENT_CHARS_MAX < column.comment.chars().count() {
            let limit = COLUMN_COMMENT_CHARS_MAX;
            let code = ER_TOO_LONG_FIELD_COMMENT;
            return Err(ClientError::new(code, &[&column.name, &limit]));
        }
    }
    if TABLE_COMMENT_CHARS_MAX < definition.comment.chars().count() {
        let (name, limit) = (&definition.name.table, TABLE_COMMENT_CHARS_MAX);
        return Err(ClientError::new(ER_TOO_LONG_TABLE_COMMENT, &[name, &limit]));
    }
    order_indexes(definition);
    check_auto_increment(definition)?;
    fit_keys(definition)
}

/// The primary key's columns are NOT NULL. Indexes are in the order in which rows are checked
/// against them. That order decides which one a message names, and which row REPLACE finds first.
fn order_indexes(definition: &mut TableDefinition) {
    let columns = &mut definition.columns;
    let indexes = &mut definition.indexes;
    let is_primary = |index: &&IndexDefinition| index.uniqueness == Uniqueness::Primary;
    for part in indexes.iter().filter(is_primary).flat_map(|it| &it.parts) {
        columns[part.column].nullable = false;
    }
    indexes.sort_by_key(|index| {
        let is_unique = matches!(index.uniqueness, Uniqueness::Unique | Uniqueness::Clustered);
        let mut parts = index.parts.iter();
        let may_be_null = parts.any(|part| columns[part.column].nullable);
        let is_prefix = index.parts.iter().any(|part| part.prefix_length.is_some());
        let kind = match index.uniqueness {
            Uniqueness::Primary => 0,
            Uniqueness::Unique | Uniqueness::Clustered => 1,
            Uniqueness::None => 2,
        };
        (kind, is_unique && may_be_null, is_unique && is_prefix)
    });
}

/// At most one column has AUTO_INCREMENT, it is a number, and it begins an index.
fn check_auto_increment(definition: &TableDefinition) -> Defined<()> {
    let mut counting = definition
        .columns
        .iter()
        .enumerate()
        .filter(|(_, of)| of.auto_increment);
    let Some((position, column)) = counting.next() else {
        return Ok(());
    };
    if counting.next().is_some() {
        return Err(ClientError::new(ER_WRONG_AUTO_KEY, &[]));
    }
    let kind = column.column_type.kind;
    if !kind.is_integer() && !matches!(kind, TypeKind::Float | TypeKind::Double) {
        return Err(ClientError::new(ER_WRONG_FIELD_SPEC, &[&column.name]));
    }
    let begins = |index: &IndexDefinition| {
        index
            .parts
            .first()
            .is_some_and(|part| part.column == position)
    };
    if !definition.indexes.iter().any(begins) {
        return Err(ClientError::new(ER_WRONG_AUTO_KEY, &[]));
    }
    Ok(())
}
