//! `[[rule]]`, and the time limits of services.

use std::time::Duration;

use super::roles::replicated;
use super::shared::texts::query_in_two;
use super::split::mark;
use super::*;

const COM_INIT_DB: u8 = 2;
const COM_STMT_PREPARE: u8 = 22;

/// A gateway with this kind of sessions before a server. `fields` are the service's, `rules` are
/// sections.
fn ruled(backend: &Server, kind: &str, fields: &str, rules: &str) -> Gateway {
    let service = format!("[[service]]\nname = \"shop\"\n{kind}{fields}");
    Gateway::start(&(sections(&[backend]) + &service + rules), "auto")
}

/// The error of a command that is refused.
fn refused_command(client: &mut Client, byte: u8, body: &[u8]) -> u16 {
    client.send_command(byte, body).expect("it is sent");
    let packet = client.next_packet().expect("an answer");
    assert_eq!(packet.first(), Some(&0xff), "{packet:?}");
    u16::from_le_bytes([packet[1], packet[2]])
}

fn refusal(client: &mut Client, text: &str) -> (u16, String) {
    let error = error_of(client.query(text).expect("an answer"));
    (error.number, error.message)
}

#[test]
fn what_a_rule_refuses_is_not_carried_out() {
    let rules = "[[rule]]\nname = \"no-drops\"\npattern = '^drop\\s+table'\n\
                 refuse = \"ask the operators\"\n\
                 [[rule]]\nname = \"one\"\nusers = [\"app\"]\n\
                 pattern = 'from shop.secret where id = \\?'\nrefuse = \"not yours\"\n";
    let backend = backend();
    for kind in KINDS {
        let gateway = ruled(&backend, kind, "", rules);
        let mut client = gateway.connect();
        client
            .run("CREATE TABLE IF NOT EXISTS shop.secret (id INT)")
            .unwrap();
        let told = refusal(&mut client, "DROP  TABLE shop.secret");
        assert_eq!(told, (1148, "ask the operators".to_owned()));
        let told = refusal(&mut client, "SELECT * FROM shop.secret WHERE id = 7");
        assert_eq!(told, (1148, "not yours".to_owned()));
        // The session goes on, and other statements are not touched.
        assert_eq!(
            client
                .value("SELECT COUNT(*) FROM shop.secret")
                .unwrap()
                .unwrap(),
            "0"
        );
        // So is what is prepared.
        let text = b"SELECT * FROM shop.secret WHERE id = ?";
        assert_eq!(refused_command(&mut client, COM_STMT_PREPARE, text), 1148);
    }
}

#[test]
fn conditions_follow_the_session() {
    let rules = "[[rule]]\nname = \"r\"\nschemas = [\"shop\"]\nusers = [\"app\"]\n\
                 pattern = 'select 1'\nrefuse = \"no\"\n\
                 [[rule]]\nname = \"far\"\naddresses = [\"10.0.0.0/8\"]\nrefuse = \"no\"\n";
    let backend = backend();
    for kind in KINDS {
        let gateway = ruled(&backend, kind, "", rules);
        let mut client = gateway.connect();
        assert!(client.value("SELECT 1").is_ok());
        client.run("USE shop").unwrap();
        assert_eq!(refusal(&mut client, "SELECT 1").0, 1148);
        client.run("USE mysql").unwrap();
        assert!(client.value("SELECT 1").is_ok());
        client.send_command(COM_INIT_DB, b"shop").unwrap();
        assert_eq!(client.next_packet().unwrap().first(), Some(&0));
        assert_eq!(refusal(&mut client, "SELECT 1").0, 1148);
    }
}

#[test]
fn a_statement_that_runs_for_too_long_is_ended() {
    let rules = "[[rule]]\nname = \"reports\"\npattern = 'shop.report'\n\
                 max_statement_time = 30\n";
    for kind in KINDS {
        let backend = backend();
        let gateway = ruled(&backend, kind, "max_statement_time = 0.3\n", rules);
        let mut root = backend.connect().unwrap();
        root.run("CREATE TABLE shop.report (id INT)").unwrap();
        root.run("INSERT INTO shop.report VALUES (1)").unwrap();
        let mut client = gateway.connect();
        client.run("BEGIN").unwrap();
        client.run("INSERT INTO shop.report VALUES (2)").unwrap();
        let number = client.error_number("SELECT SLEEP(20)").unwrap();
        assert_eq!(number, 1317);
        // The next statement is not hit, and the transaction is still there.
        for _ in 0..20 {
            assert_eq!(client.value("SELECT 5").unwrap().unwrap(), "5");
        }
        let count = client.value("SELECT COUNT(*) FROM shop.report");
        assert_eq!(count.unwrap().unwrap(), "2");
        client.run("COMMIT").unwrap();
        // A rule goes before the service's limit.
        let slept = client.value("SELECT SLEEP(0.8) FROM shop.report LIMIT 1");
        assert_eq!(slept.unwrap().unwrap(), "0");
    }
}

#[test]
fn a_client_that_is_silent_in_a_transaction_is_disconnected() {
    let backend = backend();
    let fields = "idle_transaction_timeout = 0.3\n";
    let gateway = ruled(&backend, KINDS[0], fields, "");
    let mut root = backend.connect().unwrap();
    root.run("CREATE TABLE shop.t (id INT)").unwrap();
    let mut client = gateway.connect();
    let mut idle = gateway.connect();
    client.run("BEGIN").unwrap();
    client.run("INSERT INTO shop.t VALUES (1)").unwrap();
    let _ = client.has_answer(Duration::from_secs(20));
    assert!(client.query("SELECT 1").is_err());
    assert_eq!(
        root.value("SELECT COUNT(*) FROM shop.t").unwrap().unwrap(),
        "0"
    );
    // Outside of transactions, clients may be silent.
    assert!(idle.value("SELECT 1").is_ok());
}

#[test]
fn statements_go_where_rules_send_them() {
    let topology = replicated();
    mark(&topology);
    let servers: Vec<_> = topology.servers.iter().collect();
    let rules = "interval = 0.1\ntimeout = 0.5\n\
                 [[service]]\nname = \"split\"\nrouter = \"read-write-split\"\n\
                 [[rule]]\nname = \"fresh\"\npattern = 'from shop.here where place < \\?'\n\
                 route = \"primary\"\n\
                 [[rule]]\nname = \"named\"\npattern = 'place >= \\? or \\?'\n\
                 server = \"db2\"\n\
                 [[rule]]\nname = \"variables\"\npattern = 'max_connections'\n\
                 route = \"replica\"\n";
    let gateway = Gateway::start(&(sections(&servers) + rules), "auto");
    let mut client = gateway.connect();
    let mut place = |text: &str| client.value(text).unwrap().unwrap();
    for _ in 0..4 {
        assert_eq!(place("SELECT place FROM shop.here WHERE place < 9"), "0");
        assert_eq!(
            place("SELECT place FROM shop.here WHERE place >= 0 OR 1"),
            "2"
        );
        assert_ne!(place("SELECT place FROM shop.here WHERE place <= 9"), "0");
        // A hint goes before a rule.
        let hinted = "/* plateau: route=replica */ SELECT place FROM shop.here WHERE place < 9";
        assert_ne!(place(hinted), "0");
    }
    let read_only = "SELECT CONCAT(@@read_only, @@max_connections DIV 1000000)";
    assert_eq!(place(read_only), "ON0", "it is asked of a replica");
    // What is open stays where it is.
    client.run("BEGIN").unwrap();
    client.run("UPDATE shop.here SET place = place").unwrap();
    let inside = client.value("SELECT place FROM shop.here WHERE place >= 0 OR 1");
    assert_eq!(inside.unwrap().unwrap(), "0");
}

/// Whether a text that comes in two pieces is refused by a rule.
fn is_refused(client: &mut Client, pacer: &mut Client, text: &str) -> bool {
    match query_in_two(client, pacer, text.as_bytes()).remove(0) {
        Outcome::Error(error) => {
            assert_eq!(error.number, 1148, "{error:?}");
            true
        }
        Outcome::Done(_) | Outcome::Rows(_) => false,
    }
}

#[test]
fn a_text_in_pieces_is_judged_by_all_that_rules_see() {
    /// So much of a text patterns see.
    const SEEN_BYTES_MAX: usize = 16 << 10;
    let backend = backend();
    let mut root = backend.connect().unwrap();
    root.run("CREATE TABLE shop.t (a INT, b LONGTEXT)").unwrap();
    let digest = router::digested(b"DELETE FROM shop.t WHERE a = 1 AND b = ''").1;
    let rules = format!(
        "[[rule]]\nname = \"deletes\"\npattern = '^delete from \\S+$'\nrefuse = \"no WHERE\"\n\
         [[rule]]\nname = \"secret\"\npattern = 'needle'\nrefuse = \"not yours\"\n\
         [[rule]]\nname = \"form\"\npattern = '^insert into shop.t values \\(\\?,\\?\\)$'\n\
         refuse = \"one row\"\n\
         [[rule]]\nname = \"digest\"\ndigests = [\"{digest:016x}\"]\nrefuse = \"known\"\n"
    );
    for kind in KINDS {
        let service = format!("[[service]]\nname = \"shop\"\n{kind}{rules}");
        let text = format!("workers = 1\n{}{service}", sections(&[&backend]));
        let gateway = Gateway::start(&text, "auto");
        let [mut client, mut pacer] = [gateway.connect(), gateway.connect()];
        let mut refuses = |text: &str| is_refused(&mut client, &mut pacer, text);
        let blank = " ".repeat(9_000);
        assert!(!refuses(&format!("DELETE FROM shop.t{blank}WHERE a = 1")));
        assert!(refuses(&format!("DELETE FROM shop.t{blank}")));
        // Longer texts are seen as they were sent.
        for (bytes, has_form) in [(9_000, true), (100_000, false)] {
            let long = "x".repeat(bytes);
            let row = format!("INSERT INTO shop.t VALUES (1,'{long}')");
            assert_eq!(refuses(&row), has_form, "{kind} {bytes}");
            let known = format!("DELETE FROM shop.t WHERE a = 1 AND b = '{long}'");
            assert_eq!(refuses(&known), has_form, "{kind} {bytes}");
        }
        let begin = "SELECT '";
        let middle = "' AS needle";
        for bytes in [SEEN_BYTES_MAX - 1, SEEN_BYTES_MAX, SEEN_BYTES_MAX + 1] {
            let filler = "x".repeat(bytes - begin.len() - middle.len());
            let text = format!("{begin}{filler}{middle}{}", ", 1".repeat(30_000));
            assert_eq!(refuses(&text), bytes <= SEEN_BYTES_MAX, "{kind} {bytes}");
        }
    }
}
