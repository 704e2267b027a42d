//! `mysql_users`: whom ProxySQL lets in. A gateway asks the servers for that.

use crate::known::{Known, known, left_out, same};
use crate::note::{Kind, Note};

use super::File;

/// A user that may log in.
#[derive(Debug)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) hostgroup: i64,
    /// Of its row.
    pub(super) line: usize,
    pub(super) link: Link,
}

/// How a user's connections are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    Shared,
    /// Nothing is read of what goes over them (`fast_forward`).
    Own,
}

/// All users that are active.
pub(super) fn read(file: &File<'_>, notes: &mut Vec<Note>) -> Vec<User> {
    let mut users: Vec<User> = Vec::new();
    let mut is_told = false;
    for mut row in file.rows("mysql_users", notes) {
        if !is_told {
            let text = "the accounts are those of the servers, with their passwords: each user has \
                        to be there with `mysql_native_password` or `caching_sha2_password`, and \
                        may come from the gateway's host";
            row.note_all(Kind::Differs, text);
            is_told = true;
        }
        let Some(name) = row.text(&["username"]) else {
            row.note_all(Kind::Unknown, "it has no username");
            notes.extend(row.notes);
            continue;
        };
        row.name_by(name);
        let _ = row.text(&["password"]);
        let hostgroup = row.number(&["default_hostgroup"]).unwrap_or(0);
        let is_active = row.boolean("active") != Some(false);
        let is_forwarded = row.boolean("fast_forward") == Some(true);
        if is_active && row.boolean("frontend") != Some(false) {
            row.judge_rest(KNOWN);
            if !users.iter().any(|it| it.name == name) {
                users.push(User {
                    name: name.to_owned(),
                    hostgroup,
                    line: row.line,
                    link: match is_forwarded {
                        true => Link::Own,
                        false => Link::Shared,
                    },
                });
            }
        } else if !is_active {
            let text = "it is not active, but the servers may let it in: lock it there";
            row.note("active", Kind::ToDo, text);
        }
        notes.extend(row.notes);
    }
    users
}

const KNOWN: &[Known] = &[
    same("backend"),
    same("comment"),
    known(
        "use_ssl",
        &["false"],
        Kind::LeftOut,
        "let the account have REQUIRE SSL on the servers, and give each server `tls`",
    ),
    known(
        "default_schema",
        &["information_schema"],
        Kind::LeftOut,
        "a client that names no database has none",
    ),
    known(
        "schema_locked",
        &["false"],
        Kind::LeftOut,
        "privileges of the account say which databases it may use",
    ),
    known(
        "transaction_persistent",
        &["true"],
        Kind::Differs,
        "a transaction always stays at its server",
    ),
    known(
        "max_connections",
        &["10000"],
        Kind::LeftOut,
        "accounts have no limit of their own here",
    ),
    left_out("attributes", "users have no attributes here"),
];
