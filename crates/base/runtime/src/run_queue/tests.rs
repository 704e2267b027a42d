//! The queue against what its head promises: random histories, and an overloaded worker.

use std::collections::{HashMap, HashSet};

use env::Random;
use stdx::to_u64;

use super::*;

/// Work of a turn in the models: far less than a quantum.
const POLL: Duration = Duration::from_micros(10);

/// A client whose first request has come.
fn newcomer(class: TaskClass) -> Last {
    Last {
        class,
        quantum: Quantum::default(),
        has_left_transaction: false,
    }
}

/// A closed loop: clients that ask again as soon as they are answered.
struct Clients {
    queue: RunQueue<usize>,
    now: Instant,
    /// What a poll takes.
    poll: Duration,
    /// Of each client: the rest of its quantum, how often it was served, and since when it waits.
    clients: Vec<(Quantum, u64, Instant)>,
    /// The longest wait of a client.
    waited_max: Duration,
    /// By its number and how often it was served.
    class: fn(usize, u64) -> TaskClass,
}

impl Clients {
    fn new(count: usize, class: fn(usize, u64) -> TaskClass) -> Self {
        let now = Instant::from_nanos(1);
        let mut all = Self {
            queue: RunQueue::new(),
            now,
            poll: POLL,
            clients: vec![(Quantum::default(), 0, now); count],
            waited_max: Duration::ZERO,
            class,
        };
        (0..count).for_each(|client| all.hear(client));
        all
    }

    fn hear(&mut self, client: usize) {
        let (quantum, count, since) = &mut self.clients[client];
        let class = (self.class)(client, *count);
        *since = self.now;
        let before = count
            .checked_sub(1)
            .map(|count| (self.class)(client, count));
        let last = Last {
            class,
            quantum: *quantum,
            has_left_transaction: class == TaskClass::OutsideTransaction
                && before == Some(TaskClass::InTransaction),
        };
        self.queue.push_readable(client, last);
    }

    /// A turn, after which the served clients ask again.
    fn turn(&mut self) {
        self.queue.begin_turn(self.now);
        let mut served = Vec::new();
        while let Some((client, left)) = self.queue.pop() {
            let (quantum, count, since) = &mut self.clients[client];
            (*quantum, *count) = (left.unwrap(), *count + 1);
            self.waited_max = self.waited_max.max(self.now.since(*since));
            self.now = self.now + self.poll;
            served.push(client);
        }
        self.now = self.now + self.poll;
        served.into_iter().for_each(|client| self.hear(client));
    }

    fn run(&mut self, duration: Duration) {
        let end = self.now + duration;
        while self.now < end {
            self.turn();
        }
    }

    fn counts(&self, class: TaskClass) -> (u64, u64) {
        let all = self.clients.iter().enumerate();
        let counts = all
            .filter(|(client, (_, count, _))| (self.class)(*client, *count) == class)
            .map(|(_, (_, count, _))| *count);
        let counts: Vec<u64> = counts.collect();
        (*counts.iter().min().unwrap(), *counts.iter().max().unwrap())
    }
}

/// The longest turn of the models, by which a quantum may be exceeded.
const TURN_MAX: Duration = Duration::from_millis(2);

/// The time in which `count` tasks are admitted, by (Q4).
fn admissions(count: usize) -> Duration {
    (QUANTUM_MAX + TURN_MAX) * u32::try_from(count / COHORT_COUNT + 1).unwrap()
}

#[test]
fn all_are_served_alike_within_their_bound() {
    for count in [FEW_COUNT_MAX + 1, 128, 129, 1000, 2048] {
        let mut clients = Clients::new(count, |_, _| TaskClass::OutsideTransaction);
        clients.run(admissions(count) * 20);
        assert!(clients.waited_max <= admissions(count), "{count}");
        let (least, most) = clients.counts(TaskClass::OutsideTransaction);
        assert!(
            most <= least + 2 * u64::from(QUANTUM_COUNT),
            "{count}: {least} to {most}"
        );
    }
}

#[test]
fn few_clients_go_first_come_first_served() {
    for count in [1, COHORT_COUNT, COHORT_COUNT + 1, FEW_COUNT_MAX] {
        let mut clients = Clients::new(count, |client, served| {
            if (to_u64(client) + served).is_multiple_of(5) {
                TaskClass::OutsideTransaction
            } else {
                TaskClass::InTransaction
            }
        });
        for turn in 1..200 {
            clients.turn();
            assert!(
                clients.clients.iter().all(|(_, served, _)| *served == turn),
                "{count}"
            );
        }
    }
}

#[test]
fn one_of_few_waits_for_no_quantum_once_the_many_have_gone() {
    let mut queue = RunQueue::new();
    (0..1000).for_each(|task| queue.push_readable(task, newcomer(TaskClass::OutsideTransaction)));
    let mut polled = Vec::new();
    while polled.len() < 1000 - FEW_COUNT_MAX {
        queue.begin_turn(Instant::from_nanos(1));
        polled.extend(std::iter::from_fn(|| queue.pop()));
    }
    let rest = 1000 - polled.len();
    queue.begin_turn(Instant::from_nanos(1));
    assert!(COHORT_COUNT < rest && std::iter::from_fn(|| queue.pop()).count() == rest);
}

#[test]
fn a_cohort_is_served_over_and_over_and_then_another() {
    let mut clients = Clients::new(1024, |_, _| TaskClass::InTransaction);
    let served = |clients: &Clients, range: std::ops::Range<usize>| {
        let counts = clients.clients[range].iter().map(|(_, count, _)| *count);
        counts.collect::<HashSet<_>>()
    };
    // The first came when no other waited.
    let (first, second) = (FEW_COUNT_MAX, FEW_COUNT_MAX + COHORT_COUNT);
    let quantum = u64::from(QUANTUM_COUNT);
    for turn in 1..=quantum {
        clients.turn();
        assert_eq!(served(&clients, 0..first), HashSet::from([turn]));
        assert_eq!(served(&clients, first..1024), HashSet::from([0]));
    }
    for turn in 1..=quantum {
        clients.turn();
        assert_eq!(served(&clients, 0..first), HashSet::from([quantum]));
        assert_eq!(served(&clients, first..second), HashSet::from([turn]));
        assert_eq!(served(&clients, second..1024), HashSet::from([0]));
    }
}

#[test]
fn clients_outside_of_transactions_are_served_in_turn() {
    let mut clients = Clients::new(1024, |_, _| TaskClass::OutsideTransaction);
    clients.run(POLL * 1024 * 70);
    let (least, most) = clients.counts(TaskClass::OutsideTransaction);
    assert!(40 < least && most <= least + 1, "{least} to {most}");
}

/// The first statement of a transaction counts in its quantum: a quantum that began outside of it
/// goes on for as long as one inside of it.
#[test]
fn who_begins_a_transaction_keeps_its_stay() {
    let class = |_, served| match served {
        0 => TaskClass::OutsideTransaction,
        _ => TaskClass::InTransaction,
    };
    let mut clients = Clients::new(1024, class);
    for turn in 1..=u64::from(QUANTUM_COUNT) {
        clients.turn();
        assert_eq!(clients.clients[0].1, turn);
    }
}

#[test]
fn the_engaged_go_first_and_the_free_keep_their_part() {
    let in_transaction = |client: usize, _| {
        if client < 1000 {
            TaskClass::InTransaction
        } else {
            TaskClass::OutsideTransaction
        }
    };
    let mut clients = Clients::new(2000, in_transaction);
    let round = admissions(1001 * OUTSIDE_EVERY);
    clients.run(round * 2);
    assert!(clients.waited_max <= round);
    let (in_transaction, free) = (
        clients.counts(TaskClass::InTransaction),
        clients.counts(TaskClass::OutsideTransaction),
    );
    assert!(free.1 < in_transaction.0, "{in_transaction:?}, {free:?}");
    assert!(0 < free.0);
}

/// Polls `count` times at most, as turns do; the served clients ask again.
fn polls(
    clients: &mut Clients,
    count: usize,
    again: impl Fn(&mut RunQueue<usize>, usize),
) -> usize {
    clients.queue.begin_turn(clients.now);
    let popped = std::iter::from_fn(|| clients.queue.pop()).take(count);
    let polled: Vec<(usize, Option<Quantum>)> = popped.collect();
    clients.now = clients.now + Duration::from_millis(1);
    for &(task, quantum) in &polled {
        if task < clients.clients.len() {
            clients.clients[task].0 = quantum.unwrap();
            clients.clients[task].1 += 1;
            clients.hear(task);
        } else {
            again(&mut clients.queue, task);
        }
    }
    let others = polled
        .iter()
        .filter(|(task, _)| clients.clients.len() <= *task);
    others.count()
}

#[test]
fn transactions_that_were_begun_are_ended_before_many_others_begin() {
    let statements = |_, count: u64| match count % 20 {
        0 => TaskClass::OutsideTransaction,
        _ => TaskClass::InTransaction,
    };
    let mut clients = Clients::new(2048, statements);
    clients.poll = Duration::from_micros(35);
    clients.run(Duration::from_secs(20));
    let begun = clients
        .clients
        .iter()
        .filter(|(_, count, _)| count % 20 != 0);
    let begun = begun.count();
    assert!(begun <= 2 * COHORT_COUNT, "{begun}");
    let counts = clients.clients.iter().map(|(_, count, _)| count / 20);
    let (least, most) = (counts.clone().min().unwrap(), counts.max().unwrap());
    assert!(most <= least + 2, "{least} to {most}");
}

#[test]
fn what_yields_neither_stops_clients_nor_is_stopped() {
    // Polls of a turn beside those of clients.
    const OTHERS: usize = 8;
    for (yielding, least, most) in [(1, 2000, 2000), (10, 2000, 2000 * OTHERS)] {
        let mut clients = Clients::new(2000, |_, _| TaskClass::OutsideTransaction);
        clients.run(QUANTUM_MAX * 3);
        (5000..5000 + yielding).for_each(|task| clients.queue.push_yielded(task));
        let mut yielded_count = 0;
        for _ in 0..2000 {
            // Turns are short if yielding tasks take long.
            let poll_count = COHORT_COUNT + OTHERS;
            yielded_count += polls(&mut clients, poll_count, RunQueue::push_yielded);
        }
        let is_expected = (least..=most).contains(&yielded_count);
        assert!(is_expected, "{yielding}: {yielded_count}");
        assert!(0 < clients.counts(TaskClass::OutsideTransaction).0);
    }
}

#[test]
fn many_that_are_always_ready_stop_no_other() {
    let mut clients = Clients::new(300, |_, _| TaskClass::OutsideTransaction);
    (5000..5100).for_each(|task| clients.queue.push_ready(task));
    clients.queue.push_yielded(6000);
    for _ in 0..1000 {
        polls(&mut clients, 20, |queue, task| match task {
            6000 => queue.push_yielded(task),
            _ => queue.push_ready(task),
        });
    }
    assert!(0 < clients.counts(TaskClass::OutsideTransaction).0);
}

#[test]
fn who_was_admitted_and_not_served_keeps_its_place() {
    let mut queue = RunQueue::new();
    let mut now = Instant::from_nanos(1);
    for task in 0..1000 {
        let class = [TaskClass::InTransaction, TaskClass::OutsideTransaction][task % 2];
        queue.push_readable(task, newcomer(class));
    }
    let (mut in_transaction, mut free) = (Vec::new(), Vec::new());
    while !queue.is_empty() {
        queue.begin_turn(now);
        // The kernel gave the core to other programs for longer than a quantum.
        now = now + QUANTUM_MAX;
        for (task, _) in std::iter::from_fn(|| queue.pop()).take(10) {
            [&mut in_transaction, &mut free][task % 2].push(task);
        }
    }
    assert!(in_transaction.is_sorted() && free.is_sorted());
    assert_eq!(in_transaction.len() + free.len(), 1000);
}

#[test]
fn nothing_waits_while_there_is_nothing_else() {
    let mut queue = RunQueue::new();
    let now = Instant::from_nanos(1);
    (0..1000).for_each(|task| queue.push_readable(task, newcomer(TaskClass::OutsideTransaction)));
    let mut order = Vec::new();
    for _ in 0..1000 {
        queue.begin_turn(now);
        let before = order.len();
        order.extend(std::iter::from_fn(|| queue.pop()).map(|(task, _)| task));
        assert!(before < order.len() || queue.is_empty());
    }
    assert_eq!(order, (0..1000).collect::<Vec<_>>());
}

/// A thousand clients wait, and the first few of them were served in a turn.
fn overloaded(now: Instant) -> RunQueue<usize> {
    let mut queue = RunQueue::new();
    (0..1000).for_each(|task| queue.push_readable(task, newcomer(TaskClass::OutsideTransaction)));
    assert_eq!(served(&mut queue, now), FEW_COUNT_MAX);
    queue
}

/// The number of tasks that a turn serves.
fn served(queue: &mut RunQueue<usize>, now: Instant) -> usize {
    queue.begin_turn(now);
    std::iter::from_fn(|| queue.pop()).count()
}

/// (Q6) Tasks that wait for their commits come back by themselves. At the limit, not below, others
/// are admitted only if there is no other task to serve.
#[test]
fn others_wait_for_many_commits() {
    let now = Instant::from_nanos(1);
    let mut queue = overloaded(now);
    let staying = Last {
        quantum: Quantum::begin(queue.now),
        ..newcomer(TaskClass::OutsideTransaction)
    };
    (1..COMMIT_WAITERS_COUNT).for_each(|_| queue.note_committing());
    queue.push_readable(0, staying);
    assert_eq!(
        served(&mut queue, now),
        COHORT_COUNT,
        "one that stays, and others"
    );
    queue.note_committing();
    queue.push_readable(0, staying);
    assert_eq!(served(&mut queue, now), 1, "the one that stays");
    for _ in 0..3 {
        queue.push_ready(1);
        assert_eq!(served(&mut queue, now), 1, "the one that goes on");
    }
    assert_eq!(served(&mut queue, now), COHORT_COUNT);
    queue.note_committed();
    queue.push_readable(0, staying);
    assert_eq!(served(&mut queue, now), COHORT_COUNT);
}

/// (Q6) Tasks that commit over and over hold up no client for longer than the gap.
#[test]
fn commits_without_end_hold_others_up_for_the_gap_at_most() {
    let begin = Instant::from_nanos(1);
    let mut queue = overloaded(begin);
    (0..COMMIT_WAITERS_COUNT).for_each(|_| queue.note_committing());
    let mut turn_at = |millis| {
        queue.push_ready(0);
        served(&mut queue, begin + Duration::from_millis(millis))
    };
    assert_eq!([turn_at(1), turn_at(9)], [1, 1]);
    assert_eq!(turn_at(10), 1 + COHORT_COUNT);
    assert_eq!([turn_at(11), turn_at(19)], [1, 1]);
    assert_eq!(turn_at(20), 1 + COHORT_COUNT);
}

/// (Q7) Commits are waited for before others are admitted, and again while a wait brings a client.
#[test]
fn commits_are_waited_for_until_it_is_in_vain() {
    let now = Instant::from_nanos(1);
    let mut queue = overloaded(now);
    (1..COMMIT_WAITERS_COUNT).for_each(|_| queue.note_committing());
    assert!(
        !queue.may_wait_for_commits(),
        "one too few wait for commits"
    );
    queue.note_committing();
    for _ in 0..COMMIT_WAITS_MAX {
        assert!(queue.may_wait_for_commits());
        queue.push_ready(1);
        queue.note_waited();
        assert!(
            !queue.may_wait_for_commits(),
            "a commit that is back is served first"
        );
        assert_eq!(served(&mut queue, now), 1);
    }
    assert!(!queue.may_wait_for_commits(), "it has waited often");
    queue.note_committed();
    queue.note_committing();
    for _ in 0..VAIN_WAITS_MAX {
        assert!(queue.may_wait_for_commits());
        queue.note_waited();
    }
    assert!(!queue.may_wait_for_commits(), "no commit is back");
    queue.push_ready(1);
    assert_eq!(served(&mut queue, now), 1);
    assert!(!queue.may_wait_for_commits(), "no commit has come");
    assert_eq!(served(&mut queue, now), COHORT_COUNT);
    queue.note_committed();
    assert!(
        !queue.may_wait_for_commits(),
        "one too few wait for commits"
    );
    queue.note_committing();
    assert!(queue.may_wait_for_commits());
    queue.push_readable(1, newcomer(TaskClass::Committing));
    assert!(
        !queue.may_wait_for_commits(),
        "a commit that is back is served first"
    );
    assert_eq!(served(&mut queue, now), 1);
    assert!(queue.may_wait_for_commits());
    while FEW_COUNT_MAX < queue.waiting_count() {
        assert!(0 < served(&mut queue, now));
    }
    assert!(!queue.may_wait_for_commits(), "a few are all admitted");
}

/// (Q6) A task that computes for long, as purge does while rows are changed, does not keep commits
/// from being waited for, nor others from being admitted. It is served in each turn.
#[test]
fn yielded_tasks_wait_for_commits_with_the_others() {
    let now = Instant::from_nanos(1);
    let mut queue = overloaded(now);
    (0..COMMIT_WAITERS_COUNT).for_each(|_| queue.note_committing());
    queue.push_yielded(0);
    assert!(queue.may_wait_for_commits());
    queue.push_ready(1);
    queue.note_waited();
    assert_eq!(
        served(&mut queue, now),
        2,
        "the commit that is back, and the task that yielded"
    );
    queue.push_yielded(0);
    for _ in 0..VAIN_WAITS_MAX {
        assert!(queue.may_wait_for_commits());
        queue.note_waited();
    }
    assert!(!queue.may_wait_for_commits(), "no commit is back");
    assert_eq!(served(&mut queue, now), 1 + COHORT_COUNT);
}

/// (Q1) and (Q2) in random histories. Everything comes out once. Of two tasks that came in the same
/// way, and were not served in between, the first comes first.
#[test]
fn nothing_is_lost_and_equals_keep_their_order() {
    for seed in 0..50 {
        let mut random = Random::new(seed);
        let mut queue = RunQueue::new();
        let mut now = Instant::from_nanos(1);
        let (mut inside, mut next) = (HashSet::new(), 0usize);
        // By class. Numbers grow, so each kind of newcomers must come out ascending.
        let mut last: HashMap<u8, usize> = HashMap::new();
        let mut kinds: Vec<TaskClass> = Vec::new();
        let mut yielded = HashSet::new();
        let mut committing_count = 0;
        for _ in 0..2000 {
            match random.below(6) {
                0 | 1 => {
                    for _ in 0..random.below(40) {
                        let class = [
                            TaskClass::Busy,
                            TaskClass::Committing,
                            TaskClass::InTransaction,
                            TaskClass::OutsideTransaction,
                        ][random.index(4)];
                        kinds.push(class);
                        queue.push_readable(next, newcomer(class));
                        inside.insert(next);
                        next += 1;
                    }
                }
                2 => queue.begin_turn(now),
                3 => {
                    queue.push_yielded(next);
                    yielded.insert(next);
                    kinds.push(TaskClass::Busy);
                    inside.insert(next);
                    next += 1;
                }
                4 => {
                    (0..committing_count).for_each(|_| queue.note_committed());
                    committing_count = random.index(2 * COMMIT_WAITERS_COUNT);
                    (0..committing_count).for_each(|_| queue.note_committing());
                }
                _ => {
                    for _ in 0..random.below(60) {
                        let Some((task, _)) = queue.pop() else { break };
                        assert!(inside.remove(&task), "it comes out once");
                        let kind = if yielded.contains(&task) {
                            u8::MAX
                        } else {
                            kinds[task] as u8
                        };
                        let before = last.insert(kind, task);
                        let is_later = before.is_none_or(|before| before < task);
                        assert!(is_later);
                    }
                }
            }
            now = now + Duration::from_micros(random.below(3000));
        }
        loop {
            queue.begin_turn(now);
            let Some((task, _)) = queue.pop() else { break };
            assert!(inside.remove(&task));
        }
        assert!(inside.is_empty() && queue.is_empty());
    }
}

/// A quantum lasts for its statements, but not beyond `QUANTUM_MAX`.
#[test]
fn a_stay_lasts_for_its_statements_or_its_time() {
    let quantum = u64::from(QUANTUM_COUNT);
    for (poll_us, least, most) in [
        (1, quantum, quantum),
        (1000, 2, quantum / 2),
        (10_000, 1, 2),
    ] {
        let mut clients = Clients::new(2000, |_, _| TaskClass::InTransaction);
        clients.poll = Duration::from_micros(poll_us);
        while clients.clients[FEW_COUNT_MAX].1 == 0 {
            clients.turn();
        }
        let statements = clients.clients[0].1;
        let is_expected = (least..=most).contains(&statements);
        assert!(is_expected, "{poll_us} us: {statements}");
    }
}

/// The worker prefetches what this says.
#[test]
fn the_next_tasks_are_known() {
    let mut queue = RunQueue::new();
    queue.begin_turn(Instant::from_nanos(1));
    (0..3).for_each(|task| queue.push_ready(task));
    (3..6).for_each(|task| queue.push_readable(task, newcomer(TaskClass::OutsideTransaction)));
    let mut served = Vec::new();
    while !queue.is_empty() {
        let expected: Vec<_> = (0..6).map_while(|at| queue.cold_at(at).copied()).collect();
        assert_eq!(expected.len(), 6 - served.len());
        let (task, _) = queue.pop().unwrap();
        assert_eq!(expected.first(), Some(&task));
        served.push(task);
    }
    assert_eq!(served, [0, 1, 2, 3, 4, 5]);
}

/// Those that become ready during a round are served at the head of the next one.
#[test]
fn the_head_of_the_next_round_is_known() {
    let mut queue = RunQueue::new();
    queue.begin_turn(Instant::from_nanos(1));
    (0..3).for_each(|task| queue.push_readable(task, newcomer(TaskClass::OutsideTransaction)));
    assert_eq!(queue.pop().unwrap().0, 0);
    (3..5).for_each(|task| queue.push_ready(task));
    let known: Vec<_> = (0..5).map_while(|at| queue.cold_at(at).copied()).collect();
    assert_eq!(known, [1, 2, 3, 4]);
    let served: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|it| it.0).collect();
    assert_eq!(served, known);
}

/// What is in the cache needs no prefetch.
#[test]
fn a_task_that_was_served_lately_is_not_cold() {
    let mut queue = RunQueue::new();
    let began = Instant::from_nanos(1);
    for (later, is_cold) in [
        (WARM_MAX - Duration::from_nanos(1), false),
        (WARM_MAX, true),
    ] {
        queue.begin_turn(began + later);
        let last = Last {
            quantum: Quantum::begin(began),
            ..newcomer(TaskClass::InTransaction)
        };
        queue.push_readable(7, last);
        assert_eq!(queue.cold_at(0), is_cold.then_some(&7), "{later:?}");
        assert_eq!(queue.pop().unwrap().0, 7);
    }
}
