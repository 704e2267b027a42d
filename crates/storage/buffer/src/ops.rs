//! Operations that belong to the pool itself, kinds 0 to 15 of the log.
//!
//! Layout: `docs/formats/page_op.md`. All other operations on pages are
//! [`format::page_op::PageOp`]. Kinds without a page that are not here are notes, which recovery
//! passes to the engine in order.

use format::log::{LogOp, OpKind};
use format::page_bytes::PageBytesMut;
use format::page_op::PageOp;
use format::{Lsn, PageHeader, PageId, PageSize, PageType, SpaceId, codec};

/// Makes an empty page, whatever was there. The payload is type and size class.
pub const PAGE_CREATE: OpKind = OpKind(1);
/// Changes the type of a page. The payload is the type.
pub const PAGE_TYPE: OpKind = OpKind(2);
/// A tablespace is dropped, and its file may be gone. On no page; the payload is the id.
pub const SPACE_DROP: OpKind = OpKind(3);

/// Offset of the type in a page's header.
const TYPE_AT: usize = 24;

/// Why an operation of the log cannot be redone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpError {
    /// A kind that this program does not know.
    #[error("operation {0} is not known")]
    Kind(u8),
    /// The payload is not one of the kind.
    #[error("the operation's payload makes no sense")]
    Payload,
    /// The operation does not fit the page.
    #[error("{0}")]
    Change(#[from] format::slotted::ChangeError),
}

pub(crate) fn create_payload(page_type: PageType, size: PageSize) -> [u8; 2] {
    [page_type.code(), size.class()]
}

pub(crate) fn drop_payload(space: SpaceId) -> [u8; 4] {
    space.0.to_le_bytes()
}

pub(crate) fn dropped_space(op: &LogOp<'_>) -> Option<SpaceId> {
    let id = (op.kind == SPACE_DROP).then(|| codec::u32_at(op.payload, 0))?;
    id.map(SpaceId)
}

/// Makes `page` an empty page.
pub(crate) fn create<P: PageBytesMut + ?Sized>(
    page: &mut P,
    id: PageId,
    page_type: PageType,
    size: PageSize,
) {
    page.clear(0, size.bytes())
        .expect("a page is as long as its size says");
    PageHeader {
        lsn: Lsn::ZERO,
        id,
        page_type,
        size,
        epoch: 0,
    }
    .encode(page);
}

pub(crate) fn set_type<P: PageBytesMut + ?Sized>(page: &mut P, page_type: PageType) {
    page.put(TYPE_AT, &[page_type.code()])
        .expect("a page has a header");
}

/// Redoes an operation of the log on one of its pages.
pub(crate) fn redo(op: &LogOp<'_>, which: usize, page: &mut [u8]) -> Result<(), OpError> {
    let id = *op.pages().get(which).ok_or(OpError::Payload)?;
    match op.kind {
        PAGE_CREATE => {
            let [code, class] = codec::array_at(op.payload, 0).ok_or(OpError::Payload)?;
            let page_type = PageType::from_code(code).ok_or(OpError::Payload)?;
            let size = PageSize::from_class(class).ok_or(OpError::Payload)?;
            if size.bytes() != page.len() {
                return Err(OpError::Payload);
            }
            create(page, id, page_type, size);
            Ok(())
        }
        PAGE_TYPE => {
            let [code] = codec::array_at(op.payload, 0).ok_or(OpError::Payload)?;
            set_type(page, PageType::from_code(code).ok_or(OpError::Payload)?);
            Ok(())
        }
        kind => {
            let op = PageOp::decode(kind, op.payload).ok_or(OpError::Kind(kind.0))?;
            Ok(op.map_err(|_| OpError::Payload)?.apply(which, page)?)
        }
    }
}
