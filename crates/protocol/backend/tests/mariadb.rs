//! Logins, replies and errors against Debian's MariaDB, started on a free port of loopback.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail as the tests do"
)]

mod support;

use std::time::Duration;

use auth::ClientAuthError;
use backend::{
    ClientSecret, ConnectError, Login, Message, Outcome, Product, QueryLimits, RequestError, Rows,
    Server, TlsClient, TlsMode,
};
use link::{Disconnect, Limit, Part};
use runtime::Address;
use support::{Authority, connect, limit, on_worker, resources, tcp};
use testkit::{Folder, Launch, ServerKind};
use wire::{
    BinaryRowReader, BinaryValue, Capabilities, ColumnType, CommandByte, CompressionMethod,
    CursorKind, Execute, ParameterType, StatusFlags,
};

/// Accounts of each method with the password `secret`, and a table.
const SET_UP: &[&str] = &[
    "install soname 'auth_ed25519'",
    "create user native@'%' identified via mysql_native_password using password('secret')",
    "create user signed@'%' identified via ed25519 using password('secret')",
    "create user nothing@'%'",
    "create database d",
    "create table d.t (a int primary key, b varchar(100))",
    "insert into d.t values (1, 'one'), (2, null), (3, 'three')",
    "grant all on *.* to native@'%', signed@'%', nothing@'%'",
];

fn start(arguments: &[String]) -> testkit::Server {
    let mut launch = Launch::new(ServerKind::MariaDb);
    for argument in arguments {
        launch = launch.with(argument);
    }
    let server = launch
        .start()
        .expect("MariaDB is the reference of this test");
    let mut client = server.connect().expect("it takes connections");
    for statement in SET_UP {
        client.run(statement).expect(statement);
    }
    server
}

fn secret(user: &str) -> ClientSecret {
    match user {
        "nothing" => ClientSecret::password(b""),
        _ => ClientSecret::password(b"secret"),
    }
}

fn login(user: &str) -> Login {
    Login {
        database: Some("d".to_owned()),
        ..Login::new(user, secret(user))
    }
}

fn limits() -> QueryLimits {
    QueryLimits {
        until: limit(),
        bytes_max: 1 << 20,
    }
}

fn texts(values: &[&[Option<&str>]]) -> Vec<Vec<Option<Vec<u8>>>> {
    let value = |value: &Option<&str>| value.map(|text| text.as_bytes().to_vec());
    let row = |row: &&[Option<&str>]| row.iter().map(value).collect();
    values.iter().map(row).collect()
}

/// Whether the rows of the table come as they are.
async fn assert_reads(server: &mut Server, case: &str) {
    let outcomes = server
        .query(b"select a, b from t order by a", limits())
        .await;
    let expected = Rows {
        columns: vec!["a".to_owned(), "b".to_owned()],
        rows: texts(&[
            &[Some("1"), Some("one")],
            &[Some("2"), None],
            &[Some("3"), Some("three")],
        ]),
    };
    assert_eq!(outcomes.expect(case), [Outcome::Rows(expected)], "{case}");
}

#[test]
fn every_method_over_every_transport() {
    let authority = Authority::new();
    let folder = Folder::new("backend").unwrap();
    let server = start(&authority.mariadb_arguments(folder.path(), "localhost"));
    let (port, socket) = (server.port(), server.socket());
    on_worker(move || async move {
        let verified = TlsClient::verified(&authority.pem, "localhost").unwrap();
        for tls in [
            TlsMode::Off,
            TlsMode::Required(TlsClient::unverified().unwrap()),
            TlsMode::Required(verified),
        ] {
            for user in ["native", "signed", "nothing"] {
                for address in [tcp(port), Address::Unix(socket.clone())] {
                    for compression in [None, Some(CompressionMethod::Zlib)] {
                        let login = Login {
                            compression,
                            ..login(user)
                        };
                        let case = format!("{user} {address} {tls:?} {compression:?}");
                        let connected = connect(&address, tls.clone(), &login).await;
                        let mut server = connected.expect(&case);
                        assert_eq!(server.info().compression, compression);
                        assert_eq!(server.info().has_tls, !matches!(tls, TlsMode::Off));
                        assert_reads(&mut server, &case).await;
                        server.close().await;
                    }
                }
            }
        }
    });
}

#[test]
fn a_greeting_tells_the_server() {
    let server = start(&[]);
    let port = server.port();
    on_worker(move || async move {
        let mut server = connect(&tcp(port), TlsMode::Off, &login("native"))
            .await
            .unwrap();
        let info = server.info();
        assert_eq!(info.version.product, Product::MariaDb);
        assert_eq!((info.version.numbers.0, info.version.numbers.1), (10, 11));
        assert!(info.capabilities.contains(Capabilities::DEPRECATE_EOF));
        assert!(!info.capabilities.contains(Capabilities::MYSQL));
        assert_eq!(server.status(), StatusFlags::AUTOCOMMIT);
        let id = info.connection_id.to_string();
        let outcomes = server
            .query(b"select connection_id()", limits())
            .await
            .unwrap();
        let Outcome::Rows(rows) = &outcomes[0] else {
            panic!("{outcomes:?}")
        };
        assert_eq!(rows.rows, texts(&[&[Some(&id)]]));
        server.query(b"begin", limits()).await.unwrap();
        assert!(server.status().contains(StatusFlags::IN_TRANSACTION));
        server.query(b"rollback", limits()).await.unwrap();
        assert!(!server.status().contains(StatusFlags::IN_TRANSACTION));
        server.ping(limit()).await.unwrap();
        server.query(b"set @a = 1", limits()).await.unwrap();
        server.reset(limit()).await.unwrap();
        let outcomes = server.query(b"select @a", limits()).await.unwrap();
        let Outcome::Rows(rows) = &outcomes[0] else {
            panic!("{outcomes:?}")
        };
        assert_eq!(rows.rows, texts(&[&[None]]));
        for user in ["signed", "nothing", "native"] {
            let login = login(user);
            support::change_user(&mut server, &login).await.unwrap();
            assert_reads(&mut server, user).await;
        }
    });
}

#[test]
fn replies_of_every_shape_with_and_without_eof_packets() {
    let server = start(&[]);
    let port = server.port();
    on_worker(move || async move {
        let all = Login::new("", ClientSecret::password(b"")).capabilities;
        for capabilities in [
            all | Capabilities::LOCAL_FILES,
            (all | Capabilities::LOCAL_FILES) & !Capabilities::DEPRECATE_EOF,
        ] {
            let login = Login {
                capabilities,
                ..login("native")
            };
            let mut server = connect(&tcp(port), TlsMode::Off, &login).await.unwrap();
            assert_reads(&mut server, "text").await;
            several_results(&mut server).await;
            prepared(&mut server).await;
            local_file(&mut server).await;
            let fields = b"t\0";
            server.send(CommandByte::FIELD_LIST, fields).await.unwrap();
            assert_eq!(read_parts(&mut server).await.len(), 3);
            server.send(CommandByte::STATISTICS, b"").await.unwrap();
            assert_eq!(read_parts(&mut server).await, [Part::Text]);
            server.send(CommandByte::SET_OPTION, &[0, 0]).await.unwrap();
            assert_eq!(read_parts(&mut server).await.len(), 1);
            assert!(server.is_at_rest());
        }
    });
}

async fn read_parts(server: &mut Server) -> Vec<Part> {
    let mut parts = Vec::new();
    while let Some(received) = server.receive(limit()).await.unwrap() {
        received.message().unwrap();
        parts.push(received.part());
    }
    parts
}

async fn several_results(server: &mut Server) {
    let text = b"select 1; do 0; insert into t values (4, 'x'); delete from t where a = 4; \
                 select nothing; select 2";
    let outcomes = server.query(text, limits()).await.unwrap();
    let done = |affected_rows| Outcome::Done {
        affected_rows,
        last_insert_id: 0,
    };
    assert!(matches!(&outcomes[0], Outcome::Rows(rows) if rows.rows == texts(&[&[Some("1")]])));
    assert_eq!(outcomes[1..4], [done(0), done(1), done(1)]);
    let Outcome::Failed(error) = &outcomes[4] else {
        panic!("{outcomes:?}")
    };
    assert_eq!(error.code.number(), 1054);
    assert_eq!(outcomes.len(), 5);
}

async fn prepared(server: &mut Server) {
    let text = b"select a + ?, b from t where a < ? order by a";
    server.send(CommandByte::STMT_PREPARE, text).await.unwrap();
    let mut statement = None;
    let mut definitions = 0;
    while let Some(received) = server.receive(limit()).await.unwrap() {
        match received.message().unwrap() {
            Message::Prepared(answer) => statement = Some(answer),
            Message::Parameter(_) | Message::Column(_) => definitions += 1,
            _ => {}
        }
    }
    let statement = statement.unwrap();
    assert_eq!((statement.parameter_count, statement.column_count), (2, 2));
    assert_eq!(definitions, 4);
    let int = ParameterType::new(ColumnType::LongLong);
    let values = [(int, BinaryValue::Int(10)), (int, BinaryValue::Int(3))];
    for cursor in [CursorKind::None, CursorKind::ReadOnly] {
        let write = |out: &mut wire::PacketWriter| {
            Execute::encode(out, statement.statement_id, cursor, &values);
        };
        server
            .send_packet(CommandByte::STMT_EXECUTE, write)
            .await
            .unwrap();
        let mut rows = binary_rows(server).await;
        if cursor == CursorKind::ReadOnly {
            assert!(rows.is_empty());
            assert!(server.status().contains(StatusFlags::CURSOR_EXISTS));
            let mut fetch = statement.statement_id.to_le_bytes().to_vec();
            fetch.extend_from_slice(&10_u32.to_le_bytes());
            server.send(CommandByte::STMT_FETCH, &fetch).await.unwrap();
            rows = binary_rows(server).await;
        }
        assert_eq!(
            rows,
            [(11, Some("one".to_owned())), (12, None)],
            "{cursor:?}"
        );
    }
    let id = statement.statement_id.to_le_bytes();
    server.send(CommandByte::STMT_CLOSE, &id).await.unwrap();
    assert!(server.receive(limit()).await.unwrap().is_none());
}

/// The rows of a reply, of an integer and a text.
async fn binary_rows(server: &mut Server) -> Vec<(i64, Option<String>)> {
    let mut rows = Vec::new();
    let mut types: Vec<ParameterType> = vec![
        ParameterType::new(ColumnType::LongLong),
        ParameterType::new(ColumnType::VarString),
    ];
    let mut column_index = 0;
    while let Some(received) = server.receive(limit()).await.unwrap() {
        match received.message().unwrap() {
            Message::Column(column) => {
                types[column_index] = ParameterType::new(column.column_type);
                column_index += 1;
            }
            Message::BinaryRow(payload) => {
                let mut reader = BinaryRowReader::new(payload, &types).unwrap();
                let number = match reader.next_value().unwrap() {
                    Some(BinaryValue::Int(number)) => number,
                    other => panic!("{other:?}"),
                };
                let text = match reader.next_value().unwrap() {
                    Some(BinaryValue::Bytes(text)) => {
                        Some(String::from_utf8_lossy(text).into_owned())
                    }
                    Some(BinaryValue::Null) => None,
                    other => panic!("{other:?}"),
                };
                rows.push((number, text));
            }
            _ => {}
        }
    }
    rows
}

async fn local_file(server: &mut Server) {
    let text = b"load data local infile 'any' into table t";
    server.send(CommandByte::QUERY, text).await.unwrap();
    let request = server.receive(limit()).await.unwrap().unwrap();
    let Message::FileRequest(file) = request.message().unwrap() else {
        panic!("{request:?}")
    };
    assert_eq!(file.file_name, b"any");
    // Until the file is sent the server has nothing more to say.
    let early = server.receive(limit()).await;
    assert!(matches!(early, Err(RequestError::Engaged)));
    for row in 100..2000 {
        let line = format!("{row}\t{}\n", "v".repeat(90));
        server.send_file(line.as_bytes()).await.unwrap();
    }
    server.send_file(b"").await.unwrap();
    let outcome = server.receive(limit()).await.unwrap().unwrap();
    let Message::Ok(ok) = outcome.message().unwrap() else {
        panic!("{outcome:?}")
    };
    assert_eq!(ok.affected_rows, 1900);
    assert!(server.receive(limit()).await.unwrap().is_none());
    let unasked = server.send_file(b"x").await;
    assert!(matches!(unasked, Err(RequestError::Unasked)));
    let delete = b"delete from t where a > 3";
    server.query(delete, limits()).await.unwrap();
}

#[test]
fn a_large_packet_goes_both_ways() {
    let server = start(&["--max-allowed-packet=64M".to_owned()]);
    let port = server.port();
    on_worker(move || async move {
        for compression in [None, Some(CompressionMethod::Zlib)] {
            let login = Login {
                compression,
                ..login("native")
            };
            let mut server = connect(&tcp(port), TlsMode::Off, &login).await.unwrap();
            let mut text = b"select length('".to_vec();
            text.resize(text.len() + (20 << 20), b'x');
            text.extend_from_slice(b"'), repeat('y', 20000000)");
            let limits = QueryLimits {
                bytes_max: 64 << 20,
                ..limits()
            };
            let outcomes = server.query(&text, limits).await.unwrap();
            let Outcome::Rows(rows) = &outcomes[0] else {
                panic!("an error")
            };
            let row = &rows.rows[0];
            assert_eq!(row[0].as_deref(), Some(&b"20971520"[..]));
            assert!(row[1].as_ref().unwrap() == &vec![b'y'; 20_000_000]);
        }
    });
}

#[test]
fn errors_say_what_is_wrong() {
    let server = start(&["--skip-ssl".to_owned()]);
    let (port, free_port) = (server.port(), testkit::free_port().unwrap());
    on_worker(move || async move {
        let wrong = Login::new("native", ClientSecret::password(b"wrong"));
        let refused = connect(&tcp(port), TlsMode::Off, &wrong).await.unwrap_err();
        assert!(matches!(&refused, ConnectError::Refused(error) if error.code.number() == 1045));

        let missing = Login {
            database: Some("missing".to_owned()),
            ..login("native")
        };
        let refused = connect(&tcp(port), TlsMode::Off, &missing)
            .await
            .unwrap_err();
        assert!(matches!(&refused, ConnectError::Refused(error) if error.code.number() == 1049));

        let nobody = connect(&tcp(free_port), TlsMode::Off, &login("native")).await;
        assert!(matches!(nobody, Err(ConnectError::Unreachable(_))));

        let tls = TlsMode::Required(TlsClient::unverified().unwrap());
        let plain = connect(&tcp(port), tls, &login("native")).await;
        assert!(matches!(plain, Err(ConnectError::NoTls)));

        // Of the signer's password only a hash is known.
        let digest = Login::new("signed", ClientSecret::Sha1([1; 20]));
        let unanswered = connect(&tcp(port), TlsMode::Off, &digest)
            .await
            .unwrap_err();
        let is_not_enough = matches!(
            unanswered,
            ConnectError::Authentication(ClientAuthError::NotEnough(_))
        );
        assert!(is_not_enough, "{unanswered}");
    });
}

#[test]
fn a_certificate_has_to_be_the_authoritys_and_for_the_host() {
    let authority = Authority::new();
    let folder = Folder::new("backend").unwrap();
    let server = start(&authority.mariadb_arguments(folder.path(), "db.example"));
    let port = server.port();
    on_worker(move || async move {
        let other = Authority::new();
        for (pem, host, is_let_in) in [
            (&authority.pem, "db.example", true),
            (&authority.pem, "localhost", false),
            (&authority.pem, "127.0.0.1", false),
            (&other.pem, "db.example", false),
        ] {
            let tls = TlsMode::Required(TlsClient::verified(pem, host).unwrap());
            let connected = connect(&tcp(port), tls, &login("native")).await;
            assert_eq!(connected.is_ok(), is_let_in, "{host}");
            if let Err(error) = connected {
                let is_tls = matches!(
                    &error,
                    ConnectError::Link(Disconnect::Protocol(link::ChannelError::Tls(_)))
                );
                assert!(is_tls, "{error:?}");
            }
        }
    });
}

#[test]
fn a_reply_given_up_leaves_the_server_unusable() {
    let server = start(&[]);
    let port = server.port();
    on_worker(move || async move {
        let mut server = connect(&tcp(port), TlsMode::Off, &login("native"))
            .await
            .unwrap();
        server
            .send(CommandByte::QUERY, b"select a from t")
            .await
            .unwrap();
        server.receive(limit()).await.unwrap();
        assert!(!server.is_at_rest());
        let next = server.send(CommandByte::PING, b"").await;
        assert!(matches!(next, Err(RequestError::Engaged)));
        assert!(matches!(server.detach().await, Err(RequestError::Engaged)));

        let mut server = connect(&tcp(port), TlsMode::Off, &login("native"))
            .await
            .unwrap();
        let short = QueryLimits {
            bytes_max: 10,
            ..limits()
        };
        let cut = server.query(b"select * from t", short).await;
        assert!(matches!(cut, Err(RequestError::TooLarge { limit: 10 })));
        let next = server.ping(limit()).await;
        assert!(matches!(next, Err(RequestError::Engaged)));

        // Nothing comes in time: the reply may still come, so the connection is of no use.
        let mut server = connect(&tcp(port), TlsMode::Off, &login("native"))
            .await
            .unwrap();
        let soon = QueryLimits {
            until: Limit::after(Duration::from_millis(100)),
            ..limits()
        };
        let late = server.query(b"select sleep(2)", soon).await;
        assert!(matches!(late, Err(RequestError::Link(Disconnect::Idle))));
        assert!(!server.is_at_rest());

        // One at rest goes through another's hands and back.
        let mut server = connect(&tcp(port), TlsMode::Off, &login("native"))
            .await
            .unwrap();
        server.query(b"begin", limits()).await.unwrap();
        let detached = server.detach().await.unwrap();
        let mut server = detached.attach(&resources()).unwrap();
        assert!(server.status().contains(StatusFlags::IN_TRANSACTION));
        assert_reads(&mut server, "moved").await;
    });
}
