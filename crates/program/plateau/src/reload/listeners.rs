//! [`Listeners`]: where clients of the gateway connect at the moment.

use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use gateway::Worker;
use runtime::{Address, Handle, Listener, Serving};

use crate::configuration::Place;
use crate::listen;

/// See the module's head.
pub(crate) struct Listeners {
    handle: Handle,
    /// With their names.
    open: Vec<(String, Serving)>,
}

/// Those that are bound for a new configuration, with their names. Nobody is accepted yet.
pub(crate) type Bound = Vec<(Listener, String)>;

impl Listeners {
    pub(crate) fn new(handle: Handle) -> Listeners {
        Listeners {
            handle,
            open: Vec::new(),
        }
    }

    /// Binds those of these places that are not open.
    ///
    /// # Errors
    /// One cannot be bound; none is.
    pub(crate) fn bind(&self, places: Vec<Place>) -> Result<Bound> {
        let is_open = |place: &Place| self.open.iter().any(|(name, _)| *name == place.name);
        let mut bound: Bound = Vec::new();
        for place in places.into_iter().filter(|it| !is_open(it)) {
            match Listener::bind(&place.address) {
                Ok(listener) => bound.push((listener, place.name)),
                Err(error) => {
                    bound.iter().for_each(|(listener, _)| forget(listener));
                    return Err(listen::explain(error));
                }
            }
        }
        Ok(bound)
    }

    /// Accepts clients at these, too.
    ///
    /// # Errors
    /// The kernel refuses some; the others are open.
    pub(crate) fn open(&mut self, bound: Bound) -> Result<()> {
        let mut failed = Vec::new();
        for (listener, name) in bound {
            let key: Arc<str> = name.as_str().into();
            let serve = move |stream| {
                let worker: Rc<Worker> = runtime::local().expect("each worker was given its part");
                gateway::serve(worker, Arc::clone(&key), stream)
            };
            match self.handle.serve(listener, serve) {
                Ok(serving) => self.open.push((name, serving)),
                Err(error) => failed.push(listen::explain(error).to_string()),
            }
        }
        match failed.is_empty() {
            true => Ok(()),
            false => Err(anyhow!(failed.join("; "))),
        }
    }

    /// Closes all but these. Their clients stay.
    pub(crate) fn close_others(&mut self, names: &[String]) {
        let all = std::mem::take(&mut self.open);
        let (kept, gone) = all.into_iter().partition(|(name, _)| names.contains(name));
        self.open = kept;
        for (_, serving) in Vec::into_iter(gone) {
            tracing::info!("clients are no longer accepted at {}", serving.address());
            serving.close();
        }
    }
}

/// Removes the file of a socket that is not used after all.
fn forget(listener: &Listener) {
    if let Address::Unix(path) = listener.address() {
        // What is left of it is replaced when the path is bound again.
        let _ = std::fs::remove_file(path);
    }
}
