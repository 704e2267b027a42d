//! What a client says: a few statements outside of transactions and in them.

use env::Random;

use super::SERVER_COUNT;
use super::cluster::{self, Deed};

/// A statement, and what it does on its server.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) deed: Deed,
}

impl Line {
    pub(super) fn new(text: &str, deed: Deed) -> Line {
        Line {
            text: text.to_owned(),
            deed,
        }
    }
}

/// Where a client is in its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scene {
    Outside,
    /// In a transaction that is open for so many statements.
    Inside(u32),
    /// It has a user lock.
    Locked,
}

/// Statements of a transaction before it ends.
const TRANSACTION_LINES_MAX: u32 = 6;

/// The next statement of a client.
pub(super) fn next(random: &mut Random, scene: Scene) -> Line {
    let line = Line::new;
    match scene {
        Scene::Inside(lines) if TRANSACTION_LINES_MAX <= lines => line("COMMIT", Deed::Commit),
        Scene::Inside(_) => match random.below(20) {
            0..5 => line("SELECT a FROM t WHERE b = 1", Deed::Read),
            5..9 => line("UPDATE t SET a = 1 WHERE b = 2", Deed::Write),
            9..14 => {
                let server = cluster::name(random.index(SERVER_COUNT));
                let text = format!("/* plateau: server={server} */ SELECT a FROM t FOR UPDATE");
                line(&text, Deed::Read)
            }
            14..18 => line("COMMIT", Deed::Commit),
            18 => line("CREATE TABLE u (a INT)", Deed::Define),
            _ => line("ROLLBACK", Deed::RollBack),
        },
        Scene::Locked => match random.below(4) {
            0 => line("DO RELEASE_ALL_LOCKS()", Deed::FreeLocks),
            1 => line("INSERT INTO t VALUES (1)", Deed::Write),
            _ => line("SELECT a FROM t WHERE b = 1", Deed::Read),
        },
        Scene::Outside => match random.below(22) {
            0..7 => line("SELECT a FROM t WHERE b = 1", Deed::Read),
            7..11 => line("INSERT INTO t VALUES (1)", Deed::Write),
            11..17 => line("BEGIN", Deed::Begin),
            17 => line("START TRANSACTION READ ONLY", Deed::BeginReadOnly),
            18 => line("SELECT GET_LOCK('a', 1)", Deed::TakeLock),
            19 => line("SELECT /* plateau: route=primary */ a FROM t", Deed::Read),
            _ => {
                let value = random.below(1_000);
                line(&cluster::set(value), Deed::Set(value))
            }
        },
    }
}
