//! Bytes from which values are read: JSON texts, and keys of indexes. A value read back from a key
//! must have that key.

use std::convert::Infallible;

use value::key::KeyPart;
use value::{Charset, CollationId, ColumnType, TypeKind, json};

use crate::choices::Choices;

const CHARSETS: [Charset; 5] = [
    Charset::Utf8mb4,
    Charset::Utf8mb3,
    Charset::Latin1,
    Charset::Ascii,
    Charset::Binary,
];

pub(crate) fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    match choices.below(2) {
        0 => json_text(CHARSETS[choices.below(CHARSETS.len())], choices.rest()),
        _ => key(&mut choices),
    }
}

fn json_text(charset: Charset, text: &[u8]) {
    let told = std::cell::Cell::new(0);
    let spend = |bytes: usize| -> Result<(), Infallible> {
        told.set(told.get() + bytes);
        Ok(())
    };
    let Ok(fault) = json::fault_of(text, charset, &spend);
    assert!(told.get() <= text.len(), "work that was not done");
    if let Some(fault) = fault {
        assert!(fault.position <= text.len(), "{fault} is behind the text");
    }
}

fn key(choices: &mut Choices<'_>) {
    let kinds = [
        ColumnType::new(TypeKind::TinyInt),
        ColumnType::new(TypeKind::MediumInt),
        ColumnType::new(TypeKind::BigInt),
        ColumnType::unsigned(TypeKind::SmallInt),
        ColumnType::unsigned(TypeKind::BigInt),
        ColumnType::new(TypeKind::Year),
        ColumnType::new(TypeKind::Bit),
        ColumnType::new(TypeKind::Date),
        ColumnType::temporal(TypeKind::Time, 6),
        ColumnType::temporal(TypeKind::DateTime, 0),
        ColumnType::temporal(TypeKind::Timestamp, 6),
        ColumnType::new(TypeKind::Double),
        ColumnType::varchar(9, CollationId::UTF8MB4_GENERAL_CI),
    ];
    let kind = kinds[choices.below(kinds.len())].clone();
    let part = KeyPart::whole(kind, choices.below(2) == 1);
    let key = choices.rest();
    let mut rest = key;
    if let Some(value) = part.take(&mut rest) {
        let mut again = Vec::new();
        part.append(value, &mut again);
        again.extend_from_slice(rest);
        assert_eq!(again, key, "{value:?} of {part:?}");
    }
}
