//! Limits at, below and above their values; and random statements beside a naive count.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

const SMALL: Limits = Limits {
    rows_max: 8,
    text_bytes_max: 64,
    whos_max: Limits::USUAL.whos_max,
};

fn who(number: usize) -> Arc<Who> {
    Arc::new(Who {
        service: "s".into(),
        user: format!("u{number}").into(),
        database: None,
    })
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn find(digests: &RefCell<Digests>, text: &str) -> Rc<Digest> {
    let number = |text: &[u8]| {
        text.iter()
            .fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(*byte))
    };
    let make = |text: &[u8]| (number(text), text.to_vec());
    digests.borrow().find(text.as_bytes(), make)
}

fn count(digests: &RefCell<Digests>, digest: &Rc<Digest>, who: &Arc<Who>, now: u64) {
    let finished = Finished {
        time: Duration::from_micros(3),
        ..Finished::default()
    };
    Digests::count(digests, Some(digest), who, at(now), &finished);
}

fn total(digests: &RefCell<Digests>) -> u64 {
    let rows = digests.borrow().rows();
    rows.iter().map(|it| it.tally.count).sum()
}

/// The row of a text.
fn row(digests: &RefCell<Digests>, text: Option<&str>) -> Option<Row> {
    let rows = digests.borrow().rows();
    let text = text.map(str::as_bytes);
    let mut rows = rows.into_iter();
    rows.find(|it| it.text.as_ref().map(|(_, text)| &**text) == text)
}

#[test]
fn what_people_must_not_see_is_not_shown() {
    let digests = RefCell::new(Digests::new(SMALL));
    let digest = |text: &str| {
        let make = |_: &[u8]| (7, b"SELECT ?".to_vec());
        digests.borrow().find(text.as_bytes(), make)
    };
    let (one, other) = (digest("SELECT 1"), digest("SELECT ?"));
    assert_ne!(one, other, "rules tell them apart");
    assert_eq!(
        (one.shown(), other.shown()),
        (&b"SELECT ?"[..], &b"SELECT ?"[..])
    );
    count(&digests, &one, &who(1), 1);
    assert_eq!(digests.borrow().text_bytes, 2 * b"SELECT ?".len());
    let text = digests.borrow().rows()[0].text.clone().unwrap();
    assert_eq!(&*text.1, b"SELECT ?");
}

#[test]
fn a_tally_has_the_sum_and_the_extremes() {
    let mut tally = Tally::default();
    let finished = |micros, is_failed, server| Finished {
        time: Duration::from_micros(micros),
        rows_sent: 2,
        rows_affected: 1,
        is_failed,
        is_kept: is_failed,
        server,
    };
    for (now, it) in [
        (5, finished(500, false, Some(0))),
        (6, finished(501, true, None)),
        (9, finished(11_000_000, false, Some(70))),
    ] {
        tally.count(at(now), &it);
    }
    assert_eq!((tally.count, tally.failed, tally.kept), (3, 1, 1));
    assert_eq!(tally.time_sum, Duration::from_micros(11_001_001));
    assert_eq!(tally.time_min, Duration::from_micros(500));
    assert_eq!(tally.time_max, Duration::from_secs(11));
    assert_eq!(tally.buckets, [0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!((tally.rows_sent, tally.rows_affected), (6, 3));
    assert_eq!((tally.first, tally.last), (at(5), at(9)));
    let has = [0, 1, 62, 63, 99].map(|server| tally.servers.has(server));
    assert_eq!(has, [true, false, false, true, true]);
    let mut sum = Tally::default();
    sum.add(&tally);
    sum.add(&Tally::default());
    assert_eq!(sum, tally);
    sum.add(&tally);
    assert_eq!((sum.count, sum.buckets[1], sum.first), (6, 2, at(5)));
}

#[test]
fn texts_of_one_digest_are_one_row_for_each_user() {
    let digests = RefCell::new(Digests::default());
    let (one, other) = (who(1), who(2));
    let digest = find(&digests, "SELECT ?");
    assert!(digests.borrow().rows().is_empty(), "it was only asked for");
    count(&digests, &digest, &one, 1);
    count(&digests, &find(&digests, "SELECT ?"), &one, 2);
    // Found before it was listed, as by two prepared statements.
    let stale = Rc::new(Digest {
        number: digest.number,
        text: Arc::clone(&digest.text),
        shown: Arc::clone(&digest.shown),
        counted: RefCell::default(),
    });
    count(&digests, &stale, &other, 3);
    Digests::count(&digests, None, &one, at(4), &Finished::default());
    assert_eq!(digests.borrow().row_count(), 2);
    let counts: Vec<_> = digests
        .borrow()
        .rows()
        .iter()
        .map(|it| it.tally.count)
        .collect();
    assert_eq!(counts, [2, 1, 1]);
    digests.borrow_mut().clear();
    assert!(digests.borrow().rows().is_empty());
    count(&digests, &digest, &one, 5);
    assert_eq!((total(&digests), digests.borrow().row_count()), (1, 1));
}

#[test]
fn what_was_not_counted_for_longest_goes_to_the_others() {
    for (rows, expected) in [(7, 7), (8, 8), (9, 4)] {
        let digests = RefCell::new(Digests::new(SMALL));
        for number in 0..rows {
            count(
                &digests,
                &find(&digests, &format!("{number}")),
                &who(0),
                number,
            );
        }
        assert_eq!(digests.borrow().row_count(), expected, "{rows}");
        assert_eq!(total(&digests), rows);
        let others = row(&digests, None).map_or(0, |it| it.tally.count);
        assert_eq!(others, rows - wide(expected));
        assert!(row(&digests, Some(&format!("{}", rows - 1))).is_some());
    }
    for (bytes, expected) in [(31, 2), (32, 2), (33, 0)] {
        let digests = RefCell::new(Digests::new(SMALL));
        for letter in ["a", "b"] {
            count(&digests, &find(&digests, &letter.repeat(bytes)), &who(0), 1);
        }
        let kept = digests.borrow().row_count();
        assert_eq!(kept, expected, "{bytes}");
        assert_eq!(total(&digests), 2);
    }
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).expect("it is small")
}

#[test]
fn a_digest_that_had_to_go_is_listed_when_it_is_counted_again() {
    let digests = RefCell::new(Digests::new(SMALL));
    let (first, user) = (find(&digests, "first"), who(0));
    count(&digests, &first, &user, 0);
    for number in 1..9 {
        count(
            &digests,
            &find(&digests, &format!("{number}")),
            &user,
            number,
        );
    }
    assert!(row(&digests, Some("first")).is_none());
    count(&digests, &first, &user, 10);
    let again = row(&digests, Some("first")).expect("it is there");
    assert_eq!((again.tally.count, again.tally.first), (1, at(10)));
    assert_eq!(total(&digests), 10);
}

#[test]
fn users_beyond_the_limit_share_a_row() {
    for (users, named, shared) in [(15, 15, 0), (16, 16, 0), (17, 16, 2), (18, 16, 4)] {
        let digests = RefCell::new(Digests::default());
        let digest = find(&digests, "SELECT ?");
        for user in 0..users {
            let user = who(user);
            count(&digests, &digest, &user, 1);
            count(&digests, &digest, &user, 2);
        }
        let rows = digests.borrow().rows();
        let of_all = rows.iter().filter(|it| it.who.is_none());
        assert_eq!(of_all.map(|it| it.tally.count).sum::<u64>(), shared);
        assert_eq!(rows.iter().filter(|it| it.who.is_some()).count(), named);
        assert_eq!(digests.borrow().row_count(), rows.len());
    }
}

proptest! {
    /// The rows of two workers are, together, what a naive count says, within the limits.
    #[test]
    fn nothing_is_lost(
        statements in prop::collection::vec((0..2_usize, 0..30_u64, 0..3_usize), 0..200),
    ) {
        let workers = [0, 1].map(|_| RefCell::new(Digests::new(SMALL)));
        let users: Vec<_> = (0..3).map(who).collect();
        let mut held: BTreeMap<(usize, u64), Rc<Digest>> = BTreeMap::new();
        let mut counted = 0;
        for (now, (worker, text, user)) in (1..).zip(statements) {
            let digests = &workers[worker];
            // Some remember their digest for good, as prepared statements do.
            let digest = match text % 3 {
                0 => Rc::clone(held.entry((worker, text)).or_insert_with(|| {
                    find(digests, &text.to_string())
                })),
                _ => find(digests, &text.to_string()),
            };
            count(digests, &digest, &users[user], now);
            counted += 1;
            let digests = digests.borrow();
            let rows = digests.rows();
            let texts = digests.listed.iter().map(|it| it.0.text.len()).sum::<usize>();
            let of_texts = rows.iter().filter(|it| it.text.is_some()).count();
            prop_assert_eq!((digests.text_bytes, digests.row_count), (texts, of_texts));
            prop_assert!(digests.row_count <= SMALL.rows_max);
            prop_assert!(texts <= SMALL.text_bytes_max);
            let newest = rows.iter().find(|it| it.tally.last == at(now));
            let newest = newest.and_then(|it| it.text.clone()).expect("it is listed");
            let text = text.to_string();
            prop_assert_eq!(&*newest.1, text.as_bytes());
        }
        let all: Vec<Row> = workers.iter().flat_map(|it| it.borrow().rows()).collect();
        let sums = sum(all);
        prop_assert_eq!(sums.iter().map(|it| it.tally.count).sum::<u64>(), counted);
        let keys: HashSet<_> =
            sums.iter().map(|it| (it.text.clone(), it.who.clone())).collect();
        prop_assert_eq!(keys.len(), sums.len());
    }
}
