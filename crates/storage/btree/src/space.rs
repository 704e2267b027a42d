//! The pages of a tablespace: which are in use, allocation and release.
//!
//! Layout: `docs/formats/space.md`. Page 0 is the header. It holds the number of pages that the
//! file has room for (`high`), and a page below which none is free (`hint`). Allocation maps hold a
//! bit for each page. Map *k* covers a stretch of as many pages as it has bits. It is the stretch's
//! second page (*k* = 0) or first page.
//!
//! (I1) A page's bit is set exactly if the page is in use, a map and the header included.
//! (I2) No page below `hint` is free. No page at or above `high` is in use.
//! (I3) Allocation latches the header, then maps upwards, then the new pages. Release latches the
//! header, then the map, after all that the caller has latched.

use std::collections::BTreeSet;

use format::page_bytes::PageBytes;
use format::page_op::PageOp;
use format::{PAGE_HEADER_BYTES, PageId, PageNo, PageType, SpaceId};
use store::Outcome;

use crate::error::damaged;
use crate::pages::{Change, Latched, Pages, apply, narrow};

/// First bytes of the header's body.
const MAGIC: u32 = 0x5053_4C50;
const MAGIC_AT: usize = PAGE_HEADER_BYTES;
const HIGH_AT: usize = PAGE_HEADER_BYTES + 4;
const HINT_AT: usize = PAGE_HEADER_BYTES + 8;
/// Where the owner of a space may keep its own facts in the header page.
pub const OWNER_AT: usize = PAGE_HEADER_BYTES + 64;

/// Pages that a new space has room for.
const FIRST_PAGES: u32 = 8;
/// Pages that a space grows by at most: 1 MiB of 16 KiB pages.
const GROWTH_PAGES_MAX: u32 = 64;

/// A map, or who leads to a page, says so of the header or of a map.
const OWN_PAGE: &str = "a page that the tablespace keeps for itself is given away";

/// Pages that one map covers.
fn pages_per_map(page_bytes: usize) -> u32 {
    u32::try_from((page_bytes - PAGE_HEADER_BYTES) * 8).expect("a page has at most 32 KiB")
}

/// The page of the map that covers `page`.
fn map_of(page: PageNo, per_map: u32) -> PageNo {
    let stretch = page.0 / per_map;
    if stretch == 0 {
        PageNo(1)
    } else {
        PageNo(stretch * per_map)
    }
}

/// Makes the header and the first map of a new space: pages 0 and 1. The file exists.
pub fn create(pages: &Pages, space: SpaceId) -> Outcome<()> {
    pages.grow(space, FIRST_PAGES)?;
    let mut change = pages.change()?;
    let header = change.create(PageId::new(space, PageNo(0)), PageType::SpaceHeader)?;
    let map = change.create(PageId::new(space, PageNo(1)), PageType::AllocationMap)?;
    let mut body = MAGIC.to_le_bytes().to_vec();
    body.extend_from_slice(&FIRST_PAGES.to_le_bytes());
    body.extend_from_slice(&2u32.to_le_bytes());
    apply(&mut change, header, &PageOp::BodyFill { bytes: &body })?;
    apply(&mut change, map, &PageOp::BodyFill { bytes: &[3] })?;
    change.commit();
    Ok(())
}

/// Pages that are latched and about to be taken.
#[derive(Debug)]
pub struct Reservation {
    header: Latched,
    /// For each page: its number, its latch, its map and its bit there.
    taken: Vec<(PageNo, Latched, Latched, u32)>,
}

impl Reservation {
    /// Finds and latches a page for each type; returns `None` if the space must [`grow`] first. The
    /// caller then calls [`Reservation::take`].
    pub fn make(
        change: &mut Change<'_>,
        space: SpaceId,
        types: &[PageType],
    ) -> Outcome<Option<Self>> {
        assert!(!types.is_empty(), "somebody wants a page");
        let header_id = PageId::new(space, PageNo(0));
        let header = change.latch(header_id)?;
        let facts = Facts::read(change.bytes(header))
            .ok_or_else(|| damaged(header_id, "no space header"))?;
        let mut finder = Finder {
            space,
            facts,
            next: facts.hint,
            map: None,
        };
        let mut free = Vec::new();
        for _ in types {
            let Some(found) = finder.find(change)? else {
                return Ok(None);
            };
            let (no, map, _) = found;
            if no == header_id.page || no == change.id(map).page {
                return Err(damaged(change.id(map), OWN_PAGE));
            }
            // After a loss of log that was accepted, the map may contradict what leads to the page.
            if change.is_latched(PageId::new(space, no)) {
                return Err(damaged(
                    change.id(map),
                    "a page that is in use is marked free",
                ));
            }
            free.push(found);
        }
        let mut taken = Vec::new();
        for (&(no, map, bit), &page_type) in free.iter().zip(types) {
            assert!(
                no.0 < facts.high,
                "a page is given out within the file (I2)"
            );
            let page = change.create(PageId::new(space, no), page_type)?;
            taken.push((no, page, map, bit));
        }
        Ok(Some(Self { header, taken }))
    }

    /// Number and latch of a reserved page.
    ///
    /// # Panics
    /// If fewer pages were asked for.
    pub fn page(&self, index: usize) -> (PageNo, Latched) {
        let (no, page, _, _) = self.taken[index];
        (no, page)
    }

    /// Marks the pages as used.
    pub fn take(&self, change: &mut Change<'_>) -> Outcome<()> {
        let mut hint = 0;
        for &(no, _, map, bit) in &self.taken {
            assert!(hint <= no.0, "pages are given out upwards");
            assert!(
                clear_bit(change.bytes(map), bit, bit + 1).is_some(),
                "it was free (I1)"
            );
            apply(
                change,
                map,
                &PageOp::BitsPut {
                    first: bit,
                    count: 1,
                    value: true,
                },
            )?;
            hint = no.0 + 1;
        }
        put_header(change, self.header, HINT_AT, hint)
    }
}

fn put_header(change: &mut Change<'_>, header: Latched, at: usize, value: u32) -> Outcome<()> {
    let op = PageOp::BytesPut {
        offset: narrow(at),
        bytes: &value.to_le_bytes(),
    };
    apply(change, header, &op)
}

/// The numbers in the header.
#[derive(Debug, Clone, Copy)]
struct Facts {
    high: u32,
    hint: u32,
}

impl Facts {
    fn read(page: &[u8]) -> Option<Self> {
        let is_header = page.u32_at(MAGIC_AT)? == MAGIC;
        let facts = Self {
            high: page.u32_at(HIGH_AT)?,
            hint: page.u32_at(HINT_AT)?,
        };
        is_header.then_some(facts)
    }
}

/// Walks over the free pages of a space.
struct Finder {
    space: SpaceId,
    facts: Facts,
    next: u32,
    map: Option<(PageNo, Latched)>,
}

impl Finder {
    /// The next free page with its map and bit, or `None` if the space is full.
    fn find(&mut self, change: &mut Change<'_>) -> Outcome<Option<(PageNo, Latched, u32)>> {
        while self.next < self.facts.high {
            let no = PageNo(self.next);
            let per_map = pages_per_map(change.page_bytes());
            let map = self.map(change, map_of(no, per_map))?;
            let bit = no.0 % per_map;
            let end = (self.facts.high - (no.0 - bit)).min(per_map);
            if let Some(found) = clear_bit(change.bytes(map), bit, end) {
                self.next = no.0 - bit + found + 1;
                return Ok(Some((PageNo(self.next - 1), map, found)));
            }
            self.next = no.0 - bit + end;
        }
        Ok(None)
    }

    fn map(&mut self, change: &mut Change<'_>, no: PageNo) -> Outcome<Latched> {
        if let Some((have, map)) = self.map
            && have == no
        {
            return Ok(map);
        }
        let map = change.latch(PageId::new(self.space, no))?;
        self.map = Some((no, map));
        Ok(map)
    }
}

/// The first clear bit from `from` on, below `end`.
fn clear_bit(map: &[u8], from: u32, end: u32) -> Option<u32> {
    let mut bit = from;
    while bit < end {
        let at = PAGE_HEADER_BYTES + usize::try_from(bit / 8).ok()?;
        let byte = map.u8_at(at)?;
        if byte == 0xFF {
            bit = (bit / 8 + 1) * 8;
        } else if byte & (1 << (bit % 8)) == 0 {
            return Some(bit);
        } else {
            bit += 1;
        }
    }
    None
}

/// Makes room for more pages in the file, and their maps.
pub fn grow(pages: &Pages, space: SpaceId) -> Outcome<()> {
    let header_id = PageId::new(space, PageNo(0));
    let mut change = pages.change()?;
    let header = change.latch(header_id)?;
    let facts =
        Facts::read(change.bytes(header)).ok_or_else(|| damaged(header_id, "no space header"))?;
    let per_map = pages_per_map(change.page_bytes());
    let step = (facts.high / 4).clamp(4, GROWTH_PAGES_MAX);
    let stretch_end = (facts.high / per_map + 1) * per_map;
    let high = (facts.high + step).min(stretch_end);
    assert!(facts.high < high, "a file that grows has more pages");
    pages.grow(space, high)?;
    if facts.high % per_map == 0 {
        let map = change.create(
            PageId::new(space, PageNo(facts.high)),
            PageType::AllocationMap,
        )?;
        apply(&mut change, map, &PageOp::BodyFill { bytes: &[1] })?;
    }
    put_header(&mut change, header, HIGH_AT, high)?;
    change.commit();
    Ok(())
}

/// The latches needed to give a page back.
#[derive(Debug)]
pub struct Release {
    header: Latched,
    map: Latched,
    page: Latched,
    no: PageNo,
    bit: u32,
    lowers_hint: bool,
}

impl Release {
    /// Latches what is needed to give back `page`, which the caller has latched in `change`.
    pub fn make(change: &mut Change<'_>, page: Latched) -> Outcome<Self> {
        let id = change.id(page);
        let header_id = PageId::new(id.space, PageNo(0));
        let header = change.latch(header_id)?;
        let per_map = pages_per_map(change.page_bytes());
        let map = change.latch(PageId::new(id.space, map_of(id.page, per_map)))?;
        let facts = Facts::read(change.bytes(header))
            .ok_or_else(|| damaged(header_id, "no space header"))?;
        let bit = id.page.0 % per_map;
        if page == header || page == map {
            return Err(damaged(id, OWN_PAGE));
        }
        let lowers_hint = id.page.0 < facts.hint;
        Ok(Self {
            header,
            map,
            page,
            no: id.page,
            bit,
            lowers_hint,
        })
    }

    /// Gives the page back. Its body becomes zeroes, so a reader that still has its number sees
    /// that the page is not its own any more.
    pub fn give_back(self, change: &mut Change<'_>) -> Outcome<()> {
        apply(change, self.page, &PageOp::BodyFill { bytes: &[] })?;
        apply(
            change,
            self.map,
            &PageOp::BitsPut {
                first: self.bit,
                count: 1,
                value: false,
            },
        )?;
        if self.lowers_hint {
            put_header(change, self.header, HINT_AT, self.no.0)
        } else {
            Ok(())
        }
    }
}

/// Marks a page as used that something leads to. After a loss of log that was accepted, the map may
/// be older, and the page would be given out a second time.
pub fn mark_used(pages: &Pages, id: PageId) -> Outcome<()> {
    let header_id = PageId::new(id.space, PageNo(0));
    let mut change = pages.change()?;
    let header = change.latch(header_id)?;
    let facts =
        Facts::read(change.bytes(header)).ok_or_else(|| damaged(header_id, "no space header"))?;
    let per_map = pages_per_map(change.page_bytes());
    let map = change.latch(PageId::new(id.space, map_of(id.page, per_map)))?;
    let is_within = id.page.0 < facts.high;
    if is_within && is_marked(change.bytes(map), id.page) {
        return Ok(());
    }
    let mark = PageOp::BitsPut {
        first: id.page.0 % per_map,
        count: 1,
        value: true,
    };
    apply(&mut change, map, &mark)?;
    if !is_within {
        put_header(&mut change, header, HIGH_AT, id.page.0.saturating_add(1))?;
    }
    assert!(
        is_marked(change.bytes(map), id.page),
        "a page is in use whose bit is set (I1)"
    );
    change.commit();
    Ok(())
}

/// Reads the header and all maps of a space. Fails if one is damaged: then no page can be taken or
/// given back.
pub fn check_maps(pages: &Pages, space: SpaceId) -> Outcome<()> {
    for (_, map) in maps(high(pages, space)?, pages.page_bytes()) {
        pages.shared(PageId::new(space, map))?;
    }
    Ok(())
}

/// Makes the header and the maps of a space again, of which each page in use is known. Page 0 and
/// the first map come last, in one mini-transaction: until then the space stays as damaged as it
/// was. What its owner keeps in the header is lost.
pub fn make_again(pages: &Pages, space: SpaceId, used: &BTreeSet<PageNo>) -> Outcome<()> {
    let last = used.last().copied().unwrap_or_default();
    let high = last.0.saturating_add(1).max(FIRST_PAGES);
    assert!(
        last.0 < high,
        "no page in use is behind the file's end (I2)"
    );
    pages.grow(space, high)?;
    for (first, map) in maps(high, pages.page_bytes()).skip(1) {
        let mut change = pages.change()?;
        let latched = change.create(PageId::new(space, map), PageType::AllocationMap)?;
        let end = stretch_end(first, high, change.page_bytes());
        let body = bitmap(first, used.range(first..PageNo(end)), &[map]);
        apply(&mut change, latched, &PageOp::BodyFill { bytes: &body })?;
        change.commit();
    }
    let mut change = pages.change()?;
    let header_id = PageId::new(space, PageNo(0));
    let header = change.create(header_id, PageType::SpaceHeader)?;
    let map_id = PageId::new(space, PageNo(1));
    let map = change.create(map_id, PageType::AllocationMap)?;
    let end = stretch_end(PageNo(0), high, change.page_bytes());
    let own = [header_id.page, map_id.page];
    let bits = bitmap(PageNo(0), used.range(..PageNo(end)), &own);
    let (high, hint) = (high.to_le_bytes(), 2_u32.to_le_bytes());
    let body = [MAGIC.to_le_bytes(), high, hint].concat();
    apply(&mut change, header, &PageOp::BodyFill { bytes: &body })?;
    apply(&mut change, map, &PageOp::BodyFill { bytes: &bits })?;
    assert!(
        used.range(..PageNo(end))
            .all(|page| is_marked(change.bytes(map), *page)),
        "each page in use has its bit (I1)"
    );
    change.commit();
    Ok(())
}

/// The bits of the stretch that begins at `first`.
fn bitmap<'a>(first: PageNo, used: impl Iterator<Item = &'a PageNo>, own: &'a [PageNo]) -> Vec<u8> {
    let mut bits = Vec::new();
    for page in used.chain(own) {
        let bit = page.0.checked_sub(first.0).expect("a page of the stretch");
        let at = stdx::to_usize(u64::from(bit / 8));
        if bits.len() <= at {
            bits.resize(at + 1, 0);
        }
        bits[at] |= 1 << (bit % 8);
    }
    assert!(!bits.is_empty(), "a map is in use itself");
    bits
}

/// The number of pages that the file of a space has room for.
pub fn high(pages: &Pages, space: SpaceId) -> Outcome<u32> {
    let header_id = PageId::new(space, PageNo(0));
    let header = pages.shared(header_id)?;
    let facts = Facts::read(header.bytes()).ok_or_else(|| damaged(header_id, "no space header"))?;
    Ok(facts.high)
}

/// The maps of a space with room for `high` pages: the first page of each stretch, and the page of
/// the stretch's map.
pub fn maps(high: u32, page_bytes: usize) -> impl Iterator<Item = (PageNo, PageNo)> {
    let per_map = pages_per_map(page_bytes);
    (0..high.div_ceil(per_map)).map(move |stretch| {
        let first = PageNo(stretch * per_map);
        (first, map_of(first, per_map))
    })
}

/// The first page after the stretch that begins at `first`.
pub fn stretch_end(first: PageNo, high: u32, page_bytes: usize) -> u32 {
    high.min(first.0.saturating_add(pages_per_map(page_bytes)))
}

/// The page of the map that records whether `page` is in use.
pub fn map_page(page: PageNo, page_bytes: usize) -> PageNo {
    map_of(page, pages_per_map(page_bytes))
}

/// Whether the map that covers `page` records it as in use.
pub fn is_marked(map: &[u8], page: PageNo) -> bool {
    let bit = page.0 % pages_per_map(map.len());
    let at = PAGE_HEADER_BYTES + usize::try_from(bit / 8).expect("a bit of a page");
    map.u8_at(at)
        .is_some_and(|byte| byte & (1 << (bit % 8)) != 0)
}

/// The pages in use of the stretch that begins at `first`, by its map, in a space with room for
/// `high` pages.
pub fn used_in_stretch(
    pages: &Pages,
    space: SpaceId,
    (first, high): (PageNo, u32),
) -> Outcome<Vec<PageNo>> {
    let stretch = pages_per_map(pages.page_bytes());
    assert!(first.0.is_multiple_of(stretch), "a stretch begins there");
    let map = map_page(first, pages.page_bytes());
    let map = pages.shared(PageId::new(space, map))?;
    let end = stretch_end(first, high, pages.page_bytes());
    let used = (first.0..end).map(PageNo);
    Ok(used.filter(|&page| is_marked(map.bytes(), page)).collect())
}

/// The numbers of all pages in use, header and maps included.
pub fn used_pages(pages: &Pages, space: SpaceId) -> Outcome<Vec<PageNo>> {
    let high = high(pages, space)?;
    let mut used = Vec::new();
    for (first, _) in maps(high, pages.page_bytes()) {
        used.extend(used_in_stretch(pages, space, (first, high))?);
    }
    Ok(used)
}
