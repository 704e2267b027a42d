//! The slotted page against a `BTreeMap`, and against damaged bytes.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const PAGE_BYTES: usize = 4096;

/// A random step.
#[derive(Debug, Clone)]
enum Step {
    Insert(Vec<u8>, Vec<u8>),
    Remove(usize),
    Splice(usize, usize, usize, Vec<u8>),
    Cut(usize),
    MoveUp,
}

fn step() -> impl Strategy<Value = Step> {
    let key = proptest::collection::vec(0u8..4, 0..9);
    let payload = proptest::collection::vec(any::<u8>(), 0..200);
    let piece = proptest::collection::vec(any::<u8>(), 0..60);
    prop_oneof![
        8 => (key, payload).prop_map(|(key, payload)| Step::Insert(key, payload)),
        2 => any::<usize>().prop_map(Step::Remove),
        4 => (any::<usize>(), any::<usize>(), any::<usize>(), piece)
            .prop_map(|(slot, offset, removed, piece)| Step::Splice(slot, offset, removed, piece)),
        1 => any::<usize>().prop_map(Step::Cut),
        1 => Just(Step::MoveUp),
    ]
}

/// The page, its twin, and the fences.
struct Pair {
    page: Vec<u8>,
    twin: BTreeMap<Vec<u8>, Vec<u8>>,
    upper: Option<Vec<u8>>,
}

const LOWER: &[u8] = b"\x01\x00";

impl Pair {
    fn new() -> Self {
        let mut page = vec![0; PAGE_BYTES];
        let upper = Some(vec![3, 3]);
        let shape = TreePageShape {
            level: 0,
            index_id: 9,
            lower: LOWER,
            upper: upper.as_deref(),
        };
        init(page.as_mut_slice(), shape).unwrap();
        Self {
            page,
            twin: BTreeMap::new(),
            upper,
        }
    }

    fn view(&self) -> TreePage<'_, [u8]> {
        TreePage::new(self.page.as_slice()).unwrap()
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Insert(key, payload) => self.insert(key, payload),
            Step::Remove(slot) => self.remove(slot),
            Step::Splice(slot, offset, removed, piece) => {
                self.splice(slot, offset, removed, &piece);
            }
            Step::Cut(slot) => self.cut(slot),
            Step::MoveUp => {
                absorb(self.page.as_mut_slice(), None, &[]).unwrap();
                self.upper = None;
            }
        }
        verify(&self.page).unwrap();
        self.compare();
    }

    fn insert(&mut self, key: Vec<u8>, payload: Vec<u8>) {
        if self.view().covers(&key) != Some(true) {
            let above = self.upper.as_ref().is_some_and(|upper| *upper <= key);
            assert!(key.as_slice() < LOWER || above);
            return;
        }
        let position = self.view().search(&key).unwrap();
        assert_eq!(position.is_match, self.twin.contains_key(&key));
        if position.is_match {
            return;
        }
        let cost = self.view().cell_cost(key.len(), payload.len()).unwrap();
        let fits = cost <= self.view().free_bytes().unwrap();
        let done = insert(self.page.as_mut_slice(), position.slot, &key, &payload);
        assert_eq!(done, if fits { Ok(()) } else { Err(ChangeError::Full) });
        if fits {
            self.twin.insert(key, payload);
        }
    }

    fn remove(&mut self, slot: usize) {
        let count = self.twin.len();
        if count == 0 {
            assert!(remove(self.page.as_mut_slice(), slot).is_err());
            return;
        }
        let key = self.twin.keys().nth(slot % count).unwrap().clone();
        remove(self.page.as_mut_slice(), slot % count).unwrap();
        self.twin.remove(&key);
    }

    fn splice(&mut self, slot: usize, offset: usize, removed: usize, piece: &[u8]) {
        if self.twin.is_empty() {
            return;
        }
        let slot = slot % self.twin.len();
        let free = self.view().free_bytes().unwrap();
        let payload = self.twin.values_mut().nth(slot).unwrap();
        let offset = offset % (payload.len() + 1);
        let removed = removed % (payload.len() - offset + 1);
        let grown = piece.len().saturating_sub(removed);
        let change = Splice {
            offset,
            removed,
            inserted: piece,
        };
        let done = splice(self.page.as_mut_slice(), slot, change);
        if free < grown {
            assert_eq!(done, Err(ChangeError::Full));
        } else {
            assert_eq!(done, Ok(()));
            payload.splice(offset..offset + removed, piece.iter().copied());
        }
    }

    fn cut(&mut self, slot: usize) {
        if self.twin.len() < 2 {
            return;
        }
        let from = 1 + slot % (self.twin.len() - 1);
        let keys: Vec<_> = self.twin.keys().cloned().collect();
        let separator = separator(&keys[from - 1], &keys[from]).to_vec();
        let mut moved = Vec::new();
        append_cells(self.view(), from..keys.len(), &mut moved).unwrap();
        cut(self.page.as_mut_slice(), from, &separator).unwrap();
        let mut rest = moved.as_slice();
        for key in &keys[from..] {
            let (moved_key, payload, after) = next_cell(rest).unwrap();
            assert_eq!(
                (moved_key, payload),
                (key.as_slice(), self.twin[key].as_slice())
            );
            rest = after;
        }
        assert!(rest.is_empty());
        self.twin.retain(|key, _| *key < separator);
        self.upper = Some(separator);
    }

    fn compare(&self) {
        let view = self.view();
        assert_eq!(view.slot_count(), Some(self.twin.len()));
        let costs = (0..self.twin.len()).map(|slot| view.slot_cost(slot));
        assert_eq!(view.live_bytes(), costs.sum());
        for (slot, (key, payload)) in self.twin.iter().enumerate() {
            let (mut found_key, mut found) = (Vec::new(), Vec::new());
            view.append_key(slot, &mut found_key).unwrap();
            view.append_payload(slot, &mut found).unwrap();
            assert_eq!((&found_key, &found), (key, payload));
            assert_eq!(
                view.search(key),
                Some(Position {
                    slot,
                    is_match: true
                })
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn behaves_as_a_sorted_map(steps in proptest::collection::vec(step(), 1..200)) {
        let mut pair = Pair::new();
        steps.into_iter().for_each(|step| pair.step(step));
    }

    #[test]
    fn damaged_bytes_are_errors(
        steps in proptest::collection::vec(step(), 1..40),
        damage in proptest::collection::vec((0..PAGE_BYTES, any::<u8>()), 1..40),
        key in proptest::collection::vec(any::<u8>(), 0..9),
        slot in 0usize..40,
    ) {
        let mut pair = Pair::new();
        steps.into_iter().for_each(|step| pair.step(step));
        for (at, byte) in damage {
            let at = if byte & 1 == 0 { at % 128 } else { at };
            pair.page[at] = byte;
        }
        let mut page = pair.page;
        let _ = verify(&page);
        if let Some(view) = TreePage::new(page.as_slice()) {
            let _ = (view.search(&key), view.search_child(&key), view.child(slot));
            let _ = (view.payload(slot), view.covers(&key), view.free_bytes());
            let _ = append_cells(view, 0..slot, &mut Vec::new());
        }
        let _ = insert(page.as_mut_slice(), slot, &key, &key);
        let _ = splice(page.as_mut_slice(), slot, Splice { offset: 0, removed: 1, inserted: &key });
        let _ = remove(page.as_mut_slice(), slot);
        let _ = cut(page.as_mut_slice(), slot, &key);
        let _ = absorb(page.as_mut_slice(), Some(&key), &key);
    }
}

#[test]
fn heads_order_as_their_suffixes_do() {
    let keys: [&[u8]; 6] = [b"", b"\0", b"a", b"ab", b"abcd", b"abce"];
    for pair in keys.windows(2) {
        assert!(pair[0] < pair[1]);
        assert!(key_head(pair[0]) <= key_head(pair[1]));
    }
}

#[test]
fn separators_are_short() {
    assert_eq!(separator(b"abc", b"abxyz"), b"abx");
    assert_eq!(separator(b"ab", b"abc"), b"abc");
    assert_eq!(separator(b"", b"b"), b"b");
}

#[test]
fn layout_is_pinned() {
    let mut page = vec![0xEE; PAGE_BYTES];
    let shape = TreePageShape {
        level: 0,
        index_id: 7,
        lower: b"ka",
        upper: Some(b"kz"),
    };
    init(page.as_mut_slice(), shape).unwrap();
    insert(page.as_mut_slice(), 0, b"kbcdefg", b"!").unwrap();
    let header = [
        0xB7, 0, 1, 0, 1, 0, 0xF1, 0x0F, 0, 0, 1, 0, 2, 0, 2, 0, 7, 0, 0, 0, 0, 0, 0, 0,
    ];
    assert_eq!(page[32..56], header);
    assert_eq!(page[56..62], [b'e', b'd', b'c', b'b', 0xF1, 0x0F]);
    assert_eq!(page[0xFF1..], *b"\x06\0\x01\0bcdefg!kzka");
}

#[test]
fn a_page_tells_how_many_entries_came_one_behind_the_other() {
    let mut page = vec![0; PAGE_BYTES];
    let shape = TreePageShape {
        level: 0,
        index_id: 7,
        lower: b"",
        upper: None,
    };
    init(page.as_mut_slice(), shape).unwrap();
    let run = |page: &[u8], slot| TreePage::new(page).unwrap().run_before(slot);
    assert_eq!(run(&page, 0), Some(0));
    assert_eq!(run(&page, 1), Some(0), "none was put");
    for number in 0..=258u16 {
        let slot = usize::from(number);
        insert(page.as_mut_slice(), slot, &number.to_be_bytes(), b"").unwrap();
        assert_eq!(run(&page, slot), Some(0));
        assert_eq!(run(&page, slot + 1), Some((slot + 1).min(256)));
    }
    insert(page.as_mut_slice(), 3, b"\0\x02\0", b"").unwrap();
    assert_eq!((run(&page, 4), run(&page, 260)), (Some(1), Some(0)));
    insert(page.as_mut_slice(), 4, b"\0\x02\x01", b"").unwrap();
    assert_eq!(run(&page, 5), Some(2));
    remove(page.as_mut_slice(), 4).unwrap();
    assert_eq!(run(&page, 4), Some(0), "the last one is gone");
    cut(page.as_mut_slice(), 100, b"\0\xff").unwrap();
    assert_eq!(run(&page, 100), Some(1), "they were not put one by one");
}

/// (I4) also holds for changes of many cells.
#[test]
fn a_change_of_many_cells_that_fails_has_changed_nothing() {
    let mut page = vec![0; PAGE_BYTES];
    let shape = TreePageShape {
        level: 0,
        index_id: 7,
        lower: b"",
        upper: None,
    };
    init(page.as_mut_slice(), shape).unwrap();
    for slot in 0..7_u8 {
        insert(
            page.as_mut_slice(),
            usize::from(slot),
            &[slot],
            &[slot; 500],
        )
        .unwrap();
    }
    let before = page.clone();
    let long = [9; 600];
    assert_eq!(cut(page.as_mut_slice(), 7, &long), Err(ChangeError::Full));
    assert_eq!(page, before);
    let mut cells = Vec::new();
    append_cells(TreePage::new(before.as_slice()).unwrap(), 0..7, &mut cells).unwrap();
    assert_eq!(extend(page.as_mut_slice(), &cells), Err(ChangeError::Full));
    assert_eq!(page, before);
    assert_eq!(
        absorb(page.as_mut_slice(), None, &cells),
        Err(ChangeError::Full)
    );
    assert_eq!(page, before);
}
