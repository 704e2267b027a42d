//! The maximum length of keys, and what happens to longer ones. A non-unique index covers only the
//! first characters of a column, with a note; all other long keys are errors. (MariaDB hashes such
//! columns in unique indexes.)

use errcode::{ClientError, ER_BLOB_KEY_WITHOUT_LENGTH, ER_TOO_LONG_KEY};
use store::{ColumnDefinition, IndexPart, TableDefinition, Uniqueness};
use value::TypeKind;

use crate::define::Defined;

/// Bytes of a key (InnoDB's limit).
const KEY_BYTES_MAX: usize = 3072;

/// Fits the indexes to their columns and to the maximum length of keys. Returns the notes.
pub(crate) fn fit_keys(definition: &mut TableDefinition) -> Defined<Vec<ClientError>> {
    let columns = &definition.columns;
    let mut notes = Vec::new();
    for index in &mut definition.indexes {
        let is_plain = index.uniqueness == Uniqueness::None;
        let mut key_bytes = 0;
        for part in &mut index.parts {
            let column = &columns[part.column];
            fit_prefix(part, column, is_plain)?;
            let mut bytes = part_bytes(part, column);
            if KEY_BYTES_MAX < bytes && is_plain {
                let chars = KEY_BYTES_MAX / column.column_type.collation.char_bytes_max();
                part.prefix_length = u32::try_from(chars).ok();
                bytes = part_bytes(part, column);
                notes.push(too_long());
            }
            key_bytes += bytes;
        }
        if KEY_BYTES_MAX < key_bytes {
            return Err(too_long());
        }
    }
    Ok(notes)
}

fn too_long() -> ClientError {
    ClientError::new(ER_TOO_LONG_KEY, &[&KEY_BYTES_MAX])
}

/// A prefix is kept only if the column is longer, and always for a BLOB or TEXT.
fn fit_prefix(part: &mut IndexPart, column: &ColumnDefinition, is_plain: bool) -> Defined<()> {
    let column_type = &column.column_type;
    let kind = column_type.kind;
    if kind == TypeKind::Geometry {
        return Err(ClientError::not_supported(&"index of a geometry column"));
    }
    if !kind.is_blob() {
        let is_shorter = |chars: &u32| kind.is_bytes() && *chars < column_type.length;
        part.prefix_length = part.prefix_length.filter(is_shorter);
        return Ok(());
    }
    if part.prefix_length.is_none() {
        if !is_plain {
            let code = ER_BLOB_KEY_WITHOUT_LENGTH;
            return Err(ClientError::new(code, &[&column.name]));
        }
        part.prefix_length = Some(column_type.length);
    }
    Ok(())
}

fn part_bytes(part: &IndexPart, column: &ColumnDefinition) -> usize {
    let column_type = &column.column_type;
    match part.prefix_length {
        Some(chars) => stdx::to_usize(chars) * column_type.collation.char_bytes_max(),
        None => column_type.byte_length_max(),
    }
}
