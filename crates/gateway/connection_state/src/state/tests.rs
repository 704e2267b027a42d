//! Sessions take turns on one connection to a model of a server. Before each turn, the connection
//! must be as the session would find a connection of its own.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use wire::CommandByte;

use super::*;

/// A session of a server, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ServerSession {
    account: usize,
    login_collation: u8,
    collation: u8,
    database: Option<String>,
    variables: BTreeMap<String, String>,
    role: Option<String>,
    /// COM_SET_OPTION.
    has_option: bool,
    /// As what it was asked to tell changes of the session, if it tells them.
    tells: Option<&'static str>,
    /// Whether the client asked for more, or for less.
    tells_otherwise: bool,
    insert_id: u64,
    has_warnings: bool,
    /// Temporary tables and the like: what only a reset takes away.
    litter: u32,
}

const ROLES: [&str; 2] = ["reader", "other"];

fn name_of(role: Role) -> &'static str {
    match role {
        Role::GaleraReader => ROLES[0],
        Role::Other => ROLES[1],
    }
}

impl ServerSession {
    fn logged_in(account: usize, origin: &Origin) -> ServerSession {
        ServerSession {
            account,
            login_collation: origin.collation,
            collation: origin.collation,
            database: origin.database.clone(),
            variables: BTreeMap::new(),
            role: None,
            has_option: false,
            tells: None,
            tells_otherwise: false,
            insert_id: 0,
            has_warnings: false,
            litter: 0,
        }
    }

    /// COM_RESET_CONNECTION of MariaDB 10.11: the account, the role, the database and the option
    /// stay.
    fn reset(&mut self) {
        *self = ServerSession {
            account: self.account,
            login_collation: self.login_collation,
            collation: self.login_collation,
            database: self.database.take(),
            role: self.role.take(),
            has_option: self.has_option,
            ..ServerSession::logged_in(self.account, &Origin::nowhere())
        };
    }

    /// COM_CHANGE_USER, behind SET ROLE NONE. The option stays.
    fn log_in(&mut self, account: usize, origin: &Origin) {
        *self = ServerSession {
            has_option: self.has_option,
            ..ServerSession::logged_in(account, origin)
        };
    }

    fn run(&mut self, byte: u8, text: &[u8]) {
        let text = str::from_utf8(text).unwrap();
        match byte {
            CommandByte::INIT_DB => self.database = Some(text.to_owned()),
            CommandByte::SET_OPTION => self.has_option = true,
            _ => {
                let (name, value) = text.split_once(' ').unwrap();
                match name {
                    "role" => self.role = Some(value.to_owned()),
                    "session_track" => self.tells_otherwise = true,
                    "warns" => self.has_warnings = true,
                    "names" => self.collation = value.parse().unwrap(),
                    _ => {
                        self.variables.insert(name.to_owned(), value.to_owned());
                    }
                }
            }
        }
    }

    /// Does a step for a client. Returns its kind.
    fn carry_out(&mut self, step: &Step<'_>, client: &Client) -> &'static str {
        match step {
            Step::LogIn => {
                self.log_in(client.account, &client.origin);
                "log in"
            }
            Step::Reset => {
                self.reset();
                "reset"
            }
            Step::Use(name) => {
                self.database = Some((*name).to_owned());
                "use"
            }
            Step::DefaultOption => {
                self.has_option = false;
                "option"
            }
            Step::Run(byte, text) => {
                self.run(*byte, text);
                "run"
            }
            Step::SetUp(role) => {
                self.tells = Some(name_of(*role));
                self.tells_otherwise = false;
                "set up"
            }
            Step::InsertId(id) => {
                self.insert_id = *id;
                "insert id"
            }
            Step::ClearWarnings => {
                self.has_warnings = false;
                "clear"
            }
        }
    }
}

impl Origin {
    fn nowhere() -> Origin {
        Origin {
            database: None,
            collation: 0,
        }
    }
}

/// A client's session.
#[derive(Debug)]
struct Client {
    account: usize,
    origin: Arc<Origin>,
    commands: Vec<(u8, String)>,
    list: CommandList,
    /// LAST_INSERT_ID() in it.
    insert_id: u64,
}

impl Client {
    fn new(number: usize) -> Client {
        let database = ["shop", "blog"].get(number % 3).map(|it| (*it).to_owned());
        Client {
            account: number / 2,
            origin: Arc::new(Origin {
                database,
                collation: if number % 4 == 3 { 8 } else { 45 },
            }),
            commands: Vec::new(),
            list: CommandList::default(),
            insert_id: 0,
        }
    }

    /// Its session on a connection of its own.
    fn alone(&self) -> ServerSession {
        let mut session = ServerSession::logged_in(self.account, &self.origin);
        for (byte, text) in &self.commands {
            session.run(*byte, text.as_bytes());
        }
        session.insert_id = self.insert_id;
        session
    }

    fn adds(&mut self, byte: u8, text: String) {
        self.commands.push((byte, text));
        let commands = self.commands.iter();
        self.list = CommandList::of(commands.map(|(byte, text)| (*byte, text.as_bytes())));
    }
}

/// What a session does in its turn.
#[derive(Debug, Clone)]
enum Deed {
    /// A command that all connections of the session need.
    Command(u8, &'static str),
    /// One that it runs on another of its connections.
    Elsewhere(&'static str),
    /// It generates a value, which the server tells or does not.
    Generates {
        is_told: bool,
    },
    Warns,
    /// A routine sets a role.
    SetsRoleUnseen,
    /// A statement that fails may have changed anything.
    LeavesLitter,
}

/// A turn of a client.
#[derive(Debug, Clone)]
struct Turn {
    client: usize,
    role: Role,
    reads_insert_id: bool,
    reads_warnings: bool,
    deeds: Vec<Deed>,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => prop_oneof![
            Just("a 1"), Just("a 2"), Just("b 1"), Just("role boss"), Just("names 8"),
            Just("session_track off"), Just("warns 1"),
        ]
        .prop_map(|text| Deed::Command(CommandByte::QUERY, text)),
        2 => prop_oneof![
            Just("a 3"), Just("role boss"), Just("session_track off"), Just("warns 2"),
        ]
        .prop_map(Deed::Elsewhere),
        1 => Just(Deed::Command(CommandByte::INIT_DB, "blog")),
        1 => Just(Deed::Command(CommandByte::SET_OPTION, "\0\0")),
        3 => any::<bool>().prop_map(|is_told| Deed::Generates { is_told }),
        2 => Just(Deed::Warns),
        1 => Just(Deed::SetsRoleUnseen),
        1 => Just(Deed::LeavesLitter),
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    let role = prop_oneof![8 => Just(Role::Other), 1 => Just(Role::GaleraReader)];
    let reads = (any::<bool>(), any::<bool>());
    (0..6_usize, role, reads, vec(deed(), 0..3)).prop_map(|(client, role, reads, deeds)| Turn {
        client,
        role,
        reads_insert_id: reads.0,
        reads_warnings: reads.1,
        deeds,
    })
}

/// One connection, and all who use it.
struct Play {
    clients: Vec<Client>,
    server: ServerSession,
    state: ConnectionState,
    generated: u64,
    /// Kinds of steps that were sent.
    sent: BTreeSet<&'static str>,
}

impl Play {
    fn new() -> Play {
        let clients: Vec<_> = (0..6).map(Client::new).collect();
        let first = &clients[0];
        Play {
            server: ServerSession::logged_in(first.account, &first.origin),
            state: ConnectionState::new(&first.origin),
            clients,
            generated: 0,
            sent: BTreeSet::new(),
        }
    }

    fn play(&mut self, turn: &Turn) {
        let client = &self.clients[turn.client];
        let needs = Needs {
            origin: &client.origin,
            commands: &client.list,
            role: turn.role,
            reads: Reads {
                warnings: turn.reads_warnings,
                insert_id: turn.reads_insert_id.then_some(client.insert_id),
            },
        };
        // The pool knows whose account a connection has.
        if client.account != self.server.account {
            self.state.is_of_another();
        }
        let (must_log_in, suits) = (self.state.must_log_in(&needs), self.state.suits(&needs));
        let steps = self.state.put_right(&needs);
        assert_eq!(steps.contains(&Step::LogIn), must_log_in);
        assert_eq!(steps.is_empty(), suits, "{steps:?}");
        assert!(self.state.suits(&needs));
        for (place, step) in steps.iter().enumerate() {
            assert!(place == 0 || !matches!(step, Step::LogIn | Step::Reset));
            self.sent.insert(self.server.carry_out(step, client));
        }
        self.assert_right(turn);
        // What a session has run elsewhere it runs here before anything else.
        let is_elsewhere = |deed: &&Deed| matches!(deed, Deed::Elsewhere(_));
        let (elsewhere, here): (Vec<_>, Vec<_>) = turn.deeds.iter().partition(is_elsewhere);
        for deed in here.into_iter().chain(elsewhere) {
            self.carry_out_deed(turn.client, deed);
        }
    }

    /// What the session's next statement sees.
    fn assert_right(&self, turn: &Turn) {
        let (server, alone) = (&self.server, self.clients[turn.client].alone());
        if turn.reads_insert_id {
            assert_eq!(server.insert_id, alone.insert_id);
        }
        assert!(!turn.reads_warnings || !server.has_warnings);
        let expected = ServerSession {
            // The gateway reads what is told, whatever the client asked for.
            tells: Some(name_of(turn.role)),
            tells_otherwise: false,
            insert_id: server.insert_id,
            has_warnings: server.has_warnings,
            login_collation: server.login_collation,
            ..alone
        };
        assert_eq!(*server, expected);
    }

    fn carry_out_deed(&mut self, client: usize, deed: &Deed) {
        let client = &mut self.clients[client];
        match deed {
            Deed::Command(byte, text) => {
                self.server.run(*byte, text.as_bytes());
                client.adds(*byte, (*text).to_owned());
                self.state.has_run(&client.list);
                if is_about_tracking(text.as_bytes()) {
                    self.state.tells_otherwise();
                }
                if self.server.has_warnings {
                    self.state.has_warnings();
                }
            }
            Deed::Elsewhere(text) => client.adds(CommandByte::QUERY, (*text).to_owned()),
            Deed::Generates { is_told } => {
                self.generated += 1;
                self.server.insert_id = self.generated;
                client.insert_id = self.generated;
                self.state.forget_insert_id();
                if *is_told {
                    self.state.learn_insert_id(self.generated);
                    assert!(self.state.has_insert_id(self.generated));
                }
            }
            Deed::Warns => {
                self.server.has_warnings = true;
                self.state.has_warnings();
            }
            Deed::SetsRoleUnseen => {
                self.server.role = Some("unseen".to_owned());
                self.state.may_have_role();
                self.state.forget();
            }
            Deed::LeavesLitter => {
                self.server.litter += 1;
                self.state.forget();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_session_is_as_on_a_connection_of_its_own(turns in vec(turn(), 1..60)) {
        let mut play = Play::new();
        for turn in &turns {
            play.play(turn);
        }
    }
}

/// Else the test above would say less than it seems to.
#[test]
fn all_kinds_of_steps_are_sent() {
    let mut runner = TestRunner::deterministic();
    let mut play = Play::new();
    for _ in 0..400 {
        let turn = turn().new_tree(&mut runner).unwrap().current();
        play.play(&turn);
    }
    let all = [
        "clear",
        "insert id",
        "log in",
        "option",
        "reset",
        "run",
        "set up",
        "use",
    ];
    assert_eq!(play.sent, all.into());
}

/// The next connection of a session runs no more than what is new to it.
#[test]
fn only_what_is_new_is_run() {
    let mut client = Client::new(0);
    let mut state = ConnectionState::new(&client.origin);
    let mut put_right = |client: &Client| {
        let needs = Needs {
            origin: &client.origin,
            commands: &client.list,
            role: Role::Other,
            reads: Reads::default(),
        };
        let steps = state.put_right(&needs);
        steps.iter().map(|it| format!("{it:?}")).collect::<Vec<_>>()
    };
    assert_eq!(put_right(&client), ["SetUp(Other)"]);
    assert!(put_right(&client).is_empty());
    client.adds(CommandByte::QUERY, "a 1".to_owned());
    assert_eq!(put_right(&client), [format!("{:?}", Step::Run(3, b"a 1"))]);
    client.adds(CommandByte::QUERY, "b 1".to_owned());
    assert_eq!(put_right(&client), [format!("{:?}", Step::Run(3, b"b 1"))]);
    assert!(put_right(&client).is_empty());
    let fresh = Client::new(0);
    assert_eq!(put_right(&fresh)[..2], ["Reset", "Use(\"shop\")"]);
}
