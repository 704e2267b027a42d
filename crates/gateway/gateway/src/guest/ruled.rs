//! [`Ruled`]: the rules that a client's session has to do with.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;

use errcode::{ClientError, WORDS_REFUSED};
use front::{ClientInfo, Peer};
use router::{Judge, Judged, RuleSet, Ruling, SessionFacts};
use syntax::SqlMode;
use wire::{SessionChange, SessionChanges};

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Ruled {
    /// The worker's, with all rules.
    judge: Rc<RefCell<Judge>>,
    /// The name of the session's service.
    service: Arc<str>,
    /// Those that the session meets.
    rules: RuleSet,
    /// A rule has a condition of the default database.
    looks_at_schema: bool,
}

impl Ruled {
    /// Of a session that begins.
    pub(crate) fn new(judge: Rc<RefCell<Judge>>, service: Arc<str>, client: &ClientInfo) -> Ruled {
        let looks_at_schema = judge.borrow().looks_at_schema();
        let mut ruled = Ruled {
            looks_at_schema,
            judge,
            service,
            rules: RuleSet::default(),
        };
        ruled.begin(client);
        ruled
    }

    /// The session begins, perhaps as another user.
    pub(crate) fn begin(&mut self, client: &ClientInfo) {
        self.look(client, client.database.as_deref().map(str::as_bytes));
    }

    /// The server has reported these changes of the session.
    pub(crate) fn note(&mut self, client: &ClientInfo, changes: &[u8]) {
        if !self.looks_at_schema {
            return;
        }
        for change in SessionChanges::decode(changes) {
            if let SessionChange::Schema(name) = change {
                self.look(client, Some(name));
            }
        }
    }

    /// The session has this default database now.
    fn look(&mut self, client: &ClientInfo, schema: Option<&[u8]>) {
        let facts = SessionFacts {
            service: &self.service,
            user: &client.user,
            schema,
            address: match client.peer {
                Peer::Unix => IpAddr::V4(Ipv4Addr::LOCALHOST),
                Peer::Tcp(address) => address,
            },
        };
        self.rules = self.judge.borrow().rules_of(&facts);
    }

    /// Whether a rule may be about the session's statements.
    pub(crate) fn is_ruled(&self) -> bool {
        !self.rules.is_empty()
    }

    /// What a text does.
    pub(crate) fn judge(&self, text: &[u8], mode: SqlMode) -> Judged {
        self.judge.borrow_mut().judge(text, mode)
    }

    /// What is known of a text by its beginning.
    pub(crate) fn judge_unread(&self, text: &[u8], mode: SqlMode) -> Judged {
        self.judge.borrow().judge_unread(text, mode)
    }

    /// What the rules say about a statement; `None` if that is nothing.
    pub(crate) fn ruling(&self, judged: &Judged) -> Option<Rc<Ruling>> {
        self.judge.borrow_mut().ruling(&self.rules, judged)
    }

    /// What the rules say about all statements of the session.
    pub(crate) fn general_ruling(&self) -> Ruling {
        self.judge.borrow().general_ruling(&self.rules)
    }
}

/// The error that a client gets for a statement that a rule refuses.
pub(crate) fn refusal(ruling: &Ruling) -> Option<ClientError> {
    let text = ruling.refusal.as_ref()?;
    Some(ClientError::worded(WORDS_REFUSED, &[text]))
}
