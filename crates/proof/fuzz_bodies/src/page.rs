//! Pages and their contents: any bytes are read without harm, any change of them is refused or
//! made, and what is decoded encodes to the same bytes.

use format::codec::Reader;
use format::log::{LogOp, OpKind};
use format::page_op::PageOp;
use format::row::RowLayout;
use format::row_header::{EntryHeader, LobReference, RowHeader};
use format::slotted::{self, TreePage, TreePageShape};
use format::undo::{self, PurgeItem, UndoRecord};
use format::{PageHeader, PageId, PageSize, page};
use value::{ColumnType, TypeKind, Value, ValueRef};

use crate::choices::Choices;

/// The smallest pages reach every branch soonest.
const PAGE_BYTES: usize = PageSize::KiB4.bytes();

pub(crate) fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    let kind = choices.u8();
    match kind % 6 {
        0 => {
            let page = page_of(choices.rest());
            read_tree_page(&page, b"some key");
            read_undo_page(&page);
            header(page);
        }
        1 => changes(page_of(choices.long()), choices),
        2 => changes(tree_page(&mut choices), choices),
        3 => undo_record(choices.rest()),
        4 => row(choices),
        _ => headers(choices.rest()),
    }
}

/// The bytes as a page, padded with zeroes.
fn page_of(bytes: &[u8]) -> Vec<u8> {
    let mut page = bytes.to_vec();
    page.resize(PAGE_BYTES, 0);
    page
}

fn tree_page(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut page = page_of(&[]);
    let level = choices.u8() % 3;
    let (lower, upper) = (choices.short(), choices.short());
    let shape = TreePageShape {
        level,
        index_id: 7,
        lower,
        upper: (lower < upper).then_some(upper),
    };
    slotted::init(page.as_mut_slice(), shape).expect("two fences of 255 bytes fit");
    slotted::verify(&page).expect("an empty page is sound");
    page
}

/// Applies operations, one after the other, as redo would.
fn changes(mut page: Vec<u8>, mut choices: Choices<'_>) {
    while !choices.is_empty() {
        let kind = OpKind(32 + choices.u8() % 13);
        let payload = choices.short();
        let Some(Ok(op)) = PageOp::decode(kind, payload) else {
            continue;
        };
        let mut encoded = Vec::new();
        op.encode(&mut encoded);
        let again = PageOp::decode(kind, &encoded);
        assert_eq!(again, Some(Ok(op)), "what is encoded decodes to the same");
        let which = usize::from(choices.u8() & 1);
        // A change that does not fit the page is an error; redo reports it.
        let _ = op.apply(which, page.as_mut_slice());
        read_tree_page(&page, payload);
    }
    read_undo_page(&page);
}

fn read_tree_page(page: &[u8], key: &[u8]) {
    let is_sound = slotted::verify(page).is_ok();
    let Some(view) = TreePage::new(page) else {
        return;
    };
    let mut out = Vec::new();
    let _ = (view.level(), view.index_id(), view.free_bytes());
    let _ = (view.append_lower(&mut out), view.append_upper(&mut out));
    let _ = (view.covers(key), view.search(key), view.search_child(key));
    let _ = view.cell_cost(key.len(), 9);
    for slot in 0..view.slot_count().unwrap_or(0) {
        let parts = (
            view.append_key(slot, &mut out),
            view.append_payload(slot, &mut out),
        );
        let _ = (view.child(slot), view.slot_cost(slot));
        if is_sound {
            assert_eq!(parts, (Some(()), Some(())), "a sound page can be read");
        }
        out.clear();
    }
    let count = view.slot_count().unwrap_or(0);
    if slotted::append_cells(view, 0..count, &mut out).is_some() {
        let mut rest = out.as_slice();
        while let Some((_, _, behind)) = slotted::next_cell(rest) {
            assert!(behind.len() < rest.len());
            rest = behind;
        }
    }
}

fn read_undo_page(page: &[u8]) {
    let _ = (undo::used(page), undo::next_page(page));
    let mut record = Vec::new();
    for offset in 0..page.len() {
        if undo::copy_record(page, offset, &mut record).is_some() {
            let _ = UndoRecord::decode(&record);
        }
    }
}

fn undo_record(bytes: &[u8]) {
    assert!(PurgeItem::list(bytes).count() <= bytes.len());
    let Some(record) = UndoRecord::decode(bytes) else {
        return;
    };
    let mut encoded = Vec::new();
    record.encode(&mut encoded);
    assert_eq!(UndoRecord::decode(&encoded), Some(record));
    let mut body = bytes.to_vec();
    let length = body.len();
    if record.restore(&mut body).is_some() {
        let removed = usize::from(record.inserted_length);
        assert_eq!(body.len(), length - removed + record.removed.len());
    }
}

fn header(mut page: Vec<u8>) {
    let Ok(header) = PageHeader::decode(&page) else {
        return;
    };
    let size = header.size;
    page.resize(size.bytes(), 0);
    let _ = page::verify(&page, header.id, size);
    page::seal(&mut page);
    assert_eq!(page::verify(&page, header.id, size), Ok(header));
    header.encode(page.as_mut_slice());
    page::seal(&mut page);
    assert_eq!(page::verify(&page, header.id, size), Ok(header));
    let other = PageId::from_word(header.id.to_word() ^ 1);
    assert!(page::verify(&page, other, size).is_err());
}

fn row(mut choices: Choices<'_>) {
    let kinds = choices.short().iter().take(40);
    let columns: Vec<ColumnType> = kinds.map(|byte| column(*byte)).collect();
    let layout = RowLayout::new(&columns);
    let row = choices.rest();
    let is_sound = layout.verify(row);
    let values: Result<Vec<ValueRef<'_>>, _> = (0..columns.len())
        .map(|column| layout.column(row, column))
        .collect();
    assert!(!is_sound || values.is_ok(), "a sound row can be read");
    let Ok(values) = values else {
        return;
    };
    let mut encoded = Vec::new();
    if layout.encode(&values, &mut encoded).is_ok() {
        assert!(layout.verify(&encoded));
        for (column, value) in values.iter().enumerate() {
            let again = layout.column(&encoded, column).expect("just written");
            assert_eq!(text(again), text(*value));
        }
    }
}

/// NaN is unequal to itself; its text is not.
fn text(value: ValueRef<'_>) -> String {
    format!("{:?}", Value::from(value))
}

fn column(byte: u8) -> ColumnType {
    let kinds = TypeKind::ALL;
    let mut column = ColumnType::new(kinds[usize::from(byte) % kinds.len()]);
    column.unsigned = byte & 0x80 != 0;
    column
}

fn headers(bytes: &[u8]) {
    if let Some((header, rest)) = RowHeader::split(bytes) {
        assert_eq!(RowHeader::split(&header.encode()), Some((header, &[][..])));
        assert!(rest.len() < bytes.len());
    }
    if let Some(entry) = EntryHeader::decode(bytes) {
        let _ = entry.is_live();
        let again = EntryHeader::decode(&entry.encode());
        assert_eq!(again, Some(entry));
    }
    if let Ok(lob) = LobReference::decode(bytes) {
        assert_eq!(LobReference::decode(&lob.encode()), Ok(lob));
    }
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let Ok(op) = LogOp::decode(&mut reader) else {
            return;
        };
        let mut encoded = Vec::new();
        op.encode(&mut encoded);
        assert_eq!(encoded.len(), op.encoded_bytes());
    }
}
