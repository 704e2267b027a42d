//! [`Client`]: one client's connection, from accept to close.
//!
//! ```text
//! let client = Client::accept(stream, &shared, &accounts, connection_id).await?;
//! // The session looks at client.info(), opens its database, and says OK or why not:
//! client.welcome(&OkPacket { status, ..OkPacket::default() }).await?;
//! loop {
//!     let bytes = client.read_command(wait_timeout, OutsideTransaction).await?;  // flushes first
//!     match Command::decode(&bytes, client.capabilities()) {
//!         Ok(Command::Query(text)) => {
//!             let mut row = TextRow::begin(client.out());
//!             ..
//!             if client.should_flush() { client.flush().await? }     // between rows
//!         }
//!         ..
//!     }
//! }
//! client.close().await;
//! ```
//!
//! The bytes of a command are the session's own: they are not lent from the client, so a statement
//! can be read while its reply is written. Replies to commands that came together are sent
//! together.

use std::rc::Rc;
use std::time::Duration;

use auth::Nonce;
use errcode::{
    ClientError, ER_NET_PACKET_TOO_LARGE, ER_NET_PACKETS_OUT_OF_ORDER, ER_NET_UNCOMPRESS_ERROR,
    ER_OUT_OF_RESOURCES,
};
use link::{ChannelError, Disconnect, InnerIds, Limit, Link, PacketBytes, PeerRole, give_way};
use runtime::{PeerWatch, Stream, TaskClass};
use wire::{
    Capabilities, ChangeUser, CompressionMethod, ErrorPacket, FrameError, LocalInfile, LongPacket,
    OkKind, OkPacket, PacketWriter,
};

use crate::accounts::{AccountSource, peer_of};
use crate::drive::{drive, proxy_header};
use crate::failure::{FailedLogin, LoginFailure};
use crate::login::{ClientInfo, LoginMachine, LoginStep};
use crate::shared::Shared;

/// Replies are sent when this much waits: enough to fill a system call, little enough that ten
/// thousand slow readers are no burden.
pub const FLUSH_BYTES: usize = 32 << 10;

/// Largest packet of a login: 64 KiB of attributes and some names.
const LOGIN_PACKET_BYTES_MAX: usize = 128 << 10;

/// Most time for reading and dropping a packet that is too large.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(30);

/// One client's connection.
pub struct Client {
    link: Link,
    shared: Rc<Shared>,
    info: ClientInfo,
    /// What the greeting challenged with; COM_CHANGE_USER is proven against it too.
    nonce: Nonce,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Greets who connected and lets it log in. When this fails the client has been told why, as
    /// far as it may know, and the connection is closed.
    pub async fn accept(
        stream: Stream,
        shared: &Rc<Shared>,
        accounts: &dyn AccountSource,
        connection_id: u32,
    ) -> Result<Client, FailedLogin> {
        // Boxed: the state of a login is large, and is not to be carried along afterwards.
        let outcome = Box::pin(Client::log_in(stream, shared, accounts, connection_id)).await;
        if let Err(failed) = &outcome {
            shared.counters().count_failure(&failed.failure);
        }
        outcome
    }

    /// The bytes of such a refusal, for clients that no connection can be made for.
    pub fn refusal(error: &ClientError) -> Vec<u8> {
        let mut out = PacketWriter::new();
        ErrorPacket::encode_in_place_of_greeting(&mut out, error);
        out.take()
    }

    /// Tells who connected why it cannot come in (too many connections, shutdown), in place of a
    /// greeting.
    pub async fn refuse(stream: Stream, shared: &Rc<Shared>, error: &ClientError) {
        let mut link = login_link(stream, shared);
        ErrorPacket::encode_in_place_of_greeting(link.out(), error);
        let _ = link.close().await;
    }

    async fn log_in(
        stream: Stream,
        shared: &Rc<Shared>,
        accounts: &dyn AccountSource,
        connection_id: u32,
    ) -> Result<Client, FailedLogin> {
        let Some(origin) = peer_of(&stream) else {
            let failure = Disconnect::PeerClosed.into();
            return Err(FailedLogin {
                peer: None,
                failure,
            });
        };
        let mut machine = LoginMachine::new(Rc::clone(shared), origin, connection_id);
        let mut link = login_link(stream, shared);
        let outcome = introduce(&mut link, shared, &mut machine, accounts).await;
        let info = *outcome.map_err(|failure| FailedLogin {
            peer: Some(machine.peer()),
            failure: told_as_login(failure),
        })?;
        link.set_packet_bytes_max(shared.options().max_allowed_packet);
        link.set_account(&account_name(&info));
        Ok(Client {
            link,
            shared: Rc::clone(shared),
            info,
            nonce: machine.nonce(),
        })
    }

    /// The link under the client, for packets that are passed on ([`link::Exchange`]).
    pub fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    /// The same beside who is logged in.
    pub fn link_and_info(&mut self) -> (&mut Link, &ClientInfo) {
        (&mut self.link, &self.info)
    }

    /// Who is logged in.
    pub fn info(&self) -> &ClientInfo {
        &self.info
    }

    /// What both sides can do. Write replies accordingly.
    pub fn capabilities(&self) -> Capabilities {
        self.info.capabilities
    }

    /// Lets a query consist of several statements from now on (COM_SET_OPTION).
    pub fn allow_multi_statements(&mut self) {
        let agreed = self.info.capabilities;
        self.info.capabilities = agreed | Capabilities::MULTI_STATEMENTS;
    }

    /// A query is a single statement from now on (COM_SET_OPTION).
    pub fn forbid_multi_statements(&mut self) {
        let agreed = self.info.capabilities;
        self.info.capabilities = agreed & !Capabilities::MULTI_STATEMENTS;
    }

    /// Says that the login went well, and starts compression if that was agreed.
    pub async fn welcome(&mut self, ok: &OkPacket<'_>) -> Result<(), Disconnect> {
        let capabilities = self.info.capabilities;
        ok.encode(self.out(), capabilities, OkKind::Ok);
        self.flush().await?;
        if capabilities.contains(Capabilities::COMPRESS) {
            self.link
                .start_compression(CompressionMethod::Zlib, InnerIds::Checked);
        } else if capabilities.contains(Capabilities::ZSTD_COMPRESSION) {
            let level = self.info.zstd_level;
            self.link
                .start_compression(CompressionMethod::Zstd { level }, InnerIds::Checked);
        }
        Ok(())
    }

    /// Says why the session ends, and ends the connection.
    pub async fn dismiss(mut self, error: &ClientError) {
        ErrorPacket::encode(self.out(), error);
        self.close().await;
    }

    /// Changes the limit on the client's packets.
    pub fn set_max_allowed_packet(&mut self, bytes: usize) {
        self.link.set_packet_bytes_max(bytes);
    }

    /// How long the rest of a packet may take to come, and how long a reply to be taken.
    pub fn set_timeouts(&mut self, read: Duration, write: Duration) {
        self.link.set_timeouts(read, write);
    }

    /// Sends what was written and waits for a command, at most `wait_timeout`; `class` says what
    /// the session holds meanwhile.
    ///
    /// A future that is dropped before its end may have sent a part of a reply or taken a part of
    /// a packet: the connection can then only be closed.
    pub async fn read_command(
        &mut self,
        wait_timeout: Duration,
        class: TaskClass,
    ) -> Result<PacketBytes, Disconnect> {
        self.link.expect_command();
        if self.should_flush() {
            self.link.post().await?;
        }
        match self.link.next_packet() {
            Ok(Some(packet)) => {
                // It came with the one before, and nobody was waited for since.
                give_way()?;
                return Ok(packet);
            }
            Ok(None) => {}
            Err(error) => return Err(Box::pin(self.fail(error)).await),
        }
        self.link.post().await?;
        let limit = Limit::after(wait_timeout);
        let received = self.link.receive_command(limit, class).await;
        self.told(received).await
    }

    /// Sends what was written and waits for a command, at most `wait_timeout`, without taking it:
    /// it can then be passed on ([`link::Exchange`]) or taken ([`Client::read_command`]). Returns
    /// its first byte.
    pub async fn peek_command(
        &mut self,
        wait_timeout: Duration,
        class: TaskClass,
    ) -> Result<u8, Disconnect> {
        match self.link.peek_command(wait_timeout, class).await {
            Err(Disconnect::Protocol(error)) => Err(Box::pin(self.fail(error)).await),
            Err(Disconnect::NoMemory) => Err(Box::pin(self.refuse_packet()).await),
            peeked => peeked,
        }
    }

    /// Waits until so many bytes of the command that [`Client::peek_command`] has told of are
    /// there, its first one included, or all of its first frame.
    pub async fn receive_peeked(&mut self, bytes: usize) -> Result<(), Disconnect> {
        let received = self.link.receive_peeked(bytes).await;
        self.told(received).await
    }

    /// Where replies are written. Packets go out with [`Client::flush`] or the next
    /// [`Client::read_command`].
    #[inline]
    pub fn out(&mut self) -> &mut PacketWriter {
        self.link.out()
    }

    /// Begins a packet that is too long for [`Client::out`];
    /// [`Client::append_long_packet`] ends it.
    pub fn begin_long_packet(&mut self) -> LongPacket {
        self.link.begin_long_packet()
    }

    /// Writes a long packet. Nothing was written since it was begun.
    pub fn append_long_packet(&mut self, packet: LongPacket) {
        self.link.append_long_packet(packet);
    }

    /// Lets what was written so far wait as long packets do.
    pub fn set_output_aside(&mut self) {
        self.link.set_output_aside();
    }

    /// What long packets that wait to be sent take of memory. [`Client::flush_piece`] sends and
    /// frees a part of them.
    #[inline]
    pub fn long_packet_bytes(&self) -> usize {
        self.link.long_packet_bytes()
    }

    /// Whether enough waits to be sent; ask between rows.
    #[inline]
    pub fn should_flush(&self) -> bool {
        self.link.pending_bytes() >= FLUSH_BYTES
    }

    /// Begins what the client is told while it asks nothing: numbered as the answer to its next
    /// command. It reads it once it has sent that, and many refuse numbers that are out of order.
    pub fn begin_unasked(&mut self) {
        self.link.expect_command();
        self.link.begin_error_reply(1);
    }

    /// Whether anything that was written waits to be sent.
    pub fn has_unsent(&self) -> bool {
        self.link.pending_bytes() != 0
    }

    /// Sends what was written. Waits until the client takes it, so a slow reader makes its session
    /// wait, and nobody else; one that takes nothing for `write_timeout` is disconnected.
    pub async fn flush(&mut self) -> Result<(), Disconnect> {
        self.link.flush().await
    }

    /// As [`Client::flush`], of one piece if there are long packets.
    pub async fn flush_piece(&mut self) -> Result<(), Disconnect> {
        self.link.flush_piece().await
    }

    /// The reply that was being written is whole.
    #[inline]
    pub fn end_reply(&mut self) {
        self.link.end_reply();
    }

    /// Whether replies that are whole wait to be sent.
    pub fn has_replies(&self) -> bool {
        self.link.pending_reply_bytes() != 0
    }

    /// Sends the replies that are whole, and nothing of one that is being written, if the client
    /// has taken what it was sent before and this is not much either: then it fits into the
    /// socket, and nothing is waited for.
    pub async fn post_replies(&mut self) -> Result<(), Disconnect> {
        let count = self.link.pending_reply_bytes();
        if count == 0 || FLUSH_BYTES <= count || self.link.stream().is_posting() {
            return Ok(());
        }
        self.link.post_replies().await
    }

    /// Sends an error that ends the connection, with the packets that wait before it, if all of it
    /// fits into the socket: nothing is waited for. Returns whether it does.
    pub async fn post_last(&mut self, error: &ClientError) -> bool {
        if FLUSH_BYTES <= self.link.pending_bytes() || self.link.stream().is_posting() {
            return false;
        }
        ErrorPacket::encode(self.out(), error);
        self.end_reply();
        self.link.post().await.is_ok()
    }

    /// Asks the client for a file, as LOAD DATA LOCAL does; its bytes come by
    /// [`Client::read_local_infile`].
    pub async fn request_local_infile(&mut self, file_name: &[u8]) -> Result<(), Disconnect> {
        LocalInfile { file_name }.encode(self.out());
        self.link.follow_sequence();
        self.flush().await
    }

    /// The next piece of the file; `None` at its end. All pieces have to be read before a reply is
    /// written, whatever becomes of them.
    pub async fn read_local_infile(&mut self) -> Result<Option<PacketBytes>, Disconnect> {
        let timeout = self.link.read_timeout();
        let packet = self.receive_packet(timeout).await?;
        Ok(Some(packet).filter(|packet| !packet.is_empty()))
    }

    /// Lets the client log in again, as COM_CHANGE_USER asks. The OK packet is left to the session;
    /// after a failure the client has been told and has to be disconnected. One that was refused
    /// may also go on as who it was.
    pub async fn change_user(
        &mut self,
        command: &ChangeUser<'_>,
        accounts: &dyn AccountSource,
    ) -> Result<(), LoginFailure> {
        let shared = Rc::clone(&self.shared);
        if accounts.can_renew() {
            let collation = command.collation.unwrap_or(self.info.collation);
            let user = accounts.name_text(collation, command.user);
            if accounts.find(&user, self.info.peer).is_none() {
                accounts.renew().await;
            }
        }
        let out = self.link.out();
        let (mut machine, step) = LoginMachine::change_user(
            Rc::clone(&shared),
            self.nonce,
            &self.info,
            command,
            accounts,
            out,
        );
        let limit = Limit::precisely_after(shared.rules().connect_timeout);
        let drive = drive(&mut self.link, &shared, &mut machine, accounts, step, limit);
        match Box::pin(drive).await {
            Ok(info) => {
                self.info = *info;
                let account = account_name(&self.info);
                self.link.set_account(&account);
                Ok(())
            }
            Err(failure) => {
                let failure = told_as_login(failure);
                shared.counters().count_failure(&failure);
                Err(failure)
            }
        }
    }

    /// Comes to an end when the client is gone, while the session waits for something else.
    pub async fn peer_gone(&self) {
        self.link.stream().hung_up().await;
    }

    /// What tells whether the client is there while the session computes.
    pub fn watch(&self) -> PeerWatch {
        self.link.stream().watch()
    }

    /// Lets the client read the end of the connection, now: what was written is not sent.
    pub fn cut_off(&self) {
        // A socket that has failed has ended already.
        let _ = self.link.stream().shut_down_sending();
    }

    /// Sends what was written and tells the client that nothing follows: it reads the end of the
    /// connection. What is left is to close it.
    pub async fn hang_up(&mut self) -> Result<(), Disconnect> {
        self.link.close().await
    }

    /// Sends what was written and ends the connection in order.
    pub async fn close(mut self) {
        // What a client that is gone was to be told does not matter any more.
        let _ = Box::pin(self.link.close()).await;
    }

    async fn receive_packet(&mut self, timeout: Duration) -> Result<PacketBytes, Disconnect> {
        let limit = Limit::after(timeout);
        let received = self.link.receive_packet(limit).await;
        self.told(received).await
    }

    /// What was received; the client is told if that breaks the protocol.
    async fn told<T>(&mut self, received: Result<T, Disconnect>) -> Result<T, Disconnect> {
        match received {
            Err(Disconnect::Protocol(error)) => Err(Box::pin(self.fail(error)).await),
            Err(Disconnect::NoMemory) => Err(Box::pin(self.refuse_packet()).await),
            outcome => outcome,
        }
    }

    /// Tells the client that there is no memory for its packet. The connection is over: what is
    /// left of the packet is read by nobody.
    async fn refuse_packet(&mut self) -> Disconnect {
        self.link.begin_error_reply(1);
        ErrorPacket::encode(self.out(), &ClientError::new(ER_OUT_OF_RESOURCES, &[]));
        match self.flush().await {
            Ok(()) => Disconnect::NoMemory,
            Err(disconnect) => disconnect,
        }
    }

    /// Tells the client what is wrong with what it sent. The connection is over.
    async fn fail(&mut self, error: ChannelError) -> Disconnect {
        let mut frames = 1;
        let code = match &error {
            ChannelError::Frame(FrameError::TooLarge { unread_bytes, .. }) => {
                let limit = Limit::after(DISCARD_TIMEOUT);
                let discard = self.link.discard_packet(*unread_bytes, &mut frames, limit);
                // The error is sent even if not all was read.
                let _ = discard.await;
                ER_NET_PACKET_TOO_LARGE
            }
            ChannelError::Frame(FrameError::OutOfOrder { .. }) => ER_NET_PACKETS_OUT_OF_ORDER,
            ChannelError::Compression(_) => ER_NET_UNCOMPRESS_ERROR,
            ChannelError::Tls(_) | ChannelError::Compress(_) | ChannelError::Stopping => {
                return self.link.send_alert(error).await;
            }
        };
        self.link.begin_error_reply(frames);
        ErrorPacket::encode(self.out(), &ClientError::new(code, &[]));
        match self.flush().await {
            Ok(()) if code == ER_NET_PACKET_TOO_LARGE => Disconnect::TooLarge,
            Ok(()) => Disconnect::Protocol(error),
            Err(disconnect) => disconnect,
        }
    }
}

/// The link of a client that is about to log in.
fn login_link(stream: Stream, shared: &Shared) -> Link {
    let timeout = shared.rules().write_timeout;
    Link::new(
        stream,
        PeerRole::Client,
        shared.resources(),
        LOGIN_PACKET_BYTES_MAX,
        timeout,
    )
}

/// Greets a client and lets it log in.
async fn introduce(
    link: &mut Link,
    shared: &Shared,
    machine: &mut LoginMachine,
    accounts: &dyn AccountSource,
) -> Result<Box<ClientInfo>, LoginFailure> {
    machine.greet(link.out());
    let mut limit = Limit::precisely_after(shared.rules().connect_timeout);
    if let Some(header) = proxy_header(link, &mut limit).await? {
        machine.take_header(header)?;
    }
    drive(link, shared, machine, accounts, LoginStep::Read, limit).await
}

/// Whose memory a client's packets take.
fn account_name(info: &ClientInfo) -> String {
    let (user, host) = &info.account;
    format!("{user}@{host}")
}

/// In a login, to be idle is to be too slow.
fn told_as_login(failure: LoginFailure) -> LoginFailure {
    match failure {
        LoginFailure::Disconnected(Disconnect::Idle) => LoginFailure::Timeout,
        other => other,
    }
}
