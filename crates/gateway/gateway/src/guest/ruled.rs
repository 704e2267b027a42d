//! [`Ruled`]: the rules that a client's session has to do with.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

use errcode::{ClientError, WORDS_REFUSED};
use front::{ClientInfo, Peer};
use router::{Decision, Judge, Judged, RuleSet, Ruling, SessionFacts};
use syntax::SqlMode;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Ruled {
    /// Of the worker, with all rules as they were when the session began.
    judge: Rc<RefCell<Judge>>,
    /// Those that the session meets; `None` if there are none.
    rules: Option<Box<RuleSet>>,
    /// A rule has a condition of the default database.
    looks_at_schema: bool,
    /// A character of the session's texts may end with the byte of a quote or a backslash.
    has_ascii_tails: bool,
}

/// Character sets in which the last byte of a character may be one of ASCII, and their collations.
const ASCII_TAILS: [(&[u8], &[u16]); 5] = [
    (b"big5", &[1, 84]),
    (b"sjis", &[13, 88]),
    (b"gbk", &[28, 87]),
    (b"cp932", &[95, 96]),
    (b"gb18030", &[248, 249, 250]),
];

impl Ruled {
    /// Of a session that begins.
    pub(crate) fn new(judge: Rc<RefCell<Judge>>, service: &str, client: &ClientInfo) -> Ruled {
        let looks_at_schema = judge.borrow().looks_at_schema();
        let mut ruled = Ruled {
            looks_at_schema,
            judge,
            rules: None,
            has_ascii_tails: false,
        };
        ruled.note_collation(client.collation);
        let schema = client.database.as_deref().map(str::as_bytes);
        ruled.look(service, client, schema);
        ruled
    }

    /// Of a session that nobody has begun, whose texts are UTF-8.
    pub(crate) fn of(judge: Rc<RefCell<Judge>>, facts: &SessionFacts<'_>) -> Ruled {
        let looks_at_schema = judge.borrow().looks_at_schema();
        let mut ruled = Ruled {
            looks_at_schema,
            judge,
            rules: None,
            has_ascii_tails: false,
        };
        ruled.meet(facts);
        ruled
    }

    /// Whether a rule has a condition of the default database.
    pub(crate) fn looks_at_schema(&self) -> bool {
        self.looks_at_schema
    }

    /// The session has this default database now.
    pub(crate) fn look(&mut self, service: &str, client: &ClientInfo, schema: Option<&[u8]>) {
        let facts = SessionFacts {
            service,
            user: &client.user,
            schema,
            address: match client.peer {
                Peer::Unix => IpAddr::V4(Ipv4Addr::LOCALHOST),
                Peer::Tcp(address) => address,
            },
        };
        self.meet(&facts);
    }

    fn meet(&mut self, facts: &SessionFacts<'_>) {
        let rules = self.judge.borrow().rules_of(facts);
        self.rules = (!rules.is_empty()).then(|| Box::new(rules));
    }

    /// Whether a rule may be about the session's statements.
    pub(crate) fn is_ruled(&self) -> bool {
        self.rules.is_some()
    }

    /// Whether such a rule has a condition of the text.
    pub(crate) fn looks_at_texts(&self) -> bool {
        let rules = self.rules.as_ref();
        rules.is_some_and(|it| self.judge.borrow().looks_at_texts(it))
    }

    /// The session's texts are in the character set of this collation now.
    pub(crate) fn note_collation(&mut self, collation: u16) {
        self.has_ascii_tails = has_ascii_tails(collation);
    }

    /// They are in this one.
    pub(crate) fn note_charset(&mut self, name: &[u8]) {
        let mut sets = ASCII_TAILS.iter();
        self.has_ascii_tails = sets.any(|(set, _)| set.eq_ignore_ascii_case(name));
    }

    /// What a text does. A text is read byte by byte, so one of such a character set may be
    /// another one for its server.
    pub(crate) fn judge(&self, text: &[u8], mode: SqlMode) -> Judged {
        let judged = self.judge.borrow_mut().judge(text, mode);
        match self.has_ascii_tails && !text.is_ascii() {
            true => judged.distrusted(),
            false => judged,
        }
    }

    /// Appends what the last text means that was judged ([`Judge::append_meaning`]).
    pub(crate) fn append_meaning(&self, text: &[u8], meaning: &mut Vec<u8>) -> bool {
        self.judge.borrow().append_meaning(text, meaning)
    }

    /// What is known of a text by its beginning.
    pub(crate) fn judge_unread(&self, text: &[u8], mode: SqlMode) -> Judged {
        self.judge.borrow().judge_unread(text, mode)
    }

    /// What the rules say about a statement; `None` if that is nothing.
    pub(crate) fn ruling(&self, judged: &Judged) -> Option<Rc<Ruling>> {
        let rules = self.rules.as_ref()?;
        self.judge.borrow_mut().ruling(rules, judged)
    }

    /// The rules that a statement would meet, each with what it decides.
    pub(crate) fn explain(&self, judged: &Judged) -> Vec<Decision> {
        let rules = self.rules.as_ref();
        rules.map_or_else(Vec::new, |it| self.judge.borrow().explain(it, judged))
    }

    /// What the rules say about all statements of the session.
    pub(crate) fn general_ruling(&self) -> Ruling {
        let rules = self.rules.as_ref();
        rules.map_or_else(Ruling::default, |it| self.judge.borrow().general_ruling(it))
    }
}

/// Whether a character of this collation's set may end with the byte of a quote or a backslash.
pub(crate) fn has_ascii_tails(collation: u16) -> bool {
    let mut sets = ASCII_TAILS.iter();
    sets.any(|(_, collations)| collations.contains(&collation))
}

/// The error that a client gets for a statement that a rule refuses.
pub(crate) fn refusal(ruling: &Ruling) -> Option<ClientError> {
    let text = ruling.refusal.as_ref()?;
    Some(ClientError::worded(WORDS_REFUSED, &[text]))
}
