//! Logins, commands and limits over real sockets, with the protocol's client half from `wire`.

#![forbid(unsafe_code)]

mod support;

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use errcode::{
    ER_ACCESS_DENIED_ERROR, ER_ACCOUNT_HAS_BEEN_LOCKED, ER_BAD_DB_ERROR, ER_HANDSHAKE_ERROR,
    ER_NET_PACKET_TOO_LARGE, ER_NET_PACKETS_OUT_OF_ORDER,
};
use front::{LoginRules, Options};
use runtime::Io;
use support::{LoginAs, TestClient, TestServer, error_of, options};
use wire::{Capabilities, CommandByte, FRAME_BYTES_MAX, OkPacket};

const USERS: [&str; 5] = ["native", "sha2", "ed25519", "empty", "trusted"];

#[test]
fn every_method_logs_in_over_every_transport() {
    let server = TestServer::start(options());
    for with_tls in [false, true] {
        for compression in [
            Capabilities::default(),
            Capabilities::COMPRESS,
            Capabilities::ZSTD_COMPRESSION,
        ] {
            for user in USERS {
                let login = LoginAs {
                    with_tls,
                    capabilities: compression,
                    ..LoginAs::user(user)
                };
                let mut client = TestClient::log_in(server.address, &login).unwrap();
                assert!(client.ping(), "{user} {with_tls} {compression:?}");
                let rows = client.query("ROWS 3 1000").unwrap();
                assert_eq!(rows, vec![vec![b'x'; 1000]; 3]);
                assert_eq!(client.query("LENGTH of this").unwrap(), [b"14"]);
            }
        }
    }
}

#[test]
fn wrong_passwords_and_unknown_users_get_the_same_answer() {
    let server = TestServer::start(options());
    for user in ["native", "sha2", "ed25519", "nobody"] {
        let login = LoginAs {
            password: "wrong",
            ..LoginAs::user(user)
        };
        let error = TestClient::log_in(server.address, &login).err().unwrap();
        assert_eq!(error.code, ER_ACCESS_DENIED_ERROR);
        let expected = format!("Access denied for user '{user}'@'localhost' (using password: YES)");
        assert_eq!(error.message, expected);
    }
    let login = LoginAs {
        password: "",
        ..LoginAs::user("native")
    };
    let error = TestClient::log_in(server.address, &login).err().unwrap();
    assert!(error.message.ends_with("(using password: NO)"));
}

#[test]
fn locked_accounts_missing_databases_and_tls_only_accounts_are_refused() {
    let server = TestServer::start(options());
    let refused = |login: &LoginAs<'_>| {
        TestClient::log_in(server.address, login)
            .err()
            .unwrap()
            .code
    };
    assert_eq!(
        refused(&LoginAs::user("locked")),
        ER_ACCOUNT_HAS_BEEN_LOCKED
    );
    assert_eq!(refused(&LoginAs::user("tls")), ER_ACCESS_DENIED_ERROR);
    let missing = LoginAs {
        database: Some("missing"),
        ..LoginAs::user("native")
    };
    assert_eq!(refused(&missing), ER_BAD_DB_ERROR);
    let login = LoginAs {
        with_tls: true,
        ..LoginAs::user("tls")
    };
    assert!(TestClient::log_in(server.address, &login).is_ok());
}

#[test]
fn plain_connections_can_be_refused_altogether() {
    let server = TestServer::start(Options {
        rules: LoginRules {
            requires_secure_transport: true,
            ..options().rules
        },
        ..options()
    });
    let error = TestClient::log_in(server.address, &LoginAs::user("native"))
        .err()
        .unwrap();
    assert_eq!(error.code.number(), 3159);
    let login = LoginAs {
        with_tls: true,
        ..LoginAs::user("native")
    };
    assert!(TestClient::log_in(server.address, &login).is_ok());
}

#[test]
fn user_can_be_changed_and_a_failed_change_ends_the_connection() {
    let server = TestServer::start(options());
    let mut client = TestClient::log_in(server.address, &LoginAs::user("native")).unwrap();
    client.change_user("sha2", "foobar").unwrap();
    assert!(client.ping());
    client.change_user("native", "secret").unwrap();
    assert!(client.ping());
    let error = client.change_user("ed25519", "wrong").unwrap_err();
    assert_eq!(error.code, ER_ACCESS_DENIED_ERROR);
    assert_eq!(client.read(), None);
}

#[test]
fn a_client_that_waits_for_a_challenge_can_change_its_user() {
    let server = TestServer::start(options());
    let mut client = TestClient::log_in(server.address, &LoginAs::user("native")).unwrap();
    client.change_user_by_challenge("sha2", "foobar").unwrap();
    assert!(client.ping());
    // Its password is known to the server by now.
    client.change_user_by_challenge("sha2", "foobar").unwrap();
    client.change_user_by_challenge("native", "secret").unwrap();
    assert!(client.ping());
    for (user, password) in [("sha2", "wrong"), ("sha2", "")] {
        let mut client = TestClient::log_in(server.address, &LoginAs::user("native")).unwrap();
        let error = client.change_user_by_challenge(user, password).unwrap_err();
        assert_eq!(error.code, ER_ACCESS_DENIED_ERROR);
        assert_eq!(client.read(), None);
    }
}

#[test]
fn large_packets_go_both_ways() {
    let server = TestServer::start(Options {
        max_allowed_packet: 64 << 20,
        ..options()
    });
    for (with_tls, capabilities) in [
        (false, Capabilities::default()),
        (true, Capabilities::default()),
        (false, Capabilities::COMPRESS),
        (true, Capabilities::ZSTD_COMPRESSION),
    ] {
        let login = LoginAs {
            with_tls,
            capabilities,
            ..LoginAs::user("native")
        };
        let mut client = TestClient::log_in(server.address, &login).unwrap();
        for bytes in [FRAME_BYTES_MAX - 1, FRAME_BYTES_MAX, 17 << 20] {
            let mut statement = String::from("LENGTH ");
            statement.extend(std::iter::repeat_n('y', bytes - 1 - "LENGTH ".len()));
            let rows = client.query(&statement).unwrap();
            assert_eq!(rows, [(bytes - 1).to_string().into_bytes()]);
        }
        let rows = client.query("ROWS 2 17825792").unwrap();
        assert!(rows == vec![vec![b'x'; 17_825_792]; 2]);
        assert!(client.ping());
    }
}

#[test]
fn packets_over_the_limit_are_told_and_end_the_connection() {
    let server = TestServer::start(Options {
        max_allowed_packet: 1 << 20,
        ..options()
    });
    for capabilities in [Capabilities::default(), Capabilities::COMPRESS] {
        for bytes in [(1 << 20) + 1, 17 << 20] {
            let login = LoginAs {
                capabilities,
                ..LoginAs::user("native")
            };
            let mut client = TestClient::log_in(server.address, &login).unwrap();
            let error = client.query(&"z".repeat(bytes)).unwrap_err();
            assert_eq!(error.code, ER_NET_PACKET_TOO_LARGE);
            assert_eq!(client.read(), None);
        }
    }
}

#[test]
fn commands_sent_together_are_answered_in_order() {
    let server = TestServer::start(options());
    for capabilities in [Capabilities::default(), Capabilities::COMPRESS] {
        let login = LoginAs {
            capabilities,
            ..LoginAs::user("native")
        };
        let mut client = TestClient::log_in(server.address, &login).unwrap();
        for count in 0..50 {
            client.command(CommandByte::QUERY, format!("ROWS 1 {count}").as_bytes());
        }
        for count in 0..50 {
            // Each reply goes on from its command.
            client.expect_reply();
            assert_eq!(client.read_rows().unwrap(), [vec![b'x'; count]]);
        }
    }
}

#[test]
fn replies_go_out_in_the_middle_of_a_later_one() {
    let server = TestServer::start(options());
    for with_tls in [false, true] {
        for capabilities in [
            Capabilities::default(),
            Capabilities::COMPRESS,
            Capabilities::ZSTD_COMPRESSION,
        ] {
            let login = LoginAs {
                with_tls,
                capabilities,
                ..LoginAs::user("native")
            };
            let mut client = TestClient::log_in(server.address, &login).unwrap();
            let mut other = TestClient::log_in(server.address, &LoginAs::user("native")).unwrap();
            // The second is more than the server sends at once.
            for bytes in [10, 100_000] {
                let mut commands = wire::PacketWriter::new();
                for text in ["ROWS 1 100".to_owned(), format!("HOLD 3 {bytes}")] {
                    commands.set_sequence(0);
                    wire::Command::encode(&mut commands, CommandByte::QUERY, text.as_bytes());
                }
                client.send_command(commands.as_bytes());
                assert_eq!(client.read_rows().unwrap(), [[b'x'; 100]]);
                assert!(client.is_quiet(), "{with_tls} {capabilities:?} {bytes}");
                other.query("RELEASE").unwrap();
                client.expect_reply();
                let rows = client.read_rows().unwrap();
                assert!(
                    rows == vec![vec![b'x'; bytes]; 3],
                    "{capabilities:?} {bytes}"
                );
            }
        }
    }
}

#[test]
fn local_file_comes_in_pieces() {
    let server = TestServer::start(options());
    let login = LoginAs {
        capabilities: Capabilities::LOCAL_FILES,
        ..LoginAs::user("native")
    };
    let mut client = TestClient::log_in(server.address, &login).unwrap();
    client.command(CommandByte::QUERY, b"INFILE");
    assert_eq!(client.read().unwrap(), b"\xFBsome.csv");
    for piece in [&[1; 1000][..], &[2; 70_000], b""] {
        client.write(piece);
    }
    let answer = client.read().unwrap();
    let ok = OkPacket::decode(&answer, client.capabilities).unwrap();
    assert_eq!(ok.affected_rows, 71_000);
    assert!(client.ping());
}

#[test]
fn older_clients_without_deprecate_eof_get_eof_packets() {
    let server = TestServer::start(options());
    let mut client = TestClient::log_in(server.address, &LoginAs::user("native")).unwrap();
    assert!(client.capabilities.contains(Capabilities::DEPRECATE_EOF));
    assert_eq!(client.query("SELECT 1").unwrap(), [b"1"]);
}

#[test]
fn garbage_in_place_of_a_login_is_refused() {
    let server = TestServer::start(options());
    let mut client = TestClient::tcp(server.address);
    client.write(b"\x01\x02");
    assert_eq!(error_of(&client.read().unwrap()).code, ER_HANDSHAKE_ERROR);
    assert_eq!(client.read(), None);

    // A frame that claims more than a login can be: closed, without waiting for its bytes.
    let mut client = TestClient::tcp(server.address);
    client.stream.write_all(b"\xFF\xFF\xFF\x01").unwrap();
    assert_eq!(client.read(), None);
}

#[test]
fn disordered_frames_are_told() {
    let server = TestServer::start(options());
    let mut client = TestClient::log_in(server.address, &LoginAs::user("native")).unwrap();
    client.stream.write_all(b"\x01\0\0\x05\x0E").unwrap();
    client.expect_reply();
    let packet = client.read().unwrap();
    assert_eq!(error_of(&packet).code, ER_NET_PACKETS_OUT_OF_ORDER);
    assert_eq!(client.read(), None);
}

#[test]
fn half_a_login_is_cut_off_by_the_time_limit() {
    let limit = Duration::from_millis(200);
    let server = TestServer::start(Options {
        rules: LoginRules {
            connect_timeout: limit,
            ..options().rules
        },
        ..options()
    });
    let mut client = TestClient::tcp(server.address);
    client.stream.write_all(b"\x20\0\0\x01\0\0").unwrap();
    assert_eq!(client.read(), None);

    let mut silent = support::tcp(server.address);
    let mut greeting = Vec::new();
    silent.read_to_end(&mut greeting).unwrap();
    assert!(!greeting.is_empty());
}

#[test]
fn a_server_that_is_late_with_its_greeting_leaves_the_client_its_time() {
    let limit = Duration::from_millis(1500);
    for io in [Io::Epoll, Io::Auto] {
        let options = Options {
            rules: LoginRules {
                connect_timeout: limit,
                ..options().rules
            },
            ..options()
        };
        let server = TestServer::start_late(io, options, limit + Duration::from_millis(100));
        let login = LoginAs::user("native");
        assert!(TestClient::log_in(server.address, &login).unwrap().ping());
    }
}

#[test]
fn reader_that_stops_is_disconnected_and_hurts_no_other() {
    let server = TestServer::start(Options {
        rules: LoginRules {
            write_timeout: Duration::from_millis(200),
            connect_timeout: Duration::from_secs(2),
            ..options().rules
        },
        ..options()
    });
    let mut lazy = TestClient::log_in(server.address, &LoginAs::user("native")).unwrap();
    lazy.command(CommandByte::QUERY, b"ROWS 1000000 1000");
    let mut other = TestClient::log_in(server.address, &LoginAs::user("native")).unwrap();
    for _ in 0..100 {
        assert!(other.ping());
    }
    // Who connects and stays silent is cut off later than who does not read.
    let mut silent = support::tcp(server.address);
    silent.read_to_end(&mut Vec::new()).unwrap();
    let mut received = 0;
    let mut buffer = vec![0; 1 << 20];
    while let Ok(count @ 1..) = lazy.stream.read(&mut buffer) {
        received += count;
    }
    assert!(received < 100 << 20, "{received} bytes of a gigabyte");
}

#[test]
fn reader_that_takes_a_row_slowly_gets_all_of_it() {
    const ROW_BYTES: usize = 96 << 20;
    const STEP_BYTES: usize = 8 << 20;
    let server = TestServer::start(Options {
        rules: LoginRules {
            write_timeout: Duration::from_millis(1600),
            connect_timeout: Duration::from_millis(400),
            ..options().rules
        },
        ..options()
    });
    let mut slow = TestClient::log_in(server.address, &LoginAs::user("native")).unwrap();
    slow.command(CommandByte::QUERY, format!("ROWS 1 {ROW_BYTES}").as_bytes());
    let mut received = 0;
    let mut buffer = vec![0; 1 << 20];
    while received < ROW_BYTES {
        let until = received + STEP_BYTES;
        while received < until.min(ROW_BYTES) {
            let count = match slow.stream.read(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read.expect("the row goes on"),
            };
            assert_ne!(count, 0, "cut off after {received} bytes");
            received += count;
        }
        // As long as a silent client may stay: a fourth of the limit, and the row takes the limit
        // nearly twice, even if sockets hold a third of it.
        let mut silent = support::tcp(server.address);
        silent.read_to_end(&mut Vec::new()).unwrap();
    }
}

#[test]
fn others_are_answered_while_a_long_row_is_compressed() {
    let server = TestServer::start(options());
    let mut other = TestClient::log_in(server.address, &LoginAs::user("native")).unwrap();
    for method in [Capabilities::COMPRESS, Capabilities::ZSTD_COMPRESSION] {
        let login = LoginAs {
            capabilities: method,
            ..LoginAs::user("native")
        };
        let socket = support::tcp(server.address);
        let stream = Box::new(socket.try_clone().unwrap());
        let mut client = TestClient::log_in_over(stream, &login).unwrap();
        client.command(CommandByte::QUERY, b"ROWS 1 50000000");
        socket.set_nonblocking(true).unwrap();
        let mut answered = 0;
        while socket.peek(&mut [0]).is_err() {
            assert!(other.ping());
            answered += 1;
        }
        // One may come before the row and one after it. Between them it is the machine's load that
        // decides how many.
        assert!(3 < answered, "{answered} answers");
    }
}

#[test]
fn others_are_answered_while_commands_that_came_together_are() {
    const COUNT: usize = 200_000;
    let server = TestServer::start(options());
    let mut other = TestClient::log_in(server.address, &LoginAs::user("native")).unwrap();
    let mut socket = support::tcp(server.address);
    let stream = Box::new(socket.try_clone().unwrap());
    let _client = TestClient::log_in_over(stream, &LoginAs::user("native")).unwrap();
    let close = [5, 0, 0, 0, CommandByte::STMT_CLOSE, 7, 0, 0, 0];
    let mut commands = close.repeat(COUNT);
    commands.extend_from_slice(&[1, 0, 0, 0, CommandByte::PING]);
    socket.set_nonblocking(true).unwrap();
    let (mut sent, mut answered) = (0, 0);
    while socket.peek(&mut [0]).is_err() {
        while let Ok(count @ 1..) = socket.write(&commands[sent..]) {
            sent += count;
        }
        assert!(other.ping());
        answered += 1;
    }
    assert!(20 < answered, "{answered} answers");
}
