//! What the sessions of one worker share.

pub(crate) mod clock_hand;
pub(crate) mod compiled_routines;
pub(crate) mod held_plans;
pub(crate) mod parsed;
pub mod plan_cache;
pub(crate) mod prepared_texts;
pub(crate) mod program;
pub(crate) mod source;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use admission::Gate;
use catalog::NameSpace;
use env::Clock;
use store::{SchemaStore, Store, Xid};

use crate::lock::metadata::MetadataWorker;
use crate::metrics::Counters;
use crate::server::Server;
use crate::variables::system::LoginVariables;
use crate::worker::compiled_routines::CompiledRoutines;
use crate::worker::held_plans::HeldPlans;
use crate::worker::plan_cache::PlanCache;
use crate::worker::prepared_texts::PreparedTexts;
use crate::xa::detached::Detached;

/// One a worker.
pub struct Worker {
    /// What all workers share. Constant.
    pub server: Arc<Server>,
    /// The tables. Constant.
    pub store: Rc<dyn Store>,
    /// What changes them. Constant.
    pub schema: Rc<dyn SchemaStore>,
    /// What all connections share. Constant.
    pub front: Rc<front::Shared>,
    /// Which worker this is. Constant.
    pub index: usize,
    /// Where transactions enter. Constant.
    pub(crate) gate: Rc<Gate>,
    /// The access to metadata locks. Constant.
    pub metadata: MetadataWorker,
    /// The clock. Constant.
    clock: Rc<dyn Clock>,
    /// Plans of statements that were seen before.
    pub plans: RefCell<PlanCache>,
    /// Trees of prepared statements.
    pub(crate) prepared_texts: RefCell<PreparedTexts>,
    /// Compiled stored programs.
    pub(crate) programs: RefCell<CompiledRoutines>,
    /// Plans that statements of programs keep.
    pub(crate) held_plans: RefCell<HeldPlans>,
    /// Variables that the last login derived from its character set.
    pub(crate) login_variables: RefCell<LoginVariables>,
    /// Variables that the last session derived from its database.
    pub(crate) database_variables: RefCell<LoginVariables>,
    /// Prepared XA transactions whose sessions have ended.
    pub(crate) detached: RefCell<BTreeMap<Xid, Detached>>,
    /// Names at the last seen schema version of the store.
    names: RefCell<Rc<NameSpace>>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

impl Worker {
    /// The shared part of worker `index`.
    pub fn new(
        server: Arc<Server>,
        (store, schema): (Rc<dyn Store>, Rc<dyn SchemaStore>),
        front: Rc<front::Shared>,
        clock: Rc<dyn Clock>,
        index: usize,
    ) -> Rc<Self> {
        // Large memory is freed piece by piece, by tasks that sessions start after a command.
        stdx::deferred_drop::free_later();
        let names = RefCell::new(Rc::new(NameSpace::read(&*store)));
        let plan_memory = Arc::clone(&server.memory_pool);
        let metadata = MetadataWorker::new(index);
        let gate = Gate::new(Arc::clone(&server.admission), index);
        let worker = Rc::new(Self {
            server,
            store,
            schema,
            front,
            index,
            gate,
            metadata,
            clock,
            plans: RefCell::new(PlanCache::of_pool(plan_memory)),
            prepared_texts: RefCell::default(),
            programs: RefCell::default(),
            held_plans: RefCell::default(),
            login_variables: RefCell::default(),
            database_variables: RefCell::default(),
            detached: RefCell::default(),
            names,
        });
        worker.take_left_prepared();
        worker
    }

    /// All current names.
    pub fn names(&self) -> Rc<NameSpace> {
        let mut names = self.names.borrow_mut();
        if names.version() != self.store.schema_version() {
            *names = Rc::new(NameSpace::read(&*self.store));
        }
        Rc::clone(&names)
    }

    /// Moves with each change of a table or of a stored program, and where statistics have become
    /// others: plans hold for one version.
    pub fn plan_version(&self) -> u64 {
        // No part ever goes back, so that their sum stays only if all do.
        let tables = self.store.schema_version() + self.store.statistics_version();
        tables + self.server.routines_version()
    }

    /// This worker's counters.
    pub fn counters(&self) -> &Counters {
        self.server.counters(self.index)
    }

    /// Microseconds since 1970 UTC.
    pub fn wall_us(&self) -> i64 {
        i64::try_from(self.clock.wall_micros()).unwrap_or(i64::MAX)
    }

    /// Microseconds on a clock that never goes back.
    pub fn steady_us(&self) -> u64 {
        self.clock.now().nanos() / 1000
    }
}
