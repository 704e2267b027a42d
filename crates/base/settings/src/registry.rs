//! The values of all settings: defaults, changed by the file and then by the command line.

use crate::kind::{Kind, Problem, Value};
use crate::places::{as_in_table, find};
use crate::suggest::nearest;
use crate::table::{Scope, Setting, TABLE};

/// A value for each entry of [`TABLE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// In the order of the table; a `Value` of the entry's kind.
    values: Vec<Value>,
}

/// A setting that cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    #[error("there is no setting `{name}`{}", suggestion_text(*.suggestion))]
    Unknown {
        name: String,
        suggestion: Option<&'static str>,
    },
    #[error("setting `{name}` cannot be `{text}`")]
    Refused {
        name: &'static str,
        text: String,
        source: Problem,
    },
    #[error("setting `{name}` is told to clients{}", suggestion_text(*.suggestion))]
    Fixed {
        name: &'static str,
        suggestion: Option<&'static str>,
    },
    #[error("`{text}` is not of the form name=value")]
    NotAnAssignment { text: String },
}

/// A settings file that cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error(
        "{}\ntexts and sizes stand in quotes, as listen = \"127.0.0.1:4006\"",
        .0.to_string().trim_end()
    )]
    Syntax(toml::de::Error),
    #[error("`{name}` is neither a text, a number nor a truth value")]
    NotAScalar { name: String },
    #[error("there are no sections as [{name}]: settings stand one below the other")]
    Section { name: String },
    #[error(transparent)]
    Setting(SettingError),
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            values: TABLE.iter().map(Setting::default_value).collect(),
        }
    }
}

impl Settings {
    /// Sets one value, as a person writes it. Names may be written with `-` for `_`.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), SettingError> {
        let Some((index, setting)) = find(name) else {
            let names = TABLE.iter().filter(|setting| !setting.is_fixed());
            let near = || nearest(name, names.map(|setting| setting.name));
            let suggestion = instead_of(name).or_else(near);
            return Err(SettingError::Unknown {
                name: name.to_owned(),
                suggestion,
            });
        };
        if setting.is_fixed() {
            return Err(SettingError::Fixed {
                name: setting.name,
                suggestion: instead_of(name),
            });
        }
        let refused = |source| SettingError::Refused {
            name: setting.name,
            text: text.to_owned(),
            source,
        };
        let value = setting.kind.parse(text).map_err(refused)?;
        self.put(index, value);
        Ok(())
    }

    /// Sets what clients are told and nobody may change: facts of the machine, found at the start.
    /// Panics where no such setting is declared: only a bug tells it.
    pub fn tell(&mut self, name: &str, text: &str) {
        let (index, setting) = find(name).expect("a declared setting");
        assert_eq!(setting.scope, Scope::Fixed, "{name} is for users to set");
        let value = setting.kind.parse(text);
        self.values[index] = value.expect("a fact of the setting's kind");
    }

    /// Sets one value from `name=value`.
    pub fn assign(&mut self, text: &str) -> Result<(), SettingError> {
        match text.split_once('=') {
            Some((name, value)) => self.set(name.trim(), value),
            None => Err(SettingError::NotAnAssignment {
                text: text.to_owned(),
            }),
        }
    }

    /// Sets what a settings file says: a flat table of TOML.
    pub fn read_file(&mut self, text: &str) -> Result<(), FileError> {
        let table: toml::Table = text.parse().map_err(FileError::Syntax)?;
        for (name, value) in table {
            let text = match value {
                toml::Value::String(text) => text,
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Boolean(truth) => truth.to_string(),
                toml::Value::Float(number) => number.to_string(),
                toml::Value::Table(_) => return Err(FileError::Section { name }),
                toml::Value::Datetime(_) | toml::Value::Array(_) => {
                    return Err(FileError::NotAScalar { name });
                }
            };
            self.set(&name, &text).map_err(FileError::Setting)?;
        }
        Ok(())
    }

    /// The value of a declared setting, by its name or alias.
    pub fn value(&self, name: &str) -> Option<&Value> {
        find(name).and_then(|(index, _)| self.values.get(index))
    }

    /// A number or size. Panics where no such setting is declared: only a bug asks for it.
    pub fn unsigned(&self, name: &str) -> u64 {
        match self.value(name) {
            Some(Value::Unsigned(number)) => *number,
            other => panic!("setting {name} is declared as a number, not {other:?}"),
        }
    }

    /// A time in microseconds. Panics where no such setting is declared: only a bug asks for it.
    pub fn micros(&self, name: &str) -> u64 {
        match self.value(name) {
            Some(Value::Micros(micros)) => *micros,
            other => panic!("setting {name} is declared as a time, not {other:?}"),
        }
    }

    /// A truth value. Panics where no such setting is declared: only a bug asks for it.
    pub fn is_on(&self, name: &str) -> bool {
        match self.value(name) {
            Some(Value::Bool(truth)) => *truth,
            other => panic!("setting {name} is declared as a truth value, not {other:?}"),
        }
    }

    /// A text or word. Panics where no such setting is declared: only a bug asks for it.
    pub fn text(&self, name: &str) -> &str {
        match self.value(name) {
            Some(Value::Text(text)) => text,
            other => panic!("setting {name} is declared as a text, not {other:?}"),
        }
    }

    /// What SQL may see: name and value, aliases as names of their own, ordered by name.
    pub fn variables(&self) -> Vec<(&'static str, &'static Setting, &Value)> {
        let mut variables = Vec::new();
        for (setting, value) in TABLE
            .iter()
            .zip(&self.values)
            .filter(|(s, _)| s.is_variable)
        {
            for name in std::iter::once(&setting.name).chain(setting.aliases) {
                variables.push((*name, setting, value));
            }
        }
        variables.sort_by_key(|(name, _, _)| *name);
        variables
    }

    fn put(&mut self, index: usize, value: Value) {
        *self
            .values
            .get_mut(index)
            .expect("a value for each entry of the table") = value;
    }
}

impl Setting {
    /// The declared default as a value.
    pub fn default_value(&self) -> Value {
        // A fixed text may be what its kind would refuse as input.
        match self.kind {
            Kind::Text => Value::Text(self.default.to_owned()),
            _ => self
                .kind
                .parse(self.default)
                .expect("the test of the table parses each default"),
        }
    }
}

/// Our name for what other servers set under this one.
fn instead_of(name: &str) -> Option<&'static str> {
    match as_in_table(name).as_str() {
        "port" | "bind_address" | "skip_networking" => Some("listen"),
        _ => None,
    }
}

fn suggestion_text(suggestion: Option<&str>) -> String {
    suggestion
        .map(|name| format!("; did you mean `{name}`?"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_then_command_line() {
        let mut settings = Settings::default();
        settings
            .read_file("max_connections = 50\nbuffer_pool_size = \"64M\"\ntls = true\n")
            .unwrap();
        settings.assign("max-connections=70").unwrap();
        settings.assign("innodb_lock_wait_timeout = 3").unwrap();
        assert_eq!(settings.unsigned("max_connections"), 70);
        assert_eq!(settings.unsigned("buffer_pool_size"), 64 << 20);
        assert_eq!(settings.unsigned("row_lock_wait_timeout"), 3);
        assert!(settings.is_on("tls"));
        assert_eq!(settings.text("io"), "auto");
    }

    #[test]
    fn what_cannot_be_taken_is_named() {
        let mut settings = Settings::default();
        let error = settings.set("max_conections", "1").unwrap_err();
        let expected = "there is no setting `max_conections`; did you mean `max_connections`?";
        assert_eq!(error.to_string(), expected);
        let error = settings.set("max_connections", "many").unwrap_err();
        assert_eq!(
            error.to_string(),
            "setting `max_connections` cannot be `many`"
        );
        assert!(settings.set("license", "none").is_err());
        assert!(settings.assign("tls").is_err());
        assert!(matches!(
            settings.read_file("a = [").unwrap_err(),
            FileError::Syntax(_)
        ));
        let error = settings.read_file("listen = [1]").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`listen` is neither a text, a number nor a truth value"
        );
        let error = settings.set("port", "3306").unwrap_err().to_string();
        assert!(error.ends_with("did you mean `listen`?"), "{error}");
        let error = settings.set("bind-address", "::").unwrap_err().to_string();
        assert!(error.ends_with("did you mean `listen`?"), "{error}");
        let error = settings.read_file("listen = 0.0.0.0:3306").unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("TOML parse error at line 1"), "{text}");
        assert!(text.contains("stand in quotes"), "{text}");
        let error = settings.read_file("[server]\nworkers = 2").unwrap_err();
        assert!(error.to_string().contains("no sections as [server]"));
        assert_eq!(settings, Settings::default());
        settings.read_file("max_statement_time = 1.5").unwrap();
        assert_eq!(settings.micros("max_statement_time"), 1_500_000);
    }

    #[test]
    fn variables_are_ordered_and_hold_aliases() {
        let settings = Settings::default();
        let names: Vec<_> = settings
            .variables()
            .into_iter()
            .map(|(name, _, _)| name)
            .collect();
        assert!(names.is_sorted());
        assert!(names.contains(&"innodb_lock_wait_timeout"));
        assert!(!names.contains(&"io"));
    }
}
