//! [`Current`]: the statement of a client that is under way, until it is counted and told of.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

use digests::{Digest, Digests, Finished};
use env::Instant;
use errcode::{ClientError, ER_CONNECTION_KILLED, ErrorCode};
use front::Peer;
use query_log::{Ended, Filter, Line, Route, Session, TextForm, Why};
use router::Judged;
use spans::{Begun, Extent, Tracer};
use wire::StatusFlags;

use crate::end::End;
use crate::options::ServerId;

use super::Guest;

/// See the module's head. It has what only a statement's end tells, so a session has room for one.
#[derive(Debug)]
pub(crate) struct Current {
    /// When its command has come.
    begun: Instant,
    /// `None`: the command is no statement.
    form: Option<Form>,
    /// Of its text; `None` if that was not read.
    pub(super) digest: Option<Rc<Digest>>,
    pub(super) reply: Reply,
    /// What a hint and rules say of it.
    pub(crate) said: Cell<Said>,
    /// For the query log; `None` until that needs it, since most sessions are idle.
    kept: Option<Box<Kept>>,
    /// The worker's. Constant.
    tracer: Rc<Tracer>,
    /// It may be traced, if it is a statement.
    pub(super) may_be_traced: bool,
    /// Its span, if it is traced.
    pub(super) span: Option<Box<Begun>>,
}

/// What is kept of a statement and its session for the query log.
#[derive(Debug, Default)]
struct Kept {
    /// Most bytes of the text.
    bytes_max: usize,
    text: Vec<u8>,
    /// Of the whole text.
    text_bytes: usize,
    /// What all lines of the session have. Empty until there is one.
    session: Box<[u8]>,
}

/// How a statement has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As a text.
    Text,
    /// As an execution of one that was prepared.
    Prepared,
}

/// What a hint and rules say of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Said {
    /// Whether rules have it logged.
    pub(crate) is_logged: Option<bool>,
    /// Which of both has led it elsewhere.
    pub(crate) led: Option<Route>,
}

/// How a statement was answered.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reply {
    /// The server that has answered; `None` if none was asked.
    pub(crate) server: Option<ServerId>,
    /// Rows that the client was sent.
    pub(crate) rows_sent: u64,
    /// Rows that were changed.
    pub(crate) rows_affected: u64,
    /// The error that it got.
    pub(crate) error: Option<ErrorCode>,
    /// A cache of results has answered.
    pub(crate) is_kept: bool,
    /// Why that server.
    pub(crate) route: Route,
}

/// Of a statement that has pinned its session no more is shown: its beginning tells.
const SHOWN_BYTES_MAX: usize = 256;

/// More of the room for a text is given back.
const TEXT_ROOM_MAX: usize = 4 << 10;

impl Current {
    /// There is no statement yet.
    pub(super) fn new(tracer: &Rc<Tracer>) -> Current {
        Current {
            begun: Instant::default(),
            form: None,
            digest: None,
            reply: Reply::default(),
            said: Cell::default(),
            kept: None,
            tracer: Rc::clone(tracer),
            may_be_traced: false,
            span: None,
        }
    }

    /// A command has come.
    pub(super) fn begin(&mut self, now: Instant, kept_bytes: usize) {
        self.begun = now;
        self.form = None;
        self.span = None;
        if 0 < kept_bytes {
            self.kept.get_or_insert_default().bytes_max = kept_bytes;
        } else if let Some(kept) = &mut self.kept {
            kept.bytes_max = 0;
        }
    }

    /// The command is a statement, with this text or one that begins so.
    #[inline]
    pub(crate) fn begin_statement(&mut self, form: Form, text: &[u8], judged: &Judged) {
        let extent = match judged.digest.is_some() {
            true => Extent::Whole,
            false => Extent::Beginning,
        };
        self.start(form, text, extent);
        self.digest.clone_from(&judged.digest);
    }

    /// The same of a text that is not read: it is counted with others.
    #[inline]
    pub(crate) fn begin_unread(&mut self, form: Form, text: &[u8]) {
        self.start(form, text, Extent::Whole);
    }

    #[inline]
    fn start(&mut self, form: Form, text: &[u8], extent: Extent) {
        if self.may_be_traced {
            self.span = self.tracer.begin(text, extent);
        }
        self.form = Some(form);
        self.digest = None;
        self.reply = Reply::default();
        self.said.set(Said::default());
        if let Some(kept) = &mut self.kept {
            kept.text_bytes = text.len();
            kept.text.clear();
            kept.text.shrink_to(TEXT_ROOM_MAX);
            let head = text.get(..kept.bytes_max).unwrap_or(text);
            kept.text.extend_from_slice(head);
        }
    }

    /// The text has so many bytes, of which not all were read.
    pub(crate) fn note_length(&mut self, text_bytes: usize) {
        if let Some(kept) = &mut self.kept {
            kept.text_bytes = text_bytes;
        }
    }

    /// The statement is answered, by a server or without one. The last reply counts.
    pub(crate) fn note(&mut self, reply: Reply) {
        self.reply = reply;
    }

    /// What people may see of the statement's text; `None` if the command was none, or was not
    /// read.
    pub(super) fn shown(&self) -> Option<String> {
        let digest = self.digest.as_ref().filter(|_| self.form.is_some())?;
        let text = digest.shown();
        let head = text.get(..SHOWN_BYTES_MAX).unwrap_or(text);
        Some(String::from_utf8_lossy(head).into_owned())
    }

    /// The client gets this error.
    pub(super) fn note_error(&mut self, error: ErrorCode) {
        self.reply.error = Some(error);
    }

    /// The session is somebody else's.
    pub(super) fn forget_session(&mut self) {
        self.kept = None;
    }
}

impl Guest {
    /// The command is over, and the session has this status behind it. If it was a statement, it is
    /// counted, and logged if it is to be.
    pub(crate) fn finish_command(&mut self, went: Result<(), End>, status: StatusFlags) {
        if self.current.form.is_none() {
            return;
        }
        let now = runtime::now();
        let reply = self.current.reply;
        let server = reply.server.map(|id| self.worker.generation.server(id));
        let finished = Finished {
            time: now.since(self.current.begun),
            rows_sent: reply.rows_sent,
            rows_affected: reply.rows_affected,
            is_failed: reply.error.is_some() || went.is_err(),
            is_kept: reply.is_kept,
            server: server.map(|it| it.known.pool_id.number()),
        };
        let (digests, digest) = (self.worker.digests(), self.current.digest.as_ref());
        Digests::count(digests, digest, &self.who, now, &finished);
        if let Some(span) = self.current.span.take() {
            self.trace_statement(*span, &finished, (now, status), went);
        }
        let Some(filter) = self.worker.query_log().filter() else {
            return;
        };
        let ended = Ended {
            ruled: self.current.said.get().is_logged,
            time: finished.time,
            is_failed: finished.is_failed,
        };
        if let Some(why) = filter.why(ended) {
            self.log_statement((&filter, why), (now, status), went);
        }
    }

    fn log_statement(
        &mut self,
        (filter, why): (&Filter, Why),
        (now, status): (Instant, StatusFlags),
        went: Result<(), End>,
    ) {
        let session = match self.current.kept.as_ref() {
            Some(kept) if !kept.session.is_empty() => None,
            _ => Some(self.render_session()),
        };
        let current = &mut *self.current;
        let kept = &mut **current.kept.get_or_insert_default();
        if let Some(session) = session {
            kept.session = session;
        }
        let (reply, digest) = (current.reply, current.digest.as_deref());
        let error = reply.error.or_else(|| end_error(went, self.lost.as_ref()));
        let state = error.map(ErrorCode::sqlstate);
        let error = error.zip(state.as_ref());
        let server = reply.server.map(|id| self.worker.generation.server(id));
        let line = Line {
            session: &kept.session,
            schema: self.who.database.as_deref(),
            server: server.map(|it| &*it.options.name),
            digest: digest.map(Digest::number),
            text: match filter.form {
                TextForm::Canonical => digest.map(|it| (it.shown(), it.shown().len())),
                TextForm::Literal => Some((&*kept.text, kept.text_bytes)),
            },
            is_prepared: current.form == Some(Form::Prepared),
            time: now.since(current.begun),
            rows_sent: reply.rows_sent,
            rows_affected: reply.rows_affected,
            error: error.map(|(code, state)| (code.number(), state.as_str())),
            is_in_transaction: status.contains(StatusFlags::IN_TRANSACTION),
            route: reply.route,
            why,
        };
        self.worker
            .query_log()
            .add(&line, now, filter.text_bytes_max);
    }

    fn render_session(&self) -> Box<[u8]> {
        let info = self.client.info();
        let client = match (info.peer, info.port) {
            (Peer::Unix, _) => "localhost".to_owned(),
            (Peer::Tcp(address), Some(port)) => SocketAddr::new(address, port.get()).to_string(),
            (Peer::Tcp(address), None) => address.to_string(),
        };
        let session = Session {
            id: info.connection_id,
            user: &info.user,
            client: &client,
            service: &self.who.service,
        };
        session.render()
    }
}

/// The error of a statement whose session has ended so. `lost`: what the client gets then.
pub(super) fn end_error(went: Result<(), End>, lost: Option<&ClientError>) -> Option<ErrorCode> {
    match went {
        Ok(()) => None,
        Err(End::Killed) => Some(ER_CONNECTION_KILLED),
        Err(_) => lost.map(|it| it.code),
    }
}
