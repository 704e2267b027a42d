//! The login as a pure state machine: packets in, packets and steps out.
//!
//! ```text
//! AwaitGreeting --greeting, no TLS--> Authenticating          writes the login
//!       |  --greeting, TLS--> AwaitTls [tls_started] --> Authenticating
//! Authenticating --switch, more data--> Authenticating         writes an answer, or waits
//!       |  --OK--> established                  --error--> refused
//! ```
//!
//! COM_CHANGE_USER enters at Authenticating.

use std::net::SocketAddr;

use auth::{
    ClientExchange, ClientSecret, ClientStep, KeyPolicy, Method, Random, SCRAMBLE_BYTES, Transport,
};
use link::LOGIN_PACKETS_MAX;
use wire::{
    AuthMoreData, AuthSwitch, Capabilities, ChangeUser, CompressionMethod, ConnectAttributes,
    ErrorPacket, Handshake, Malformed, OkPacket, PacketWriter, StatusFlags,
};

use crate::error::ConnectError;
use crate::version::ServerVersion;

/// What replies would be read wrongly with.
const UNREADABLE: Capabilities = Capabilities(
    Capabilities::MARIADB_PROGRESS.0
        | Capabilities::MARIADB_CACHE_METADATA.0
        | Capabilities::OPTIONAL_METADATA.0
        | Capabilities::QUERY_ATTRIBUTES.0,
);

/// What a client of today needs.
const NEEDED: Capabilities = Capabilities(
    Capabilities::PROTOCOL_41.0 | Capabilities::SECURE_CONNECTION.0 | Capabilities::PLUGIN_AUTH.0,
);

/// Who logs in, and as what kind of client.
#[derive(Debug, Clone)]
pub struct Login {
    /// User name.
    pub user: String,
    /// By which the user proves itself.
    pub secret: ClientSecret,
    /// Database to start in.
    pub database: Option<String>,
    /// What the client can do. What the server cannot is left out, and what
    /// [`Reply`](link::Reply) does not know.
    pub capabilities: Capabilities,
    /// Character set and collation of the connection.
    pub collation: u8,
    /// Facts about the client program, as [`ConnectAttributes::append`] makes them.
    pub attributes: Vec<u8>,
    /// Compression, if the server offers it.
    pub compression: Option<CompressionMethod>,
    /// Largest packet that is received.
    pub packet_bytes_max: u32,
    /// Whether the server's key may be asked for without TLS (`caching_sha2_password`).
    pub key_policy: KeyPolicy,
    /// The address of the client that is spoken for, for
    /// [`Target::proxy_header`](crate::Target). `None`: there is none, or it is not known.
    pub client: Option<SocketAddr>,
}

impl Login {
    /// A client that asks for nothing that changes its session ([`Capabilities::CLIENT`]), without
    /// compression.
    pub fn new(user: impl Into<String>, secret: ClientSecret) -> Login {
        Login {
            user: user.into(),
            secret,
            database: None,
            capabilities: Capabilities::CLIENT,
            collation: 45,
            attributes: Vec::new(),
            compression: None,
            packet_bytes_max: 1 << 30,
            key_policy: KeyPolicy::Never,
            client: None,
        }
    }
}

/// What is known of a server that was logged in to.
#[derive(Debug, Clone)]
pub struct ServerInfo {
    /// Its version.
    pub version: ServerVersion,
    /// The number that KILL takes.
    pub connection_id: u32,
    /// What the server can do.
    pub offered: Capabilities,
    /// What was agreed.
    pub capabilities: Capabilities,
    /// The server's own collation, lower byte.
    pub collation: u8,
    /// The status that the login ended with.
    pub status: StatusFlags,
    /// Compression that was agreed.
    pub compression: Option<CompressionMethod>,
    /// Whether the connection has TLS.
    pub has_tls: bool,
    /// The greeting's challenge, which COM_CHANGE_USER is proven against.
    pub(crate) scramble: [u8; SCRAMBLE_BYTES],
    /// COM_CHANGE_USER was answered by that challenge, for the native method (MariaDB 10.11). So
    /// the next one can be answered ahead.
    pub(crate) repeats_challenge: bool,
}

/// Sequence ids behind COM_CHANGE_USER (0) and the challenge (1), where the answer is sent ahead.
const AHEAD_ANSWER_ID: u8 = 2;
pub(crate) const AHEAD_VERDICT_ID: u8 = AHEAD_ANSWER_ID + 1;

/// What to do next.
#[derive(Debug)]
pub(crate) enum LoginStep {
    /// Send what was written and take the next packet.
    Read,
    /// The same; what was written is the client's last word, so the next packet is an OK or an
    /// error.
    ReadVerdict,
    /// The same, but the last word was sent with the command: the next packet has
    /// [`AHEAD_VERDICT_ID`].
    ReadVerdictAhead,
    /// Send what was written and start TLS; then call [`LoginMachine::tls_started`].
    StartTls,
    /// The client is in.
    Established(Box<ServerInfo>),
}

/// How a connection is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protection {
    /// Not at all.
    Plain,
    /// It stays on this machine.
    UnixSocket,
    /// TLS is to be started.
    Tls,
}

impl Protection {
    fn transport(self) -> Transport {
        match self {
            Protection::Plain => Transport::Plain,
            Protection::UnixSocket | Protection::Tls => Transport::Secure,
        }
    }
}

/// A login that goes on.
#[derive(Debug)]
pub(crate) struct LoginMachine<'a> {
    login: &'a Login,
    protection: Protection,
    packets: u32,
    state: State,
}

#[derive(Debug)]
enum State {
    AwaitGreeting,
    AwaitTls(Box<ServerInfo>, Method),
    Authenticating(Box<ServerInfo>, ClientExchange),
    /// The challenge is the one that was answered ahead.
    AwaitKnownChallenge(Box<ServerInfo>, ClientExchange),
    Over,
}

impl<'a> LoginMachine<'a> {
    pub(crate) fn new(login: &'a Login, protection: Protection) -> LoginMachine<'a> {
        LoginMachine {
            login,
            protection,
            packets: 0,
            state: State::AwaitGreeting,
        }
    }

    /// A login again on a connection that is logged in; writes the command. If the challenge that
    /// answers it is known, writes the answer to that, too.
    pub(crate) fn change_user(
        login: &'a Login,
        protection: Protection,
        info: &ServerInfo,
        out: &mut PacketWriter,
    ) -> Result<LoginMachine<'a>, ConnectError> {
        let method = usable_method(None, &login.secret);
        let exchange = exchange(login, method, &info.scramble, protection);
        let auth_data = exchange.first_response()?;
        let command = ChangeUser {
            user: login.user.as_bytes(),
            auth_data: &auth_data,
            database: login.database.as_deref().map(str::as_bytes),
            collation: Some(u16::from(login.collation)),
            auth_plugin: method.client_plugin().as_bytes(),
            attributes: ConnectAttributes::from_encoded(&login.attributes),
        };
        command.encode(out, info.capabilities);
        let info = Box::new(info.clone());
        // With a password an account may have any method.
        let is_native = match &login.secret {
            ClientSecret::Sha1(_) => true,
            ClientSecret::Password(password) => password.is_empty(),
            ClientSecret::Sha256(_) => false,
        };
        let state = match info.repeats_challenge && is_native && info.compression.is_none() {
            true => {
                out.set_sequence(AHEAD_ANSWER_ID);
                out.packet(&auth_data);
                State::AwaitKnownChallenge(info, exchange)
            }
            false => State::Authenticating(info, exchange),
        };
        Ok(LoginMachine {
            state,
            ..LoginMachine::new(login, protection)
        })
    }

    /// Whether the client's last word was written with the command.
    pub(crate) fn is_answered_ahead(&self) -> bool {
        matches!(self.state, State::AwaitKnownChallenge(..))
    }

    /// Takes a packet of the server.
    pub(crate) fn packet(
        &mut self,
        payload: &[u8],
        out: &mut PacketWriter,
        random: &mut Random<'_>,
    ) -> Result<LoginStep, ConnectError> {
        self.packets += 1;
        if self.packets > LOGIN_PACKETS_MAX {
            return Err(ConnectError::TooManyPackets);
        }
        if payload.first() == Some(&ErrorPacket::HEADER) {
            let error = ErrorPacket::decode(payload)?;
            return Err(ConnectError::Refused(error.to_client_error()));
        }
        match std::mem::replace(&mut self.state, State::Over) {
            State::AwaitGreeting => self.greeting(payload, out),
            State::Authenticating(info, exchange) => {
                self.authentication(payload, info, exchange, out, random)
            }
            State::AwaitKnownChallenge(info, exchange) => {
                self.known_challenge(payload, info, exchange)
            }
            State::AwaitTls(..) | State::Over => Err(NOT_DUE.into()),
        }
    }

    fn greeting(
        &mut self,
        payload: &[u8],
        out: &mut PacketWriter,
    ) -> Result<LoginStep, ConnectError> {
        let greeting = Handshake::decode(payload)?;
        let info = self.info(&greeting)?;
        let method = usable_method(Some(greeting.auth_plugin), &self.login.secret);
        if self.protection != Protection::Tls {
            return self.log_in(Box::new(info), method, out);
        }
        let head = wire::Login {
            packet_bytes_max: self.login.packet_bytes_max,
            collation: self.login.collation,
            ..wire::Login::with(info.capabilities)
        };
        head.encode_tls_request(out);
        self.state = State::AwaitTls(Box::new(info), method);
        Ok(LoginStep::StartTls)
    }

    /// What both sides can do, and what the greeting tells.
    fn info(&self, greeting: &Handshake<'_>) -> Result<ServerInfo, ConnectError> {
        let offered = greeting.capabilities;
        if !offered.contains(NEEDED) {
            return Err(Malformed {
                what: "greeting of a server older than 5.5",
            }
            .into());
        }
        let has_tls = self.protection == Protection::Tls;
        if has_tls && !offered.contains(Capabilities::SSL) {
            return Err(ConnectError::NoTls);
        }
        let compression = self.login.compression.filter(|method| {
            let needed = match method {
                CompressionMethod::Zlib => Capabilities::COMPRESS,
                CompressionMethod::Zstd { .. } => Capabilities::ZSTD_COMPRESSION,
            };
            offered.contains(needed)
        });
        let by_login = Capabilities::SSL
            | Capabilities::COMPRESS
            | Capabilities::ZSTD_COMPRESSION
            | Capabilities::CONNECT_WITH_DB
            | Capabilities::MYSQL;
        let mut wanted = self.login.capabilities & !UNREADABLE & !by_login | NEEDED;
        for (is_wanted, capability) in [
            (has_tls, Capabilities::SSL),
            (self.login.database.is_some(), Capabilities::CONNECT_WITH_DB),
            (
                compression == Some(CompressionMethod::Zlib),
                Capabilities::COMPRESS,
            ),
            (
                matches!(compression, Some(CompressionMethod::Zstd { .. })),
                Capabilities::ZSTD_COMPRESSION,
            ),
            // Who sets it has no capabilities of MariaDB.
            (offered.contains(Capabilities::MYSQL), Capabilities::MYSQL),
        ] {
            if is_wanted {
                wanted = wanted | capability;
            }
        }
        Ok(ServerInfo {
            version: ServerVersion::parse(greeting.server_version),
            connection_id: greeting.connection_id,
            offered,
            capabilities: wanted & offered,
            collation: greeting.collation,
            status: greeting.status,
            compression,
            has_tls,
            scramble: greeting.scramble,
            repeats_challenge: false,
        })
    }

    /// TLS is there: writes the login.
    pub(crate) fn tls_started(
        &mut self,
        out: &mut PacketWriter,
    ) -> Result<LoginStep, ConnectError> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::AwaitTls(info, method) => self.log_in(info, method, out),
            State::AwaitGreeting
            | State::Authenticating(..)
            | State::AwaitKnownChallenge(..)
            | State::Over => Err(NOT_DUE.into()),
        }
    }

    fn log_in(
        &mut self,
        info: Box<ServerInfo>,
        method: Method,
        out: &mut PacketWriter,
    ) -> Result<LoginStep, ConnectError> {
        let exchange = exchange(self.login, method, &info.scramble, self.protection);
        // The greeting's challenge is too short to be signed: the server asks again.
        let auth_data = match method {
            Method::Ed25519 => Vec::new(),
            Method::NativePassword | Method::CachingSha2 => exchange.first_response()?,
        };
        let login = wire::Login {
            packet_bytes_max: self.login.packet_bytes_max,
            collation: self.login.collation,
            user: self.login.user.as_bytes(),
            auth_data: &auth_data,
            database: self.login.database.as_deref().map(str::as_bytes),
            auth_plugin: method.client_plugin().as_bytes(),
            attributes: ConnectAttributes::from_encoded(&self.login.attributes),
            zstd_level: match info.compression {
                Some(CompressionMethod::Zstd { level }) => level,
                Some(CompressionMethod::Zlib) | None => 0,
            },
            ..wire::Login::with(info.capabilities)
        };
        login.encode(out);
        self.state = State::Authenticating(info, exchange);
        Ok(LoginStep::Read)
    }

    fn authentication(
        &mut self,
        payload: &[u8],
        mut info: Box<ServerInfo>,
        mut current: ClientExchange,
        out: &mut PacketWriter,
        random: &mut Random<'_>,
    ) -> Result<LoginStep, ConnectError> {
        match payload.first().copied() {
            Some(0) => {
                let ok = OkPacket::decode(payload, info.capabilities)?;
                info.status = ok.status;
                return Ok(LoginStep::Established(info));
            }
            Some(AuthMoreData::HEADER) => {
                let more = AuthMoreData::decode(payload)?;
                match current.more_data(more.data, random)? {
                    ClientStep::Send(answer) => out.packet(&answer),
                    ClientStep::Wait => {}
                }
            }
            Some(AuthSwitch::HEADER) => {
                let (method, challenge) = switch(payload)?;
                info.repeats_challenge = is_repeated(&info, method, challenge);
                current = exchange(self.login, method, challenge, self.protection);
                out.packet(&current.first_response()?);
                if method == Method::NativePassword {
                    self.state = State::Authenticating(info, current);
                    return Ok(LoginStep::ReadVerdict);
                }
            }
            Some(_) | None => return Err(NOT_DUE.into()),
        }
        self.state = State::Authenticating(info, current);
        Ok(LoginStep::Read)
    }

    /// What was answered ahead is asked now. Anything else would be answered wrongly.
    fn known_challenge(
        &mut self,
        payload: &[u8],
        info: Box<ServerInfo>,
        exchange: ClientExchange,
    ) -> Result<LoginStep, ConnectError> {
        let is_switch = payload.first() == Some(&AuthSwitch::HEADER);
        let (method, challenge) = match is_switch {
            true => switch(payload)?,
            false => return Err(NOT_DUE.into()),
        };
        if !is_repeated(&info, method, challenge) {
            return Err(NOT_DUE.into());
        }
        self.state = State::Authenticating(info, exchange);
        Ok(LoginStep::ReadVerdictAhead)
    }
}

/// Whether the server asks what its greeting has asked, by the native method.
fn is_repeated(info: &ServerInfo, method: Method, challenge: &[u8]) -> bool {
    let challenge = challenge.strip_suffix(&[0]).unwrap_or(challenge);
    method == Method::NativePassword && challenge == info.scramble
}

const NOT_DUE: Malformed = Malformed {
    what: "login packet that is not due",
};

/// The method that a server switches to, and its challenge.
fn switch(payload: &[u8]) -> Result<(Method, &[u8]), ConnectError> {
    let unknown = |plugin: &[u8]| ConnectError::UnknownPlugin {
        plugin: String::from_utf8_lossy(plugin).into_owned(),
    };
    if payload.len() == 1 {
        return Err(unknown(b"mysql_old_password"));
    }
    let switch = AuthSwitch::decode(payload)?;
    let method = Method::from_client_plugin(switch.plugin);
    let method = method.ok_or_else(|| unknown(switch.plugin))?;
    Ok((method, switch.data))
}

/// The method to begin with: the server's, if the secret is enough for it; the server switches if
/// the account has another.
fn usable_method(proposed: Option<&[u8]>, secret: &ClientSecret) -> Method {
    let usable = |method: &Method| secret.is_enough_for(*method);
    let proposed = proposed.and_then(Method::from_client_plugin).filter(usable);
    let first = || Method::ALL.into_iter().find(usable);
    proposed.or_else(first).unwrap_or(Method::NativePassword)
}

fn exchange(
    login: &Login,
    method: Method,
    challenge: &[u8],
    protection: Protection,
) -> ClientExchange {
    let transport = protection.transport();
    ClientExchange::new(
        method,
        &login.secret,
        challenge,
        transport,
        login.key_policy,
    )
}

#[cfg(test)]
mod tests;
