//! The differential suite: runs the same SELECT statements on the server under test and on MariaDB,
//! and compares the results.
//!
//! It compares the rows (in order if the statement orders them, else as a multiset) and the names
//! of the columns; for a refused statement, the number and SQLSTATE. Types of columns are compared
//! with `--types`. Both servers are prepared by the same `setup.sql`. Then come the schedules,
//! steps of several sessions (`schedules`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use testkit::Client;

use crate::answer::show_outcomes;
use crate::corpus::{Statement, expand};
use crate::data_files::{read, read_list};
use crate::random_queries;
use crate::schedules;
use crate::target::Target;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Only groups whose name contains this.
    #[arg(long, default_value = "")]
    group: String,
    /// How many differences are printed; the summary counts all.
    #[arg(long, default_value_t = 40)]
    show: usize,
    /// Compares type, decimals, length, flags and character set of columns too.
    #[arg(long)]
    types: bool,
    /// Writes every statement that differs to this file, in the form of the list of differences.
    #[arg(long)]
    write: Option<PathBuf>,
    /// Plays only the schedules of several sessions whose name contains this; an empty text
    /// plays all and leaves the statements of the corpus out.
    #[arg(long)]
    schedule: Option<String>,
    /// Plays all variants of the schedules instead of a sample. This takes minutes.
    #[arg(long)]
    thorough: bool,
    #[command(flatten)]
    random_queries: random_queries::Options,
}

/// Fewer statements than this would prove too little.
const STATEMENTS_MIN: usize = 2000;

const FILES: &[&str] = &[
    "values.txt",
    "functions.txt",
    "geometry.txt",
    "tables.txt",
    "errors.txt",
    "queries.txt",
    "indexed.txt",
];

/// Run in order after the others, since each builds on those before it.
const ORDERED_FILE: &str = "changes.txt";

/// A statement with different results.
#[derive(Debug)]
struct Difference {
    statement: Statement,
    expected: String,
    got: String,
}

impl Arguments {
    fn schedules<'a>(&'a self, name: &'a str) -> schedules::Wanted<'a> {
        schedules::Wanted {
            target: &self.target,
            name,
            is_thorough: self.thorough,
            show: self.show,
            write: self.write.as_deref(),
        }
    }
}

/// Runs the suite; fails if something unlisted differs, or something listed does not.
pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.random_queries.random {
        return random_queries::run(&arguments.random_queries, &arguments.target, arguments.show);
    }
    if let Some(name) = &arguments.schedule {
        return schedules::run(&arguments.schedules(name));
    }
    run_corpus(arguments)?;
    // A statement that is killed while it waits gets another error (1213) from a Galera member.
    let has_schedules = arguments.target.is_own() && !arguments.target.is_before_galera();
    if arguments.group.is_empty() && !arguments.types && has_schedules {
        schedules::run(&arguments.schedules(""))?;
    }
    Ok(())
}

fn run_corpus(arguments: &Arguments) -> Result<()> {
    let statements = corpus()?;
    ensure!(
        statements.len() >= STATEMENTS_MIN,
        "the corpus has {} statements",
        statements.len()
    );
    // Through a gateway nothing may differ.
    let listed = match arguments.target.is_gateway() {
        true => BTreeSet::new(),
        false => listed_differences()?,
    };
    let candidate = arguments.target.start()?;
    let reference = arguments.target.reference().start()?;
    let mut left = prepare(reference.connect()?).context("preparing the reference")?;
    let mut right = prepare(candidate.connect()?).context("preparing the server under test")?;

    let mut differences = Vec::new();
    let mut counts = BTreeMap::<String, (usize, usize)>::new();
    for statement in statements
        .into_iter()
        .filter(|it| it.group.contains(&arguments.group))
    {
        let expected = answer(&mut left, &statement.text, arguments.types)?;
        let got = match answer(&mut right, &statement.text, arguments.types) {
            Ok(got) => got,
            Err(error) => {
                right = prepare(candidate.connect()?)?;
                format!("connection lost: {error:#}")
            }
        };
        let count = counts.entry(statement.group.clone()).or_default();
        count.0 += 1;
        if expected != got {
            count.1 += 1;
            differences.push(Difference {
                statement,
                expected,
                got,
            });
        }
    }
    report(arguments, &counts, &differences, &listed)
}

fn report(
    arguments: &Arguments,
    counts: &BTreeMap<String, (usize, usize)>,
    differences: &[Difference],
    listed: &BTreeSet<String>,
) -> Result<()> {
    let is_new = |it: &&Difference| !listed.contains(&it.statement.text);
    let new: Vec<_> = differences.iter().filter(is_new).collect();
    for difference in new.iter().take(arguments.show) {
        let Difference {
            statement,
            expected,
            got,
        } = difference;
        println!(
            "[{}] {}\n{expected}--- but got\n{got}",
            statement.group, statement.text
        );
    }
    if let Some(path) = &arguments.write {
        let lines = new
            .iter()
            .fold(String::new(), |lines, it| lines + &it.statement.text + "\n");
        fs::write(path, lines).with_context(|| path.display().to_string())?;
    }
    println!("{:<24} {:>10} {:>8}", "group", "statements", "differ");
    for (group, (count, differing)) in counts {
        println!("{group:<24} {count:>10} {differing:>8}");
    }
    let all: usize = counts.values().map(|(count, _)| count).sum();
    let known = differences.len() - new.len();
    println!(
        "{all} statements: {} agree, {known} differ as listed, {} differ",
        all - differences.len(),
        new.len()
    );
    // A part of the corpus, or a comparison of more than results, says nothing about the list.
    let agreeing = match arguments.group.is_empty() && !arguments.types {
        true => agreeing(differences, listed),
        false => Vec::new(),
    };
    for text in &agreeing {
        println!("listed as different, but agrees now: {text}");
    }
    ensure!(
        new.is_empty() && agreeing.is_empty(),
        "{} statements differ from MariaDB and are not listed, {} are listed and agree",
        new.len(),
        agreeing.len()
    );
    Ok(())
}

/// What is listed and does not differ.
fn agreeing<'l>(differences: &[Difference], listed: &'l BTreeSet<String>) -> Vec<&'l str> {
    let differing: BTreeSet<_> = differences.iter().map(|it| &it.statement.text).collect();
    let listed = listed.iter().filter(|text| !differing.contains(text));
    listed.map(String::as_str).collect()
}

fn corpus() -> Result<Vec<Statement>> {
    let mut statements = Vec::new();
    let mut seen = BTreeSet::new();
    for file in FILES {
        let all = expand(&read(&format!("corpus/{file}"))?).with_context(|| (*file).to_owned())?;
        statements.extend(all.into_iter().filter(|it| seen.insert(it.text.clone())));
    }
    statements.extend(expand(&read(&format!("corpus/{ORDERED_FILE}"))?).context(ORDERED_FILE)?);
    Ok(statements)
}

/// The statements of the list; each must be below a reason.
fn listed_differences() -> Result<BTreeSet<String>> {
    read_list("differences.txt")
}

fn prepare(mut client: Client) -> Result<Client> {
    client.run("SET NAMES utf8mb4")?;
    client.run("SET time_zone = '+00:00'")?;
    client.run("SET sql_mode = ''")?;
    for line in read("corpus/setup.sql")?
        .lines()
        .filter(|line| !line.starts_with("--"))
    {
        client.run(line)?;
    }
    client.run("SET sql_mode = DEFAULT")?;
    Ok(client)
}

/// The server's result of a statement, as comparable text.
fn answer(client: &mut Client, statement: &str, has_types: bool) -> Result<String> {
    let outcomes = client.query_all(statement.as_bytes())?;
    show_outcomes(outcomes, statement, has_types)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corpus_is_large_and_every_listed_difference_is_in_it() {
        let statements = corpus().unwrap();
        assert!(statements.len() >= STATEMENTS_MIN, "{}", statements.len());
        let texts: BTreeSet<_> = statements.iter().map(|it| &it.text).collect();
        for listed in listed_differences().unwrap() {
            assert!(texts.contains(&listed), "{listed}");
        }
    }
}
