//! How servers read texts: the kept commands that decide it, and how a text is read as at an
//! earlier time.
//!
//! A server reads the text of a prepared statement once, in the database and with the variables of
//! that moment. A connection on which it is prepared later makes a [`Detour`]:
//!
//! ```text
//! the session's state now --there--> as it was then, COM_STMT_PREPARE --back--> as it is now
//! ```

use settings::SqlMode;
use wire::CommandByte;

use crate::command::{READ_BY_NONE, names_of};
use connection_state::CommandList;

/// What the login has decided of how texts are read.
#[derive(Debug, Clone, Copy)]
pub struct LoginReading<'a> {
    /// The database.
    pub database: Option<&'a str>,
    /// The `SET NAMES` of the login's collation.
    pub names: &'a str,
}

/// See the module's head. Commands by their first byte and the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detour {
    /// They bring a connection to the earlier state.
    pub there: Vec<(u8, Vec<u8>)>,
    /// They bring it back.
    pub back: Vec<(u8, Vec<u8>)>,
}

impl Detour {
    /// From the state that `now` has left to that of `then`; both are of one history
    /// ([`crate::History::reading`]). If a command is not known to mean the same each time, only
    /// the database is another one on the way. `None` if there is nothing to do.
    pub fn plan(then: &CommandList, now: &CommandList, login: LoginReading<'_>) -> Option<Detour> {
        if then == now {
            return None;
        }
        if let (Some(known), Some(present)) = (variables_of(then), variables_of(now))
            && known.iter().all(|it| present.contains(it))
        {
            let new = present.iter().filter(|it| !known.contains(it));
            let mut there: Vec<_> = new.filter_map(|it| it.of_login(login)).collect();
            there.extend(then.iter().map(owned));
            let back = now.iter().map(owned).collect();
            return Some(Detour { there, back });
        }
        let (before, after) = (database_of(then), database_of(now));
        let before = before
            .map(owned)
            .or_else(|| Variable::Database.of_login(login))?;
        let after = after.map(owned).filter(|it| *it != before)?;
        Some(Detour {
            there: vec![before],
            back: vec![after],
        })
    }
}

fn owned((byte, body): (u8, &[u8])) -> (u8, Vec<u8>) {
    (byte, body.to_vec())
}

/// The command that has chosen the database.
fn database_of(commands: &CommandList) -> Option<(u8, &[u8])> {
    let chooses = |command: &(u8, &[u8])| {
        let names = names_of(*command, SqlMode::default()).unwrap_or_default();
        names
            .iter()
            .any(|it| Variable::of(it) == Some(Variable::Database))
    };
    commands.iter().filter(chooses).last()
}

/// What a command sets.
#[derive(Debug, PartialEq, Eq)]
enum Variable {
    Database,
    /// Those of `SET NAMES`.
    CharacterSets,
    System(String),
}

/// What commands set, each once. `None` if one of them may read what others have set.
fn variables_of(commands: &CommandList) -> Option<Vec<Variable>> {
    let mut variables = Vec::new();
    for command in commands.iter() {
        // Names of what is set are the same in each mode.
        for name in names_of(command, SqlMode::default())? {
            let variable = Variable::of(&name)?;
            if !variables.contains(&variable) {
                variables.push(variable);
            }
        }
    }
    Some(variables)
}

impl Variable {
    /// The command that gives it the value of the login.
    fn of_login(&self, login: LoginReading<'_>) -> Option<(u8, Vec<u8>)> {
        match self {
            Variable::Database => {
                let name = login.database?;
                Some((CommandByte::INIT_DB, name.as_bytes().to_vec()))
            }
            Variable::CharacterSets => Some((CommandByte::QUERY, login.names.as_bytes().to_vec())),
            Variable::System(name) => {
                let text = format!("SET SESSION {name} = DEFAULT");
                Some((CommandByte::QUERY, text.into_bytes()))
            }
        }
    }

    /// By its name in a history.
    fn of(name: &[u8]) -> Option<Variable> {
        let (kind, name) = str::from_utf8(name).ok()?.split_once(' ')?;
        match kind {
            "use" => Some(Variable::Database),
            "names" | "character set" => Some(Variable::CharacterSets),
            "" | "@@" if name.starts_with("character_set") || name.starts_with("collation") => {
                Some(Variable::CharacterSets)
            }
            "" | "@@" => {
                let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_';
                let is_name = name.chars().all(is_plain);
                // A later command may have given that one another value.
                let is_read = !READ_BY_NONE.contains(&name);
                (is_name && is_read).then(|| Variable::System(name.to_owned()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, History};

    const LOGIN: LoginReading<'_> = LoginReading {
        database: Some("shop"),
        names: "SET NAMES utf8mb4",
    };

    fn reading(texts: &[&str]) -> CommandList {
        let mut history = History::default();
        for text in texts {
            let command = match text.strip_prefix("db ") {
                Some(name) => Command::InitDb(name.as_bytes().into()),
                None => Command::Query(text.as_bytes().into()),
            };
            history.keep(command, SqlMode::default()).unwrap();
        }
        history.reading().clone()
    }

    fn texts<'a>(commands: impl IntoIterator<Item = (u8, &'a [u8])>) -> Vec<String> {
        let text = |(byte, body): (u8, &[u8])| {
            let text = String::from_utf8(body.to_vec()).unwrap();
            match byte {
                CommandByte::QUERY => text,
                _ => format!("db {text}"),
            }
        };
        commands.into_iter().map(text).collect()
    }

    fn detour(then: &[&str], now: &[&str]) -> Option<(Vec<String>, Vec<String>)> {
        let planned = Detour::plan(&reading(then), &reading(now), LOGIN)?;
        let of = |commands: &[(u8, Vec<u8>)]| {
            texts(commands.iter().map(|(byte, body)| (*byte, &**body)))
        };
        Some((of(&planned.there), of(&planned.back)))
    }

    #[test]
    fn commands_that_no_server_reads_a_text_by_are_left_out() {
        let all = [
            "SET autocommit = 0, time_zone = '+00:00'",
            "SET SESSION tx_isolation = 'SERIALIZABLE'",
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
            "SET @a = 1",
            "PREPARE p FROM 'SELECT 1'",
            "SET @@session.sql_mode = 'ANSI'",
            "SET autocommit = 1, character_set_results = NULL",
            "SET @b = (SELECT 1)",
            "USE a",
            "SET NAMES latin1",
            "SET ROLE admin",
        ];
        let deciding = [all[5], all[6], all[8], all[9], all[10]];
        assert_eq!(texts(reading(&all).iter()), deciding);
        let mut history = History::default();
        let option = Command::SetOption([1, 0]);
        history.keep(option, SqlMode::default()).unwrap();
        assert!(history.reading().is_empty());
    }

    #[test]
    fn a_detour_leads_to_the_state_of_then_and_back() {
        let (there, back) = detour(&["db a"], &["db b"]).unwrap();
        assert_eq!((there, back), (vec!["db a".into()], vec!["db b".into()]));
        let (there, back) = detour(&[], &["USE b"]).unwrap();
        assert_eq!(
            (there, back),
            (vec!["db shop".into()], vec!["USE b".into()])
        );
        let now = ["SET NAMES latin1", "SET sql_mode = 'ANSI'", "db b"];
        let (there, back) = detour(&["db a"], &now).unwrap();
        let expected = [LOGIN.names, "SET SESSION sql_mode = DEFAULT", "db a"];
        assert_eq!(there, expected);
        assert_eq!(back, now);
        let now = ["SET sql_mode = DEFAULT"];
        let (there, back) = detour(&["SET sql_mode = 'ANSI'"], &now).unwrap();
        assert_eq!(there, ["SET sql_mode = 'ANSI'"]);
        assert_eq!(back, now);
        // What is set in part by another name.
        let then = ["SET NAMES latin1"];
        let now = [then[0], "SET character_set_client = gbk"];
        let (there, back) = detour(&then, &now).unwrap();
        assert_eq!(
            (there, back),
            (vec![then[0].into()], now.map(String::from).into())
        );
    }

    #[test]
    fn what_may_mean_another_thing_each_time_is_not_run_again() {
        let sum = "SET sql_mode = CONCAT(@@sql_mode, ',ANSI')";
        assert_eq!(detour(&[], &[sum]), None);
        assert_eq!(detour(&["SET sql_mode = ''"], &["SET NAMES latin1"]), None);
        assert_eq!(detour(&[], &["SET `sql mode` = ''"]), None);
        let both = "SET sql_mode = '', autocommit = 1";
        assert_eq!(detour(&[both], &[both, "SET autocommit = 0", sum]), None);
        let of_database = |there: &str| Some((vec![there.into()], vec!["db b".into()]));
        assert_eq!(detour(&[both], &[both, "db b"]), of_database("db shop"));
        let chosen = [sum, "db a", "SET ROLE a"];
        let now = [&chosen[..], &["db b"]].concat();
        assert_eq!(detour(&chosen, &now), of_database("db a"));
        assert_eq!(detour(&chosen, &chosen), None);
        assert_eq!(detour(&[sum, "db a"], &chosen), None);
    }

    #[test]
    fn a_login_without_a_database_has_none_to_go_back_to() {
        let login = LoginReading {
            database: None,
            ..LOGIN
        };
        let planned = Detour::plan(&reading(&[]), &reading(&["db a"]), login).unwrap();
        assert!(planned.there.is_empty());
    }
}
