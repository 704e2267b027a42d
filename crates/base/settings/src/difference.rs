//! What differs between two configurations, for a program that takes some changes while it runs.

use crate::configuration::Configuration;
use crate::section::Section;
use crate::sections::Entry;
use crate::table::TABLE;

/// What may change while the program runs.
#[derive(Debug, Clone, Copy)]
pub struct Changeable {
    /// Settings outside of sections.
    pub settings: &'static [&'static str],
    /// Kinds of sections.
    pub sections: &'static [&'static str],
}

impl Configuration {
    /// The settings and kinds of sections whose values in the files differ beyond what may change.
    pub fn differences(&self, other: &Configuration, changeable: Changeable) -> Vec<String> {
        let mut differences = Vec::new();
        for setting in TABLE {
            let name = setting.name;
            // Others are defaults, or what the start has found out.
            let is_given = self.line_of(name).is_some() || other.line_of(name).is_some();
            let is_fixed = !changeable.settings.contains(&name);
            if is_fixed && is_given && self.settings.value(name) != other.settings.value(name) {
                differences.push(format!("`{name}`"));
            }
        }
        let sections = self.declared().iter();
        let fixed = sections.filter(|it| !changeable.sections.contains(&it.name));
        for section in fixed {
            let values = |entry: &Entry| values(entry, section);
            let of = |it: &Configuration| -> Vec<_> {
                it.sections.all(section.name).map(values).collect()
            };
            if of(self) != of(other) {
                differences.push(format!("sections `{}`", section.name));
            }
        }
        differences
    }
}

/// The values of all fields of a section.
fn values(entry: &Entry, section: &Section) -> Vec<Vec<crate::Value>> {
    let fields = section.fields.iter();
    fields.map(|it| entry.values(it.name).to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Configuration {
        let mut configuration = Configuration::default();
        let mistakes = configuration.read_file(text);
        assert!(mistakes.is_empty(), "{mistakes:?}");
        configuration
    }

    #[test]
    fn what_may_change_is_no_difference() {
        let changeable = Changeable {
            settings: &["max_connections"],
            sections: &["rule"],
        };
        let server = "[[server]]\nname = \"a\"\naddress = \"db:1\"\n";
        let base = read(&format!("workers = 2\n{server}"));
        let differences = |text: &str| base.differences(&read(text), changeable);
        let none: [&str; 0] = [];
        assert_eq!(differences(&format!("workers = 2\n\n\n{server}")), none);
        let rule = "[[rule]]\nname = \"r\"\nrefuse = \"no\"\n";
        let more = format!("workers = 2\nmax_connections = 70\n{server}{rule}");
        assert_eq!(differences(&more), none);
        assert_eq!(differences(server), ["`workers`"]);
        let other = format!("workers = 3\n{}", server.replace("db:1", "db:2"));
        assert_eq!(differences(&other), ["`workers`", "sections `server`"]);
        let twice = format!("workers = 2\n{server}{}", server.replace("\"a\"", "\"b\""));
        assert_eq!(differences(&twice), ["sections `server`"]);
    }
}
