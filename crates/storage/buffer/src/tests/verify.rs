//! Files that are read from end to end: each page is reported once, in whatever state.

use env::sim::Faults;

use super::*;

#[test]
fn every_page_of_a_file_is_looked_at() {
    let world = World::new(12);
    let pages = world.open(options(8, 1));
    let at_work = Rc::clone(&pages);
    world.run(async move {
        for page in [0, 1, 2, 6] {
            create(&at_work, page, 1).await.unwrap();
        }
        at_work.clean_all().await.unwrap();
    });
    world
        .disk
        .damage(Path::new("data/space_5.pdb"), 4096 + 24, 1);
    let disk = world.disk();
    let (whole, unwritten, damaged) = world.run(async move {
        let (mut whole, mut unwritten, mut damaged) = (0, 0, Vec::new());
        let mut see = |id: PageId, seen: Seen<'_>| match seen {
            Seen::Whole(header, page) => {
                assert_eq!((header.id, page.len()), (id, 4096));
                whole += 1;
            }
            Seen::Unwritten => unwritten += 1,
            Seen::Damaged(_) => damaged.push(id),
            Seen::Unreadable(error) => panic!("{error}"),
        };
        let directory = Path::new("data");
        verify_space(&*disk, directory, SPACE, PageSize::KiB4, &mut see)
            .await
            .unwrap();
        (whole, unwritten, damaged)
    });
    // Three pages were left out, four are the reserve, and the file has grown by one more.
    assert_eq!((whole, unwritten, damaged), (3, 8, vec![id(1)]));
}

/// If the disk refuses to read a stretch, its pages are read one by one, and each is reported once.
#[test]
fn pages_that_cannot_be_read_are_passed_over() {
    let world = World::new(13);
    let pages = world.open(options(8, 1));
    let at_work = Rc::clone(&pages);
    world.run(async move {
        create(&at_work, 0, 1).await.unwrap();
        at_work.clean_all().await.unwrap();
    });
    let mut has_mixed = false;
    for read_permille in [0, 1000].into_iter().chain([500; 20]) {
        world.disk.set_faults(Faults {
            read_permille,
            ..Faults::default()
        });
        let disk = world.disk();
        let (numbers, unread_count) = world.run(async move {
            let (mut numbers, mut unread_count) = (Vec::new(), 0);
            let mut see = |id: PageId, seen: Seen<'_>| {
                numbers.push(id.page.0);
                unread_count += usize::from(matches!(seen, Seen::Unreadable(_)));
            };
            let directory = Path::new("data");
            verify_space(&*disk, directory, SPACE, PageSize::KiB4, &mut see)
                .await
                .unwrap();
            (numbers, unread_count)
        });
        let count = numbers.len();
        assert_eq!(numbers, (0..5).collect::<Vec<_>>());
        let expected = match read_permille {
            0 => 0..=0,
            500 => 0..=count,
            _ => count..=count,
        };
        assert!(expected.contains(&unread_count), "{unread_count}");
        has_mixed |= (1..count).contains(&unread_count);
    }
    assert!(has_mixed, "a stretch with both");
}
