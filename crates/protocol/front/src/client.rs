//! [`Client`]: one client's connection, from accept to close.
//!
//! ```text
//! let client = Client::accept(stream, &shared, &accounts, connection_id).await?;
//! // The session looks at client.info(), opens its database, and says OK or why not:
//! client.welcome(&OkPacket { status, ..OkPacket::default() }).await?;
//! loop {
//!     let bytes = client.read_command(wait_timeout).await?;          // flushes first
//!     match Command::decode(&bytes, client.info().capabilities) {
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
use std::sync::Arc;
use std::time::Duration;

use auth::{Nonce, Random};
use errcode::{
    ClientError, ER_NET_PACKET_TOO_LARGE, ER_NET_PACKETS_OUT_OF_ORDER, ER_NET_UNCOMPRESS_ERROR,
};
use runtime::Stream;
use wire::{
    Capabilities, ChangeUser, CompressionMethod, ErrorPacket, FRAME_BYTES_MAX, FrameError,
    HEADER_BYTES, LocalInfile, OkKind, OkPacket, PacketWriter,
};

use crate::accounts::{AccountSource, Peer};
use crate::channel::{Channel, ChannelError, PacketBytes};
use crate::failure::{Disconnect, LoginFailure};
use crate::login::{ClientInfo, LoginMachine, LoginStep};
use crate::shared::{Shared, add};

/// Replies are sent when this much waits: enough to fill a system call, little enough that ten
/// thousand slow readers are no burden.
pub const FLUSH_BYTES: usize = 32 << 10;

/// Largest packet of a login: 64 KiB of attributes and some names.
const LOGIN_PACKET_BYTES_MAX: usize = 128 << 10;

/// Most that is read and dropped of a packet that is too large, so that its sender gets to read
/// why. MySQL's protocol knows no larger `max_allowed_packet`.
const DISCARD_BYTES_MAX: usize = 1 << 30;

/// Most time for that.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(30);

/// One client's connection.
pub struct Client {
    stream: Stream,
    channel: Channel,
    shared: Rc<Shared>,
    info: ClientInfo,
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
    ) -> Result<Client, LoginFailure> {
        let peer = match stream.peer_address() {
            Some(address) => Peer::Tcp(address.ip()),
            None => Peer::Unix,
        };
        let channel = Channel::new(Rc::clone(shared), LOGIN_PACKET_BYTES_MAX);
        let machine = LoginMachine::new(Rc::clone(shared), peer, connection_id);
        let connection = Connection {
            stream,
            channel,
            shared: Rc::clone(shared),
        };
        let login = Client::log_in(connection, machine, accounts);
        let outcome = match runtime::timeout(shared.options().connect_timeout, login).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => Err(LoginFailure::Timeout),
        };
        if outcome.is_err() {
            add(&shared.counters().failed_logins, 1);
        }
        outcome
    }

    /// Tells who connected why it cannot come in (too many connections, shutdown), in place of a
    /// greeting.
    pub async fn refuse(mut stream: Stream, shared: &Rc<Shared>, error: &ClientError) {
        let mut out = PacketWriter::new();
        ErrorPacket::encode_in_place_of_greeting(&mut out, error);
        let sent = runtime::timeout(shared.options().connect_timeout, stream.send(out.take()));
        // Whether it arrives or not, the connection is over.
        let _ = sent.await;
    }

    async fn log_in(
        mut connection: Connection,
        mut machine: LoginMachine,
        accounts: &dyn AccountSource,
    ) -> Result<Client, LoginFailure> {
        machine.greet(connection.channel.out());
        let nonce = machine.nonce();
        let info = connection
            .drive(&mut machine, accounts, LoginStep::Read)
            .await?;
        let max_allowed_packet = connection.shared.options().max_allowed_packet;
        connection.channel.set_packet_bytes_max(max_allowed_packet);
        let Connection {
            stream,
            channel,
            shared,
        } = connection;
        Ok(Client {
            stream,
            channel,
            shared,
            info: *info,
            nonce,
        })
    }

    /// Who is logged in.
    pub fn info(&self) -> &ClientInfo {
        &self.info
    }

    /// What both sides can do. Write replies accordingly.
    pub fn capabilities(&self) -> Capabilities {
        self.info.capabilities
    }

    /// Says that the login went well, and starts compression if that was agreed.
    pub async fn welcome(&mut self, ok: &OkPacket<'_>) -> Result<(), Disconnect> {
        let capabilities = self.info.capabilities;
        ok.encode(self.out(), capabilities, OkKind::Ok);
        self.flush().await?;
        if capabilities.contains(Capabilities::COMPRESS) {
            self.channel.start_compression(CompressionMethod::Zlib);
        } else if capabilities.contains(Capabilities::ZSTD_COMPRESSION) {
            let level = self.info.zstd_level;
            self.channel
                .start_compression(CompressionMethod::Zstd { level });
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
        self.channel.set_packet_bytes_max(bytes);
    }

    /// Sends what was written and waits for a command, at most `wait_timeout`.
    ///
    /// Dropping the future loses nothing; the next call goes on.
    pub async fn read_command(
        &mut self,
        wait_timeout: Duration,
    ) -> Result<PacketBytes, Disconnect> {
        self.channel.expect_command();
        if self.should_flush() {
            self.flush().await?;
        }
        match self.channel.next_packet() {
            Ok(Some(packet)) => return Ok(packet),
            Ok(None) => {}
            Err(error) => return Err(self.fail(error).await),
        }
        self.flush().await?;
        match runtime::timeout(wait_timeout, self.receive_packet()).await {
            Ok(Err(Disconnect::Protocol(error))) => Err(self.fail(error).await),
            Ok(outcome) => outcome,
            Err(_elapsed) => Err(Disconnect::Idle),
        }
    }

    /// Where replies are written. Packets go out with [`Client::flush`] or the next
    /// [`Client::read_command`].
    #[inline]
    pub fn out(&mut self) -> &mut PacketWriter {
        self.channel.out()
    }

    /// Whether enough waits to be sent; ask between rows.
    #[inline]
    pub fn should_flush(&self) -> bool {
        self.channel.pending_bytes() >= FLUSH_BYTES
    }

    /// Sends what was written. Waits until the client takes it, so a slow reader makes its session
    /// wait, and nobody else; one that takes nothing for `write_timeout` is disconnected.
    pub async fn flush(&mut self) -> Result<(), Disconnect> {
        let bytes = self.channel.seal()?;
        send(&mut self.stream, &self.shared, bytes).await
    }

    /// Asks the client for a file, as LOAD DATA LOCAL does; its bytes come by
    /// [`Client::read_local_infile`].
    pub async fn request_local_infile(&mut self, file_name: &[u8]) -> Result<(), Disconnect> {
        LocalInfile { file_name }.encode(self.out());
        self.channel.follow_sequence();
        self.flush().await
    }

    /// The next piece of the file; `None` at its end. All pieces have to be read before a reply is
    /// written, whatever becomes of them.
    pub async fn read_local_infile(&mut self) -> Result<Option<PacketBytes>, Disconnect> {
        let timeout = self.shared.options().write_timeout;
        match runtime::timeout(timeout, self.receive_packet()).await {
            Ok(Ok(packet)) => Ok(Some(packet).filter(|packet| !packet.is_empty())),
            Ok(Err(Disconnect::Protocol(error))) => Err(self.fail(error).await),
            Ok(Err(disconnect)) => Err(disconnect),
            Err(_elapsed) => Err(Disconnect::Idle),
        }
    }

    /// Lets the client log in anew, as COM_CHANGE_USER asks. The OK packet is left to the session;
    /// after a failure the client has been told and has to be disconnected.
    pub async fn change_user(
        &mut self,
        command: &ChangeUser<'_>,
        accounts: &dyn AccountSource,
    ) -> Result<(), LoginFailure> {
        let shared = Rc::clone(&self.shared);
        let limit = shared.options().connect_timeout;
        let (mut machine, step) = LoginMachine::change_user(
            Rc::clone(&shared),
            self.nonce,
            &self.info,
            command,
            accounts,
            self.channel.out(),
        );
        let drive = drive(
            &mut self.stream,
            &mut self.channel,
            &shared,
            &mut machine,
            accounts,
            step,
        );
        let outcome = match runtime::timeout(limit, drive).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => Err(LoginFailure::Timeout),
        };
        match outcome {
            Ok(info) => {
                self.info = *info;
                Ok(())
            }
            Err(failure) => {
                add(&shared.counters().failed_logins, 1);
                Err(failure)
            }
        }
    }

    /// Comes to an end when the client is gone, while the session waits for something else.
    pub async fn peer_gone(&self) {
        self.stream.hung_up().await;
    }

    /// Sends what was written and ends the connection in order.
    pub async fn close(mut self) {
        // What cannot be sent any more does not matter any more.
        if self.flush().await.is_ok() {
            let farewell = self.channel.close();
            let _ = send(&mut self.stream, &self.shared, farewell).await;
            let _ = self.stream.shut_down_sending();
        }
    }

    async fn receive_packet(&mut self) -> Result<PacketBytes, Disconnect> {
        receive_packet(&mut self.stream, &mut self.channel, &self.shared).await
    }

    /// Tells the client what is wrong with what it sent. The connection is over.
    async fn fail(&mut self, error: ChannelError) -> Disconnect {
        let mut frames = 1;
        let code = match &error {
            ChannelError::Frame(FrameError::TooLarge { unread_bytes, .. }) => {
                let discard = self.discard_packet(*unread_bytes, &mut frames);
                // The error is sent even if not all was read.
                let _ = runtime::timeout(DISCARD_TIMEOUT, discard).await;
                ER_NET_PACKET_TOO_LARGE
            }
            ChannelError::Frame(FrameError::OutOfOrder { .. }) => ER_NET_PACKETS_OUT_OF_ORDER,
            ChannelError::Compression(_) => ER_NET_UNCOMPRESS_ERROR,
            ChannelError::Tls(_) | ChannelError::Compress(_) => {
                let alert = self.channel.take_tls_records();
                let _ = send(&mut self.stream, &self.shared, alert).await;
                return Disconnect::Protocol(error);
            }
        };
        self.channel.begin_error_reply(frames);
        ErrorPacket::encode(self.out(), &ClientError::new(code, &[]));
        match self.flush().await {
            Ok(()) if code == ER_NET_PACKET_TOO_LARGE => Disconnect::TooLarge,
            Ok(()) => Disconnect::Protocol(error),
            Err(disconnect) => disconnect,
        }
    }

    /// Reads and drops a packet that is too large, of which `frame_bytes` with the header are left
    /// in its present frame: a connection that is closed with bytes unread is reset, and the
    /// client would never see the error.
    /// Counts the frames.
    async fn discard_packet(
        &mut self,
        mut frame_bytes: usize,
        frames: &mut u8,
    ) -> Result<(), Disconnect> {
        let mut total = 0;
        loop {
            let is_last = frame_bytes < FRAME_BYTES_MAX + HEADER_BYTES;
            total += frame_bytes;
            while frame_bytes > 0 {
                frame_bytes -= self.channel.discard(frame_bytes)?;
                if frame_bytes > 0 {
                    receive(&mut self.stream, &mut self.channel, &self.shared).await?;
                }
            }
            if is_last || total > DISCARD_BYTES_MAX {
                return Ok(());
            }
            *frames = frames.wrapping_add(1);
            frame_bytes = loop {
                if let Some(length) = self.channel.peek_frame_bytes()? {
                    break length + HEADER_BYTES;
                }
                receive(&mut self.stream, &mut self.channel, &self.shared).await?;
            };
        }
    }
}

/// A connection whose client is not known yet.
struct Connection {
    stream: Stream,
    channel: Channel,
    shared: Rc<Shared>,
}

impl Connection {
    async fn drive(
        &mut self,
        machine: &mut LoginMachine,
        accounts: &dyn AccountSource,
        step: LoginStep,
    ) -> Result<Box<ClientInfo>, LoginFailure> {
        drive(
            &mut self.stream,
            &mut self.channel,
            &self.shared,
            machine,
            accounts,
            step,
        )
        .await
    }
}

/// Carries out the steps of a login until it is over.
async fn drive(
    stream: &mut Stream,
    channel: &mut Channel,
    shared: &Rc<Shared>,
    machine: &mut LoginMachine,
    accounts: &dyn AccountSource,
    mut step: LoginStep,
) -> Result<Box<ClientInfo>, LoginFailure> {
    loop {
        step = match step {
            LoginStep::Read => {
                channel.follow_sequence();
                let bytes = channel.seal().map_err(Disconnect::from)?;
                send(stream, shared, bytes).await?;
                let packet = receive_packet(stream, channel, shared).await?;
                machine.packet(&packet, accounts, channel.out())
            }
            LoginStep::StartTls(config) => {
                channel.start_tls(config).map_err(Disconnect::from)?;
                while channel.is_handshaking() {
                    let records = channel.take_tls_records();
                    send(stream, shared, records).await?;
                    receive(stream, channel, shared).await?;
                }
                LoginStep::Read
            }
            LoginStep::Work(work) => {
                let source = Arc::clone(&shared.options().random);
                let run = move || work.run(&mut Random(&mut |bytes: &mut [u8]| source(bytes)));
                let worked = runtime::blocking(run).await;
                machine.worked(worked, channel.out())
            }
            LoginStep::Established(info) => return Ok(info),
            LoginStep::Failed(failure) => {
                let bytes = channel.seal().map_err(Disconnect::from)?;
                send(stream, shared, bytes).await?;
                return Err(failure);
            }
        };
    }
}

/// Waits for the next whole packet.
async fn receive_packet(
    stream: &mut Stream,
    channel: &mut Channel,
    shared: &Rc<Shared>,
) -> Result<PacketBytes, Disconnect> {
    loop {
        if let Some(packet) = channel.next_packet()? {
            return Ok(packet);
        }
        receive(stream, channel, shared).await?;
    }
}

/// Waits for bytes.
async fn receive(
    stream: &mut Stream,
    channel: &mut Channel,
    shared: &Rc<Shared>,
) -> Result<(), Disconnect> {
    channel.rest();
    let bytes = stream.receive().await?;
    if bytes.is_empty() {
        return Err(Disconnect::PeerClosed);
    }
    add(
        &shared.counters().received_bytes,
        u64::try_from(bytes.len()).unwrap_or(0),
    );
    let outcome = channel.receive(&bytes);
    drop(bytes);
    if !channel.is_handshaking() && channel.has_tls() {
        let records = channel.take_tls_records();
        send(stream, shared, records).await?;
    }
    Ok(outcome?)
}

/// Sends bytes, if there are any, and gives their buffer back to the pool.
async fn send(stream: &mut Stream, shared: &Rc<Shared>, bytes: Vec<u8>) -> Result<(), Disconnect> {
    if bytes.is_empty() {
        shared.give_buffer(bytes);
        return Ok(());
    }
    add(
        &shared.counters().sent_bytes,
        u64::try_from(bytes.len()).unwrap_or(0),
    );
    match runtime::timeout(shared.options().write_timeout, stream.send(bytes)).await {
        Ok(Ok(buffer)) => {
            shared.give_buffer(buffer);
            Ok(())
        }
        Ok(Err(error)) => Err(Disconnect::Io(error)),
        Err(_elapsed) => Err(Disconnect::WriteTimeout),
    }
}
