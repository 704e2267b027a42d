//! The lines of `docs/bench/history.csv`: one for each workload, number of clients and server of a
//! recorded run.
//!
//! Columns are found by name, so lines that are older than a column can be read.

use anyhow::{Context, Result, ensure};

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
    let mut lines = text.lines();
    let names: Vec<&str> = lines
        .next()
        .context("the first line names columns")?
        .split(',')
        .collect();
    let mut read = Vec::new();
    for (index, line) in lines.enumerate() {
        // The first line has number 1.
        let place = || format!("line {} of history.csv", index + 2);
        read.push(read_line(&names, line).with_context(place)?);
    }
    Ok(read)
}

fn read_line(names: &[&str], line: &str) -> Result<Line> {
    let values: Vec<&str> = line.split(',').collect();
    ensure!(values.len() <= names.len(), "has more values than columns");
    let value = |name: &str| {
        let place = names.iter().position(|it| *it == name);
        let found = place.and_then(|place| values.get(place));
        found.copied().with_context(|| format!("has no {name}"))
    };
    Ok(Line {
        record: format!("{}-{}", value("date")?, value("commit")?),
        workload: value("workload")?.to_owned(),
        clients: value("clients")?.parse()?,
        server: value("server")?.to_owned(),
        per_second: value("statements_per_second")?.parse()?,
        p99_ms: value("p99_ms")?.parse()?,
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
        let many = "2026-01-31,abc,point_select,64,plateau uring,1000,2.5,7,8";
        assert!(error(many).contains("more values"), "{}", error(many));
        let text = "2026-01-31,abc,point_select,many,plateau uring,1000,2.5";
        assert!(error(text).contains("invalid digit"), "{}", error(text));
        assert!(read("").is_err());
    }
}
