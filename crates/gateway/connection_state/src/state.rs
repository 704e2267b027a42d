//! [`ConnectionState`]: what is known of a connection.

use std::sync::Arc;

use crate::command_list::CommandList;
use crate::needs::{Needs, Origin, Reads, Role};
use crate::{is_about_tracking, sets_option, sets_role};

/// See the crate's head. It goes with the connection from session to session.
#[derive(Debug, Clone)]
pub struct ConnectionState {
    /// `None`: it has to be reset before it is used.
    given: Option<Given>,
    /// The collation that its login named.
    login_collation: u8,
    /// It is logged in as somebody else.
    is_foreign: bool,
    /// As what the server was asked to tell changes of the session; `None` if it was not.
    set_up: Option<Role>,
    /// LAST_INSERT_ID(); `None` if it is not known.
    insert_id: Option<u64>,
    /// Warnings may be left of any session.
    has_warnings: bool,
    /// COM_SET_OPTION has run. What it has set outlives COM_RESET_CONNECTION and COM_CHANGE_USER.
    has_option: bool,
    /// SET ROLE may have run, which outlives COM_RESET_CONNECTION.
    has_role: bool,
}

/// What a connection has run since its login or its reset.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Given {
    origin: Arc<Origin>,
    commands: CommandList,
}

/// What is sent to put a connection right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// Logs in again, as the account of the next session. No step stands before it. MariaDB 10.11
    /// leaves a role, also a default one, to the next user, so the sender takes the role off first.
    LogIn,
    /// Resets the session. The account stays. The server drops all prepared statements, as it does
    /// for [`Step::LogIn`].
    Reset,
    /// The database of the login.
    Use(&'a str),
    /// The option of the login, which was changed.
    DefaultOption,
    /// A command of the session: its first byte and the rest.
    Run(u8, &'a [u8]),
    /// The server is to tell changes of the session, and to be what this role says.
    SetUp(Role),
    /// LAST_INSERT_ID() is to be this.
    InsertId(u64),
    /// No warnings are to be left.
    ClearWarnings,
}

impl ConnectionState {
    /// Of a connection that has just logged in.
    pub fn new(origin: &Arc<Origin>) -> ConnectionState {
        ConnectionState {
            given: Some(Given {
                origin: Arc::clone(origin),
                commands: CommandList::default(),
            }),
            login_collation: origin.collation,
            is_foreign: false,
            set_up: None,
            insert_id: Some(0),
            has_warnings: false,
            has_option: false,
            has_role: false,
        }
    }

    /// Nothing is known of its session any more.
    pub fn forget(&mut self) {
        self.given = None;
    }

    /// A statement may have set a role unseen.
    pub fn may_have_role(&mut self) {
        self.has_role = true;
    }

    /// It belongs to another account than the session that has it now.
    pub fn is_of_another(&mut self) {
        self.given = None;
        self.is_foreign = true;
    }

    /// The session's commands have run here as they came.
    pub fn has_run(&mut self, commands: &CommandList) {
        if let Some(given) = &mut self.given {
            given.commands = commands.clone();
        }
        self.has_option |= sets_option(commands);
        self.has_role |= sets_role(commands);
    }

    /// The client has changed what the server tells of the session.
    pub fn tells_otherwise(&mut self) {
        self.set_up = None;
    }

    /// A statement has left warnings here.
    pub fn has_warnings(&mut self) {
        self.has_warnings = true;
    }

    /// The server has told LAST_INSERT_ID().
    pub fn learn_insert_id(&mut self, id: u64) {
        self.insert_id = Some(id);
    }

    /// Whether LAST_INSERT_ID() is known to be this.
    pub fn has_insert_id(&self, id: u64) -> bool {
        self.insert_id == Some(id)
    }

    /// LAST_INSERT_ID() may be another one now. Returns what it was, if that was known.
    pub fn forget_insert_id(&mut self) -> Option<u64> {
        self.insert_id.take()
    }

    /// What its login has decided, unless its session is not known.
    pub fn origin(&self) -> Option<&Arc<Origin>> {
        self.given.as_ref().map(|it| &it.origin)
    }

    /// Whether it can be used as it is.
    pub fn suits(&self, needs: &Needs<'_>) -> bool {
        let is_given = self
            .given
            .as_ref()
            .is_some_and(|it| it.commands == *needs.commands && is_same(&it.origin, needs.origin));
        is_given && self.set_up == Some(needs.role) && !self.is_read_wrongly(needs.reads)
    }

    /// Whether what a statement reads of earlier ones is another session's here, or will be of a
    /// step.
    pub fn is_read_wrongly(&self, reads: Reads) -> bool {
        let is_other = reads.insert_id.is_some() && reads.insert_id != self.insert_id;
        is_other || reads.warnings && self.has_warnings || self.set_up.is_none()
    }

    /// Whether it has to be reset for a session.
    pub fn must_begin_anew(&self, needs: &Needs<'_>) -> bool {
        self.known(needs).is_none()
    }

    /// Whether a session needs another login on it.
    pub fn must_log_in(&self, needs: &Needs<'_>) -> bool {
        self.must_begin_anew(needs) && self.is_of_another_login(needs.origin)
    }

    /// What gives it the state of a session. It counts as done: if the server refuses a step, the
    /// connection can only be closed.
    pub fn put_right<'a>(&mut self, needs: &Needs<'a>) -> Vec<Step<'a>> {
        let mut steps = Vec::new();
        let first_run = match self.known(needs) {
            Some(given) => given.clone(),
            None => {
                self.begin_anew(needs, &mut steps);
                CommandList::default()
            }
        };
        let behind = needs.commands.behind(&first_run);
        for (byte, text) in behind.into_iter().flatten() {
            if is_about_tracking(text) {
                self.set_up = None;
            }
            steps.push(Step::Run(byte, text));
        }
        if self.set_up.is_none() {
            steps.push(Step::SetUp(needs.role));
        }
        if let Some(id) = needs.reads.insert_id
            && self.insert_id != Some(id)
        {
            steps.push(Step::InsertId(id));
            self.insert_id = Some(id);
        }
        // A command that is repeated may warn again.
        self.has_warnings |= steps.iter().any(|it| matches!(it, Step::Run(..)));
        if needs.reads.warnings && self.has_warnings {
            steps.push(Step::ClearWarnings);
            self.has_warnings = false;
        }
        self.has_option |= sets_option(needs.commands);
        self.has_role |= sets_role(needs.commands);
        self.set_up = Some(needs.role);
        self.given = Some(Given {
            origin: Arc::clone(needs.origin),
            commands: needs.commands.clone(),
        });
        steps
    }

    /// It is, or will be, as after a login.
    fn begin_anew<'a>(&mut self, needs: &Needs<'a>, steps: &mut Vec<Step<'a>>) {
        if self.is_of_another_login(needs.origin) {
            steps.push(Step::LogIn);
            self.is_foreign = false;
            self.has_role = false;
            self.login_collation = needs.origin.collation;
        } else {
            steps.push(Step::Reset);
            steps.extend(needs.origin.database.as_deref().map(Step::Use));
        }
        if std::mem::take(&mut self.has_option) {
            steps.push(Step::DefaultOption);
        }
        self.set_up = None;
        self.insert_id = Some(0);
        self.has_warnings = false;
    }

    /// What it has run, if that is the beginning of what a session needs.
    fn known(&self, needs: &Needs<'_>) -> Option<&CommandList> {
        let is_of_role = self.set_up.is_none_or(|role| role == needs.role);
        let begins = |given: &&Given| {
            let commands = needs.commands.behind(&given.commands);
            is_same(&given.origin, needs.origin) && commands.is_some()
        };
        let given = self.given.as_ref().filter(|_| is_of_role).filter(begins);
        given.map(|it| &it.commands)
    }

    /// Whether only a login gives it this origin. COM_RESET_CONNECTION keeps the account, the role
    /// and the database, and brings back the character set of the login.
    fn is_of_another_login(&self, origin: &Origin) -> bool {
        self.is_foreign
            || self.has_role
            || origin.database.is_none()
            || self.login_collation != origin.collation
    }
}

fn is_same(one: &Arc<Origin>, other: &Arc<Origin>) -> bool {
    Arc::ptr_eq(one, other) || one == other
}

#[cfg(test)]
mod tests;
