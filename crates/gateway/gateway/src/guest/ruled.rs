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
    /// A byte that is none of ASCII, and white space in the session's texts.
    blank: Option<u8>,
}

/// Character sets in which the last byte of a character may be one of ASCII, and their collations.
const ASCII_TAILS: [(&[u8], &[u16]); 5] = [
    (b"big5", &[1, 84]),
    (b"sjis", &[13, 88]),
    (b"gbk", &[28, 87]),
    (b"cp932", &[95, 96]),
    (b"gb18030", &[248, 249, 250]),
];

/// Character sets in which a byte beyond ASCII is white space, and their collations. Measured with
/// `SELECT` before each byte (MariaDB 10.11); in others of one byte it is a letter or an error.
const BLANKS: [(&[u8], u8, &[u16]); 13] = [
    (b"latin1", 0xa0, &[5, 8, 15, 31, 47, 48, 49, 94, 1032, 1071]),
    (b"latin2", 0xa0, &[2, 9, 21, 27, 77, 1033, 1101]),
    (b"latin5", 0xa0, &[30, 78, 1054, 1102]),
    (b"latin7", 0xa0, &[20, 41, 42, 79, 1065, 1103]),
    (b"cp1250", 0xa0, &[26, 34, 44, 66, 99, 1050, 1090]),
    (b"greek", 0xa0, &[25, 70, 1049, 1094]),
    (b"hebrew", 0xa0, &[16, 71, 1040, 1095]),
    (b"dec8", 0xa0, &[3, 69, 1027, 1093]),
    (b"armscii8", 0xa0, &[32, 64, 1056, 1088]),
    (b"geostd8", 0xa0, &[92, 93, 1116, 1117]),
    (b"cp852", 0xff, &[40, 81, 1064, 1105]),
    (b"cp866", 0xff, &[36, 68, 1060, 1092]),
    (b"keybcs2", 0xff, &[37, 73, 1061, 1097]),
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
            blank: None,
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
            blank: None,
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
        self.blank = blank_of(collation);
    }

    /// They are in this one.
    pub(crate) fn note_charset(&mut self, name: &[u8]) {
        let mut sets = ASCII_TAILS.iter();
        self.has_ascii_tails = sets.any(|(set, _)| set.eq_ignore_ascii_case(name));
        let set = BLANKS
            .iter()
            .find(|(set, ..)| set.eq_ignore_ascii_case(name));
        self.blank = set.map(|(_, blank, _)| *blank);
    }

    /// What a text does. A text is read byte by byte, so one of such a character set may be
    /// another one for its server.
    pub(crate) fn judge(&self, text: &[u8], mode: SqlMode) -> Judged {
        let blank = self.blank.filter(|blank| text.contains(blank));
        let as_server = blank.map(|blank| self.judge_with_spaces(text, blank, mode));
        // Last, since what the text means is asked for later.
        let judged = self.judge.borrow_mut().judge(text, mode);
        let is_like = as_server.is_none_or(|it| it.does_like(&judged));
        match !is_like || self.has_ascii_tails && !text.is_ascii() {
            true => judged.distrusted(),
            false => judged,
        }
    }

    /// What a text does, with spaces in the place of what its server takes for white space.
    fn judge_with_spaces(&self, text: &[u8], blank: u8, mode: SqlMode) -> Judged {
        let mut text = text.to_vec();
        for byte in text.iter_mut().filter(|byte| **byte == blank) {
            *byte = b' ';
        }
        self.judge.borrow_mut().judge(&text, mode)
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

/// Whether a server reads a text in the character set of this collation as it is read here, byte by
/// byte.
pub(crate) fn is_read_alike(text: &[u8], collation: u16) -> bool {
    let has_blank = blank_of(collation).is_some_and(|blank| text.contains(&blank));
    text.is_ascii() || !has_ascii_tails(collation) && !has_blank
}

/// Whether a character of this collation's set may end with the byte of a quote or a backslash.
fn has_ascii_tails(collation: u16) -> bool {
    let mut sets = ASCII_TAILS.iter();
    sets.any(|(_, collations)| collations.contains(&collation))
}

/// The byte beyond ASCII that is white space in this collation's set.
fn blank_of(collation: u16) -> Option<u8> {
    let mut sets = BLANKS.iter();
    let set = sets.find(|(_, _, collations)| collations.contains(&collation));
    set.map(|(_, blank, _)| *blank)
}

/// The error that a client gets for a statement that a rule refuses.
pub(crate) fn refusal(ruling: &Ruling) -> Option<ClientError> {
    let text = ruling.refusal.as_ref()?;
    Some(ClientError::worded(WORDS_REFUSED, &[text]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use syntax::class::Class;

    #[test]
    fn a_text_is_trusted_if_its_server_reads_it_alike() {
        let facts = SessionFacts {
            service: "split",
            user: "app",
            schema: None,
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        let judge = Judge::default().looking_at_tables();
        let mut ruled = Ruled::of(Rc::new(RefCell::new(judge)), &facts);
        let query = Class::Query;
        for (charset, text, expected) in [
            (
                &b"latin1"[..],
                &b"SELECT a FROM t WHERE b = 'c\xA0d'"[..],
                query,
            ),
            (
                b"latin1",
                b"SELECT a FROM t WHERE b FOR\xA0UPDATE",
                Class::Unknown,
            ),
            (
                b"latin1",
                b"SELECT a FROM t WHERE b = c, \xA0d",
                Class::Unknown,
            ),
            (b"koi8r", b"SELECT a FROM t WHERE b FOR\xA0UPDATE", query),
        ] {
            ruled.note_charset(charset);
            let judged = ruled.judge(text, SqlMode::default());
            assert_eq!(judged.class, expected, "{}", text.escape_ascii());
        }
        ruled.note_collation(8);
        assert_eq!(ruled.blank, Some(0xa0));
        ruled.note_collation(45);
        assert_eq!(ruled.blank, None);
        assert!(is_read_alike(b"a\xA0b", 45) && !is_read_alike(b"a\xA0b", 8));
        assert!(is_read_alike(b"a\xA0b", 36) && !is_read_alike(b"a\xFFb", 36));
        assert!(is_read_alike(b"ab", 28) && !is_read_alike(b"a\xA0b", 28));
    }
}
