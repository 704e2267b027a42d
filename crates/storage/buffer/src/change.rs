//! Mini-transactions: pages changed together, all or none after a crash.
//!
//! Phases: *gather* ([`Change::latch`], [`Change::create`]; may be given up at any time), then
//! *apply* ([`Change::apply`]; from now on the change must commit), then [`Change::commit`].

use std::fmt;

use format::log::{LogOp, MTR_HEADER_BYTES, OpKind};
use format::page::{PAGE_NO_AT, page_lsn, set_page_lsn};
use format::page_bytes::PageBytes;
use format::page_op::PageOp;
use format::slotted::ChangeError;
use format::{Lsn, PageId, PageType, SpaceId};
use store::{Outcome, WaitReason};
use sync::ObservedBytes;

use crate::change_buffers::{ChangeBuffers, HeldPage, Undo};
use crate::frames::dirty::DirtyEntry;
use crate::frames::{Frame, FrameNo, spin};
use crate::load::Joining;
use crate::ops;
use crate::optimistic::Optimistic;
use crate::pages::Pages;
use crate::pool::Load;
use crate::space::Space;

/// Pages of one mini-transaction at most; the worst case of its log is computed from it.
const CHANGE_PAGES_MAX: usize = 64;

/// A page of a change; valid only for the change that returned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latched(usize);

/// A mini-transaction of one worker. See the [crate's](crate) rules B3 to B5.
pub struct Change<'p> {
    pages: &'p Pages,
    held: Vec<HeldPage>,
    /// Room for the header, then the operations so far.
    body: Vec<u8>,
    /// Payload of one operation, for reuse.
    payload: Vec<u8>,
    /// Whether an operation has been applied (B4).
    is_applied: bool,
}

impl Pages {
    /// Begins a mini-transaction and takes room for it in the log.
    ///
    /// # Panics
    /// If this worker has one open already.
    pub fn change(&self) -> Outcome<Change<'_>> {
        assert!(
            !self.has_change.get(),
            "one mini-transaction a worker at a time"
        );
        self.permit()?;
        self.has_change.set(true);
        let ChangeBuffers {
            held,
            mut body,
            payload,
        } = self.buffers.take();
        body.clear();
        body.resize(MTR_HEADER_BYTES, 0);
        assert!(held.is_empty());
        Ok(Change {
            pages: self,
            held,
            body,
            payload,
            is_applied: false,
        })
    }
}

impl Change<'_> {
    /// Bytes of a page.
    pub fn page_bytes(&self) -> usize {
        self.pages.page_bytes()
    }

    /// Latches a page exclusively. Each page is latched once.
    ///
    /// # Panics
    /// After the first operation.
    pub fn latch(&mut self, id: PageId) -> Outcome<Latched> {
        if let Some(known) = self.position(id) {
            return Ok(known);
        }
        self.assert_gathering();
        let take = |frame: &Frame| frame.latch.try_exclusive().then_some(());
        let no = self
            .pages
            .latch(id, take, |frame| frame.latch.unlock_exclusive())?;
        let pool = &self.pages.pool;
        pool.frame(no).touch(&pool.periods);
        Ok(self.add(no, id, Undo::Nothing))
    }

    /// Latches a page that was read optimistically. Returns `None` if it has changed since, or if
    /// it is busy.
    ///
    /// # Panics
    /// After the first operation.
    pub fn latch_unchanged(&mut self, page: &Optimistic<'_>) -> Option<Latched> {
        if let Some(known) = self.position(page.id()) {
            return Some(known);
        }
        self.assert_gathering();
        let no = self
            .pages
            .space(page.id().space)
            .ok()?
            .table
            .frame_of(page.id().page)?;
        let frame = self.pages.pool.frame(no);
        if !std::ptr::eq(frame, page.frame) || !frame.latch.try_exclusive_at(page.version) {
            return None;
        }
        assert!(frame.holds(page.id()), "the version would have moved");
        Some(self.add(no, page.id(), Undo::Nothing))
    }

    /// Makes an empty page and latches it, whatever the page was before. Its old bytes are not
    /// read. The operation that makes it is logged with the change.
    ///
    /// # Panics
    /// After the first operation, or if the change has latched the page.
    pub fn create(&mut self, id: PageId, page_type: PageType) -> Outcome<Latched> {
        self.assert_gathering();
        assert!(self.position(id).is_none());
        self.pages.grow(id.space, id.page.0.saturating_add(1))?;
        let space = self.pages.space(id.space)?;
        let (no, is_fresh) = self.take_page(&space, id)?;
        // SAFETY: the exclusive latch is held by this change, and no slice of the page exists.
        let mut page = unsafe { self.pages.pool.frames.bytes_mut(no) };
        let undo = if is_fresh {
            Undo::Forget
        } else {
            Undo::Restore(page.bytes().into())
        };
        let lsn = page_lsn(page.bytes()).filter(|_| !is_fresh);
        let size = self.pages.pool.options.page_size;
        ops::create(&mut page, id, page_type, size);
        set_page_lsn(&mut page, lsn.unwrap_or(Lsn::ZERO));
        let payload = ops::create_payload(page_type, size);
        LogOp::new(ops::PAGE_CREATE, &[id], &payload).encode(&mut self.body);
        let latched = self.add(no, id, undo);
        self.held_mut(latched).is_changed = true;
        Ok(latched)
    }

    /// Latches the page's frame exclusively if it is in memory, or takes a frame for it. The result
    /// says whether the frame is fresh.
    fn take_page(&self, space: &Space, id: PageId) -> Outcome<(FrameNo, bool)> {
        let pool = &self.pages.pool;
        let mut loads = pool.load_shard(id).lock();
        if matches!(loads.get(&id), Some(Load::Reading(_))) {
            let join = Joining {
                pool: pool.clone(),
                id,
            };
            return Err(self.pages.suspend(WaitReason::PageMiss, join).into());
        }
        loads.remove(&id);
        if let Some(no) = space.table.frame_of(id.page) {
            let frame = pool.frame(no);
            if spin(|| frame.latch.try_exclusive().then_some(())).is_some() {
                if frame.holds(id) {
                    return Ok((no, false));
                }
                frame.latch.unlock_exclusive();
            }
            return Err(self.pages.busy().into());
        }
        let no = self.pages.take_frame()?;
        let frame = pool.frame(no);
        assert!(
            frame.is_clean(),
            "a page that is made has no other in its frame (F3)"
        );
        // Readers with an outdated page table hold the frame's shared latch for a moment, or longer
        // if their thread was preempted.
        if spin(|| frame.latch.try_exclusive().then_some(())).is_none() {
            pool.free_frame(self.pages.worker, no);
            return Err(self.pages.busy().into());
        }
        assert!(frame.page().is_none());
        frame.set_page(Some(id));
        frame.set_loaded(&pool.periods, None);
        // To make a page is its first use.
        frame.touch(&pool.periods);
        space.table.set(id.page, no);
        Ok((no, true))
    }

    fn assert_gathering(&self) {
        assert!(
            !self.is_applied,
            "pages are latched before the first operation"
        );
    }

    fn position(&self, id: PageId) -> Option<Latched> {
        self.held.iter().position(|held| held.id == id).map(Latched)
    }

    fn add(&mut self, no: FrameNo, id: PageId, undo: Undo) -> Latched {
        assert!(self.held.len() < CHANGE_PAGES_MAX);
        self.pages.hold();
        self.held.push(HeldPage {
            no,
            id,
            is_changed: false,
            undo,
        });
        Latched(self.held.len() - 1)
    }

    fn held(&self, page: Latched) -> &HeldPage {
        self.held
            .get(page.0)
            .expect("a latched page is one of its change")
    }

    fn held_mut(&mut self, page: Latched) -> &mut HeldPage {
        self.held
            .get_mut(page.0)
            .expect("a latched page is one of its change")
    }

    /// Whether the change has latched a page.
    pub fn is_latched(&self, id: PageId) -> bool {
        self.position(id).is_some()
    }

    /// The page's id.
    pub fn id(&self, page: Latched) -> PageId {
        self.held(page).id
    }

    /// The whole page, header included.
    pub fn bytes(&self, page: Latched) -> &[u8] {
        // SAFETY: the exclusive latch is held by this change; the slice borrows the change, and
        // exclusive slices are made only by methods that borrow it exclusively.
        unsafe { self.pages.pool.frames.bytes(self.held(page).no) }
    }

    fn bytes_mut(&mut self, page: Latched) -> ObservedBytes<'_> {
        let held = self.held(page);
        let frame = self.pages.pool.frame(held.no);
        assert!(
            frame.latch.optimistic().is_none(),
            "a page is changed under its exclusive latch (F1)"
        );
        assert!(frame.holds(held.id), "a latched frame keeps its page (F2)");
        // SAFETY: the exclusive latch is held by this change, which is borrowed exclusively.
        unsafe { self.pages.pool.frames.bytes_mut(self.held(page).no) }
    }

    /// Applies an operation to a page and adds it to the log record. After an error the page is
    /// unchanged.
    pub fn apply(&mut self, page: Latched, op: &PageOp<'_>) -> Result<(), ChangeError> {
        op.apply(0, &mut self.bytes_mut(page))?;
        self.log(op, &[page]);
        Ok(())
    }

    /// Applies an operation that changes two pages.
    ///
    /// # Panics
    /// If only the first of them could be changed: the caller must check for room before.
    pub fn apply_pair(
        &mut self,
        first: Latched,
        second: Latched,
        op: &PageOp<'_>,
    ) -> Result<(), ChangeError> {
        assert!(first != second);
        op.apply(0, &mut self.bytes_mut(first))?;
        let applied = op.apply(1, &mut self.bytes_mut(second));
        assert!(
            applied.is_ok(),
            "half of an operation was applied: {applied:?}"
        );
        self.log(op, &[first, second]);
        Ok(())
    }

    fn log(&mut self, op: &PageOp<'_>, pages: &[Latched]) {
        let mut payload = std::mem::take(&mut self.payload);
        payload.clear();
        op.encode(&mut payload);
        self.log_bytes(op.kind(), pages, &payload);
        self.payload = payload;
    }

    fn log_bytes(&mut self, kind: OpKind, pages: &[Latched], payload: &[u8]) {
        let mut ids = [PageId::default(); 2];
        for (slot, page) in ids.iter_mut().zip(pages) {
            *slot = self.id(*page);
            self.held_mut(*page).is_changed = true;
        }
        let ids = ids
            .get(..pages.len())
            .expect("an operation has at most two pages");
        LogOp::new(kind, ids, payload).encode(&mut self.body);
        self.is_applied = true;
    }

    /// Changes a page's type.
    pub fn set_type(&mut self, page: Latched, page_type: PageType) {
        ops::set_type(&mut self.bytes_mut(page), page_type);
        self.log_bytes(ops::PAGE_TYPE, &[page], &[page_type.code()]);
    }

    /// Adds a note to the log that changes no page. Recovery passes it to the engine, in order.
    ///
    /// # Panics
    /// If the kind is one of the pool's own.
    pub fn note(&mut self, kind: OpKind, payload: &[u8]) {
        assert!(15 < kind.0, "kinds up to 15 are the pool's");
        self.log_bytes(kind, &[], payload);
    }

    /// Notes that a tablespace is dropped. Once this change is durable, its file may be removed
    /// ([`Pages::remove_space`]). Recovery removes it if that did not happen.
    pub fn note_space_drop(&mut self, space: SpaceId) {
        self.log_bytes(ops::SPACE_DROP, &[], &ops::drop_payload(space));
    }

    /// Puts the change into the log and releases its pages. Returns the LSN after it: the change is
    /// durable once the log up to there is. For a commit, it is the commit number.
    pub fn commit(mut self) -> Lsn {
        if self.body.len() == MTR_HEADER_BYTES {
            return self.pages.reserved();
        }
        let pages = self.pages;
        let mut body = std::mem::take(&mut self.body);
        let mut log = pages.log.borrow_mut();
        let commit = log.commit(&mut body);
        let (start, end) = (commit.start, commit.end);
        assert!(start < end, "the LSN of a changed page grows");
        for index in 0..self.held.len() {
            let held = self.held(Latched(index));
            if held.is_changed {
                self.stamp(Latched(index), start, end);
            } else {
                assert!(
                    matches!(held.undo, Undo::Nothing),
                    "a page that was made is in the log"
                );
            }
        }
        drop(commit);
        for held in self.held.drain(..) {
            pages.pool.frame(held.no).latch.unlock_exclusive();
            pages.unhold();
        }
        self.is_applied = false;
        self.body = body;
        end
    }

    fn stamp(&mut self, page: Latched, start: Lsn, end: Lsn) {
        let id = self.id(page);
        let mut content = self.bytes_mut(page);
        let bytes = content.bytes();
        assert!(page_lsn(bytes).is_some_and(|before| before <= start));
        assert_eq!(
            bytes.u32_at(PAGE_NO_AT),
            Some(id.page.0),
            "operations leave the page's number alone"
        );
        set_page_lsn(&mut content, end);
        let no = self.held(page).no;
        let pool = &self.pages.pool;
        let frame = pool.frame(no);
        if frame.rec_lsn().is_none() {
            frame.set_rec_lsn(Some(start));
            pool.dirty.add(
                self.pages.worker,
                DirtyEntry {
                    rec_lsn: start,
                    frame: no,
                },
            );
        }
        assert!(
            frame.rec_lsn().is_some_and(|rec_lsn| rec_lsn <= start),
            "no change of a dirty page is older than what the checkpoint waits for"
        );
    }

    /// Undoes what gathering has done to a page, and releases it.
    fn give_up(&mut self, held: HeldPage) {
        let pool = &self.pages.pool;
        let frame = pool.frame(held.no);
        assert!(frame.holds(held.id), "a latched frame keeps its page (F2)");
        match held.undo {
            Undo::Nothing => {}
            Undo::Restore(saved) => {
                // SAFETY: the exclusive latch is held, and no slice of the page exists.
                let mut page = unsafe { pool.frames.bytes_mut(held.no) };
                page.put(0, &saved).expect("the page is as long as it was");
            }
            Undo::Forget => {
                assert!(
                    frame.rec_lsn().is_none(),
                    "a page that is given up was not logged"
                );
                if let Some(space) = pool.spaces.get(held.id.space) {
                    space.table.set_left(held.id.page, pool.periods.arrivals());
                }
                frame.set_page(None);
                frame.latch.unlock_exclusive();
                self.pages.unhold();
                pool.free_frame(self.pages.worker, held.no);
                return;
            }
        }
        frame.latch.unlock_exclusive();
        self.pages.unhold();
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        let is_lost = self.is_applied && !std::thread::panicking();
        assert!(!is_lost, "a change that has applied an operation commits");
        while let Some(held) = self.held.pop() {
            self.give_up(held);
        }
        let (held, body) = (
            std::mem::take(&mut self.held),
            std::mem::take(&mut self.body),
        );
        let payload = std::mem::take(&mut self.payload);
        self.pages.buffers.replace(ChangeBuffers {
            held,
            body,
            payload,
        });
        self.pages.has_change.set(false);
    }
}

impl fmt::Debug for Change<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Change")
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}
