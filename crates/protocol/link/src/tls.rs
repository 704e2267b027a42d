//! [`Tls`]: an end of a TLS connection, bytes in and bytes out.
//!
//! Built on rustls' unbuffered interface: records are decrypted where they lie and copied once,
//! into the buffer that packets are read from; records to be sent are written straight into the
//! buffer that is sent. Between messages a connection keeps no buffers.

use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError,
    UnbufferedStatus, WriteTraffic,
};
use rustls::{ClientConfig, ServerConfig};

/// The most that one record grows by when it is encrypted, with room to spare.
const RECORD_OVERHEAD_BYTES: usize = 64;

/// Plain bytes of a full record.
const RECORD_BYTES: usize = 1 << 14;

/// Which end of TLS a link is, and what it shows or asks for.
#[derive(Debug, Clone)]
pub enum TlsEnd {
    /// The end that shows a certificate.
    Server(Arc<ServerConfig>),
    /// The end that begins, and checks the certificate for this name as the configuration says.
    Client(Arc<ClientConfig>, ServerName<'static>),
}

/// An end of a TLS connection.
pub(crate) struct Tls {
    connection: Connection,
    /// Received records that are not whole.
    incoming: Vec<u8>,
    /// Records that wait to be sent.
    outgoing: Vec<u8>,
    is_handshaking: bool,
    /// The peer has said that it sends no more: what comes all the same is dropped.
    has_peer_ended: bool,
    /// Why the connection has ended before its time: rustls must not be asked again.
    failure: Option<rustls::Error>,
}

enum Connection {
    Server(UnbufferedServerConnection),
    Client(UnbufferedClientConnection),
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls")
            .field("is_handshaking", &self.is_handshaking)
            .finish_non_exhaustive()
    }
}

/// What one call of rustls came to.
struct Step {
    /// Received bytes that are done with.
    discard: usize,
    progress: Progress,
}

/// What is to be done next.
enum Progress {
    /// To call again.
    Again,
    /// Nothing: the handshake is over, and what was to be sent has been written.
    Written,
    /// Nothing until more is received.
    Blocked,
    /// To call again: the peer sends no more data, but what it waits for can still be sent.
    PeerEnded,
    /// To call again for the alert and what stands before it, and for no more.
    Failed(rustls::Error),
}

/// What shall be sent once the handshake is over.
#[derive(Clone, Copy)]
enum ToSend<'a> {
    Nothing,
    Data(&'a [u8]),
    CloseNotify,
}

impl Tls {
    pub(crate) fn new(end: TlsEnd) -> Result<Tls, rustls::Error> {
        let connection = match end {
            TlsEnd::Server(config) => Connection::Server(UnbufferedServerConnection::new(config)?),
            TlsEnd::Client(config, name) => {
                Connection::Client(UnbufferedClientConnection::new(config, name)?)
            }
        };
        Ok(Tls {
            connection,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            is_handshaking: true,
            has_peer_ended: false,
            failure: None,
        })
    }

    /// Whether the handshake goes on, so that nothing can be sent yet.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.is_handshaking
    }

    /// Whether the peer has said that it sends no more.
    pub(crate) fn has_peer_ended(&self) -> bool {
        self.has_peer_ended
    }

    /// Whether a part of a record has come.
    pub(crate) fn has_begun_record(&self) -> bool {
        !self.incoming.is_empty()
    }

    /// Takes received bytes and appends what they decrypt to to `plain`.
    pub(crate) fn receive(
        &mut self,
        bytes: &[u8],
        plain: &mut Vec<u8>,
    ) -> Result<(), rustls::Error> {
        if self.has_peer_ended {
            return Ok(());
        }
        // After a failure nothing is kept.
        if self.failure.is_none() {
            self.incoming.extend_from_slice(bytes);
        }
        self.pump(plain, ToSend::Nothing)
    }

    /// Encrypts `bytes`. What was received meanwhile is appended to `plain`.
    pub(crate) fn send(&mut self, bytes: &[u8], plain: &mut Vec<u8>) -> Result<(), rustls::Error> {
        if bytes.is_empty() {
            Ok(())
        } else {
            self.pump(plain, ToSend::Data(bytes))
        }
    }

    /// Tells the peer that nothing more will be sent.
    pub(crate) fn close(&mut self) -> Result<(), rustls::Error> {
        self.pump(&mut Vec::new(), ToSend::CloseNotify)
    }

    /// Takes the records that wait to be sent.
    pub(crate) fn take_outgoing(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outgoing)
    }

    /// Lets rustls go on until it needs more bytes, or has sent what was to be sent. An error
    /// leaves an alert to be sent, and is the answer from then on.
    fn pump(&mut self, plain: &mut Vec<u8>, to_send: ToSend<'_>) -> Result<(), rustls::Error> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let mut used = 0;
        loop {
            let incoming = self.incoming.get_mut(used..).unwrap_or_default();
            let outgoing = &mut self.outgoing;
            let step = match &mut self.connection {
                Connection::Server(connection) => {
                    let status = connection.process_tls_records(incoming);
                    advance(status, plain, to_send, outgoing)
                }
                Connection::Client(connection) => {
                    let status = connection.process_tls_records(incoming);
                    advance(status, plain, to_send, outgoing)
                }
            };
            let Step { discard, progress } = match step {
                Ok(step) => step,
                Err(error) => {
                    self.failure = Some(error.clone());
                    return Err(error);
                }
            };
            used += discard;
            let is_done = match progress {
                Progress::Again => false,
                Progress::Written => {
                    self.is_handshaking = false;
                    true
                }
                Progress::Blocked => true,
                Progress::PeerEnded => {
                    self.has_peer_ended = true;
                    false
                }
                Progress::Failed(error) => {
                    self.failure.get_or_insert(error);
                    false
                }
            };
            // Asked once more than that, it would read on behind the failure.
            let is_over = self.failure.is_some() && !self.connection.has_records();
            if is_done || is_over {
                self.incoming.drain(..used.min(self.incoming.len()));
                if self.incoming.is_empty() || self.has_peer_ended || is_over {
                    self.incoming = Vec::new();
                }
                return self.failure.clone().map_or(Ok(()), Err);
            }
        }
    }
}

impl Connection {
    /// Whether records wait to be written out.
    fn has_records(&self) -> bool {
        match self {
            Connection::Server(connection) => connection.wants_write(),
            Connection::Client(connection) => connection.wants_write(),
        }
    }
}

/// Does what one state of rustls asks for.
fn advance<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    plain: &mut Vec<u8>,
    to_send: ToSend<'_>,
    outgoing: &mut Vec<u8>,
) -> Result<Step, rustls::Error> {
    let UnbufferedStatus {
        mut discard, state, ..
    } = status;
    let progress = match state {
        Ok(ConnectionState::ReadTraffic(mut traffic)) => {
            while let Some(record) = traffic.next_record() {
                let record = record?;
                discard += record.discard;
                plain.extend_from_slice(record.payload);
            }
            Progress::Again
        }
        Ok(ConnectionState::EncodeTlsData(data)) => {
            encode(data, outgoing)?;
            Progress::Again
        }
        Ok(ConnectionState::TransmitTlsData(data)) => {
            data.done();
            Progress::Again
        }
        Ok(ConnectionState::WriteTraffic(traffic)) => {
            write(traffic, to_send, outgoing)?;
            Progress::Written
        }
        Ok(ConnectionState::PeerClosed) => Progress::PeerEnded,
        Ok(_) => Progress::Blocked,
        Err(error) => Progress::Failed(error),
    };
    Ok(Step { discard, progress })
}

/// Appends a handshake record or an alert.
fn encode<Data>(
    mut data: EncodeTlsData<'_, Data>,
    outgoing: &mut Vec<u8>,
) -> Result<(), rustls::Error> {
    let written = append(outgoing, 0, |space| match data.encode(space) {
        Ok(count) => Ok(Ok(count)),
        Err(EncodeError::InsufficientSize(size)) => Err(size),
        Err(EncodeError::AlreadyEncoded) => Ok(Ok(0)),
    });
    written.map(|_| ())
}

/// Appends the records of what shall be sent.
fn write<Data>(
    mut traffic: WriteTraffic<'_, Data>,
    to_send: ToSend<'_>,
    outgoing: &mut Vec<u8>,
) -> Result<(), rustls::Error> {
    let room = match to_send {
        ToSend::Nothing => return Ok(()),
        ToSend::Data(bytes) => {
            bytes.len() + (bytes.len() / RECORD_BYTES + 1) * RECORD_OVERHEAD_BYTES
        }
        ToSend::CloseNotify => RECORD_OVERHEAD_BYTES,
    };
    let written = append(outgoing, room, |space| {
        let result = match to_send {
            ToSend::Data(bytes) => traffic.encrypt(bytes, space),
            ToSend::CloseNotify | ToSend::Nothing => traffic.queue_close_notify(space),
        };
        match result {
            Ok(count) => Ok(Ok(count)),
            Err(EncryptError::InsufficientSize(size)) => Err(size),
            Err(EncryptError::EncryptExhausted) => Ok(Err(rustls::Error::EncryptError)),
        }
    });
    written.map(|_| ())
}

/// Lets `fill` write behind `outgoing`, into `room` bytes or as many as it asks for.
fn append(
    outgoing: &mut Vec<u8>,
    mut room: usize,
    mut fill: impl FnMut(&mut [u8]) -> Result<Result<usize, rustls::Error>, InsufficientSizeError>,
) -> Result<usize, rustls::Error> {
    let start = outgoing.len();
    loop {
        outgoing.resize(start + room, 0);
        match fill(outgoing.get_mut(start..).unwrap_or_default()) {
            Ok(written) => {
                outgoing.truncate(start + *written.as_ref().unwrap_or(&0));
                return written;
            }
            Err(size) => room = size.required_size,
        }
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::PrivateKeyDer;
    use rustls::{ClientConnection, RootCertStore};

    use super::*;

    /// A client and a server that have shaken hands.
    fn connected() -> (ClientConnection, Tls) {
        let pair = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(pair.cert.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::try_from(pair.signing_key.serialize_der()).unwrap();
        let server_config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![pair.cert.der().clone()], key)
            .unwrap();
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = "localhost".try_into().unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut server = Tls::new(TlsEnd::Server(Arc::new(server_config))).unwrap();
        while client.is_handshaking() || server.is_handshaking() {
            let sent = records(&mut client);
            server.receive(&sent, &mut Vec::new()).unwrap();
            let answer = server.take_outgoing();
            client.read_tls(&mut &answer[..]).unwrap();
            client.process_new_packets().unwrap();
        }
        (client, server)
    }

    /// What the client wants to be sent.
    fn records(client: &mut ClientConnection) -> Vec<u8> {
        let mut records = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut records).unwrap();
        }
        records
    }

    #[test]
    fn what_comes_behind_the_peers_end_is_not_kept() {
        let (mut client, mut server) = connected();
        std::io::Write::write_all(&mut client.writer(), b"last words").unwrap();
        client.send_close_notify();
        let mut sent = records(&mut client);
        sent.extend_from_slice(&[0; 100]);
        let mut plain = Vec::new();
        server.receive(&sent, &mut plain).unwrap();
        assert_eq!(plain, b"last words");
        assert!(server.has_peer_ended());
        for _ in 0..100 {
            server.receive(&[0; 1000], &mut plain).unwrap();
        }
        assert_eq!(server.incoming.capacity(), 0);
        // It may still read.
        server.send(b"answer", &mut plain).unwrap();
        assert!(!server.take_outgoing().is_empty());
    }

    #[test]
    fn a_failure_is_told_once_and_stays() {
        // Found by the fuzz target: rustls read on behind the failure, for a second alert.
        let (_, mut server) = connected();
        let garbage = b"\xFE\0\0\0\x01\0";
        let failure = server.receive(garbage, &mut Vec::new()).unwrap_err();
        let alert = server.take_outgoing();
        assert!(!alert.is_empty());
        assert_eq!(server.incoming.capacity(), 0);
        let again = server.receive(garbage, &mut Vec::new());
        assert_eq!(again, Err(failure.clone()));
        assert_eq!(server.send(b"x", &mut Vec::new()), Err(failure.clone()));
        assert_eq!(server.close(), Err(failure));
        assert_eq!(server.take_outgoing(), b"");
        assert_eq!(server.incoming.capacity(), 0);
    }
}
