//! Logins as lists of packets.

use auth::Random;
use errcode::{ClientError, ER_ACCESS_DENIED_ERROR};
use wire::LoginPacket;

use super::*;

const SCRAMBLE: [u8; SCRAMBLE_BYTES] = [7; SCRAMBLE_BYTES];

fn greeting(capabilities: Capabilities, plugin: &str) -> Vec<u8> {
    let mut out = PacketWriter::new();
    let greeting = Handshake {
        server_version: b"10.11.6-MariaDB",
        connection_id: 9,
        scramble: SCRAMBLE,
        capabilities,
        collation: 45,
        status: StatusFlags::AUTOCOMMIT,
        auth_plugin: plugin.as_bytes(),
    };
    greeting.encode(&mut out);
    out.as_bytes()[4..].to_vec()
}

fn packet(write: impl FnOnce(&mut PacketWriter)) -> Vec<u8> {
    let mut out = PacketWriter::new();
    write(&mut out);
    out.as_bytes()[4..].to_vec()
}

fn ok() -> Vec<u8> {
    packet(|out| OkPacket::default().encode(out, Capabilities::SERVER, wire::OkKind::Ok))
}

fn switch_to(plugin: &[u8], data: &[u8]) -> Vec<u8> {
    packet(|out| AuthSwitch { plugin, data }.encode(out))
}

/// Feeds packets to a login; what it wrote as payloads, and where it came to.
fn play(
    machine: &mut LoginMachine<'_>,
    packets: &[Vec<u8>],
) -> (Vec<Vec<u8>>, Result<Option<LoginStep>, ConnectError>) {
    let mut written = Vec::new();
    let mut last = None;
    let mut fill = |bytes: &mut [u8]| bytes.fill(1);
    for payload in packets {
        let mut out = PacketWriter::new();
        let step = machine.packet(payload, &mut out, &mut Random(&mut fill));
        if 0 < out.pending_bytes() {
            written.push(out.as_bytes()[4..].to_vec());
        }
        match step {
            Ok(step) => last = Some(step),
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(last))
}

fn by_password() -> Login {
    Login::new("u", ClientSecret::password(b"secret"))
}

#[test]
fn native_login_is_one_packet() {
    let login = by_password();
    let mut machine = LoginMachine::new(&login, Protection::Plain);
    let greeting = greeting(Capabilities::SERVER, "mysql_native_password");
    let (written, end) = play(&mut machine, &[greeting, ok()]);
    let Ok(Some(LoginStep::Established(info))) = end else {
        panic!("{end:?}")
    };
    assert_eq!(info.connection_id, 9);
    let agreed = login.capabilities & !Capabilities::CONNECT_WITH_DB;
    assert_eq!(info.capabilities, agreed);
    let Ok(LoginPacket::Login(sent)) = LoginPacket::decode(&written[0]) else {
        panic!("{written:?}")
    };
    assert_eq!((sent.user, sent.auth_data.len()), (&b"u"[..], 20));
}

#[test]
fn each_switch_is_answered_and_what_is_unknown_is_named() {
    let login = by_password();
    let greeting = greeting(Capabilities::SERVER, "auth_gssapi_client");
    let challenge = [3; 21];
    for (switch, answer_bytes) in [
        (switch_to(b"client_ed25519", &[5; 32]), Some(64)),
        (switch_to(b"mysql_native_password", &challenge), Some(20)),
        (switch_to(b"caching_sha2_password", &challenge), Some(32)),
        (switch_to(b"dialog", &challenge), None),
        (vec![AuthSwitch::HEADER], None),
    ] {
        let mut machine = LoginMachine::new(&login, Protection::Plain);
        let (written, end) = play(&mut machine, &[greeting.clone(), switch]);
        match answer_bytes {
            Some(count) => assert_eq!(written[1].len(), count),
            None => assert!(
                matches!(end, Err(ConnectError::UnknownPlugin { .. })),
                "{end:?}"
            ),
        }
    }
}

#[test]
fn tls_comes_before_the_login_or_not_at_all() {
    let login = by_password();
    let offers = greeting(
        Capabilities::SERVER | Capabilities::SSL,
        "mysql_native_password",
    );
    let mut machine = LoginMachine::new(&login, Protection::Tls);
    let (written, end) = play(&mut machine, &[offers]);
    assert!(matches!(end, Ok(Some(LoginStep::StartTls))));
    let request = LoginPacket::decode(&written[0]);
    assert!(
        matches!(request, Ok(LoginPacket::TlsRequest(_))),
        "{request:?}"
    );
    // A packet that comes before TLS was sent by somebody in between.
    let (_, early) = play(&mut machine, &[ok()]);
    assert!(matches!(early, Err(ConnectError::Malformed(_))));

    let lacks = greeting(Capabilities::SERVER, "mysql_native_password");
    let mut machine = LoginMachine::new(&login, Protection::Tls);
    let (written, end) = play(&mut machine, &[lacks]);
    assert!(written.is_empty());
    assert!(matches!(end, Err(ConnectError::NoTls)));
}

#[test]
fn capabilities_are_those_of_both_that_can_be_read() {
    let all = !Capabilities::MYSQL;
    let wanting = |compression, database: Option<&str>| Login {
        capabilities: all,
        compression,
        database: database.map(str::to_owned),
        ..by_password()
    };
    for (offered, login, has, lacks) in [
        (
            all,
            wanting(None, None),
            Capabilities::DEPRECATE_EOF,
            Capabilities::MARIADB_PROGRESS,
        ),
        (
            all,
            wanting(Some(CompressionMethod::Zlib), None),
            Capabilities::COMPRESS,
            Capabilities::ZSTD_COMPRESSION,
        ),
        (
            Capabilities::SERVER,
            wanting(Some(CompressionMethod::Zlib), Some("d")),
            Capabilities::CONNECT_WITH_DB,
            Capabilities::COMPRESS,
        ),
        (
            Capabilities::SERVER | Capabilities::MYSQL,
            wanting(None, None),
            Capabilities::MYSQL,
            Capabilities::MARIADB_BULK_OPERATIONS,
        ),
    ] {
        let mut machine = LoginMachine::new(&login, Protection::Plain);
        let greeting = greeting(offered, "mysql_native_password");
        let (_, end) = play(&mut machine, &[greeting, ok()]);
        let Ok(Some(LoginStep::Established(info))) = end else {
            panic!("{end:?}")
        };
        assert!(info.capabilities.contains(has), "{:?}", info.capabilities);
        assert!(
            !info.capabilities.contains(lacks),
            "{:?}",
            info.capabilities
        );
    }
}

#[test]
fn a_login_that_goes_wrong_says_how() {
    let login = by_password();
    let hello = || greeting(Capabilities::SERVER, "mysql_native_password");
    let denied = ClientError::new(ER_ACCESS_DENIED_ERROR, &[&"u", &"h", &"YES"]);
    let denied = packet(|out| ErrorPacket::encode(out, &denied));
    let play = |packets: &[Vec<u8>]| {
        let mut machine = LoginMachine::new(&login, Protection::Plain);
        play(&mut machine, packets).1
    };
    let refused = play(&[hello(), denied.clone()]);
    assert!(matches!(refused, Err(ConnectError::Refused(error)) if error.code.number() == 1045));
    // A server that has no room says so in place of a greeting.
    assert!(matches!(play(&[denied]), Err(ConnectError::Refused(_))));
    assert!(matches!(play(&[vec![]]), Err(ConnectError::Malformed(_))));
    assert!(matches!(
        play(&[hello(), vec![]]),
        Err(ConnectError::Malformed(_))
    ));
    let old = greeting(Capabilities::PROTOCOL_41, "");
    assert!(matches!(play(&[old]), Err(ConnectError::Malformed(_))));
    let more = packet(|out| AuthMoreData { data: b"x" }.encode(out));
    assert!(matches!(
        play(&[hello(), more]),
        Err(ConnectError::Authentication(_))
    ));
    let switch = switch_to(b"mysql_native_password", &[3; 21]);
    let mut many = vec![hello()];
    many.extend(std::iter::repeat_n(switch, 16));
    assert!(play(&many[..16]).is_ok());
    assert!(matches!(play(&many), Err(ConnectError::TooManyPackets)));
}

#[test]
fn an_account_without_password_sends_none() {
    let login = Login::new("u", ClientSecret::password(b""));
    let mut machine = LoginMachine::new(&login, Protection::UnixSocket);
    let greeting = greeting(Capabilities::SERVER, "caching_sha2_password");
    let (written, end) = play(&mut machine, &[greeting, ok()]);
    assert!(matches!(end, Ok(Some(LoginStep::Established(_)))));
    let Ok(LoginPacket::Login(sent)) = LoginPacket::decode(&written[0]) else {
        panic!("{written:?}")
    };
    assert_eq!(sent.auth_data, b"");
    assert_eq!(sent.auth_plugin, b"caching_sha2_password");
}

const SHA1: ClientSecret = ClientSecret::Sha1([5; 20]);

/// What is known of a server after COM_CHANGE_USER, which it answered by `challenge`.
fn after_a_change(challenge: &[u8]) -> Box<ServerInfo> {
    let login = Login::new("u", SHA1);
    let mut machine = LoginMachine::new(&login, Protection::Plain);
    let greeting = greeting(Capabilities::SERVER, "mysql_native_password");
    let (_, end) = play(&mut machine, &[greeting, ok()]);
    let Ok(Some(LoginStep::Established(info))) = end else {
        panic!("{end:?}")
    };
    let mut out = PacketWriter::new();
    let mut machine =
        LoginMachine::change_user(&login, Protection::Plain, &info, &mut out).unwrap();
    assert!(!machine.is_answered_ahead());
    let switch = switch_to(b"mysql_native_password", challenge);
    let (written, end) = play(&mut machine, &[switch, ok()]);
    assert_eq!(written.len(), 1);
    let Ok(Some(LoginStep::Established(info))) = end else {
        panic!("{end:?}")
    };
    info
}

fn repeated() -> Vec<u8> {
    [&SCRAMBLE[..], &[0]].concat()
}

/// The frames of COM_CHANGE_USER as it was written, each a sequence id and a payload.
fn frames(mut bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let mut frames = Vec::new();
    while let [first, second, third, id, rest @ ..] = bytes {
        let length = u32::from_le_bytes([*first, *second, *third, 0]) as usize;
        let (payload, behind) = rest.split_at(length);
        frames.push((*id, payload));
        bytes = behind;
    }
    frames
}

#[test]
fn a_challenge_that_repeats_is_answered_ahead() {
    let info = after_a_change(&repeated());
    for (secret, bytes) in [
        (ClientSecret::Sha1([6; 20]), 20),
        (ClientSecret::password(b""), 0),
    ] {
        let login = Login::new("other", secret);
        let mut out = PacketWriter::new();
        let mut machine =
            LoginMachine::change_user(&login, Protection::Plain, &info, &mut out).unwrap();
        assert!(machine.is_answered_ahead());
        let frames = frames(out.as_bytes());
        let [(0, command), (AHEAD_ANSWER_ID, answer)] = frames[..] else {
            panic!("{frames:?}")
        };
        assert_eq!(answer.len(), bytes);
        let is_in_command = |it| command.windows(bytes).any(|part| part == it);
        assert!(answer.is_empty() || is_in_command(answer));
        let switch = switch_to(b"mysql_native_password", &repeated());
        let (written, end) = play(&mut machine, std::slice::from_ref(&switch));
        assert!(written.is_empty());
        assert!(matches!(end, Ok(Some(LoginStep::ReadVerdictAhead))));
        let (written, end) = play(&mut machine, &[ok()]);
        assert!(written.is_empty() && matches!(end, Ok(Some(LoginStep::Established(_)))));
    }
}

/// What was sent ahead would answer another question.
#[test]
fn another_question_than_the_one_answered_ahead_ends_the_login() {
    let info = after_a_change(&repeated());
    let login = Login::new("other", SHA1);
    for packet in [
        ok(),
        switch_to(b"mysql_native_password", &[3; 21]),
        switch_to(b"caching_sha2_password", &repeated()),
        packet(|out| AuthMoreData { data: b"x" }.encode(out)),
    ] {
        let mut out = PacketWriter::new();
        let mut machine =
            LoginMachine::change_user(&login, Protection::Plain, &info, &mut out).unwrap();
        let (_, end) = play(&mut machine, std::slice::from_ref(&packet));
        assert!(matches!(end, Err(ConnectError::Malformed(_))), "{packet:?}");
    }
}

#[test]
fn nothing_is_answered_ahead_where_the_question_may_differ() {
    let fresh = after_a_change(&[3; 21]);
    let same = after_a_change(&repeated());
    let packed = ServerInfo {
        compression: Some(CompressionMethod::Zlib),
        ..*same.clone()
    };
    for (info, secret) in [
        (&*fresh, SHA1),
        (&*fresh, ClientSecret::password(b"")),
        (&*same, ClientSecret::password(b"secret")),
        (&*same, ClientSecret::Sha256([5; 32])),
        (&packed, SHA1),
    ] {
        let login = Login::new("other", secret);
        let mut out = PacketWriter::new();
        let machine = LoginMachine::change_user(&login, Protection::Plain, info, &mut out);
        assert!(!machine.unwrap().is_answered_ahead());
        assert_eq!(frames(out.as_bytes()).len(), 1);
    }
}
