//! The encoding of a dictionary entry: a table's definition and where its trees are.
//!
//! Layout: `docs/formats/dictionary.md`. An entry begins with its format's version; a reader
//! refuses versions that it does not know. Strings and lists carry their length.

use format::codec::{Reader, Truncated};
use format::{IndexId, PageNo, SpaceId};
use store::{
    ColumnDefault, ColumnDefinition, IndexDefinition, IndexPart, TableDefinition, TableId,
    TableName, Uniqueness,
};
use value::{CollationId, ColumnType, Date, DateTime, Decimal, Time, TypeKind, Value};

use super::{Entry, StatisticsEntry, TableEntry, TreePlace};
use crate::schema::statistics::IndexStatistics;

/// The format version without JSON columns. An entry is written in the lowest version that can hold
/// it, so that an older server refuses no more than it must.
const VERSION_PLAIN: u16 = 1;
/// The version in which a column says whether it is JSON.
const VERSION_JSON: u16 = 2;
/// The version in which rows may be kept by a unique key.
const VERSION_CLUSTERED: u16 = 3;

const TAG_TABLE: u8 = 1;
const TAG_DATABASE: u8 = 2;
const TAG_STATISTICS: u8 = 3;

/// Bytes of an entry.
pub(crate) fn encode(entry: &Entry) -> Vec<u8> {
    let version = match entry {
        Entry::Table(table) => version_of(&table.definition),
        Entry::Statistics(_) | Entry::Database { .. } => VERSION_PLAIN,
    };
    let mut out = version.to_le_bytes().to_vec();
    match entry {
        Entry::Table(table) => {
            out.push(TAG_TABLE);
            put_table(&mut out, table, version);
        }
        Entry::Statistics(statistics) => {
            out.push(TAG_STATISTICS);
            put_statistics(&mut out, statistics);
        }
        Entry::Database { name, collation } => {
            out.push(TAG_DATABASE);
            put_text(&mut out, name);
            out.extend_from_slice(&collation.id().to_le_bytes());
        }
    }
    debug_assert!(
        decode(&out).is_ok_and(|read| read == *entry),
        "what is written is read back"
    );
    out
}

/// The lowest version that can hold a definition.
fn version_of(definition: &TableDefinition) -> u16 {
    let mut indexes = definition.indexes.iter();
    if indexes.any(|index| index.uniqueness == Uniqueness::Clustered) {
        VERSION_CLUSTERED
    } else if definition.columns.iter().any(|column| column.is_json) {
        VERSION_JSON
    } else {
        VERSION_PLAIN
    }
}

/// Decodes an entry. Returns `Truncated` if the bytes are of another version or damaged.
pub(crate) fn decode(bytes: &[u8]) -> Result<Entry, Truncated> {
    let mut from = Reader::new(bytes);
    let version = from.u16()?;
    if !(VERSION_PLAIN..=VERSION_CLUSTERED).contains(&version) {
        return Err(Truncated);
    }
    match from.u8()? {
        TAG_TABLE => take_table(&mut from, version).map(Entry::Table),
        TAG_DATABASE => {
            let name = take_text(&mut from)?;
            Ok(Entry::Database {
                name,
                collation: take_collation(&mut from)?,
            })
        }
        TAG_STATISTICS => take_statistics(&mut from).map(Entry::Statistics),
        _ => Err(Truncated),
    }
}

fn put_statistics(out: &mut Vec<u8>, statistics: &StatisticsEntry) {
    out.extend_from_slice(&statistics.table.0.to_le_bytes());
    out.extend_from_slice(&statistics.rows.to_le_bytes());
    put_count(out, statistics.indexes.len());
    for index in &statistics.indexes {
        out.extend_from_slice(&index.index.0.to_le_bytes());
        out.extend_from_slice(&index.leaves.to_le_bytes());
        put_count(out, index.distinct.len());
        for distinct in &index.distinct {
            out.extend_from_slice(&distinct.to_le_bytes());
        }
    }
}

fn take_statistics(from: &mut Reader<'_>) -> Result<StatisticsEntry, Truncated> {
    Ok(StatisticsEntry {
        table: TableId(from.u64()?),
        rows: from.u64()?,
        indexes: take_list(from, |from| {
            Ok(IndexStatistics {
                index: IndexId(from.u64()?),
                leaves: from.u64()?,
                distinct: take_list(from, |from| from.u64())?,
            })
        })?,
    })
}

fn put_table(out: &mut Vec<u8>, table: &TableEntry, entry_version: u16) {
    out.extend_from_slice(&table.space.0.to_le_bytes());
    put_count(out, table.trees.len());
    for tree in &table.trees {
        out.extend_from_slice(&tree.index.0.to_le_bytes());
        out.extend_from_slice(&tree.root.0.to_le_bytes());
    }
    let definition = &table.definition;
    out.extend_from_slice(&definition.id.0.to_le_bytes());
    out.extend_from_slice(&definition.version.to_le_bytes());
    put_text(out, &definition.name.database);
    put_text(out, &definition.name.table);
    put_count(out, definition.columns.len());
    definition
        .columns
        .iter()
        .for_each(|column| put_column(out, column, entry_version));
    put_count(out, definition.indexes.len());
    definition
        .indexes
        .iter()
        .for_each(|index| put_index(out, index));
    out.extend_from_slice(&definition.collation.id().to_le_bytes());
    out.extend_from_slice(&definition.auto_increment_start.to_le_bytes());
    put_text(out, &definition.comment);
    put_count(out, definition.options.len());
    for (name, value) in &definition.options {
        put_text(out, name);
        put_text(out, value);
    }
    out.extend_from_slice(&definition.created_us.to_le_bytes());
    put_option(out, definition.view.as_deref(), put_text);
}

fn take_table(from: &mut Reader<'_>, entry_version: u16) -> Result<TableEntry, Truncated> {
    let space = SpaceId(from.u32()?);
    let trees = take_list(from, |from| {
        Ok(TreePlace {
            index: IndexId(from.u64()?),
            root: PageNo(from.u32()?),
        })
    })?;
    let id = TableId(from.u64()?);
    let version = from.u64()?;
    let name = TableName {
        database: take_text(from)?,
        table: take_text(from)?,
    };
    let definition = TableDefinition {
        id,
        version,
        name,
        columns: take_list(from, |from| take_column(from, entry_version))?,
        indexes: take_list(from, |from| take_index(from, entry_version))?,
        collation: take_collation(from)?,
        auto_increment_start: from.u64()?,
        comment: take_text(from)?,
        options: take_list(from, |from| Ok((take_text(from)?, take_text(from)?)))?,
        created_us: from.u64()?,
        view: take_option(from, take_text)?,
    };
    Ok(TableEntry {
        definition: definition.into(),
        space,
        trees,
    })
}

fn put_column(out: &mut Vec<u8>, column: &ColumnDefinition, entry_version: u16) {
    put_text(out, &column.name);
    put_type(out, &column.column_type);
    let flags = [
        column.nullable,
        column.on_update_now,
        column.auto_increment,
        column.invisible,
    ];
    out.extend(flags.map(u8::from));
    if VERSION_JSON <= entry_version {
        out.push(u8::from(column.is_json));
    }
    match &column.default {
        ColumnDefault::None => out.push(0),
        ColumnDefault::Value(value) => {
            out.push(1);
            put_value(out, value);
        }
        ColumnDefault::Now => out.push(2),
        ColumnDefault::Expression(text) => {
            out.push(3);
            put_text(out, text);
        }
    }
    put_text(out, &column.comment);
}

fn take_column(from: &mut Reader<'_>, entry_version: u16) -> Result<ColumnDefinition, Truncated> {
    let name = take_text(from)?;
    let column_type = take_type(from)?;
    let [nullable, on_update_now, auto_increment, invisible] =
        from.array::<4>()?.map(|flag| flag != 0);
    let is_json = VERSION_JSON <= entry_version && from.u8()? != 0;
    let default = match from.u8()? {
        0 => ColumnDefault::None,
        1 => ColumnDefault::Value(take_value(from)?),
        2 => ColumnDefault::Now,
        3 => ColumnDefault::Expression(take_text(from)?),
        _ => return Err(Truncated),
    };
    let comment = take_text(from)?;
    Ok(ColumnDefinition {
        name,
        column_type,
        nullable,
        default,
        on_update_now,
        auto_increment,
        invisible,
        is_json,
        comment,
    })
}

fn put_type(out: &mut Vec<u8>, column_type: &ColumnType) {
    out.push(column_type.kind.number());
    out.push(u8::from(column_type.unsigned));
    out.push(u8::from(column_type.zerofill));
    out.extend_from_slice(&column_type.length.to_le_bytes());
    out.push(column_type.decimals);
    out.extend_from_slice(&column_type.collation.id().to_le_bytes());
    put_option(
        out,
        column_type.members.as_deref(),
        |out, members: &[Box<[u8]>]| {
            put_count(out, members.len());
            members.iter().for_each(|member| put_bytes(out, member));
        },
    );
}

fn take_type(from: &mut Reader<'_>) -> Result<ColumnType, Truncated> {
    let kind = TypeKind::from_number(from.u8()?).ok_or(Truncated)?;
    let mut column_type = ColumnType::new(kind);
    column_type.unsigned = from.u8()? != 0;
    column_type.zerofill = from.u8()? != 0;
    column_type.length = from.u32()?;
    column_type.decimals = from.u8()?;
    column_type.collation = take_collation(from)?;
    let members = take_option(from, |from| {
        take_list(from, |from| Ok(take_bytes(from)?.into()))
    })?;
    column_type.members = members.map(Into::into);
    Ok(column_type)
}

fn put_index(out: &mut Vec<u8>, index: &IndexDefinition) {
    put_text(out, &index.name);
    out.push(match index.uniqueness {
        Uniqueness::Primary => 1,
        Uniqueness::Unique => 2,
        Uniqueness::None => 3,
        Uniqueness::Clustered => 4,
    });
    put_count(out, index.parts.len());
    for part in &index.parts {
        put_count(out, part.column);
        out.extend_from_slice(&part.prefix_length.unwrap_or(u32::MAX).to_le_bytes());
    }
    put_text(out, &index.comment);
}

fn take_index(from: &mut Reader<'_>, entry_version: u16) -> Result<IndexDefinition, Truncated> {
    let name = take_text(from)?;
    let uniqueness = match from.u8()? {
        1 => Uniqueness::Primary,
        2 => Uniqueness::Unique,
        3 => Uniqueness::None,
        4 if VERSION_CLUSTERED <= entry_version => Uniqueness::Clustered,
        _ => return Err(Truncated),
    };
    let parts = take_list(from, |from| {
        let column = take_count(from)?;
        let prefix_length = Some(from.u32()?).filter(|length| *length != u32::MAX);
        Ok(IndexPart {
            column,
            prefix_length,
        })
    })?;
    Ok(IndexDefinition {
        name,
        uniqueness,
        parts,
        comment: take_text(from)?,
    })
}

fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.push(0),
        Value::Int(number) => put_tagged(out, 1, &number.to_le_bytes()),
        Value::UInt(number) => put_tagged(out, 2, &number.to_le_bytes()),
        Value::Float(number) => put_tagged(out, 3, &number.to_le_bytes()),
        Value::Double(number) => put_tagged(out, 4, &number.to_le_bytes()),
        Value::Decimal(number) => {
            out.push(5);
            put_text(out, &number.to_string());
        }
        Value::Bytes(bytes) => {
            out.push(6);
            put_bytes(out, bytes);
        }
        Value::Date(date) => put_tagged(out, 7, &date.packed().to_le_bytes()),
        Value::Time(time) => put_tagged(out, 8, &time.micros().to_le_bytes()),
        Value::DateTime(time) => put_tagged(out, 9, &time.packed().to_le_bytes()),
    }
}

fn take_value(from: &mut Reader<'_>) -> Result<Value, Truncated> {
    Ok(match from.u8()? {
        0 => Value::Null,
        1 => Value::Int(i64::from_le_bytes(from.array()?)),
        2 => Value::UInt(from.u64()?),
        3 => Value::Float(f32::from_le_bytes(from.array()?)),
        4 => Value::Double(f64::from_le_bytes(from.array()?)),
        5 => Value::Decimal(take_text(from)?.parse::<Decimal>().map_err(|_| Truncated)?),
        6 => Value::Bytes(take_bytes(from)?.to_vec()),
        7 => Value::Date(Date::from_packed(from.u32()?).ok_or(Truncated)?),
        8 => Value::Time(Time::from_micros(i64::from_le_bytes(from.array()?))),
        9 => Value::DateTime(DateTime::from_packed(from.u64()?).ok_or(Truncated)?),
        _ => return Err(Truncated),
    })
}

fn put_tagged(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    out.extend_from_slice(bytes);
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).expect("a definition has less than 2^32 parts");
    out.extend_from_slice(&count.to_le_bytes());
}

fn take_count(from: &mut Reader<'_>) -> Result<usize, Truncated> {
    usize::try_from(from.u32()?).map_err(|_| Truncated)
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn take_bytes<'a>(from: &mut Reader<'a>) -> Result<&'a [u8], Truncated> {
    let length = take_count(from)?;
    from.bytes(length)
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, text.as_bytes());
}

fn take_text(from: &mut Reader<'_>) -> Result<String, Truncated> {
    String::from_utf8(take_bytes(from)?.to_vec()).map_err(|_| Truncated)
}

fn take_collation(from: &mut Reader<'_>) -> Result<CollationId, Truncated> {
    CollationId::from_id(from.u16()?).ok_or(Truncated)
}

fn take_list<T>(
    from: &mut Reader<'_>,
    take: impl Fn(&mut Reader<'_>) -> Result<T, Truncated>,
) -> Result<Vec<T>, Truncated> {
    let count = take_count(from)?;
    (0..count).map(|_| take(from)).collect()
}

fn put_option<T: ?Sized>(out: &mut Vec<u8>, value: Option<&T>, put: impl Fn(&mut Vec<u8>, &T)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

fn take_option<T>(
    from: &mut Reader<'_>,
    take: impl Fn(&mut Reader<'_>) -> Result<T, Truncated>,
) -> Result<Option<T>, Truncated> {
    match from.u8()? {
        0 => Ok(None),
        _ => take(from).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use testkit::definitions::{column, table};

    use super::*;

    fn entry(is_json: bool) -> Entry {
        let text = ColumnType::text(TypeKind::LongText, u32::MAX, CollationId::UTF8MB4_BIN);
        let mut text = column("j", text, true);
        text.is_json = is_json;
        let columns = vec![column("id", ColumnType::new(TypeKind::Int), false), text];
        Entry::Table(TableEntry {
            definition: Arc::new(table("t", columns, Vec::new())),
            space: SpaceId(7),
            trees: Vec::new(),
        })
    }

    /// The layout of `docs/formats/statistics.md`.
    #[test]
    fn statistics_are_a_row_of_fixed_numbers_and_lists() {
        let entry = Entry::Statistics(StatisticsEntry {
            table: TableId(0x0102),
            rows: 0x0304,
            indexes: vec![IndexStatistics {
                index: IndexId(5),
                leaves: 6,
                distinct: vec![7, 8],
            }],
        });
        assert_eq!(entry.key(), b"s\0\0\0\0\0\0\x01\x02");
        let mut bytes = vec![1, 0, 3];
        let mut put = |number: u64| bytes.extend(number.to_le_bytes());
        put(0x0102);
        put(0x0304);
        bytes.extend(1_u32.to_le_bytes());
        let mut put = |number: u64| bytes.extend(number.to_le_bytes());
        put(5);
        put(6);
        bytes.extend(2_u32.to_le_bytes());
        bytes.extend([7_u64.to_le_bytes(), 8_u64.to_le_bytes()].concat());
        assert_eq!(encode(&entry), bytes);
        assert_eq!(decode(&bytes), Ok(entry));
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err(), "cut at {length}");
        }
    }

    #[test]
    fn an_entry_has_the_lowest_version_that_says_all_of_it() {
        for (is_json, version) in [(false, VERSION_PLAIN), (true, VERSION_JSON)] {
            let entry = entry(is_json);
            let bytes = encode(&entry);
            assert_eq!(bytes[..2], version.to_le_bytes());
            assert_eq!(decode(&bytes), Ok(entry));
        }
        let mut newer = encode(&entry(true));
        newer[0] = 4;
        assert_eq!(decode(&newer), Err(Truncated));
    }

    #[test]
    fn a_column_of_version_1_has_four_flags_and_one_of_version_2_five() {
        let [plain, json] = [false, true].map(|is_json| encode(&entry(is_json)));
        // One flag for each of the two columns: whether it is JSON.
        assert_eq!(plain.len() + 2, json.len());
    }

    #[test]
    fn a_key_that_rows_are_kept_by_without_being_primary_needs_the_third_version() {
        let entry = |uniqueness| {
            let column = column("id", ColumnType::new(TypeKind::Int), false);
            let key = testkit::definitions::index("k", uniqueness, &[0]);
            Entry::Table(TableEntry {
                definition: Arc::new(table("t", vec![column], vec![key])),
                space: SpaceId(7),
                trees: Vec::new(),
            })
        };
        let unique = encode(&entry(Uniqueness::Unique));
        let clustered = encode(&entry(Uniqueness::Clustered));
        assert_eq!([unique[0], clustered[0]], [1, 3]);
        assert_eq!(decode(&clustered), Ok(entry(Uniqueness::Clustered)));
        let mut early = clustered;
        early[0] = 2;
        assert_eq!(decode(&early), Err(Truncated), "no such key was known then");
    }
}
