//! The reference page and the lines of `--help`, made from the table.

use std::fmt::Write;

use crate::table::{Scope, Setting, TABLE};

/// The text of `docs/settings.md`.
pub fn reference_page() -> String {
    let mut page = String::from(HEAD);
    for (title, scopes) in SECTIONS {
        write!(
            page,
            "\n## {title}\n\n| name | default | values | meaning |\n|---|---|---|---|\n"
        )
        .expect("a string takes all that is written");
        for setting in TABLE
            .iter()
            .filter(|setting| scopes.contains(&setting.scope))
        {
            page.push_str(&row(setting));
        }
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
        .expect("a string takes all that is written");
    }
    lines
}

const HEAD: &str = r#"<!-- made from crates/base/settings/src/table.rs: cargo xtask tidy --fix -->
# Settings

Plateau needs none. Settings are read from `plateau.toml` in the working directory, or from the
file that `--config` names; then from `--set name=value` on the command line, as in
`--set buffer_pool_size=2G`. A name that is not below is an error. Sizes take `K`, `M`, `G` and `T`.
Most names are MySQL's and are system variables in SQL too. The file is TOML without sections, so
texts and sizes stand in quotes:

```toml
listen = "0.0.0.0:3306"
buffer_pool_size = "2G"
workers = 4
```
"#;

const SECTIONS: &[(&str, &[Scope])] = &[
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
        write!(names, ", `{alias}`").expect("a string takes all that is written");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_its_row_once() {
        let page = reference_page();
        for setting in TABLE {
            let start = format!("\n| `{}`", setting.name);
            let rows = page.lines().filter(|line| {
                let rest = line.strip_prefix(start.trim_start());
                rest.is_some_and(|rest| rest.starts_with(" |") || rest.starts_with(", "))
            });
            assert_eq!(rows.count(), 1, "{}", setting.name);
        }
        assert!(reference_lines().contains("  max_connections = 1040\n"));
        assert!(!reference_lines().contains("license"));
    }
}
