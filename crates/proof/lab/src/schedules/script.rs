//! Parses schedules and makes their variants.
//!
//! ```text
//! schedule NAME                  begins one; the lines below, up to the next, belong to it
//! tables SHAPE..                 the tables to run it on; without the line, all
//! levels LEVEL..                 the isolation levels; without the line, all but `ru`
//! rows (1, 10, 1), ..            the rows (id, k, v); without the line, the default ones
//! busy                           leaves out steps of blocked sessions; else they are errors
//! let NAME = TEXT ;; TEXT        `{NAME}` in a step stands for each text in turn
//! A: STATEMENT                   a step of session A
//! A waits: B                     continues once session B is answered (by a timeout, say)
//! A kills: B                     session A kills the statement of session B
//! ```
//!
//! Lines that begin with `#` are comments. A variant's name consists of the schedule's, the
//! table's, the level's and the number of the text from each list.

use std::fmt::{Display, Formatter};

use anyhow::{Context, Result, bail, ensure};

/// One schedule on one table at one isolation level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    /// Unique.
    pub(crate) name: String,
    /// Its index among the variants of all schedules.
    pub(crate) number: usize,
    /// Creates the table `t` and fills it.
    pub(crate) setup: Vec<String>,
    /// The sessions in the order of their letters, with their levels as SET TRANSACTION has them.
    pub(crate) levels: Vec<(SessionName, &'static str)>,
    pub(crate) steps: Vec<Step>,
    pub(crate) busy: Busy,
    /// Reads what is left in the table.
    pub(crate) left: String,
}

/// What becomes of a step whose session is blocked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Busy {
    /// The play ends: whoever wrote the schedule did not expect that.
    #[default]
    Fail,
    /// It is left out.
    LeaveOut,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The session.
    pub(crate) session: SessionName,
    pub(crate) action: Action,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Sends a statement.
    Run(String),
    /// Waits until that session is answered.
    Wait(SessionName),
    /// Kills the statement of that session.
    Kill(SessionName),
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let name = self.session.0;
        match &self.action {
            Action::Run(statement) => write!(f, "{name}: {statement}"),
            Action::Wait(other) => write!(f, "{name} waits for {}", other.0),
            Action::Kill(other) => write!(f, "{name} kills {}", other.0),
        }
    }
}

/// A session: its letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SessionName(pub(crate) char);

/// The letters of sessions in a file.
const SESSIONS: &[char] = &['A', 'B', 'C'];

/// Tables with the columns id, k and v: how k is indexed.
const SHAPES: &[(&str, &str)] = &[
    (
        "primary",
        "id INT NOT NULL UNIQUE, k INT PRIMARY KEY, v INT",
    ),
    ("unique", "id INT PRIMARY KEY, k INT, v INT, UNIQUE (k)"),
    ("plain", "id INT PRIMARY KEY, k INT, v INT, KEY (k)"),
    ("wide", "id INT PRIMARY KEY, k INT, v INT, KEY (k, v)"),
    ("bare", "id INT PRIMARY KEY, k INT, v INT"),
    ("rowid", "id INT, k INT, v INT, KEY (id), UNIQUE (k)"),
    (
        "clustered",
        "id INT, k INT NOT NULL, v INT, KEY (id), UNIQUE (k)",
    ),
];

/// The isolation levels. The last is that of schedules that name it.
pub(crate) const LEVELS: &[(&str, &str)] = &[
    ("rc", "READ COMMITTED"),
    ("rr", "REPEATABLE READ"),
    ("ser", "SERIALIZABLE"),
    ("ru", "READ UNCOMMITTED"),
];

/// How many levels a schedule has that names none.
const LEVELS_USUAL: usize = 3;

/// The rows at the end, without those far away that are as they were.
pub(crate) const LEFT: &str =
    "SELECT * FROM t WHERE v <> 0 OR v IS NULL OR id < 1000 ORDER BY id, k, v";

const ROWS: &str = "(1, 10, 1), (2, 20, 2), (3, 30, 3), (5, 50, 5), (7, 70, 7)";

/// Rows far from the others. With few rows MariaDB reads the whole table instead of an index.
const FAR_ROWS: std::ops::Range<u32> = 1000..1060;

/// A schedule as written.
#[derive(Default)]
struct Draft {
    name: String,
    shapes: Vec<&'static (&'static str, &'static str)>,
    levels: Vec<&'static (&'static str, &'static str)>,
    rows: String,
    lists: Vec<(String, Vec<String>)>,
    steps: Vec<String>,
    busy: Busy,
}

/// All variants of all schedules of a file.
pub(crate) fn parse(file: &str) -> Result<Vec<Script>> {
    let mut scripts = Vec::new();
    let mut draft: Option<Draft> = None;
    for line in file.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix("schedule ") {
            if let Some(draft) = draft.take() {
                draft.expand(&mut scripts)?;
            }
            draft = Some(Draft::new(name));
            continue;
        }
        let draft = draft.as_mut().context("the file begins with a schedule")?;
        draft.take_line(line).with_context(|| line.to_owned())?;
    }
    if let Some(draft) = draft {
        draft.expand(&mut scripts)?;
    }
    Ok(scripts)
}

impl Draft {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            shapes: SHAPES.iter().collect(),
            levels: LEVELS.iter().take(LEVELS_USUAL).collect(),
            rows: ROWS.to_owned(),
            ..Self::default()
        }
    }

    fn take_line(&mut self, line: &str) -> Result<()> {
        if let Some(names) = line.strip_prefix("tables ") {
            self.shapes = chosen(SHAPES, names)?;
        } else if let Some(names) = line.strip_prefix("levels ") {
            self.levels = chosen(LEVELS, names)?;
        } else if let Some(rows) = line.strip_prefix("rows ") {
            rows.clone_into(&mut self.rows);
        } else if let Some(list) = line.strip_prefix("let ") {
            let (name, texts) = list.split_once(" = ").context("a list without texts")?;
            let texts = texts.split(" ;; ").map(str::to_owned).collect();
            self.lists.push((name.to_owned(), texts));
        } else if line == "busy" {
            self.busy = Busy::LeaveOut;
        } else {
            self.steps.push(line.to_owned());
        }
        Ok(())
    }

    fn expand(&self, scripts: &mut Vec<Script>) -> Result<()> {
        for (shape, columns) in &self.shapes {
            for (level_name, level) in &self.levels {
                let setup = setup(columns, &self.rows);
                for (numbers, steps) in self.texts() {
                    let steps: Result<_> = steps.iter().map(|step| parse_step(step)).collect();
                    scripts.push(Script {
                        number: scripts.len(),
                        name: format!("{}/{shape}/{level_name}{numbers}", self.name),
                        setup: setup.clone(),
                        levels: SESSIONS
                            .iter()
                            .map(|letter| (SessionName(*letter), *level))
                            .collect(),
                        busy: self.busy,
                        left: LEFT.to_owned(),
                        steps: steps.with_context(|| self.name.clone())?,
                    });
                }
            }
        }
        Ok(())
    }

    /// The steps with each combination of the lists' texts, and the texts' numbers.
    fn texts(&self) -> Vec<(String, Vec<String>)> {
        let mut done = vec![(String::new(), self.steps.clone())];
        for (name, texts) in &self.lists {
            let place = format!("{{{name}}}");
            let fill = |(numbers, steps): &(String, Vec<String>)| {
                let filled = texts.iter().enumerate().map(|(number, text)| {
                    let steps = steps.iter().map(|step| step.replace(&place, text));
                    (format!("{numbers}/{}", number + 1), steps.collect())
                });
                filled.collect::<Vec<_>>()
            };
            done = done.iter().flat_map(fill).collect();
        }
        done
    }
}

fn chosen(
    all: &'static [(&'static str, &'static str)],
    names: &str,
) -> Result<Vec<&'static (&'static str, &'static str)>> {
    let find = |name: &str| {
        let found = all.iter().find(|(known, _)| *known == name);
        found.with_context(|| format!("unknown: {name}"))
    };
    names.split(' ').map(find).collect()
}

fn setup(columns: &str, rows: &str) -> Vec<String> {
    let far = FAR_ROWS.map(|id| format!(", ({id}, {}, 0)", id * 10));
    let far: String = far.collect();
    vec![
        format!("CREATE OR REPLACE TABLE t ({columns}) ENGINE=InnoDB"),
        format!("INSERT INTO t VALUES {rows}{far}"),
    ]
}

fn parse_step(line: &str) -> Result<Step> {
    let (who, what) = line.split_once(": ").context("a step names its session")?;
    let action = match who.split_once(' ') {
        None => Action::Run(what.to_owned()),
        Some((_, "waits")) => Action::Wait(session(what)?),
        Some((_, "kills")) => Action::Kill(session(what)?),
        Some((_, other)) => bail!("unknown action: {other}"),
    };
    ensure!(!what.contains('{'), "a place without a list: {what}");
    let letter = who.split(' ').next().unwrap_or_default();
    Ok(Step {
        session: session(letter)?,
        action,
    })
}

fn session(letter: &str) -> Result<SessionName> {
    let found = SESSIONS.iter().find(|known| letter.chars().eq([**known]));
    let found = found.with_context(|| format!("unknown session: {letter}"))?;
    Ok(SessionName(*found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_linked_within_a_variant_and_multiply_variants() {
        let file = "schedule s\ntables plain\nlevels rc rr\nlet x = 1 ;; 2\nlet y = 3 ;; 4\n\
                    A: S {x} {x}\nB: T {y}\nA waits: B\nC kills: A\n";
        let scripts = parse(file).unwrap();
        let names: Vec<_> = scripts.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names[..2], ["s/plain/rc/1/1", "s/plain/rc/1/2"]);
        assert_eq!(names.len(), 8);
        let step = |session, action| Step {
            session: SessionName(session),
            action,
        };
        let wanted = [
            step('A', Action::Run("S 1 1".to_owned())),
            step('B', Action::Run("T 4".to_owned())),
            step('A', Action::Wait(SessionName('B'))),
            step('C', Action::Kill(SessionName('A'))),
        ];
        assert_eq!(scripts[1].steps, wanted);
    }

    #[test]
    fn mistakes_are_errors() {
        for file in [
            "A: SELECT 1",
            "schedule s\ntables nothing\nA: S",
            "schedule s\nD: SELECT 1",
            "schedule s\nA: SELECT {x}",
            "schedule s\nA stops: B",
        ] {
            assert!(parse(file).is_err(), "{file}");
        }
    }
}
