//! The login as a pure state machine: packets in, packets and steps out.
//!
//! ```text
//! AwaitLogin --request for TLS [packet]--> AwaitLogin (over TLS, once)
//!     |
//!   login [packet]
//!     v
//! Authenticating: AwaitSwitched --first response [packet]--> Exchanging
//!                 Exchanging ----answers [packet], work [worked]--> established or failed
//! ```
//!
//! COM_CHANGE_USER enters at Authenticating.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU16;
use std::rc::Rc;
use std::sync::Arc;

use auth::{
    ClientSecret, Method, Nonce, Peer, Random, ServerExchange, ServerStep, StoredSecret, Transport,
    Worked,
};
use errcode::{
    ClientError, ER_ACCOUNT_HAS_BEEN_LOCKED, ER_HANDSHAKE_ERROR, ER_NOT_SUPPORTED_AUTH_MODE,
    ER_SECURE_TRANSPORT_REQUIRED,
};
use wire::{
    AuthMoreData, AuthSwitch, Capabilities, ChangeUser, ConnectAttributes, Handshake, Login,
    LoginPacket, Malformed, PacketWriter, ProxyHeader, StatusFlags,
};

use crate::accounts::{Account, AccountSource, Credential};
use crate::failure::LoginFailure;
use crate::shared::{SecretUse, Shared};

/// The method that greetings propose, and that accounts that do not exist are played with.
const DEFAULT_METHOD: Method = Method::NativePassword;

/// Most packets of a login; no exchange needs as many.
const LOGIN_PACKETS_MAX: u32 = 16;

/// Who is logged in.
#[derive(Debug, Clone)]
pub struct ClientInfo {
    /// The number that KILL takes.
    pub connection_id: u32,
    /// Where the client comes from: what a header of the PROXY protocol has said, if one came.
    pub peer: Peer,
    /// Its port, over TCP, if that is known.
    pub port: Option<NonZeroU16>,
    /// User name that it gave.
    pub user: String,
    /// User and host pattern of its account, as CURRENT_USER() tells.
    pub account: (String, String),
    /// Database that it wants to start in.
    pub database: Option<String>,
    /// What both sides can do.
    pub capabilities: Capabilities,
    /// The client's collation; the lower byte at login, all of it after COM_CHANGE_USER.
    pub collation: u16,
    /// Largest packet that the client takes.
    pub packet_bytes_max: u32,
    /// Facts about the client program, see [`ClientInfo::attributes`].
    attributes: Box<[u8]>,
    /// Whether the connection has TLS.
    pub has_tls: bool,
    /// Level for zstd, if that was agreed.
    pub zstd_level: u8,
    /// By which one can log in elsewhere as the same user. `None`: it is not to be kept, or the
    /// client has not shown it (`ed25519`).
    pub secret: Option<Box<ClientSecret>>,
}

impl ClientInfo {
    /// The attributes as the client has sent them, for a login elsewhere.
    pub fn encoded_attributes(&self) -> &[u8] {
        &self.attributes
    }

    /// Its address over TCP, with port 0 if that is not known.
    pub fn address(&self) -> Option<SocketAddr> {
        let port = self.port.map_or(0, NonZeroU16::get);
        match self.peer {
            Peer::Tcp(address) => Some(SocketAddr::new(address, port)),
            Peer::Unix => None,
        }
    }

    /// Facts about the client program, as name and value.
    pub fn attributes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        ConnectAttributes::from_encoded(&self.attributes).iter()
    }
}

/// What to do next in a login.
#[derive(Debug)]
pub(crate) enum LoginStep {
    /// Send what was written and take the next packet.
    Read,
    /// Start TLS, then take the next packet.
    StartTls(Arc<rustls::ServerConfig>),
    /// Run this and give the result back.
    Work(auth::Work),
    /// The client is who it says. The OK packet is left to the caller.
    Established(Box<ClientInfo>),
    /// It is not. The error has been written.
    Failed(LoginFailure),
}

/// A login that goes on.
#[derive(Debug)]
pub(crate) struct LoginMachine {
    shared: Rc<Shared>,
    peer: Peer,
    port: Option<NonZeroU16>,
    connection_id: u32,
    nonce: Nonce,
    /// What the greeting offered.
    offered: Capabilities,
    has_tls: bool,
    packets: u32,
    state: State,
}

#[derive(Debug)]
enum State {
    AwaitLogin,
    Authenticating(Box<Authentication>),
}

impl LoginMachine {
    /// A login that starts with a greeting.
    pub(crate) fn new(
        shared: Rc<Shared>,
        (peer, port): (Peer, Option<NonZeroU16>),
        connection_id: u32,
    ) -> LoginMachine {
        let nonce = Nonce::from_random(shared.random());
        let options = shared.options();
        let compression = Capabilities::COMPRESS | Capabilities::ZSTD_COMPRESSION;
        let mut offered = shared.greeting().capabilities;
        for (is_offered, capability) in [
            (options.tls.is_some(), Capabilities::SSL),
            (options.offers_compression, compression),
            (
                shared.rules().offers_local_infile,
                Capabilities::LOCAL_FILES,
            ),
        ] {
            if is_offered {
                offered = offered | capability;
            }
        }
        let state = State::AwaitLogin;
        let (has_tls, packets) = (false, 0);
        LoginMachine {
            shared,
            peer,
            port,
            connection_id,
            nonce,
            offered,
            has_tls,
            packets,
            state,
        }
    }

    /// A second login of a client that is logged in as `info`.
    pub(crate) fn change_user(
        shared: Rc<Shared>,
        nonce: Nonce,
        info: &ClientInfo,
        command: &ChangeUser<'_>,
        accounts: &dyn AccountSource,
        out: &mut PacketWriter,
    ) -> (LoginMachine, LoginStep) {
        let mut machine = LoginMachine::new(shared, (info.peer, info.port), info.connection_id);
        machine.nonce = nonce;
        machine.has_tls = info.has_tls;
        let attributes = match command.attributes.encoded() {
            [] => info.attributes.clone(),
            told => told.into(),
        };
        let collation = command.collation.unwrap_or(info.collation);
        let text = |name| accounts.name_text(collation, name);
        let claim = ClientInfo {
            user: text(command.user),
            database: command.database.map(text),
            collation,
            attributes,
            secret: None,
            ..info.clone()
        };
        let proof = Proof {
            plugin: command.auth_plugin,
            data: command.auth_data,
        };
        let step = machine.authenticate(claim, proof, accounts, out);
        (machine, step)
    }

    /// The challenge, which COM_CHANGE_USER is proven against too.
    pub(crate) fn nonce(&self) -> Nonce {
        self.nonce
    }

    /// Where the client comes from, as far as it is known.
    pub(crate) fn peer(&self) -> Peer {
        self.peer
    }

    /// A proxy has sent this header: the login is that of the client which it names. A client of a
    /// unix socket of the proxy is a local one, but its bytes may have come here over a network. So
    /// it does not count as one of a unix socket of this server.
    pub(crate) fn take_header(&mut self, header: ProxyHeader) -> Result<(), LoginFailure> {
        if !self.shared.options().proxy_networks.admit(self.peer) {
            return Err(LoginFailure::ForeignHeader);
        }
        match header {
            ProxyHeader::Local => {}
            ProxyHeader::Unix => {
                (self.peer, self.port) = (Peer::Tcp(Ipv4Addr::LOCALHOST.into()), None);
            }
            ProxyHeader::Tcp { source, .. } => {
                (self.peer, self.port) = (Peer::Tcp(source.ip()), NonZeroU16::new(source.port()));
            }
        }
        Ok(())
    }

    /// Writes the greeting.
    pub(crate) fn greet(&self, out: &mut PacketWriter) {
        let told = self.shared.greeting();
        let greeting = Handshake {
            server_version: told.server_version.as_bytes(),
            connection_id: self.connection_id,
            scramble: self.nonce.scramble(),
            capabilities: self.offered,
            collation: told.collation,
            status: StatusFlags::AUTOCOMMIT,
            auth_plugin: DEFAULT_METHOD.client_plugin().as_bytes(),
        };
        greeting.encode(out);
    }

    /// Whether a packet is the login of a name that has no account.
    pub(crate) fn names_unknown(&self, payload: &[u8], accounts: &dyn AccountSource) -> bool {
        let (State::AwaitLogin, Ok(LoginPacket::Login(login))) =
            (&self.state, LoginPacket::decode(payload))
        else {
            return false;
        };
        let user = accounts.name_text(u16::from(login.collation), login.user);
        accounts.find(&user, self.peer).is_none()
    }

    /// Takes a packet of the client.
    pub(crate) fn packet(
        &mut self,
        payload: &[u8],
        accounts: &dyn AccountSource,
        out: &mut PacketWriter,
    ) -> LoginStep {
        self.packets += 1;
        if self.packets > LOGIN_PACKETS_MAX {
            return refuse(out, ClientError::new(ER_HANDSHAKE_ERROR, &[]));
        }
        match &mut self.state {
            State::Authenticating(authentication) => authentication.packet(payload, out),
            State::AwaitLogin => match LoginPacket::decode(payload) {
                Ok(LoginPacket::Login(login)) => self.login(&login, accounts, out),
                Ok(LoginPacket::TlsRequest(_)) => self.tls_request(out),
                Err(malformed) => malformed_login(out, malformed),
            },
        }
    }

    /// Takes the result of work.
    pub(crate) fn worked(&mut self, worked: Worked, out: &mut PacketWriter) -> LoginStep {
        match &mut self.state {
            State::Authenticating(authentication) => authentication.worked(worked, out),
            State::AwaitLogin => malformed_login(out, NOT_DUE),
        }
    }

    fn tls_request(&mut self, out: &mut PacketWriter) -> LoginStep {
        match &self.shared.options().tls {
            Some(config) if !self.has_tls => {
                self.has_tls = true;
                LoginStep::StartTls(Arc::clone(config))
            }
            Some(_) | None => malformed_login(out, NOT_DUE),
        }
    }

    fn login(
        &mut self,
        login: &Login<'_>,
        accounts: &dyn AccountSource,
        out: &mut PacketWriter,
    ) -> LoginStep {
        let is_insecure = !self.has_tls && self.peer != Peer::Unix;
        if is_insecure && self.shared.rules().requires_secure_transport {
            let error = ClientError::new(ER_SECURE_TRANSPORT_REQUIRED, &[]);
            return refuse(out, error);
        }
        let collation = u16::from(login.collation);
        let text = |name| accounts.name_text(collation, name);
        let claim = ClientInfo {
            connection_id: self.connection_id,
            peer: self.peer,
            port: self.port,
            user: text(login.user),
            account: (String::new(), String::new()),
            database: login.database.map(text),
            capabilities: self.offered & login.capabilities,
            collation,
            packet_bytes_max: login.packet_bytes_max,
            attributes: login.attributes.encoded().into(),
            has_tls: self.has_tls,
            zstd_level: login.zstd_level,
            secret: None,
        };
        let proof = Proof {
            plugin: login.auth_plugin,
            data: login.auth_data,
        };
        self.authenticate(claim, proof, accounts, out)
    }

    fn authenticate(
        &mut self,
        claim: ClientInfo,
        proof: Proof<'_>,
        accounts: &dyn AccountSource,
        out: &mut PacketWriter,
    ) -> LoginStep {
        let account = accounts.find(&claim.user, claim.peer);
        let shared = Rc::clone(&self.shared);
        let mut authentication = Box::new(Authentication::new(shared, self.nonce, claim, account));
        let step = authentication.begin(proof, out);
        self.state = State::Authenticating(authentication);
        step
    }
}

const NOT_DUE: Malformed = Malformed {
    what: "login packet that is not due",
};

/// What a client sent to prove who it is.
struct Proof<'a> {
    plugin: &'a [u8],
    data: &'a [u8],
}

/// A claim that is being proven.
#[derive(Debug)]
struct Authentication {
    shared: Rc<Shared>,
    claim: ClientInfo,
    account: Option<Account>,
    exchange: ServerExchange,
    /// Account and stored secret, by which proven passwords are remembered.
    proven_key: Vec<u8>,
}

impl Authentication {
    fn new(
        shared: Rc<Shared>,
        nonce: Nonce,
        claim: ClientInfo,
        account: Option<Account>,
    ) -> Authentication {
        let secret = match account.as_ref().map(|account| &account.credential) {
            Some(Credential::Secret(secret)) => secret.clone(),
            Some(Credential::Trusted | Credential::Refused(_)) | None => {
                let source = &shared.options().random;
                let mut fill = |bytes: &mut [u8]| source(bytes);
                StoredSecret::impossible(DEFAULT_METHOD, &mut Random(&mut fill))
            }
        };
        let is_secure = claim.has_tls || claim.peer == Peer::Unix;
        let transport = if is_secure {
            Transport::Secure
        } else {
            Transport::Plain
        };
        let mut proven_key = secret.to_text();
        for part in account
            .iter()
            .flat_map(|account| [&account.user, &account.host])
        {
            proven_key.push(0);
            proven_key.extend_from_slice(part.as_bytes());
        }
        let cached = shared.proven(&proven_key);
        let rsa_key = shared.options().rsa_key.clone();
        let exchange = ServerExchange::new(secret, nonce, transport, cached, rsa_key);
        Authentication {
            shared,
            claim,
            account,
            exchange,
            proven_key,
        }
    }

    /// Starts with what came with the claim.
    fn begin(&mut self, proof: Proof<'_>, out: &mut PacketWriter) -> LoginStep {
        match self.account.as_ref().map(|account| &account.credential) {
            Some(Credential::Trusted) => return self.granted(out),
            Some(Credential::Refused(error)) => return refuse(out, (**error).clone()),
            Some(Credential::Secret(_)) | None => {}
        }
        let method = self.exchange.method();
        let knows_plugins = self.claim.capabilities.contains(Capabilities::PLUGIN_AUTH);
        let plugin = method.client_plugin().as_bytes();
        // The greeting's challenge is too short for ed25519: that always needs a switch.
        // With COM_CHANGE_USER a client of caching_sha2_password sends nothing and waits for a
        // challenge. An account without password needs none.
        let awaits_challenge = method == Method::CachingSha2
            && proof.data.is_empty()
            && !self.exchange.is_without_password();
        let is_fitting = proof.plugin == plugin && method != Method::Ed25519 && !awaits_challenge;
        match (knows_plugins, method) {
            (true, _) if is_fitting => self.packet(proof.data, out),
            (false, Method::NativePassword) => self.packet(proof.data, out),
            (true, _) => {
                let challenge = self.exchange.challenge();
                AuthSwitch {
                    plugin,
                    data: &challenge,
                }
                .encode(out);
                LoginStep::Read
            }
            (false, _) => refuse(out, ClientError::new(ER_NOT_SUPPORTED_AUTH_MODE, &[])),
        }
    }

    fn packet(&mut self, data: &[u8], out: &mut PacketWriter) -> LoginStep {
        let step = self.exchange.receive(data);
        self.step(step, out)
    }

    fn worked(&mut self, worked: Worked, out: &mut PacketWriter) -> LoginStep {
        let step = self.exchange.worked(worked);
        self.step(step, out)
    }

    fn step(&mut self, step: ServerStep, out: &mut PacketWriter) -> LoginStep {
        match step {
            ServerStep::SendMoreData(data) => {
                AuthMoreData { data: &data }.encode(out);
                LoginStep::Read
            }
            ServerStep::Work(work) => LoginStep::Work(work),
            ServerStep::Denied => self.denied(out),
            ServerStep::Granted {
                farewell,
                to_cache,
                secret,
            } => {
                if self.shared.options().secret_use == SecretUse::Keep {
                    self.claim.secret = secret.map(Box::new);
                }
                if let Some(digest) = to_cache {
                    self.shared
                        .remember_proven(std::mem::take(&mut self.proven_key), digest);
                }
                if !farewell.is_empty() {
                    AuthMoreData { data: farewell }.encode(out);
                }
                self.granted(out)
            }
        }
    }

    fn granted(&mut self, out: &mut PacketWriter) -> LoginStep {
        let Some(account) = self.account.take() else {
            return self.denied(out);
        };
        if account.requires_tls && !self.claim.has_tls {
            return self.denied(out);
        }
        if account.is_locked {
            return refuse(out, ClientError::new(ER_ACCOUNT_HAS_BEEN_LOCKED, &[]));
        }
        let account = (account.user, account.host);
        LoginStep::Established(Box::new(ClientInfo {
            account,
            ..self.claim.clone()
        }))
    }

    fn denied(&self, out: &mut PacketWriter) -> LoginStep {
        let host = self.claim.peer.host();
        let with_password = self.exchange.has_used_password();
        refuse(
            out,
            ClientError::access_denied(&self.claim.user, &host, with_password),
        )
    }
}

fn refuse(out: &mut PacketWriter, error: ClientError) -> LoginStep {
    wire::ErrorPacket::encode(out, &error);
    LoginStep::Failed(LoginFailure::Refused(error))
}

fn malformed_login(out: &mut PacketWriter, malformed: Malformed) -> LoginStep {
    wire::ErrorPacket::encode(out, &ClientError::new(ER_HANDSHAKE_ERROR, &[]));
    LoginStep::Failed(LoginFailure::Malformed(malformed))
}
