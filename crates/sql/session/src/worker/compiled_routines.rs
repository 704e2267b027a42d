//! [`CompiledRoutines`]: stored programs that sessions of a worker have run.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use catalog::{Routine, RoutineKey};
use foldhash::fast::FixedState;

use crate::worker::program::Compiled;

/// Compiled routines that a worker keeps. At the limit all are dropped.
const COMPILED_COUNT_MAX: usize = 256;

/// Compiled routines of one worker. An entry is valid for the routine it was compiled from; a
/// replacement is another `Arc`.
#[derive(Debug, Default)]
pub(crate) struct CompiledRoutines {
    by_key: HashMap<RoutineKey, (Arc<Routine>, Rc<Compiled>), FixedState>,
}

impl CompiledRoutines {
    pub(crate) fn find(&self, key: &RoutineKey, routine: &Arc<Routine>) -> Option<Rc<Compiled>> {
        let (of, compiled) = self.by_key.get(key)?;
        Arc::ptr_eq(of, routine).then(|| Rc::clone(compiled))
    }

    pub(crate) fn put(&mut self, key: RoutineKey, of: Arc<Routine>, compiled: Rc<Compiled>) {
        if COMPILED_COUNT_MAX <= self.by_key.len() {
            self.by_key.clear();
        }
        self.by_key.insert(key, (of, compiled));
    }
}
