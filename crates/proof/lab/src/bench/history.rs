//! The lines of `docs/bench/history.csv`: one for each workload, number of clients and server of a
//! recorded run.

use anyhow::Result;

use crate::curves::{self, Row};

/// What a recorded run measured at a point, as far as a picture needs it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    /// Date and short hash, the name of the run's page: `2026-01-31-abcdef0`.
    pub(super) record: String,
    pub(super) workload: String,
    pub(super) clients: u32,
    pub(super) server: String,
    pub(super) per_second: f64,
    pub(super) p99_ms: f64,
}

/// Reads the whole file.
pub(super) fn read(text: &str) -> Result<Vec<Line>> {
    curves::read("history.csv", text, read_line)
}

fn read_line(row: &Row<'_>) -> Result<Line> {
    Ok(Line {
        record: format!("{}-{}", row.value("date")?, row.value("commit")?),
        workload: row.value("workload")?.to_owned(),
        clients: row.parse("clients")?,
        server: row.value("server")?.to_owned(),
        per_second: row.measured("statements_per_second")?,
        p99_ms: row.measured("p99_ms")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "date,commit,workload,clients,server,statements_per_second,p99_ms,new\n";

    #[test]
    fn lines_are_read_by_name() {
        let old = "2026-01-31,abc,point_select,64,plateau uring,1000,2.5";
        let lines = read(&format!("{HEAD}{old}\n{old},7\n")).unwrap();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0], lines[1]);
        assert_eq!(lines[0].record, "2026-01-31-abc");
        assert_eq!(
            (lines[0].clients, lines[0].server.as_str()),
            (64, "plateau uring")
        );
    }

    #[test]
    fn damaged_lines_are_named() {
        let error = |line: &str| format!("{:#}", read(&format!("{HEAD}{line}")).unwrap_err());
        assert_eq!(
            error("2026-01-31,abc"),
            "line 2 of history.csv: has no workload"
        );
        let text = "2026-01-31,abc,point_select,many,plateau uring,1000,2.5";
        assert!(error(text).contains("invalid digit"), "{}", error(text));
    }
}
