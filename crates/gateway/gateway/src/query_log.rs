//! [`QueryLog`]: a worker's part of the query log.
//!
//! Lines wait in a buffer of the worker. When it has a chunk of them, or a moment after the first,
//! they go to the log of all workers ([`query_log::Log`]), which is written on the thread for calls
//! on files. A statement costs its line, and no client waits.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::linux::SystemClock;
use env::{Clock, Instant};
use query_log::{Added, Buffer, Files, Filter, Line, Log, Stamp, Wake};

/// Lines are written after so long, though they are few.
const DELAY: Duration = Duration::from_millis(100);

/// What the query log is set to. Constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryLogOptions {
    /// Which statements are logged, beyond those that rules choose.
    pub filter: Filter,
    /// Where lines go.
    pub files: Files,
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct QueryLog {
    log: Arc<Log>,
    /// Of the present configuration, for sessions of all; `None` if nothing is logged.
    filter: Cell<Option<Filter>>,
    /// As [`Filter::kept_bytes`].
    kept_bytes: Cell<usize>,
    buffer: RefCell<Buffer>,
    stamp: RefCell<Stamp>,
}

impl QueryLog {
    /// Of a worker whose lines go to this log. It logs nothing yet.
    pub(crate) fn new(log: Arc<Log>) -> Rc<QueryLog> {
        Rc::new(QueryLog {
            filter: Cell::new(None),
            kept_bytes: Cell::new(0),
            buffer: RefCell::new(Buffer::new(Arc::clone(&log))),
            stamp: RefCell::default(),
            log,
        })
    }

    /// From now on these statements are logged.
    pub(crate) fn choose(&self, filter: Option<Filter>) {
        self.filter.set(filter);
        self.kept_bytes
            .set(filter.as_ref().map_or(0, Filter::kept_bytes));
    }

    /// Which statements are logged.
    #[inline]
    pub(crate) fn filter(&self) -> Option<Filter> {
        self.filter.get()
    }

    /// How much of a text has to be kept until its statement has ended.
    #[inline]
    pub(crate) fn kept_bytes(&self) -> usize {
        self.kept_bytes.get()
    }

    /// Logs a statement that has ended at this moment.
    pub(crate) fn add(self: &Rc<Self>, line: &Line<'_>, at: Instant, text_bytes_max: usize) {
        let look = || (SystemClock.now(), SystemClock.wall_micros());
        let mut stamp = self.stamp.borrow_mut();
        let added = self.buffer.borrow_mut().add(|out| {
            line.append(|out| stamp.append(at, look, out), text_bytes_max, out);
        });
        match added {
            Added::Behind => {}
            Added::First => {
                let this = Rc::clone(self);
                runtime::spawn_background(async move {
                    runtime::sleep(DELAY).await;
                    let wake = this.buffer.borrow_mut().flush();
                    write_soon(&this.log, wake);
                });
            }
            Added::Flushed(wake) => write_soon(&self.log, wake),
        }
    }
}

/// Has the lines written that wait, if there is anything to do.
pub(crate) fn write_soon(log: &Arc<Log>, wake: Wake) {
    if wake == Wake::Nobody {
        return;
    }
    let log = Arc::clone(log);
    let written = runtime::disk().later(Box::new(move |disk| {
        log.write(disk);
        Ok(())
    }));
    // The log itself tells what has failed.
    runtime::spawn_background(written);
}
