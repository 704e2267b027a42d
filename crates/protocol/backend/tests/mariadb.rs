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
    Around, ClientSecret, ConnectError, Login, Outcome, Product, QueryLimits, RequestError, Server,
    TlsClient, TlsMode,
};
use errcode::Retry;
use link::{Disconnect, Limit};
use runtime::Address;
use support::replies::{assert_reads, assert_reads_all, limits, login, start, texts};
use support::{Authority, change_user_around, connect, limit, on_worker, resources, tcp};
use testkit::Folder;
use wire::{Capabilities, CommandByte, CompressionMethod, StatusFlags};

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

/// Notes who it runs as.
const SEE: (u8, &[u8]) = (
    CommandByte::QUERY,
    b"insert into d.seen (who) values (current_user())",
);

const SEEN: &[u8] = b"select who from d.seen order by n";

/// Who has run [`SEE`], in turn.
async fn who_was_seen(server: &mut Server) -> Vec<String> {
    let outcomes = server.query(SEEN, limits()).await.unwrap();
    let Outcome::Rows(rows) = &outcomes[0] else {
        panic!("{outcomes:?}")
    };
    let seen = rows.rows.iter().flatten().flatten();
    seen.map(|it| str::from_utf8(it).unwrap().to_owned())
        .collect()
}

const WRONG: (u8, &[u8]) = (CommandByte::QUERY, b"set @@no_such_variable = 1");

fn with_seen() -> testkit::Server {
    let server = start(&[]);
    let mut root = server.connect().unwrap();
    root.run("create table d.seen (n int auto_increment primary key, who text)")
        .unwrap();
    server
}

/// Those before run as the old user, those behind as the new one, whatever its method.
#[test]
fn commands_around_a_change_of_the_user() {
    let server = with_seen();
    let port = server.port();
    on_worker(move || async move {
        let mut server = connect(&tcp(port), TlsMode::Off, &login("native"))
            .await
            .unwrap();
        server.query(b"truncate d.seen", limits()).await.unwrap();
        for user in ["native", "signed", "nothing", "native"] {
            let around = Around {
                before: &[SEE, (CommandByte::QUERY, b"set @kept = 7")],
                behind: &[SEE],
            };
            let changed = change_user_around(&mut server, &login(user), around).await;
            changed.unwrap();
            let outcomes = server.query(b"select @kept", limits()).await.unwrap();
            let Outcome::Rows(rows) = &outcomes[0] else {
                panic!("{outcomes:?}")
            };
            assert_eq!(rows.rows, texts(&[&[None]]));
        }
        let seen = who_was_seen(&mut server).await;
        let [native, signed, nothing] = ["native@%", "signed@%", "nothing@%"];
        assert_eq!(
            seen,
            [
                native, native, native, signed, signed, nothing, nothing, native
            ]
        );
    });
}

/// SHA1 of the password of the accounts.
const SECRET_SHA1: [u8; 20] = [
    0xe5, 0xe9, 0xfa, 0x1b, 0xa3, 0x1e, 0xcd, 0x1a, 0xe8, 0x4f, 0x75, 0xca, 0xaa, 0x47, 0x4f, 0x3a,
    0x66, 0x3f, 0x05, 0xf4,
];

/// MariaDB 10.11 does not change its challenge, so from the second change on a native password is
/// proven ahead. A refusal is told then as ever.
#[test]
fn changes_of_the_user_that_are_proven_ahead() {
    let server = with_seen();
    let mut root = server.connect().unwrap();
    root.run("create user other identified by 'secret'")
        .unwrap();
    root.run("grant all on d.* to other").unwrap();
    let port = server.port();
    on_worker(move || async move {
        let by_sha1 = |user: &str| Login {
            secret: ClientSecret::Sha1(SECRET_SHA1),
            ..login(user)
        };
        let mut server = connect(&tcp(port), TlsMode::Off, &by_sha1("native"))
            .await
            .unwrap();
        server.query(b"truncate d.seen", limits()).await.unwrap();
        let around = Around {
            before: &[SEE],
            behind: &[SEE, SEE],
        };
        for user in ["other", "native", "other", "nothing", "native"] {
            let login = match user {
                "nothing" => login(user),
                _ => by_sha1(user),
            };
            change_user_around(&mut server, &login, around)
                .await
                .expect(user);
        }
        let seen = who_was_seen(&mut server).await;
        let [native, other, nothing] = ["native@%", "other@%", "nothing@%"];
        assert_eq!(
            seen,
            [
                native, other, other, other, native, native, native, other, other, other, nothing,
                nothing, nothing, native, native
            ]
        );
        let wrong = Login {
            secret: ClientSecret::Sha1([0; 20]),
            ..login("other")
        };
        // Those behind a refusal may run as the old user, later than the next pass begins: they
        // write no row.
        let around = Around {
            before: &[SEE],
            behind: &[(CommandByte::PING, b"")],
        };
        let refused = change_user_around(&mut server, &wrong, around).await;
        let refused = refused.unwrap_err();
        assert!(
            matches!(&refused, ConnectError::Refused(error) if error.code.number() == 1045),
            "{refused:?}"
        );
    });
}

#[test]
fn a_refusal_around_a_change_of_the_user_is_told() {
    let server = start(&[]);
    let port = server.port();
    on_worker(move || async move {
        let right = login("native");
        let wrong = Login::new("native", ClientSecret::password(b"wrong"));
        for (user, before, behind, number) in [
            (&right, &[WRONG][..], &[][..], 1193),
            (&right, &[], &[WRONG, (CommandByte::PING, b"")], 1193),
            (&wrong, &[], &[(CommandByte::PING, b"")], 1045),
        ] {
            let mut server = connect(&tcp(port), TlsMode::Off, &right).await.unwrap();
            let around = Around { before, behind };
            let refused = change_user_around(&mut server, user, around).await;
            let refused = refused.unwrap_err();
            assert!(
                matches!(&refused, ConnectError::Refused(error) if error.code.number() == number),
                "{refused:?}"
            );
        }
    });
}

/// Another connection kills it by its number, as a gateway does with a statement of a client that
/// is gone. A pool finds that out before it lends the connection.
#[test]
fn a_killed_connection_is_found_before_its_use() {
    let server = start(&[]);
    let port = server.port();
    on_worker(move || async move {
        let native = login("native");
        let mut killed = connect(&tcp(port), TlsMode::Off, &native).await.unwrap();
        let mut other = connect(&tcp(port), TlsMode::Off, &native).await.unwrap();
        assert!(!killed.is_stale() && !other.is_stale());
        let kill = format!("kill {}", killed.info().connection_id);
        other.query(kill.as_bytes(), limits()).await.unwrap();
        while !killed.is_stale() {
            runtime::yield_now().await;
        }
        assert!(!other.is_stale());
        let error = killed.ping(limit()).await.unwrap_err();
        assert_eq!(error.retry(), Retry::IfRead, "{error:?}");
    });
}

#[test]
fn replies_of_every_shape_with_and_without_eof_packets() {
    let server = start(&[]);
    let port = server.port();
    on_worker(move || async move {
        let all = login("").capabilities;
        for capabilities in [
            all | Capabilities::LOCAL_FILES,
            (all | Capabilities::LOCAL_FILES) & !Capabilities::DEPRECATE_EOF,
        ] {
            let login = Login {
                capabilities,
                ..login("native")
            };
            let mut server = connect(&tcp(port), TlsMode::Off, &login).await.unwrap();
            assert_reads_all(&mut server, "direct").await;
        }
    });
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

#[test]
fn commands_that_are_sent_at_once_are_all_carried_out() {
    let server = start(&[]);
    let port = server.port();
    on_worker(move || async move {
        let mut server = connect(&tcp(port), TlsMode::Off, &login("native"))
            .await
            .unwrap();
        let query = |text: &'static str| (CommandByte::QUERY, text.as_bytes());
        let commands = [
            query("set @a = 1"),
            (CommandByte::RESET_CONNECTION, b""),
            query("set @b = 2"),
            query("select 1 union select 2"),
        ];
        server.send_all(&commands, limit()).await.unwrap();
        server.send_all(&[], limit()).await.unwrap();
        let refused = [query("set @c = 3"), query("nonsense"), query("set @d = 4")];
        let error = server.send_all(&refused, limit()).await.unwrap_err();
        assert!(matches!(error, RequestError::Refused(_)), "{error}");
        let outcomes = server.query(b"select @a, @b, @c, @d", limits()).await;
        let outcomes = outcomes.unwrap();
        let Outcome::Rows(rows) = &outcomes[0] else {
            panic!("{outcomes:?}")
        };
        let expected = texts(&[&[None, Some("2"), Some("3"), Some("4")]]);
        assert_eq!(rows.rows, expected);
    });
}
