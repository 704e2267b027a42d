//! Replies of every shape, as a client reads them: straight from a server, or passed on.

use backend::{ClientSecret, Login, Message, Outcome, QueryLimits, RequestError, Rows, Server};
use link::Part;
use testkit::{Launch, ServerKind};
use wire::{
    BinaryRowReader, BinaryValue, ColumnType, CommandByte, CursorKind, Execute, ParameterType,
    StatusFlags,
};

use super::limit;

/// Accounts of each method with the password `secret`, and a table.
pub(crate) const SET_UP: &[&str] = &[
    "install soname 'auth_ed25519'",
    "create user native@'%' identified via mysql_native_password using password('secret')",
    "create user signed@'%' identified via ed25519 using password('secret')",
    "create user nothing@'%'",
    "create database d",
    "create table d.t (a int primary key, b varchar(100))",
    "insert into d.t values (1, 'one'), (2, null), (3, 'three')",
    "grant all on *.* to native@'%', signed@'%', nothing@'%'",
];

pub(crate) fn start(arguments: &[String]) -> testkit::Server {
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

pub(crate) fn login(user: &str) -> Login {
    Login {
        database: Some("d".to_owned()),
        capabilities: wire::Capabilities::CLIENT | wire::Capabilities::MULTI_STATEMENTS,
        ..Login::new(user, secret(user))
    }
}

pub(crate) fn limits() -> QueryLimits {
    QueryLimits {
        until: limit(),
        bytes_max: 1 << 20,
    }
}

pub(crate) fn texts(values: &[&[Option<&str>]]) -> Vec<Vec<Option<Vec<u8>>>> {
    let value = |value: &Option<&str>| value.map(|text| text.as_bytes().to_vec());
    let row = |row: &&[Option<&str>]| row.iter().map(value).collect();
    values.iter().map(row).collect()
}

/// Whether the rows of the table come as they are.
pub(crate) async fn assert_reads(server: &mut Server, case: &str) {
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

/// Asks for replies of every shape and reads them.
pub(crate) async fn assert_reads_all(server: &mut Server, case: &str) {
    assert_reads(server, case).await;
    several_results(server).await;
    prepared(server).await;
    local_file(server).await;
    server.send(CommandByte::FIELD_LIST, b"t\0").await.unwrap();
    assert_eq!(read_parts(server).await.len(), 3);
    server.send(CommandByte::STATISTICS, b"").await.unwrap();
    assert_eq!(read_parts(server).await, [Part::Text]);
    server.send(CommandByte::SET_OPTION, &[0, 0]).await.unwrap();
    assert_eq!(read_parts(server).await.len(), 1);
    assert!(server.is_at_rest());
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
