//! The entry after a place in a latched leaf, which may stand in a later leaf. Locks of gaps need
//! it: a gap has the name of the entry at its upper end.
//!
//! The leaves behind the latched one are read without a latch, so they may change at once. An
//! insert need not mind. A reader that locks the gap looks at the latched leaf afterwards, and
//! finds that it changes. A removal looks again ([`Tree::are_current`]) after it has
//! passed on the entry's locks, because an insert into a later leaf splits the gap meanwhile.

use format::slotted::TreePage;
use store::Outcome;

use crate::Tree;
use crate::change::Spot;
use crate::error::damaged;
use crate::pages::{Change, Pages};
use crate::scan::{From, Place, Run};
use crate::stamp::LeafStamp;

/// What follows a place.
#[derive(Debug, Default)]
pub struct Successor {
    /// The key of the next entry; `None` at the end of the tree.
    pub key: Option<Vec<u8>>,
    /// The later leaves that were read for it.
    pub leaves: Vec<LeafStamp>,
}

impl Tree {
    /// The entry after a spot: after its match, or where the wanted key would stand.
    pub fn successor(&self, pages: &Pages, change: &Change<'_>, spot: Spot) -> Outcome<Successor> {
        assert_eq!(
            change.id(spot.leaf).space,
            self.space,
            "the leaf is the tree's"
        );
        let mut key = Vec::new();
        let leaf = TreePage::new(change.bytes(spot.leaf));
        let next = leaf.and_then(|leaf| {
            let slot = spot.slot + usize::from(spot.is_match);
            if slot < leaf.slot_count()? {
                leaf.append_key(slot, &mut key)?;
                return Some(Next::Entry);
            }
            Some(match leaf.append_upper(&mut key)? {
                true => Next::Leaf,
                false => Next::Nothing,
            })
        });
        let no_leaf = || damaged(change.id(spot.leaf), "a cell leaves the page");
        match next.ok_or_else(no_leaf)? {
            Next::Entry => Ok(Successor {
                key: Some(key),
                leaves: Vec::new(),
            }),
            Next::Leaf => self.first_from(pages, &key),
            Next::Nothing => Ok(Successor::default()),
        }
    }

    /// The first entry that is not below `key`.
    pub fn first_from(&self, pages: &Pages, key: &[u8]) -> Outcome<Successor> {
        let (mut place, mut run) = (Place::new(From::AtLeast, key), Run::new());
        let mut found = Successor::default();
        while place.from != From::Nothing {
            self.read_run(pages, &place, 1, &mut run)?;
            found.leaves.extend(run.leaf());
            if !run.is_empty() {
                let first = run.entry(0).0;
                assert!(key <= first, "a scan forward goes forward");
                found.key = Some(first.to_vec());
                break;
            }
            std::mem::swap(&mut place, &mut run.next);
        }
        Ok(found)
    }
}

/// Where the next entry stands.
enum Next {
    /// In the same leaf.
    Entry,
    /// In a later leaf, if anywhere.
    Leaf,
    /// Nowhere.
    Nothing,
}
