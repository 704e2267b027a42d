//! [`Digests`]: what statements of each canonical text have cost, as one worker has counted it. No
//! I/O, no clock.
//!
//! ```text
//! text -- Digests::find --> Digest -- Digests::count(who, numbers) --> Row -- sum --> a table
//! ```
//!
//! A [`Digest`] is a canonical text. It may have literals that people must not see, so it is shown
//! in another form. It has a [`Tally`] for each [`Who`] that has sent it. Who
//! remembers the digest of a text (a verdict, a prepared statement) counts without a look-up.
//!
//! * (I1) There are at most [`Limits::rows_max`] tallies, and [`Limits::text_bytes_max`] bytes of
//!   texts.
//! * (I2) Nothing is lost: the sum of all rows has each statement that was counted since the last
//!   [`Digests::clear`]. What is counted where there is no room is in a row without a text.
//! * (I3) A digest that is not listed has no tallies. If it is counted again, it is listed again.
//!
//! Digests of texts that were only asked for are not listed. A row that was not counted for long
//! goes first: when there is no room, the half that was counted last stays.

#![forbid(unsafe_code)]

mod row;
mod tally;

use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use env::Instant;
use foldhash::fast::RandomState;

pub use row::{Row, sum};
pub use tally::{BUCKETS, Bucket, Finished, SERVERS_TOLD_APART, Servers, Tally};

/// Whose statements are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Who {
    /// The name of the service.
    pub service: Arc<str>,
    /// The user, without the host.
    pub user: Box<str>,
    /// The default database, if there is one and it is known.
    pub database: Option<Box<str>>,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most tallies.
    pub rows_max: usize,
    /// Most bytes of the texts that have some.
    pub text_bytes_max: usize,
    /// Most tallies of one text. Those who come later share one.
    pub whos_max: usize,
}

impl Limits {
    /// Of a worker. An application has some hundred distinct texts, and verdicts on 4,096 of them
    /// are remembered. A row takes 300 bytes. A text is looked up among its users one by one.
    pub const USUAL: Limits = Limits {
        rows_max: 4096,
        text_bytes_max: 4 << 20,
        whos_max: 16,
    };
}

/// A canonical text, and what has been counted of it.
#[derive(Debug)]
pub struct Digest {
    /// By which rules name it. Constant.
    number: u64,
    /// Constant.
    text: Arc<[u8]>,
    /// Constant.
    shown: Arc<[u8]>,
    counted: RefCell<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    /// It is one of those that [`Digests`] lists.
    is_listed: bool,
    whos: Vec<Arc<Who>>,
    /// One for each of these.
    tallies: Vec<Tally>,
    /// Of all others.
    rest: Option<Box<Tally>>,
}

impl Counted {
    /// The tally of somebody who has one, or shares the one of all others, which is there once
    /// there is no room for more.
    fn tally(&mut self, who: &Arc<Who>) -> Option<&mut Tally> {
        match self.whos.iter().position(|it| Arc::ptr_eq(it, who)) {
            Some(place) => self.tallies.get_mut(place),
            None => self.rest.as_deref_mut(),
        }
    }

    fn row_count(&self) -> usize {
        self.tallies.len() + usize::from(self.rest.is_some())
    }

    /// When it was counted last.
    fn last(&self) -> Instant {
        let tallies = self.tallies.iter().chain(self.rest.as_deref());
        tallies.map(|it| it.last).max().unwrap_or_default()
    }
}

impl Digest {
    /// By which rules name the text.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The text as people may see it.
    pub fn shown(&self) -> &[u8] {
        &self.shown
    }

    /// Memory of its texts.
    fn text_bytes(&self) -> usize {
        let is_one = Arc::ptr_eq(&self.text, &self.shown);
        self.text.len() + if is_one { 0 } else { self.shown.len() }
    }

    /// The same, for other threads.
    pub fn share_text(&self) -> Arc<[u8]> {
        Arc::clone(&self.text)
    }
}

/// Digests of one text are equal, whatever was counted of them.
impl PartialEq for Digest {
    fn eq(&self, other: &Digest) -> bool {
        self.text == other.text
    }
}

impl Eq for Digest {}

/// A digest, as it is found by its text.
#[derive(Debug)]
struct ByText(Rc<Digest>);

impl Borrow<[u8]> for ByText {
    fn borrow(&self) -> &[u8] {
        &self.0.text
    }
}

impl Hash for ByText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.text.hash(state);
    }
}

impl PartialEq for ByText {
    fn eq(&self, other: &ByText) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for ByText {}

/// See the module's head.
#[derive(Debug)]
pub struct Digests {
    /// Constant.
    limits: Limits,
    listed: HashSet<ByText, RandomState>,
    /// Tallies of those.
    row_count: usize,
    /// Of their texts.
    text_bytes: usize,
    /// What has no text, and what there was no room for.
    others: Option<Box<Tally>>,
}

impl Default for Digests {
    fn default() -> Digests {
        Digests::new(Limits::USUAL)
    }
}

impl Digests {
    /// Nothing, with room for so much.
    pub fn new(limits: Limits) -> Digests {
        Digests {
            limits,
            listed: HashSet::default(),
            row_count: 0,
            text_bytes: 0,
            others: None,
        }
    }

    /// The digest of a canonical text. If it is not listed, `make` makes its number, and the text
    /// as people may see it.
    pub fn find(&self, text: &[u8], make: impl FnOnce(&[u8]) -> (u64, Vec<u8>)) -> Rc<Digest> {
        if let Some(known) = self.listed.get(text) {
            return Rc::clone(&known.0);
        }
        let (number, shown) = make(text);
        let text: Arc<[u8]> = text.into();
        let is_one = *shown == *text;
        Rc::new(Digest {
            number,
            shown: if is_one {
                Arc::clone(&text)
            } else {
                shown.into()
            },
            text,
            counted: RefCell::default(),
        })
    }

    /// Counts a statement that has ended now. `digest` is that of its text; `None` if that was not
    /// read.
    pub fn count(
        digests: &RefCell<Digests>,
        digest: Option<&Rc<Digest>>,
        who: &Arc<Who>,
        now: Instant,
        finished: &Finished,
    ) {
        if let Some(digest) = digest
            && let Some(tally) = digest.counted.borrow_mut().tally(who)
        {
            tally.count(now, finished);
            return;
        }
        let mut digests = digests.borrow_mut();
        match digest {
            Some(digest) => digests.count_new(digest, who, now, finished),
            None => {
                let others = digests.others.get_or_insert_with(Box::default);
                others.count(now, finished);
            }
        }
    }

    /// Counts the first statement of a row.
    fn count_new(&mut self, digest: &Rc<Digest>, who: &Arc<Who>, now: Instant, it: &Finished) {
        let digest = self.list(digest);
        {
            let mut counted = digest.counted.borrow_mut();
            if let Some(tally) = counted.tally(who) {
                tally.count(now, it);
                return;
            }
            let mut tally = Tally::default();
            tally.count(now, it);
            if counted.whos.len() < self.limits.whos_max {
                counted.whos.push(Arc::clone(who));
                counted.tallies.push(tally);
            } else {
                counted.rest = Some(Box::new(tally));
            }
        }
        self.row_count += 1;
        if self.limits.rows_max < self.row_count || self.limits.text_bytes_max < self.text_bytes {
            self.make_room();
        }
    }

    /// The listed digest of the text of this one, which is this one if there is no other.
    fn list(&mut self, digest: &Rc<Digest>) -> Rc<Digest> {
        if digest.counted.borrow().is_listed {
            return Rc::clone(digest);
        }
        if let Some(known) = self.listed.get(&*digest.text) {
            return Rc::clone(&known.0);
        }
        digest.counted.borrow_mut().is_listed = true;
        self.text_bytes += digest.text_bytes();
        self.listed.insert(ByText(Rc::clone(digest)));
        Rc::clone(digest)
    }

    /// Moves what was not counted for longest to the others, until half of the room is free.
    fn make_room(&mut self) {
        let mut all: Vec<(Instant, Rc<Digest>)> = Vec::with_capacity(self.listed.len());
        for ByText(digest) in &self.listed {
            all.push((digest.counted.borrow().last(), Rc::clone(digest)));
        }
        all.sort_unstable_by_key(|(last, _)| *last);
        let (rows_max, text_bytes_max) = (self.limits.rows_max / 2, self.limits.text_bytes_max / 2);
        for (_, digest) in all {
            if self.row_count <= rows_max && self.text_bytes <= text_bytes_max {
                return;
            }
            let counted = digest.counted.take();
            self.listed.remove(&*digest.text);
            self.row_count -= counted.row_count();
            self.text_bytes -= digest.text_bytes();
            let others = self.others.get_or_insert_with(Box::default);
            for tally in counted.tallies.iter().chain(counted.rest.as_deref()) {
                others.add(tally);
            }
        }
    }

    /// Forgets all that was counted.
    pub fn clear(&mut self) {
        for ByText(digest) in self.listed.drain() {
            digest.counted.take();
        }
        self.row_count = 0;
        self.text_bytes = 0;
        self.others = None;
    }

    /// All that was counted.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::with_capacity(self.row_count + 1);
        for ByText(digest) in &self.listed {
            let counted = digest.counted.borrow();
            let named = counted.whos.iter().map(Some).zip(&counted.tallies);
            let rest = counted.rest.as_deref().map(|tally| (None, tally));
            rows.extend(named.chain(rest).map(|(who, tally)| Row {
                text: Some((digest.number, Arc::clone(&digest.shown))),
                who: who.cloned(),
                tally: *tally,
            }));
        }
        rows.extend(self.others.as_deref().map(|tally| Row {
            text: None,
            who: None,
            tally: *tally,
        }));
        rows
    }

    /// How many tallies of texts there are.
    pub fn row_count(&self) -> usize {
        self.row_count
    }
}

#[cfg(test)]
mod tests;
