//! The doublewrite files: copies of the pages that are being written, for the repair of torn ones.
//!
//! Layout: `docs/formats/doublewrite.md`. Each worker's cleaner has a file of its own with one
//! batch. If the disk has no room for all, workers share files and write one after the other
//! (`roles`). A batch is durable there before its first page is written in place. The next batch
//! comes into the file only when this one is durable in place. So a page that is torn after a crash
//! has a whole copy. If the batch is torn, its pages were not yet being written in place.
//!
//! (D1) Batches of all files are numbered in the order in which they begin. A batch names the
//!      oldest one that was not durable in place then. Repair ignores older ones: a page in them
//!      may have been written again by another file's batch that is gone.
//! (D2) A page is in one unfinished batch at most, because it is written once at a time. So of two
//!      copies that repair does not ignore, that of the later batch is the page's last version.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use env::{Disk, DiskError, DiskErrorKind, File, IoBuffer, WriteDurability};
use format::codec::{self, Reader, Truncated};
use format::page::{PageError, verify};
use format::{PageId, PageSize};
use sync::Mutex;

use crate::options::PoolOptions;
use crate::space;

const HEADER_BYTES: usize = 4096;
const MAGIC: [u8; 8] = *b"PLATDBW1";
const DISTANCE_AT: usize = 21;
const NUMBER_AT: usize = 24;
const IDS_AT: usize = 32;

/// Pages of a batch at most: as many ids fit into the header.
pub(crate) const BATCH_PAGES_MAX: usize = (HEADER_BYTES - IDS_AT) / PageId::BYTES;

/// Batches that may begin while one is under way, so that the distance to it has 24 bits. A disk
/// that writes one batch for so long is gone.
const DISTANCE_MAX: u64 = (1 << 24) - 1;

/// More batches than a disk writes in its life; a larger number is damage.
const NUMBER_MAX: u64 = 1 << 62;

/// The open files.
#[derive(Debug)]
pub(crate) struct Doublewrite {
    /// One for each worker, if there is room. Each is written by one cleaner at a time.
    files: Box<[File]>,
    page_size: PageSize,
    batches: Mutex<Batches>,
}

/// The numbers of batches (D1).
#[derive(Debug)]
struct Batches {
    next: u64,
    /// Those that are not durable in place.
    unfinished: BTreeSet<u64>,
}

/// A batch that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Begun {
    number: u64,
    /// The oldest that was not finished then; at most its own number.
    oldest: u64,
}

/// What a header says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Header {
    size: PageSize,
    batch: Begun,
    ids: Vec<PageId>,
}

/// What a start has found in the files.
#[derive(Debug, Default)]
pub(crate) struct Repaired {
    /// The pages that were torn and are whole again.
    pub(crate) pages: Vec<PageId>,
    /// The number for the next batch.
    pub(crate) next_batch: u64,
}

/// The file of a worker. The first one's name has no number.
fn path(directory: &Path, worker: usize) -> PathBuf {
    match worker {
        0 => directory.join("doublewrite.pdw"),
        _ => directory.join(format!("doublewrite_{worker}.pdw")),
    }
}

fn is_doublewrite(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let middle = name
        .and_then(|name| name.strip_prefix("doublewrite"))
        .and_then(|name| name.strip_suffix(".pdw"));
    middle.is_some_and(|middle| middle.is_empty() || middle.starts_with('_'))
}

fn encode_header(header: &Header) -> [u8; HEADER_BYTES] {
    let Header { size, batch, ids } = header;
    assert!(ids.len() <= BATCH_PAGES_MAX);
    assert!(batch.oldest <= batch.number, "a batch is unfinished itself");
    let distance = batch.number - batch.oldest;
    assert!(distance <= DISTANCE_MAX, "no batch is under way for ever");
    let mut bytes = [0; HEADER_BYTES];
    let count = stdx::to_u32(ids.len());
    let distance = distance.to_le_bytes();
    let fields: [(usize, &[u8]); 5] = [
        (8, &MAGIC),
        (16, &count.to_le_bytes()),
        (20, &[size.class()]),
        (DISTANCE_AT, &distance[..3]),
        (NUMBER_AT, &batch.number.to_le_bytes()),
    ];
    for (at, field) in fields {
        codec::put_at(&mut bytes, at, field).expect("the fields are inside the header");
    }
    for (index, id) in ids.iter().enumerate() {
        let at = IDS_AT + index * PageId::BYTES;
        codec::put_at(&mut bytes, at, &id.space.0.to_le_bytes()).expect("counted above");
        codec::put_at(&mut bytes, at + 4, &id.page.0.to_le_bytes()).expect("counted above");
    }
    let sum = codec::checksum(bytes.get(8..).expect("the header is longer"));
    codec::put_at(&mut bytes, 0, &sum.to_le_bytes()).expect("the header is longer");
    debug_assert_eq!(decode_header(&bytes).as_ref(), Some(header));
    bytes
}

/// Reads a header; `None` if no whole one is there.
fn decode_header(header: &[u8]) -> Option<Header> {
    let covered = header.get(8..HEADER_BYTES)?;
    if codec::u64_at(header, 0)? != codec::checksum(covered) || covered.get(..8)? != MAGIC {
        return None;
    }
    let count = usize::try_from(codec::u32_at(header, 16)?).ok()?;
    let size = PageSize::from_class(*header.get(20)?)?;
    let [low, middle, high] = codec::array_at(header, DISTANCE_AT)?;
    let number = codec::u64_at(header, NUMBER_AT).filter(|number| *number <= NUMBER_MAX)?;
    let distance = u64::from(u32::from_le_bytes([low, middle, high, 0]));
    let oldest = number.checked_sub(distance)?;
    let mut reader = Reader::new(header.get(IDS_AT..)?);
    let ids: Result<Vec<PageId>, Truncated> = (0..count).map(|_| reader.page_id()).collect();
    Some(Header {
        size,
        batch: Begun { number, oldest },
        ids: ids.ok()?,
    })
}

impl Batches {
    fn begin(&mut self) -> Begun {
        let number = self.next;
        self.next += 1;
        self.unfinished.insert(number);
        let oldest = self.unfinished.first().copied().unwrap_or(number);
        Begun { number, oldest }
    }

    fn end(&mut self, batch: Begun) {
        let was_under_way = self.unfinished.remove(&batch.number);
        assert!(was_under_way, "a batch ends once");
    }
}

impl Doublewrite {
    /// Opens the files of so many workers, or makes them, as far as there is room: a full disk must
    /// not stop a start. Their old contents are not needed any more. Blocks.
    pub(crate) fn open(
        disk: &dyn Disk,
        directory: &Path,
        (options, worker_count): (&PoolOptions, usize),
        next_batch: u64,
    ) -> Result<Self, DiskError> {
        assert!(0 < worker_count, "somebody writes pages");
        let page_size = options.page_size;
        let mut files = Vec::with_capacity(worker_count);
        let mut is_one_new = false;
        for worker in 0..worker_count {
            let path = path(directory, worker);
            let opened = match space::open_file(disk, &path, false) {
                Err(error) if error.kind == DiskErrorKind::NotFound => {
                    is_one_new = true;
                    space::open_file(disk, &path, true)
                }
                other => other,
            };
            let pages = batch_pages(options) * page_size.bytes();
            let bytes = stdx::to_u64(HEADER_BYTES + pages);
            match opened.and_then(|file| disk.allocate(&file, bytes).map(|()| file)) {
                Err(error) if error.kind == DiskErrorKind::Full && !files.is_empty() => break,
                file => files.push(file?),
            }
        }
        if is_one_new {
            disk.sync_directory(directory)?;
        }
        let unfinished = BTreeSet::new();
        let batches = Batches {
            next: next_batch,
            unfinished,
        };
        Ok(Self {
            files: files.into(),
            page_size,
            batches: Mutex::new(batches),
        })
    }

    /// How many files there are: as many batches may be under way.
    pub(crate) fn file_count(&self) -> usize {
        self.files.len()
    }

    /// Writes a batch durably to the file of a worker. [`Doublewrite::end`] follows when its pages
    /// are durable in place; if that fails, it never ends.
    pub(crate) async fn write<'a>(
        &self,
        (disk, worker): (&dyn Disk, usize),
        pages: impl ExactSizeIterator<Item = (PageId, &'a [u8])>,
    ) -> Result<Written, DiskError> {
        let file = self.files.get(worker % self.files.len());
        let file = file.expect("the first worker has a file");
        let (size, count) = (self.page_size.bytes(), pages.len());
        let mut buffer = IoBuffer::zeroed(HEADER_BYTES + count * size);
        let mut ids = Vec::with_capacity(count);
        let (header, images) = buffer.split_at_mut(HEADER_BYTES);
        for (image, (id, page)) in images.chunks_exact_mut(size).zip(pages) {
            image.copy_from_slice(page);
            ids.push(id);
        }
        assert_eq!(ids.len(), count, "each page of the batch has its copy");
        let batch = self.batches.lock().begin();
        let size = self.page_size;
        header.copy_from_slice(&encode_header(&Header { size, batch, ids }));
        let (_, outcome) = disk.write(file, 0, buffer, WriteDurability::Sync).await;
        outcome.map(|_| Written(batch))
    }

    /// The pages of a batch are durable in place.
    pub(crate) fn end(&self, written: Written) {
        self.batches.lock().end(written.0);
    }
}

/// A batch that is durable in its doublewrite file.
#[must_use = "a batch that does not end is repaired at the next start"]
pub(crate) struct Written(Begun);

/// Pages of one batch under these options.
pub(crate) fn batch_pages(options: &PoolOptions) -> usize {
    stdx::to_usize(options.clean_batch_pages).clamp(1, BATCH_PAGES_MAX)
}

/// Replaces torn pages by whole copies. Blocks.
pub(crate) async fn repair(disk: &dyn Disk, directory: &Path) -> Result<Repaired, DiskError> {
    let mut batches = Vec::new();
    for name in disk
        .list(directory)?
        .into_iter()
        .filter(|it| is_doublewrite(it))
    {
        let name = name.file_name().map(PathBuf::from).unwrap_or_default();
        let file = space::open_file(disk, &directory.join(name), false)?;
        let (header, outcome) = disk.read(&file, 0, IoBuffer::zeroed(HEADER_BYTES)).await;
        let length = outcome?;
        if let Some(header) = header.get(..length).and_then(decode_header) {
            batches.push((header, file));
        }
    }
    let begun = || batches.iter().map(|(header, _)| header.batch);
    let next_batch = begun().map(|batch| batch.number + 1).max().unwrap_or(0);
    // (D1)
    let oldest = begun().map(|batch| batch.oldest).max().unwrap_or(0);
    batches.retain(|(header, _)| oldest <= header.batch.number);
    batches.sort_unstable_by_key(|(header, _)| header.batch.number);
    // (D2)
    let mut copies = BTreeMap::new();
    for (header, file) in &batches {
        let size = header.size;
        let mut offset = stdx::to_u64(HEADER_BYTES);
        for &id in &header.ids {
            let image = IoBuffer::zeroed(size.bytes());
            let (image, outcome) = disk.read(file, offset, image).await;
            let length = outcome?;
            offset += stdx::to_u64(size.bytes());
            if verify(image.get(..length).unwrap_or(&[]), id, size).is_ok() {
                copies.insert(id, (size, image));
            }
        }
    }
    let mut pages = Vec::new();
    for (id, (size, image)) in copies {
        if repair_page(disk, directory, (id, size), image).await? {
            pages.push(id);
        }
    }
    Ok(Repaired { pages, next_batch })
}

async fn repair_page(
    disk: &dyn Disk,
    directory: &Path,
    (id, size): (PageId, PageSize),
    image: IoBuffer,
) -> Result<bool, DiskError> {
    let file = match space::open_file(disk, &space::path(directory, id.space), false) {
        // The tablespace was dropped meanwhile.
        Err(error) if error.kind == DiskErrorKind::NotFound => return Ok(false),
        other => other?,
    };
    // A whole page may still not be durable, and this copy is about to be overwritten.
    disk.sync(&file).await?;
    let offset = space::page_offset(id.page, size);
    let (found, outcome) = disk
        .read(&file, offset, IoBuffer::zeroed(size.bytes()))
        .await;
    let length = outcome?;
    match verify(found.get(..length).unwrap_or(&[]), id, size) {
        // Whole, old or new; or another page's, which a torn write cannot produce.
        Ok(_) | Err(PageError::Misplaced { .. }) => return Ok(false),
        Err(_) => {}
    }
    let (_, outcome) = disk
        .write(&file, offset, image, WriteDurability::Sync)
        .await;
    outcome.map(|_| true)
}

#[cfg(test)]
mod tests {
    use env::sim::{SimClock, SimDisk, SimExecutor};
    use format::page::{PageHeader, seal};
    use format::{Lsn, PageNo, PageType, SpaceId};
    use proptest::prelude::*;

    use super::*;

    fn page(number: u32) -> PageId {
        PageId::new(SpaceId(3), PageNo(number))
    }

    #[test]
    fn layout_is_pinned() {
        let ids = vec![PageId::new(SpaceId(1), PageNo(2)), page(4)];
        let wanted = Header {
            size: PageSize::KiB16,
            batch: Begun {
                number: 0x0102,
                oldest: 0x00ff,
            },
            ids,
        };
        let header = encode_header(&wanted);
        assert_eq!(&header[8..21], b"PLATDBW1\x02\0\0\0\x02");
        assert_eq!(&header[21..32], b"\x03\0\0\x02\x01\0\0\0\0\0\0");
        assert_eq!(
            &header[32..48],
            [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]
        );
        assert_eq!(decode_header(&header), Some(wanted));
        let mut torn = header;
        torn[40] ^= 1;
        assert_eq!(decode_header(&torn), None);
        // Older programs have left these bytes zero.
        let mut old = header;
        old[21..32].fill(0);
        let sum = codec::checksum(&old[8..]);
        old[..8].copy_from_slice(&sum.to_le_bytes());
        let batch = decode_header(&old).map(|header| header.batch);
        let first = Begun {
            number: 0,
            oldest: 0,
        };
        assert_eq!(batch, Some(first));
    }

    #[test]
    fn names_are_told_from_others() {
        let directory = Path::new("data");
        for worker in [0, 1, 31] {
            assert!(is_doublewrite(&path(directory, worker)));
        }
        for name in [
            "doublewrite",
            "doublewriter.pdw",
            "space_1.pdb",
            "x_doublewrite.pdw",
        ] {
            assert!(!is_doublewrite(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn a_batch_names_the_oldest_that_is_unfinished() {
        let mut batches = Batches {
            next: 7,
            unfinished: BTreeSet::new(),
        };
        let begun = |number, oldest| Begun { number, oldest };
        let first = batches.begin();
        assert_eq!(first, begun(7, 7));
        let second = batches.begin();
        assert_eq!(second, begun(8, 7));
        batches.end(first);
        assert_eq!(batches.begin(), begun(9, 8));
        batches.end(second);
        assert_eq!(batches.begin(), begun(10, 9));
    }

    /// A whole page with a number in its body.
    fn image(id: PageId, number: u8) -> Vec<u8> {
        let mut page = vec![number; SIZE.bytes()];
        let header = PageHeader {
            lsn: Lsn(1),
            id,
            page_type: PageType::Meta,
            size: SIZE,
            epoch: 0,
        };
        header.encode(page.as_mut_slice());
        seal(&mut page);
        page
    }

    const SIZE: PageSize = PageSize::KiB4;

    /// A page is torn that stands in the batches of two files: its last version is put back (D2).
    /// One whose batch was durable in place when a later one began is not torn by a crash, and is
    /// left for the reader to refuse (D1).
    #[test]
    fn torn_pages_get_their_last_version_from_whichever_file_has_it() {
        for last in [0, 2] {
            let disk = SimDisk::with_seed(1);
            let executor = SimExecutor::new(1, SimClock::new());
            let inner = disk.clone();
            let repaired = executor.block_on(async move { repair_after(&inner, last).await });
            assert_eq!(
                repaired.expect("the disk answers"),
                Ok(vec![page(4), page(6)])
            );
        }
    }

    async fn repair_after(disk: &SimDisk, last: usize) -> Result<Vec<PageId>, DiskError> {
        let directory = Path::new("data");
        disk.create_directory(directory)?;
        let options = PoolOptions {
            page_size: SIZE,
            frame_count: 8,
            clean_batch_pages: 2,
        };
        let doublewrite = Doublewrite::open(disk, directory, (&options, 4), 0)?;
        let write = async |worker, id, number| {
            let image = image(id, number);
            let pages = std::iter::once((id, image.as_slice()));
            doublewrite.write((disk, worker), pages).await
        };
        let done = write(1, page(7), 1).await?;
        doublewrite.end(done);
        let _slow = write(3, page(6), 1).await?;
        let done = write(2 - last, page(4), 1).await?;
        doublewrite.end(done);
        let _under_way = write(last, page(4), 2).await?;
        let file = space::open_file(disk, &space::path(directory, SpaceId(3)), true)?;
        let torn = IoBuffer::zeroed(8 * SIZE.bytes());
        let (_, outcome) = disk.write(&file, 0, torn, WriteDurability::Sync).await;
        outcome?;
        let repaired = repair(disk, directory).await?;
        assert_eq!(repaired.next_batch, 4);
        let at = space::page_offset(PageNo(4), SIZE);
        let (found, outcome) = disk.read(&file, at, IoBuffer::zeroed(SIZE.bytes())).await;
        outcome?;
        assert!(*found == *image(page(4), 2), "its last version is back");
        Ok(repaired.pages)
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_header(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(decode_header(&bytes), None);
        }
    }
}
