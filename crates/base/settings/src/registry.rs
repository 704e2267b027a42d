//! The values of all settings: defaults, changed by the file and then by the command line.

use std::iter::once;

use crate::error::{SettingError, shown};
use crate::kind::{Kind, Value};
use crate::places::{as_in_table, find};
use crate::setting::{Scope, Setting};
use crate::suggest::nearest;
use crate::table::TABLE;

/// A value for each entry of [`TABLE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// In the order of the table; a `Value` of the entry's kind.
    values: Vec<Value>,
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
            let names = names.flat_map(|it| once(it.name).chain(it.aliases.iter().copied()));
            let near = || nearest(name, names);
            let suggestion = instead_of(name).or_else(near);
            return Err(SettingError::Unknown {
                name: shown(name),
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
            text: shown(text),
            source,
        };
        let value = setting.kind.parse(text).map_err(refused)?;
        self.put(index, value);
        Ok(())
    }

    /// Sets a value that clients see and cannot change: a fact of the machine, found at start.
    /// Panics if no such setting is declared, which only a bug causes.
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
            None => Err(SettingError::NotAnAssignment { text: shown(text) }),
        }
    }

    /// The value of a declared setting, by its name or alias.
    pub fn value(&self, name: &str) -> Option<&Value> {
        find(name).and_then(|(index, _)| self.values.get(index))
    }

    /// A number or size. Panics if no such setting is declared, which only a bug causes.
    pub fn unsigned(&self, name: &str) -> u64 {
        match self.value(name) {
            Some(Value::Unsigned(number)) => *number,
            other => panic!("setting {name} is declared as a number, not {other:?}"),
        }
    }

    /// A time in microseconds. Panics if no such setting is declared, which only a bug causes.
    pub fn micros(&self, name: &str) -> u64 {
        match self.value(name) {
            Some(Value::Micros(micros)) => *micros,
            other => panic!("setting {name} is declared as a time, not {other:?}"),
        }
    }

    /// A truth value. Panics if no such setting is declared, which only a bug causes.
    pub fn is_on(&self, name: &str) -> bool {
        match self.value(name) {
            Some(Value::Bool(truth)) => *truth,
            other => panic!("setting {name} is declared as a truth value, not {other:?}"),
        }
    }

    /// A text or word. Panics if no such setting is declared, which only a bug causes.
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
            for name in once(&setting.name).chain(setting.aliases) {
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
        // A fixed text may be one that its kind refuses as input.
        match self.kind {
            Kind::Text => Value::Text(self.default.to_owned()),
            _ => self
                .kind
                .parse(self.default)
                .expect("the test of the table parses each default"),
        }
    }
}

/// Our name for a setting that other servers call by this one.
fn instead_of(name: &str) -> Option<&'static str> {
    match as_in_table(name).as_str() {
        "port" | "bind_address" | "skip_networking" => Some("listen"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // An alias is suggested as well.
        for (wrong, near) in [
            ("transaction_isolaton", "transaction_isolation"),
            ("innodb_buffer_pool_siz", "innodb_buffer_pool_size"),
        ] {
            let error = settings.set(wrong, "1").unwrap_err().to_string();
            assert!(
                error.ends_with(&format!("did you mean `{near}`?")),
                "{error}"
            );
        }
        let error = settings.set("port", "3306").unwrap_err().to_string();
        assert!(error.ends_with("did you mean `listen`?"), "{error}");
        let error = settings.set("bind-address", "::").unwrap_err().to_string();
        assert!(error.ends_with("did you mean `listen`?"), "{error}");
        assert_eq!(settings, Settings::default());
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
