//! [`Guidance`]: what a statement's own comment and the operator's rules say about its way.

use monitor::ServerId;
use syntax::class::Hint;

use crate::judge::Judged;
use crate::plan::Plan;
use crate::rules::Ruling;
use crate::session::Session;

/// See the module's head.
#[derive(Debug, Clone, Copy, Default)]
pub struct Guidance<'a> {
    /// The hint, and the place of the server that it names. A session whose statements have no
    /// choice among servers has none, and so has one that names a server of another service.
    pub hint: Option<(Hint<'a>, Option<ServerId>)>,
    /// What the rules say.
    pub ruling: Option<&'a Ruling>,
    /// Statements of the session have a choice among servers.
    pub is_routed: bool,
    /// The place of the server that the ruling names.
    pub ruled_to: Option<ServerId>,
}

impl Session {
    /// Has a plan do as a hint asks, and as rules say where that says nothing.
    pub fn lead(&self, plan: &mut Plan, judged: &Judged, guidance: &Guidance<'_>) {
        let mut is_hinted = false;
        if let Some((hint, server)) = &guidance.hint {
            self.guide(plan, hint, *server, judged);
            is_hinted = hint.server.is_some() || hint.route.is_some();
        }
        let Some(ruling) = guidance.ruling else {
            return;
        };
        plan.obey(ruling);
        if let Some(route) = &ruling.route
            && guidance.is_routed
            && !is_hinted
        {
            plan.follow(route, guidance.ruled_to, judged);
        }
    }
}
