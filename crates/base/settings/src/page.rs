//! The reference page and the lines of `--help`, made from the table.

use std::fmt::Write;

use crate::section::{Field, Presence, Repetition, SECTIONS, Section};
use crate::setting::{Scope, Setting};
use crate::table::TABLE;

/// The text of `docs/settings.md`.
pub fn reference_page() -> String {
    let mut page = String::from(HEAD);
    for (title, scopes) in PARTS {
        write!(
            page,
            "\n## {title}\n\n| name | default | values | meaning |\n|---|---|---|---|\n"
        )
        .expect(TAKES_ALL);
        for setting in TABLE
            .iter()
            .filter(|setting| scopes.contains(&setting.scope))
        {
            page.push_str(&row(setting));
        }
    }
    page.push_str(SECTIONS_HEAD);
    for section in SECTIONS {
        page.push_str(&section_part(section));
    }
    page
}

/// A line for each setting that can be given at start: name, default, text.
pub fn reference_lines() -> String {
    let mut lines = String::new();
    for setting in TABLE.iter().filter(|setting| !setting.is_fixed()) {
        let default = if setting.default.is_empty() {
            "''"
        } else {
            setting.default
        };
        writeln!(
            lines,
            "  {} = {default}\n      {}",
            setting.name, setting.text
        )
        .expect(TAKES_ALL);
    }
    lines
}

const TAKES_ALL: &str = "a string takes all that is written";

const HEAD: &str = r#"<!-- made from crates/base/settings: cargo xtask tidy --fix -->
# Settings

Plateau needs none. Settings are read from `plateau.toml` in the working directory, or from the
file that `--config` names; then from `--set name=value` on the command line, as in
`--set buffer_pool_size=2G`. A name that is not below is an error. Sizes take `K`, `M`, `G` and `T`.
Most names are MySQL's and are system variables in SQL too. The file is TOML, so texts and sizes
need quotes. Sections come behind all settings:

```toml
listen = "0.0.0.0:3306"
buffer_pool_size = "2G"
workers = 4

[[listener]]
address = "[::]:3306"
```

`plateau --check-config` names all mistakes of the file and of the command line, each with its line,
and starts nothing. It ends with 0 if there are none, and with 1 otherwise.
"#;

const SECTIONS_HEAD: &str = "
## Sections

A section may be left out. One whose header has two brackets may stand several times.
";

const PARTS: &[(&str, &[Scope])] = &[
    ("Given at start", &[Scope::Start]),
    (
        "Changed while running, for all (`SET GLOBAL`)",
        &[Scope::Global],
    ),
    (
        "Changed for all or for one session (`SET`)",
        &[Scope::Session],
    ),
    ("Told to clients, not to be changed", &[Scope::Fixed]),
];

fn row(setting: &Setting) -> String {
    let mut names = format!("`{}`", setting.name);
    for alias in setting.aliases {
        write!(names, ", `{alias}`").expect(TAKES_ALL);
    }
    let default = match setting.default {
        "" => String::new(),
        text => format!("`{text}`"),
    };
    format!(
        "| {names} | {default} | {} | {} |\n",
        setting.kind.describe(),
        setting.text
    )
}

/// A section's header, what it is for, and its fields.
fn section_part(section: &Section) -> String {
    let mut part = format!("\n### `{}`\n\n{}", section.header(), section.text);
    if !section.one_of.is_empty() {
        let fields = section.one_of.join("`, `");
        write!(part, " Exactly one of `{fields}` must be given.").expect(TAKES_ALL);
    }
    if let Repetition::List { count_max } = section.repetition {
        write!(part, " At most {count_max} of them.").expect(TAKES_ALL);
    }
    part.push_str("\n\n| field | default | values | meaning |\n|---|---|---|---|\n");
    section
        .fields
        .iter()
        .for_each(|field| part.push_str(&field_row(field)));
    part
}

fn field_row(field: &Field) -> String {
    let default = match field.presence {
        Presence::Required => "must be given".to_owned(),
        Presence::Optional => String::new(),
        Presence::Default(text) => format!("`{text}`"),
    };
    let Field { name, text, .. } = field;
    format!(
        "| `{name}` | {default} | {} | {text} |\n",
        field.kind.describe()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_its_row_once() {
        let page = reference_page();
        let (flat, sections) = page.split_once(SECTIONS_HEAD).unwrap();
        for setting in TABLE {
            let start = format!("\n| `{}`", setting.name);
            let rows = flat.lines().filter(|line| {
                let rest = line.strip_prefix(start.trim_start());
                rest.is_some_and(|rest| rest.starts_with(" |") || rest.starts_with(", "))
            });
            assert_eq!(rows.count(), 1, "{}", setting.name);
        }
        for section in SECTIONS {
            let header = format!("### `{}`\n", section.header());
            assert!(sections.contains(&header), "{}", section.name);
            for field in section.fields {
                assert!(sections.contains(&field_row(field)), "{}", field.name);
            }
        }
        assert!(reference_lines().contains("  max_connections = 1040\n"));
        assert!(!reference_lines().contains("license"));
    }
}
