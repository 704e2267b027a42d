//! Clients that break the protocol, or use it to do harm: each costs a bounded amount of memory and
//! does not affect other clients.

#![forbid(unsafe_code)]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use env::Random;
use testkit::client::Client;
use testkit::{Launch, Server, on_each_driver, wait_until};

/// A server without clients holds about 25 MiB, and its allocator returns memory with a delay. So
/// growth below this means nothing.
const GROWTH_BYTES_MAX: u64 = 64 << 20;

/// Long enough for a loaded machine; only a hang exceeds it.
const HANG: Duration = Duration::from_secs(60);

fn server(settings: &[&str]) -> Server {
    Launch::plateau(env!("CARGO_BIN_EXE_plateau"))
        .with_settings(["buffer_pool_size=8M"].iter().chain(settings))
        .start()
        .expect("the server starts")
}

fn raw(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).expect("it listens");
    stream.set_read_timeout(Some(HANG)).expect("a time limit");
    stream.set_write_timeout(Some(HANG)).expect("a time limit");
    stream
}

fn frame(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let [a, b, c, _] = u32::try_from(payload.len())
        .expect("a short one")
        .to_le_bytes();
    [&[a, b, c, sequence], payload].concat()
}

/// A login as root without password.
fn login(capabilities: u32) -> Vec<u8> {
    login_as(b"root", capabilities)
}

fn login_as(user: &[u8], capabilities: u32) -> Vec<u8> {
    let mut payload = capabilities.to_le_bytes().to_vec();
    payload.extend_from_slice(&(1_u32 << 24).to_le_bytes());
    payload.push(45);
    payload.extend_from_slice(&[0; 19]);
    // MariaDB's own, valid if MySQL's bit is clear: COM_STMT_BULK_EXECUTE.
    payload.extend_from_slice(&4_u32.to_le_bytes());
    payload.extend_from_slice(user);
    payload.extend_from_slice(b"\0\0mysql_native_password\0");
    frame(1, &payload)
}

/// LONG_PASSWORD, PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH.
const PLAIN: u32 = 0x1 | 0x200 | 0x8000 | 0x8_0000;
const COMPRESS: u32 = 0x20;
const LOCAL_FILES: u32 = 0x80;

/// The payload of a packet, or `None` at the end of the stream.
fn packet(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).ok()?;
    let [a, b, c, _] = header;
    let mut payload = vec![0; usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16];
    stream.read_exact(&mut payload).ok()?;
    Some(payload)
}

fn logged_in(server: &Server, capabilities: u32) -> TcpStream {
    logged_in_as(b"root", server, capabilities)
}

fn logged_in_as(user: &[u8], server: &Server, capabilities: u32) -> TcpStream {
    let mut stream = raw(server);
    packet(&mut stream).expect("a greeting");
    let login = login_as(user, capabilities);
    stream.write_all(&login).expect("it reads");
    let answer = packet(&mut stream).expect("an answer");
    assert_eq!(answer.first(), Some(&0), "{answer:?}");
    stream
}

/// Reads to the end, which must come: the connection is closed or reset.
fn must_end(mut stream: TcpStream) -> Vec<u8> {
    let mut read = Vec::new();
    match stream.read_to_end(&mut read) {
        Ok(_) => {}
        Err(error) => assert!(
            !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
            "the server closes: {error}"
        ),
    }
    read
}

/// The number of the leading error packet.
fn error_number(read: &[u8]) -> Option<u16> {
    match read {
        [_, _, _, _, 0xff, low, high, ..] => Some(u16::from_le_bytes([*low, *high])),
        _ => None,
    }
}

/// Other clients are served, no session is left, and the server has not grown, nor was it larger
/// meanwhile.
fn unhurt(server: &mut Server, bystander: &mut Client, before: u64) {
    let one = bystander.value("select 1").expect("others are served");
    assert_eq!(one.as_deref(), Some("1"));
    let fresh = server.connect().expect("others may come");
    drop(fresh);
    // A session ends some turns after its socket has closed.
    wait_until("slots are free again", || {
        bystander.status("Threads_connected").expect("a status") == 1
    });
    let most = server.process().resident_bytes_max().expect("it runs");
    assert!(
        most < before + GROWTH_BYTES_MAX,
        "{before} bytes grew to {most}"
    );
}

fn start(settings: &[&str]) -> (Server, Client, u64) {
    let mut server = server(settings);
    let bystander = server.connect().expect("it serves");
    let before = server.process().resident_bytes().expect("it runs");
    (server, bystander, before)
}

/// Random bytes, the same each time.
fn garbage(seed: u64, count: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..count)
        .map(|_| random.next_u64().to_le_bytes()[0])
        .collect()
}

#[test]
fn garbage_at_any_stage_ends_its_own_connection() {
    let (mut server, mut bystander, before) = start(&["connect_timeout=2", "net_read_timeout=1"]);
    let mut ending = Vec::new();
    for seed in 0..20 {
        let bytes = garbage(seed, 70_000);
        let early = raw(&server);
        let mut instead = raw(&server);
        packet(&mut instead).expect("a greeting");
        let after = logged_in(&server, PLAIN);
        let compressed = logged_in(&server, PLAIN | COMPRESS);
        for mut stream in [early, instead, after, compressed] {
            // If the server has closed, the connection may be reset already.
            let _ = stream.write_all(&bytes);
            ending.push(stream);
        }
    }
    for stream in ending {
        must_end(stream);
    }
    unhurt(&mut server, &mut bystander, before);
}

#[test]
fn half_packets_and_silence_are_cut_off() {
    let (mut server, mut bystander, before) = start(&["connect_timeout=2", "net_read_timeout=1"]);
    let whole = login(PLAIN);
    let mut ending = Vec::new();
    for length in [0, 3, 4, 20, whole.len() - 1] {
        let mut stream = raw(&server);
        packet(&mut stream).expect("a greeting");
        stream.write_all(&whole[..length]).expect("it reads");
        ending.push(stream);
    }
    // A frame that announces the maximum, and another that should follow and does not.
    for begun in [&[0xff, 0xff, 0x7f, 0, 3][..], &[5, 0, 0, 0, 3, b's'][..]] {
        let mut stream = logged_in(&server, PLAIN);
        stream.write_all(begun).expect("it reads");
        ending.push(stream);
    }
    for stream in ending {
        must_end(stream);
    }
    unhurt(&mut server, &mut bystander, before);
}

/// The limit is for the whole login, even if bytes keep dripping in.
#[test]
fn endless_login_is_cut_off() {
    let (mut server, mut bystander, before) = start(&["connect_timeout=2"]);
    let mut stream = raw(&server);
    packet(&mut stream).expect("a greeting");
    let wait = Some(Duration::from_millis(100));
    stream.set_read_timeout(wait).expect("a time limit");
    let mut is_over = false;
    for byte in frame(1, &[1; 60_000]).chunks(1).take(600) {
        if stream.write_all(byte).is_err() {
            is_over = true;
            break;
        }
        let mut answer = [0; 64];
        match stream.read(&mut answer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Ok(count) if 0 < count => {}
            _ => {
                is_over = true;
                break;
            }
        }
    }
    assert!(is_over, "600 bytes at 10 a second are far more than 2 s");
    unhurt(&mut server, &mut bystander, before);
}

#[test]
fn wrong_order_and_false_lengths_are_told() {
    let (mut server, mut bystander, before) =
        start(&["max_allowed_packet=1M", "net_read_timeout=1"]);
    let mut stream = logged_in(&server, PLAIN);
    stream
        .write_all(&frame(7, b"\x03select 1"))
        .expect("it reads");
    assert_eq!(error_number(&must_end(stream)), Some(1156));
    // Two MiB are announced; the part beyond the limit is read and dropped before the error.
    let mut stream = logged_in(&server, PLAIN);
    let too_long = frame(0, &vec![b' '; 2 << 20]);
    let _ = stream.write_all(&too_long);
    assert_eq!(error_number(&must_end(stream)), Some(1153));
    // 16 MiB are announced again and again: a GiB is read and dropped before the error, and no
    // more.
    let mut stream = logged_in(&server, PLAIN);
    let mut endless = frame(0, &vec![b' '; 0xff_ffff]);
    let sent = (0..80).take_while(|sequence| {
        endless[3] = *sequence;
        stream.write_all(&endless).is_ok()
    });
    assert!((63..80).contains(&sent.count()), "it is not read for ever");
    assert_eq!(error_number(&must_end(stream)), Some(1153));
    unhurt(&mut server, &mut bystander, before);
}

#[test]
fn thousands_of_half_open_logins_keep_nobody_out() {
    let (mut server, mut bystander, before) = start(&["max_connections=50", "connect_timeout=600"]);
    let silent: Vec<TcpStream> = (0..600).map(|_| raw(&server)).collect();
    // The kernel has accepted them all; the server is still working on them. If more than 50 come
    // between a client's first packet and its second, that client is evicted, too.
    let mut evicted = 0;
    wait_until("the oldest went", || {
        evicted = bystander.status("Logins_evicted").expect("a status");
        550 <= evicted
    });
    assert_eq!(evicted, 550, "and none more");
    for _ in 0..5 {
        let mut client = server.connect().expect("logins go on");
        let one = client.value("select 1").expect("and are served");
        assert_eq!(one.as_deref(), Some("1"));
    }
    // The first took a silent client's place; each later one too, if the former had not left yet.
    let evicted = bystander.status("Logins_evicted").expect("a status");
    assert!((551..=555).contains(&evicted), "{evicted}");
    drop(silent);
    unhurt(&mut server, &mut bystander, before);
}

#[test]
fn reader_that_stops_is_cut_off() {
    let (mut server, mut bystander, before) = start(&["net_write_timeout=2"]);
    bystander.run("create database d").expect("a database");
    bystander
        .run("create table d.t (a int primary key, b longtext)")
        .expect("a table");
    for row in 0..4 {
        bystander
            .run(&format!(
                "insert into d.t values ({row}, repeat('x', 100000))"
            ))
            .expect("a row");
    }
    let mut readers = Vec::new();
    for _ in 0..8 {
        let mut reader = server.connect().expect("it serves");
        // 400 MB each, of which the client reads nothing.
        let text = b"select a.b from d.t a, d.t b, d.t c, d.t d, d.t e, d.t f";
        reader.send_query(text).expect("it reads");
        readers.push(reader);
    }
    wait_until("they are cut off", || {
        let one = bystander.value("select 1").expect("others are served");
        assert_eq!(one.as_deref(), Some("1"));
        bystander.status("Threads_connected").expect("a status") == 1
    });
    for mut reader in readers {
        let stream = reader.stream().try_clone().expect("a socket");
        must_end(stream);
    }
    unhurt(&mut server, &mut bystander, before);
}

#[test]
fn long_data_without_end_is_bounded() {
    let (mut server, mut bystander, before) = start(&["max_allowed_packet=4M"]);
    let mut stream = logged_in(&server, PLAIN);
    stream
        .write_all(&frame(0, b"\x16select length(?)"))
        .expect("it reads");
    let answer = packet(&mut stream).expect("an answer");
    assert_eq!(answer.first(), Some(&0), "{answer:?}");
    let id = answer.get(1..5).expect("a statement's number").to_vec();
    // The parameter's definition and an end, the column's and an end.
    for _ in 0..4 {
        packet(&mut stream).expect("a definition");
    }
    let piece = [&[0x18][..], &id, &[0, 0], &vec![b'x'; 1 << 20]].concat();
    let piece = frame(0, &piece);
    for _ in 0..120 {
        stream.write_all(&piece).expect("it reads");
    }
    let execute = [&[0x17][..], &id, &[0, 1, 0, 0, 0, 0, 1, 0xfc, 0]].concat();
    stream.write_all(&frame(0, &execute)).expect("it reads");
    let answer = packet(&mut stream).expect("an answer");
    assert_eq!(answer.first(), Some(&0xff), "refused: {answer:?}");
    drop(stream);
    unhurt(&mut server, &mut bystander, before);
}

#[test]
fn flood_of_prepared_statements_is_refused() {
    let (mut server, mut bystander, before) = start(&["max_prepared_stmt_count=100"]);
    let mut stream = logged_in(&server, PLAIN);
    let mut refused = 0;
    for _ in 0..300 {
        stream
            .write_all(&frame(0, b"\x16select 1 from (select 1) a where 1 = 2"))
            .expect("it reads");
        let answer = packet(&mut stream).expect("an answer");
        if answer.first() == Some(&0xff) {
            assert_eq!(answer.get(1..3), Some(&1461_u16.to_le_bytes()[..]));
            refused += 1;
            continue;
        }
        // A column's definition and its end follow.
        packet(&mut stream).expect("a definition");
        packet(&mut stream).expect("an end");
    }
    assert_eq!(refused, 200);
    drop(stream);
    unhurt(&mut server, &mut bystander, before);
}

/// 16 MiB of blanks in 16 KiB, many times. A piece is inflated only to the size in its header, and
/// the packet in it is refused by its own header.
#[test]
fn compressed_bombs_are_bounded() {
    let (mut server, mut bystander, before) =
        start(&["max_allowed_packet=1M", "net_read_timeout=1"]);
    let bomb = frame(0, &vec![b' '; 8 << 20]);
    let mut sealed = Vec::new();
    let mut sequence = 0;
    wire::Compressor::new()
        .compress(
            wire::CompressionMethod::Zlib,
            &bomb,
            &mut sequence,
            &mut sealed,
        )
        .expect("memory is a good sink");
    assert!(sealed.len() < bomb.len() / 100);
    for _ in 0..10 {
        let mut stream = logged_in(&server, PLAIN | COMPRESS);
        let _ = stream.write_all(&sealed);
        must_end(stream);
    }
    // A header that announces more than comes out.
    let mut stream = logged_in(&server, PLAIN | COMPRESS);
    let lie = [&[20, 0, 0, 0, 0xff, 0xff, 0xff][..], &sealed[7..27]].concat();
    let _ = stream.write_all(&lie);
    must_end(stream);
    unhurt(&mut server, &mut bystander, before);
}

#[test]
fn churn_leaves_nothing_behind() {
    let (mut server, mut bystander, before) = start(&[]);
    for round in 0..400 {
        let mut stream = raw(&server);
        if round % 2 == 0 {
            packet(&mut stream).expect("a greeting");
            stream.write_all(&login(PLAIN)).expect("it reads");
        }
        if round % 4 == 0 {
            let _ = stream.write_all(&frame(0, b"\x03select 1"));
        }
        drop(stream);
    }
    unhurt(&mut server, &mut bystander, before);
}

/// The error number of a reply that is only an error.
fn refusal(answer: &[u8]) -> Option<u16> {
    match answer {
        [0xff, low, high, ..] => Some(u16::from_le_bytes([*low, *high])),
        _ => None,
    }
}

/// Preparing a statement must not reveal more of a table than running it.
#[test]
fn what_may_not_be_run_may_not_be_prepared() {
    let (mut server, mut bystander, before) = start(&[]);
    for statement in [
        "create database d",
        "create table d.t (a int)",
        "create table d.seen (a int)",
        "create user nobody",
        "grant insert on d.seen to nobody",
    ] {
        bystander.run(statement).expect(statement);
    }
    let mut stream = logged_in_as(b"nobody", &server, PLAIN);
    for (text, number) in [
        ("select * from d.t", 1142),
        ("select nothing from d.t", 1142),
        ("select * from d.seen", 1142),
        ("insert into d.t values (1)", 1142),
    ] {
        let prepare = [b"\x16", text.as_bytes()].concat();
        stream.write_all(&frame(0, &prepare)).expect("it reads");
        let answer = packet(&mut stream).expect("an answer");
        assert_eq!(refusal(&answer), Some(number), "{text}: {answer:?}");
    }
    drop(stream);
    unhurt(&mut server, &mut bystander, before);
}

fn id_of(stream: &mut TcpStream) -> u32 {
    let select = frame(0, b"\x03select connection_id()");
    stream.write_all(&select).expect("it reads");
    let packets: Vec<_> = (0..5).filter_map(|_| packet(stream)).collect();
    let row = packets.get(3).expect("a head, a column, an end, a row");
    let number = String::from_utf8_lossy(row.get(1..).expect("a length"));
    number.parse().expect("a number")
}

/// A file that arrives after KILL QUERY was answered is not stored, nor one whose end does.
#[test]
fn an_order_counts_before_a_file_that_comes_behind_it() {
    on_each_driver(|io| {
        let (server, mut killer, _) = start(&["workers=2", &format!("io={io}")]);
        killer.run("create database d").expect("a database");
        killer.run("create table d.t (a int)").expect("a table");
        let mut stream = logged_in(&server, PLAIN | LOCAL_FILES);
        let kill = format!("kill query {}", id_of(&mut stream));
        for round in 0..200 {
            let load = frame(0, b"\x03load data local infile 'x' into table d.t");
            stream.write_all(&load).expect("it reads");
            let answer = packet(&mut stream).expect("an answer");
            assert_eq!(answer.first(), Some(&0xfb), "it asks for the file");
            let (file, end) = (frame(2, b"1\n2\n"), frame(3, b""));
            let behind = if round % 2 == 0 {
                [file, end].concat()
            } else {
                stream.write_all(&file).expect("it reads");
                end
            };
            killer.run(&kill).expect("an order");
            stream.write_all(&behind).expect("it reads");
            let answer = packet(&mut stream).expect("an answer");
            assert_eq!(refusal(&answer), Some(1317), "{io}, round {round}");
        }
        let stored = killer.value("select count(*) from d.t");
        assert_eq!(stored.expect("a count").as_deref(), Some("0"), "{io}");
    });
}

/// The client of one file sends nothing; another file has very many rows. KILL ends both, and other
/// clients are served meanwhile.
#[test]
fn a_file_that_is_loaded_can_be_ended() {
    let (mut server, mut bystander, before) = start(&["workers=1", "net_read_timeout=600"]);
    bystander.run("create database d").expect("a database");
    bystander.run("create table d.t (a int)").expect("a table");
    let load = frame(0, b"\x03load data local infile 'x' into table d.t");
    let begin = |server: &Server| {
        let mut stream = logged_in(server, PLAIN | LOCAL_FILES);
        let id = id_of(&mut stream);
        stream.write_all(&load).expect("it reads");
        let answer = packet(&mut stream).expect("an answer");
        assert_eq!(answer.first(), Some(&0xfb), "it asks for the file");
        (stream, id)
    };
    // The beginning of a line, and nothing more.
    let (mut stream, id) = begin(&server);
    stream.write_all(&frame(2, b"1")).expect("it reads");
    bystander.run(&format!("kill {id}")).expect("an order");
    assert_eq!(must_end(stream), b"", "it is told nothing");
    let (mut stream, id) = begin(&server);
    stream.write_all(&frame(2, b"1\n2\n")).expect("it reads");
    bystander
        .run(&format!("kill query {id}"))
        .expect("an order");
    // The file is read to its end.
    stream.write_all(&frame(3, b"3\n")).expect("it reads");
    stream.write_all(&frame(4, b"")).expect("it reads");
    let answer = packet(&mut stream).expect("an answer");
    assert_eq!(refusal(&answer), Some(1317), "{answer:?}");
    drop(stream);
    // Very many short rows at once.
    let (mut stream, id) = begin(&server);
    let rows = frame(2, &b"1\n".repeat(2_000_000));
    stream.write_all(&rows).expect("it reads");
    bystander
        .run(&format!("kill query {id}"))
        .expect("an order");
    stream.write_all(&frame(3, b"")).expect("it reads");
    let answer = packet(&mut stream).expect("an answer");
    assert_eq!(refusal(&answer), Some(1317), "{answer:?}");
    drop(stream);
    // Very many fields in one row.
    let (mut stream, _) = begin(&server);
    let fields = frame(2, &b"\t".repeat(8_000_000));
    stream.write_all(&fields).expect("it reads");
    stream.write_all(&frame(3, b"")).expect("it reads");
    packet(&mut stream).expect("an answer");
    drop(stream);
    unhurt(&mut server, &mut bystander, before);
}

/// Very many rows of parameters in one command.
#[test]
fn a_bulk_of_rows_can_be_ended() {
    let (mut server, mut bystander, before) = start(&["workers=1"]);
    bystander.run("create database d").expect("a database");
    bystander
        .run("create table d.t (a tinyint)")
        .expect("a table");
    let mut stream = logged_in(&server, PLAIN & !1);
    let id = id_of(&mut stream);
    let mut prepare = |text: &[u8], packets: usize| {
        let command = frame(0, &[b"\x16", text].concat());
        stream.write_all(&command).expect("it reads");
        let answer = packet(&mut stream).expect("an answer");
        assert_eq!(answer.first(), Some(&0), "{answer:?}");
        (0..packets).for_each(|_| drop(packet(&mut stream).expect("a definition")));
        answer.get(1..5).expect("a statement's number").to_vec()
    };
    let plain = prepare(b"insert into d.t values (?)", 2);
    let returning = prepare(b"insert into d.t values (?) returning a", 4);
    // With types: a TINYINT. Each row is an indicator and a byte.
    let bulk = |statement: &[u8], count: usize| {
        let head = [&[0xfa][..], statement, &[128, 0, 1, 0]].concat();
        frame(0, &[head, [0_u8, 1].repeat(count)].concat())
    };
    stream.write_all(&bulk(&returning, 2)).expect("it reads");
    let answer = packet(&mut stream).expect("an answer");
    assert_eq!(refusal(&answer), Some(1295), "{answer:?}");
    stream
        .write_all(&bulk(&plain, 2_000_000))
        .expect("it reads");
    let runs = format!(
        "select count(*) from information_schema.processlist where id = {id} and command <> 'Sleep'"
    );
    wait_until("the bulk runs", || {
        bystander.value(&runs).expect("a count").as_deref() == Some("1")
    });
    bystander
        .run(&format!("kill query {id}"))
        .expect("an order");
    let answer = packet(&mut stream).expect("an answer");
    assert_eq!(refusal(&answer), Some(1317), "{answer:?}");
    let left = bystander
        .value("select count(*) from d.t")
        .expect("a count");
    assert_eq!(left.as_deref(), Some("0"));
    drop(stream);
    unhurt(&mut server, &mut bystander, before);
}
