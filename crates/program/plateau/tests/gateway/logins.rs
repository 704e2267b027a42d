//! Who gets in: by the accounts of the servers, which change while the gateway runs.

use super::*;

#[test]
fn accounts_are_those_of_the_server() {
    let backend = backend();
    let gateway = Gateway::start(&(sections(&[&backend]) + PRIVATE), "auto");
    assert_eq!(gateway.refusal("app", "wrong").number, 1045);
    assert_eq!(gateway.refusal("nobody", "secret").number, 1045);
    gateway.connect().quit().unwrap();
    let mut root = backend.connect().unwrap();
    root.run("CREATE USER late@'%' IDENTIFIED BY 'new'")
        .unwrap();
    root.run("ALTER USER app@'%' IDENTIFIED BY 'changed'")
        .unwrap();
    // A name that is not known waits for newer accounts.
    let new = Client::connect(&gateway.login("late", "new")).unwrap();
    new.quit().unwrap();
    // A login that fails has the accounts read again.
    let is_in = |user, password| Client::connect(&gateway.login(user, password)).is_ok();
    wait_until("a new password is known", || is_in("app", "changed"));
    assert_eq!(gateway.refusal("app", "secret").number, 1045);
    root.run("DROP USER late@'%'").unwrap();
    // Nothing has told the gateway yet; the server refuses.
    assert_eq!(gateway.refusal("late", "new").number, 1045);
}

#[test]
fn a_plugin_that_cannot_be_passed_on_is_named() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    root.run("CREATE USER local@'%' IDENTIFIED VIA unix_socket")
        .unwrap();
    let gateway = Gateway::start(&sections(&[&backend]), "auto");
    let refused = gateway.refusal("local", "");
    assert_eq!(refused.number, 1251);
    assert!(refused.message.contains("unix_socket"), "{refused:?}");
}

#[test]
fn a_gateway_without_rights_says_what_it_needs() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    root.run("REVOKE SELECT ON mysql.* FROM plateau@'%'")
        .unwrap();
    let gateway = Gateway::unready(&sections(&[&backend]), "auto");
    let needs = "GRANT SELECT ON mysql.*";
    wait_until("the log says what to do", || gateway.log().contains(needs));
    let refused = gateway.refusal("app", "secret");
    assert_eq!(refused.number, 1429, "{refused:?}");
    root.run("GRANT SELECT ON mysql.* TO plateau@'%'").unwrap();
    let is_in = || Client::connect(&gateway.login("app", "secret")).is_ok();
    wait_until("the accounts can be read", is_in);
}
