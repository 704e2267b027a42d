//! [`Way`]: how the statements of a session find their server.

use crate::guest::Ruled;
use crate::options::{Router, SplitOptions};

use super::home::Home;

/// See the module's head.
#[derive(Debug)]
pub(super) enum Way {
    /// All go to one (`read-connection`).
    Home(Box<Home>),
    /// Each goes to the primary or to a replica (`read-write-split`).
    Split(SplitOptions),
}

impl Way {
    /// Of a session that begins, with the rules that it has to do with.
    pub(super) fn of(router: Router, ruled: &Ruled) -> Way {
        match router {
            Router::ReadConnection(role) => {
                let route = ruled.general_ruling().route;
                Way::Home(Box::new(Home::new(role, route)))
            }
            Router::ReadWriteSplit(options) => Way::Split(options),
        }
    }

    pub(super) fn split(&self) -> Option<&SplitOptions> {
        match self {
            Way::Home(_) => None,
            Way::Split(options) => Some(options),
        }
    }
}
