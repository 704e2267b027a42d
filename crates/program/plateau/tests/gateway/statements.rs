//! What a client says reaches the server, and the reply comes back.

use super::*;

#[test]
fn statements_are_answered_by_the_server() {
    let backend = backend();
    let sections = sections(&[&backend]);
    on_each_driver(|driver| {
        for service in ["", PRIVATE] {
            let gateway = Gateway::start(&(sections.clone() + service), driver);
            let mut client = gateway.connect();
            let version = client.value("SELECT VERSION()").unwrap().unwrap();
            assert!(client.server_version.ends_with(&version), "{version}");
            client
                .run("CREATE OR REPLACE TEMPORARY TABLE shop.t (a INT PRIMARY KEY, b TEXT)")
                .unwrap();
            let done = client
                .run("INSERT INTO shop.t VALUES (1, 'x'), (2, NULL)")
                .unwrap();
            assert_eq!(done.affected_rows, 2);
            let rows = client.rows("SELECT a, b FROM shop.t ORDER BY a").unwrap();
            let text = |text: &str| Some(text.as_bytes().to_vec());
            assert_eq!(rows, [[text("1"), text("x")], [text("2"), None]]);
            assert_eq!(client.error_number("SELECT nothing").unwrap(), 1054);
            client.run("SET @a = 7").unwrap();
            client.run("USE shop").unwrap();
            let told = client.value("SELECT CONCAT(@a, DATABASE())").unwrap();
            assert_eq!(told.as_deref(), Some("7shop"));
            // 3 MB: of many buffers in both directions.
            let long = "x".repeat(3 << 20);
            let length = client.value(&format!("SELECT LENGTH('{long}')")).unwrap();
            assert_eq!(length, Some((3 << 20).to_string()));
            let repeated = client
                .value("SELECT REPEAT('y', 3145728)")
                .unwrap()
                .unwrap();
            assert_eq!(repeated.len(), 3 << 20);
            client.ping().unwrap();
            client.quit().unwrap();
        }
    });
}

#[test]
fn a_login_names_its_database() {
    let backend = backend();
    let gateway = Gateway::start(&sections(&[&backend]), "auto");
    let login = Login {
        database: "shop".to_owned(),
        ..gateway.login("app", "secret")
    };
    let mut client = Client::connect(&login).unwrap();
    let database = client.value("SELECT DATABASE()").unwrap();
    assert_eq!(database.as_deref(), Some("shop"));
    let login = Login {
        database: "nowhere".to_owned(),
        ..login
    };
    let refused = Client::connect(&login).unwrap_err();
    let refused: ServerError = refused.downcast().unwrap();
    assert_eq!(refused.number, 1049, "{refused:?}");
}

#[test]
fn clients_are_spread_over_servers() {
    let (one, other) = (backend(), backend());
    let gateway = Gateway::start(&sections(&[&one, &other]), "auto");
    let mut clients: Vec<_> = (0..4).map(|_| gateway.connect()).collect();
    let port = |client: &mut Client| client.value("SELECT @@port").unwrap().unwrap();
    let mut ports: Vec<_> = clients.iter_mut().map(port).collect();
    ports.sort();
    let mut expected =
        [one.port(), one.port(), other.port(), other.port()].map(|it| it.to_string());
    expected.sort();
    assert_eq!(ports, expected);
}
