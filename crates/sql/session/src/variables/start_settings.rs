//! Settings of the file and the command line, before there is a session. Each is checked and
//! normalized as by SET GLOBAL, and pairs are made to agree.

use settings::{Scope, Settings, TABLE, Value};

use crate::variables::system::{charset_of, default_collation, follow, put};

/// Pairs of a character set and its collation.
const PAIRS: [[&str; 2]; 3] = [
    ["character_set_server", "collation_server"],
    ["character_set_connection", "collation_connection"],
    ["character_set_database", "collation_database"],
];

/// A value of the right form without a meaning.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartSettingError {
    /// It names nothing that exists, or something that is not built.
    #[error("setting `{name}` cannot be `{text}`: {reason}")]
    Meaningless {
        /// Of the setting.
        name: &'static str,
        /// As it was given.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A collation belongs to another character set.
    #[error(
        "settings `{charset_name}` = `{charset}` and `{collation_name}` = `{collation}` do not go \
         together: the collation is one of `{of}`"
    )]
    Unlike {
        /// Of the first setting.
        charset_name: &'static str,
        /// Its value.
        charset: String,
        /// Of the second setting.
        collation_name: &'static str,
        /// Its value.
        collation: String,
        /// The character set that has the collation.
        of: &'static str,
    },
}

impl StartSettingError {
    /// The setting that is wrong; of a pair, the collation.
    pub fn setting(&self) -> &'static str {
        match self {
            StartSettingError::Meaningless { name, .. } => name,
            StartSettingError::Unlike { collation_name, .. } => collation_name,
        }
    }
}

/// Checks all settings, normalizes them, and sets what follows from them: the default collation of
/// a character set, the character set of a collation. Returns all errors.
pub fn settle(settings: &mut Settings) -> Vec<StartSettingError> {
    let of_sql = TABLE
        .iter()
        .filter(|it| it.is_variable && it.scope != Scope::Fixed);
    let mut wrong = Vec::new();
    for setting in of_sql {
        let Some(Value::Text(text)) = settings.value(setting.name).cloned() else {
            continue;
        };
        if put(settings, setting, &text).is_err() {
            wrong.push(StartSettingError::Meaningless {
                name: setting.name,
                reason: reason(setting.name),
                text,
            });
        }
    }
    for pair in PAIRS {
        let is_known = |name| wrong.iter().all(|error| error.setting() != name);
        if pair.into_iter().all(is_known)
            && let Err(unlike) = agree(settings, pair)
        {
            wrong.push(unlike);
        }
    }
    let most_rows = settings.unsigned("max_join_size").to_string();
    if is_given(settings, "max_join_size") {
        // It is a number, and its partner is ON or OFF.
        let _ = follow(settings, "max_join_size", &most_rows);
    }
    wrong
}

fn reason(name: &str) -> &'static str {
    match name {
        "time_zone" => "there is no such zone",
        "session_track_system_variables" => "a name in it is no variable's",
        _ if name.starts_with("collation_") => "there is no such collation",
        _ if name.starts_with("character_set_") => "there is no such character set",
        _ => "it means nothing",
    }
}

fn is_given(settings: &Settings, name: &str) -> bool {
    settings.value(name) != Settings::default().value(name)
}

/// If only one of the two is given, the other follows it. If both are given, they must agree.
fn agree(
    settings: &mut Settings,
    [charset_name, collation_name]: [&'static str; 2],
) -> Result<(), StartSettingError> {
    let charset = settings.text(charset_name).to_owned();
    let collation = settings.text(collation_name).to_owned();
    let of = charset_of(&collation).expect("it was checked");
    if of == charset {
        return Ok(());
    }
    let is_charset_given = is_given(settings, charset_name);
    if is_charset_given && is_given(settings, collation_name) {
        return Err(StartSettingError::Unlike {
            charset_name,
            charset,
            collation_name,
            collation,
            of,
        });
    }
    let set = if is_charset_given {
        let default = default_collation(&charset).expect("a character set has a collation");
        settings.set(collation_name, default)
    } else {
        settings.set(charset_name, of)
    };
    set.expect("these are names of what there is");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(given: &[&str]) -> Result<Settings, String> {
        let mut settings = Settings::default();
        for assignment in given {
            settings.assign(assignment).expect("its form is right");
        }
        let wrong = settle(&mut settings);
        let told: Vec<_> = wrong.iter().map(ToString::to_string).collect();
        if told.is_empty() {
            Ok(settings)
        } else {
            Err(told.join("\n"))
        }
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for (given, expected) in [
            (
                "collation_server=foo",
                "setting `collation_server` cannot be `foo`: there is no such collation",
            ),
            (
                "collation_database=utf8mb4_foo",
                "setting `collation_database` cannot be `utf8mb4_foo`: there is no such collation",
            ),
            (
                "character_set_results=foo",
                "setting `character_set_results` cannot be `foo`: there is no such character set",
            ),
            (
                "time_zone=Europe/Nowhere",
                "setting `time_zone` cannot be `Europe/Nowhere`: there is no such zone",
            ),
            (
                "session_track_system_variables=foo",
                "setting `session_track_system_variables` cannot be `foo`: a name in it is no \
                 variable's",
            ),
        ] {
            let refused = settled(&[given]).expect_err(given);
            assert_eq!(refused, expected);
        }
    }

    #[test]
    fn all_that_is_wrong_is_named() {
        let refused = settled(&["collation_server=foo", "time_zone=Europe/Nowhere"]);
        let told = refused.expect_err("both mean nothing");
        let lines: Vec<_> = told.lines().collect();
        let [zone, collation] = lines.as_slice() else {
            panic!("two mistakes: {told}");
        };
        assert!(zone.contains("`time_zone`"), "{zone}");
        assert!(collation.contains("`collation_server`"), "{collation}");
    }

    #[test]
    fn what_has_a_meaning_is_spelt_as_it_is_shown() {
        let settings = settled(&["collation_server=LATIN1_BIN", "sql_mode=traditional"]);
        let settings = settings.expect("both are good");
        assert_eq!(settings.text("collation_server"), "latin1_bin");
        assert!(settings.text("sql_mode").contains("STRICT_ALL_TABLES"));
        assert!(settled(&[]).is_ok(), "the defaults");
    }

    #[test]
    fn pairs_agree() {
        let pair = |given: &[&str]| {
            let settings = settled(given)?;
            let of = |name| settings.text(name).to_owned();
            Ok::<_, String>([of("character_set_server"), of("collation_server")])
        };
        let latin = |collation: &str| Ok(["latin1".to_owned(), collation.to_owned()]);
        assert_eq!(
            pair(&["character_set_server=latin1"]),
            latin("latin1_swedish_ci")
        );
        assert_eq!(pair(&["collation_server=latin1_bin"]), latin("latin1_bin"));
        let both = ["character_set_server=latin1", "collation_server=latin1_bin"];
        assert_eq!(pair(&both), latin("latin1_bin"));
        let unlike = ["character_set_server=latin1", "collation_server=ascii_bin"];
        let told = pair(&unlike).expect_err("they are unlike");
        assert_eq!(
            told,
            "settings `character_set_server` = `latin1` and `collation_server` = `ascii_bin` do \
             not go together: the collation is one of `ascii`"
        );
        let rows = settled(&["max_join_size=100"]).expect("a number");
        assert!(!rows.is_on("sql_big_selects"));
    }
}
