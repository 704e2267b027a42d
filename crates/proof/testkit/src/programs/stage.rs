//! [`Stage`]: what is prepared on a server, and rounds of draw, play twice, compare, reduce.

use std::fmt;
use std::ops::ControlFlow;

use anyhow::{Context, Result, bail, ensure};

use crate::client::Client;

use super::action::Action;
use super::{ACCOUNTS, CLIENTS_MAX, Program, Reply, foreign_mark, mark, play, play_alone};

/// Two servers with the same tables, and where the clients that share connections go.
#[derive(Debug)]
pub struct Stage {
    /// A session of root on the server behind the gateway.
    behind: Client,
    /// The same on the server that clients have connections of their own to.
    reference: Client,
    reference_port: u16,
    /// Of the gateway.
    port: u16,
    /// Sessions of root on the replicas of the server behind the gateway.
    replicas: Vec<Client>,
}

/// What a client got over shared connections, and should not have.
#[derive(Debug)]
pub struct Difference {
    /// The program, reduced.
    pub program: Program,
    client: usize,
    /// Of the action.
    place: usize,
    expected: Option<Reply>,
    got: Option<Reply>,
}

/// Runs that reduce a program.
const REDUCTIONS_MAX: usize = 80;

/// Options of a server whose tables need not survive it, and which is the same as another one.
pub fn server_options() -> [&'static str; 10] {
    [
        "--character-set-server=utf8mb4",
        "--collation-server=utf8mb4_general_ci",
        "--innodb-flush-method=nosync",
        "--innodb-flush-log-at-trx-commit=0",
        "--debug-no-sync",
        "--local-infile=1",
        "--log-bin-trust-function-creators=1",
        "--max-connections=200",
        "--lock-wait-timeout=5",
        "--innodb-lock-wait-timeout=5",
    ]
}

/// What each client has in its database; `{c}` is its mark.
const OWN: &[&str] = &[
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, owner VARCHAR(40) NOT NULL DEFAULT '{c}', \
     v INT, w VARCHAR(40) UNIQUE)",
    "CREATE TABLE u (id INT PRIMARY KEY AUTO_INCREMENT, owner VARCHAR(40) NOT NULL DEFAULT '{c}', \
     v INT)",
    "CREATE TABLE m (id INT PRIMARY KEY, owner VARCHAR(40) DEFAULT '{c}') ENGINE=MyISAM",
    "CREATE TABLE log (token VARCHAR(40))",
    "CREATE TABLE child (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES t (id))",
    "CREATE SEQUENCE s START WITH {n}",
    "CREATE PROCEDURE two() BEGIN SELECT owner, id FROM t ORDER BY id LIMIT 2; SELECT COUNT(*), \
     '{c}' FROM t; END",
    "CREATE PROCEDURE give(OUT a VARCHAR(40), INOUT b INT) BEGIN SET a = '{c}given'; SET b = b + \
     1; END",
    "CREATE PROCEDURE fails() BEGIN SELECT '{c}'; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = \
     '{c}no'; SELECT 2; END",
    "CREATE PROCEDURE keeps() SET @a = '{c}kept', sql_select_limit = 7",
    "CREATE PROCEDURE begins() BEGIN START TRANSACTION; INSERT INTO t (v) VALUES (77); END",
    "CREATE PROCEDURE shadows() CREATE TEMPORARY TABLE IF NOT EXISTS m SELECT 5 id, '{c}' owner",
    "CREATE PROCEDURE mine() BEGIN DO 1; SELECT ROW_COUNT(), '{c}', @a, DATABASE(); END",
    "CREATE PROCEDURE warns() BEGIN DECLARE i INT; SET i = CAST('{c}' AS INT); END",
    "CREATE FUNCTION last() RETURNS BIGINT RETURN LAST_INSERT_ID()",
    "CREATE FUNCTION sets(x INT) RETURNS INT BEGIN SET @b = CONCAT('{c}', x); RETURN x; END",
    "CREATE FUNCTION adds(x INT) RETURNS INT BEGIN INSERT INTO t (v) VALUES (x); RETURN \
     LAST_INSERT_ID(); END",
];

impl Stage {
    /// Makes the accounts. `behind` and `reference` are sessions of root.
    pub fn new(
        mut behind: Client,
        (mut reference, reference_port): (Client, u16),
        port: u16,
    ) -> Result<Stage> {
        for root in [&mut behind, &mut reference] {
            for name in ACCOUNTS {
                root.run(&format!("CREATE USER {name}@'%'"))?;
                root.run(&format!("GRANT ALL ON *.* TO {name}@'%'"))?;
            }
        }
        Ok(Stage {
            behind,
            reference,
            reference_port,
            port,
            replicas: Vec::new(),
        })
    }

    /// The same, where the server behind the gateway has replicas. `replicas` are sessions of root.
    pub fn with_replicas(self, replicas: Vec<Client>) -> Stage {
        Stage { replicas, ..self }
    }

    /// Plays a program over shared connections and over private ones, and compares.
    ///
    /// # Errors
    /// If no reply can be had.
    pub fn compare(&mut self, program: &Program) -> Result<Option<Difference>> {
        let clients = program.parts.len();
        self.prepare(clients)?;
        prepare(&mut self.reference, clients)?;
        let expected =
            play_alone(program, self.reference_port).context("over private connections")?;
        let lost = |_: usize, _: &Action| ControlFlow::Break(());
        let got = play(program, self.port, &lost).context("over shared connections")?;
        let found = program.first_difference(&expected, &got)?;
        Ok(found.map(|(client, place)| Difference {
            program: program.clone(),
            client,
            place,
            expected: expected[client].get(place).cloned(),
            got: got[client].get(place).cloned(),
        }))
    }

    /// The tables of clients, as a program finds them.
    pub fn prepare(&mut self, clients: usize) -> Result<()> {
        prepare(&mut self.behind, clients)?;
        if self.replicas.is_empty() {
            return Ok(());
        }
        let position = self.behind.value("SELECT @@gtid_binlog_pos")?;
        let position = position.context("a primary has a binary log")?;
        for replica in &mut self.replicas {
            let waited = replica.value(&format!("SELECT MASTER_GTID_WAIT('{position}', 60)"))?;
            ensure!(waited.as_deref() == Some("0"), "a replica does not follow");
        }
        Ok(())
    }

    /// The same servers; clients that share connections go there.
    pub fn go_to(&mut self, port: u16) {
        self.port = port;
    }

    /// Plays a program while servers are in trouble: a client whose connection is lost comes back.
    ///
    /// # Errors
    /// If a client has got what is another one's, or a write has run twice.
    pub fn endure(&mut self, program: &Program) -> Result<()> {
        self.prepare(program.parts.len())?;
        let lost = |_: usize, _: &Action| ControlFlow::Continue(());
        let got = play(program, self.port, &lost)?;
        for (client, replies) in got.iter().enumerate() {
            for (reply, action) in replies.iter().zip(&program.parts[client]) {
                let foreign = reply.0.iter().find_map(|it| foreign_mark(client, it));
                if let Some(other) = foreign {
                    bail!(
                        "seed {}: client {client} has got what is client {other}'s by {action}:\n\
                         {reply:?}",
                        program.seed
                    );
                }
            }
            let own = mark(client);
            let twice = format!(
                "SELECT token FROM {own}db.log WHERE token LIKE '{own}v%' GROUP BY token \
                 HAVING 1 < COUNT(*)"
            );
            let twice = self.behind.rows(&twice)?;
            ensure!(
                twice.is_empty(),
                "seed {}: these ran twice: {twice:?}",
                program.seed
            );
        }
        Ok(())
    }

    /// A session of root on the server behind the gateway.
    pub fn behind(&mut self) -> &mut Client {
        &mut self.behind
    }

    /// The smallest program that still differs, of those that were tried.
    pub fn reduce(&mut self, difference: Difference) -> Result<Difference> {
        let action = difference.action().cloned();
        let heads = difference.heads();
        let mut best = difference;
        let mut tries = 0;
        let mut try_it = |stage: &mut Stage, program: Program| {
            tries += 1;
            if REDUCTIONS_MAX < tries {
                return Ok(None);
            }
            // Another difference is not this one.
            let found = stage.compare(&program)?;
            Ok::<_, anyhow::Error>(
                found.filter(|it| it.action() == action.as_ref() && it.heads() == heads),
            )
        };
        // What comes after the difference, of that client alone.
        let mut cut = best.program.clone();
        cut.parts[best.client].truncate(best.place + 1);
        if let Some(smaller) = try_it(self, cut)? {
            best = smaller;
        }
        // All others, then each of them.
        let own = best.client;
        for client in 0..best.program.parts.len() {
            let mut alone = best.program.clone();
            alone.parts[client].clear();
            if client != own
                && let Some(smaller) = try_it(self, alone)?
            {
                best = smaller;
            }
        }
        for client in 0..best.program.parts.len() {
            let mut run = best.program.parts[client].len();
            while 0 < run {
                let mut begin = 0;
                while begin < best.program.parts[client].len() {
                    let mut fewer = best.program.clone();
                    let part = &mut fewer.parts[client];
                    let mut end = (begin + run).min(part.len());
                    // It asks of the action before it.
                    end += part[end..].iter().take_while(|it| it.asks_rows()).count();
                    part.drain(begin..end);
                    match try_it(self, fewer)? {
                        Some(smaller) => best = smaller,
                        None => begin += run,
                    }
                }
                run /= 2;
            }
        }
        Ok(best)
    }
}

impl Difference {
    fn action(&self) -> Option<&Action> {
        self.program.parts.get(self.client)?.get(self.place)
    }

    /// How the packets begin that were expected and got.
    fn heads(&self) -> [Vec<Option<u8>>; 2] {
        [&self.expected, &self.got].map(|reply| {
            let packets = reply.iter().flat_map(|it| &it.0);
            packets.map(|it| it.first().copied()).collect()
        })
    }
}

fn prepare(root: &mut Client, clients: usize) -> Result<()> {
    root.run("DROP DATABASE IF EXISTS common")?;
    root.run("CREATE DATABASE common")?;
    for client in 0..clients.min(CLIENTS_MAX) {
        let mark = mark(client);
        // A program that was reduced may have left it.
        root.query(&format!("XA ROLLBACK '{mark}x'"))?;
        root.run(&format!("DROP DATABASE IF EXISTS {mark}db"))?;
        root.run(&format!("CREATE DATABASE {mark}db"))?;
        root.run(&format!("USE {mark}db"))?;
        let first = 1000 * (client + 1);
        for statement in OWN {
            let statement = statement.replace("{c}", &mark);
            root.run(&statement.replace("{n}", &first.to_string()))?;
        }
        let rows: Vec<_> = (0..4)
            .map(|it| format!("({}, {it}, '{mark}{it}')", first + it))
            .collect();
        root.run(&format!(
            "INSERT INTO t (id, v, w) VALUES {}",
            rows.join(", ")
        ))?;
        root.run("INSERT INTO u SELECT id, owner, v FROM t")?;
        root.run("INSERT INTO m (id) VALUES (1), (2), (3)")?;
    }
    Ok(())
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packets = self.got.iter().flat_map(|it| &it.0);
        let foreign = packets
            .filter_map(|it| foreign_mark(self.client, it))
            .next();
        if let Some(other) = foreign {
            writeln!(f, "CLIENT {} HAS GOT WHAT IS CLIENT {other}'S", self.client)?;
        }
        for (client, actions) in self.program.parts.iter().enumerate() {
            if actions.is_empty() {
                continue;
            }
            writeln!(f, "client {client}:")?;
            for (place, action) in actions.iter().enumerate() {
                let is_here = client == self.client && place == self.place;
                writeln!(f, "  {} {action}", if is_here { '>' } else { ' ' })?;
            }
        }
        let show = |reply: &Option<Reply>| match reply {
            Some(reply) => format!("{reply:?}"),
            None => "    nothing\n".to_owned(),
        };
        write!(
            f,
            "  expected\n{}  but got\n{}",
            show(&self.expected),
            show(&self.got)
        )
    }
}
