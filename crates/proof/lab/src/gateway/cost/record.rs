//! `docs/bench/gateway.csv`: the medians of one run, a line for each protocol, number of clients
//! and contender. A recorded run replaces the one before.

use std::fmt;
use std::fs;

use anyhow::{Context, Result};
use testkit::folder::repository_root;

use super::contender::{KINDS, Kind};
use crate::curves::{self, Row};

/// The file, from the repository's root.
pub(super) const FILE: &str = "docs/bench/gateway.csv";

/// How statements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Text,
    Prepared,
}

impl Protocol {
    pub(super) const ALL: [Protocol; 2] = [Protocol::Text, Protocol::Prepared];

    pub(super) fn name(self) -> &'static str {
        match self {
            Protocol::Text => "text",
            Protocol::Prepared => "prepared",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Medians of a contender's turns: processor times in microseconds a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) protocol: Protocol,
    pub(super) clients: u32,
    pub(super) kind: Kind,
    pub(super) per_second: f64,
    pub(super) proxy_us: f64,
    pub(super) server_us: f64,
    pub(super) load_us: f64,
}

const HEAD: &str = "protocol,clients,contender,statements_per_second,proxy_us,server_us,load_us\n";

/// Replaces the file.
pub(super) fn write(lines: &[Line]) -> Result<()> {
    let path = repository_root().join(FILE);
    fs::write(&path, text(lines)).with_context(|| path.display().to_string())
}

fn text(lines: &[Line]) -> String {
    let line = |it: &Line| {
        format!(
            "{},{},{},{:.0},{:.2},{:.2},{:.2}\n",
            it.protocol, it.clients, it.kind, it.per_second, it.proxy_us, it.server_us, it.load_us
        )
    };
    HEAD.to_owned() + &lines.iter().map(line).collect::<String>()
}

/// Reads the whole file.
pub(super) fn read(text: &str) -> Result<Vec<Line>> {
    curves::read("gateway.csv", text, read_line)
}

fn read_line(row: &Row<'_>) -> Result<Line> {
    let (protocol, contender) = (row.value("protocol")?, row.value("contender")?);
    let protocol_of = |name: &str| Protocol::ALL.into_iter().find(|it| it.name() == name);
    let kind_of = |name: &str| KINDS.into_iter().find(|it| it.name() == name);
    Ok(Line {
        protocol: protocol_of(protocol).with_context(|| format!("no protocol is {protocol}"))?,
        clients: row.parse("clients")?,
        kind: kind_of(contender).with_context(|| format!("no contender is {contender}"))?,
        per_second: row.measured("statements_per_second")?,
        proxy_us: row.measured("proxy_us")?,
        server_us: row.measured("server_us")?,
        load_us: row.measured("load_us")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let line = |(kind, protocol)| Line {
            protocol,
            clients: 64,
            kind,
            per_second: 54_777.0,
            proxy_us: 10.36,
            server_us: 0.0,
            load_us: 7.5,
        };
        let all = KINDS.map(|kind| Protocol::ALL.map(|protocol| line((kind, protocol))));
        let lines = all.concat();
        assert_eq!(read(&text(&lines)).unwrap(), lines);
        let wanted = format!("{HEAD}text,64,direct,54777,10.36,0.00,7.50\n");
        assert_eq!(text(&lines[..1]), wanted);
    }

    #[test]
    fn damaged_lines_are_named() {
        let error = |line: &str| {
            let text = format!("{HEAD}text,1,direct,1,0,1,1\n{line}\n");
            format!("{:#}", read(&text).unwrap_err())
        };
        for (line, wanted) in [
            ("", "has no contender"),
            ("text,1,haproxy,1,1", "has no server_us"),
            ("text,1,haproxy,1,1,1,1,1", "has more values than columns"),
            ("binary,1,haproxy,1,1,1,1", "no protocol is binary"),
            ("text,1,nginx,1,1,1,1", "no contender is nginx"),
            (
                "text,-1,haproxy,1,1,1,1",
                "clients: invalid digit found in string",
            ),
            (
                "text,1,haproxy,fast,1,1,1",
                "statements_per_second: invalid float literal",
            ),
            ("text,1,haproxy,1,NaN,1,1", "proxy_us: NaN was not measured"),
        ] {
            assert_eq!(error(line), format!("line 3 of gateway.csv: {wanted}"));
        }
    }
}
