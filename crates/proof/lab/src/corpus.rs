//! Expands the templates of the differential corpus into statements.
//!
//! A file has lists, `let name = a ;; b ;; c`, and templates, in which `{name}` stands for each
//! value of the list. A template yields all combinations of its places; with ` -- linked` at its
//! end, places with the same name have the same value. Lines that begin with `#` are comments; `#
//! group: name` names the group of what follows.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

/// A statement and its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) group: String,
    pub(crate) text: String,
}

type Lists = BTreeMap<String, Vec<String>>;

/// All statements of one file.
pub(crate) fn expand(file: &str) -> Result<Vec<Statement>> {
    let mut lists = Lists::new();
    let mut group = String::new();
    let mut statements = Vec::new();
    for line in file.lines() {
        if let Some(name) = line.strip_prefix("# group: ") {
            name.clone_into(&mut group);
        } else if let Some(rest) = line.strip_prefix("let ") {
            let (name, values) = rest.split_once(" = ").with_context(|| line.to_owned())?;
            let values = values.split(" ;; ").map(str::to_owned).collect();
            lists.insert(name.to_owned(), values);
        } else if !line.is_empty() && !line.starts_with('#') {
            let texts = expand_template(line, &lists)?;
            statements.extend(texts.map(|text| Statement {
                group: group.clone(),
                text,
            }));
        }
    }
    Ok(statements)
}

/// Fills the first open place with each value, until none is open.
fn expand_template(line: &str, lists: &Lists) -> Result<impl Iterator<Item = String> + use<>> {
    let (template, is_linked) = match line.strip_suffix(" -- linked") {
        Some(template) => (template, true),
        None => (line, false),
    };
    let mut open = vec![template.to_owned()];
    let mut done = Vec::new();
    while let Some(text) = open.pop() {
        let Some((before, rest)) = text.split_once('{') else {
            done.push(text);
            continue;
        };
        let Some((name, after)) = rest.split_once('}') else {
            bail!("no closing brace: {line}")
        };
        let values = lists
            .get(name)
            .with_context(|| format!("no list {name}: {line}"))?;
        for value in values.iter().rev() {
            let after = if is_linked {
                after.replace(&format!("{{{name}}}"), value)
            } else {
                after.to_owned()
            };
            open.push(format!("{before}{value}{after}"));
        }
    }
    Ok(done.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(file: &str) -> Vec<String> {
        expand(file)
            .unwrap()
            .into_iter()
            .map(|statement| statement.text)
            .collect()
    }

    #[test]
    fn places_give_a_product_unless_linked() {
        let lists = "let a = 1 ;; 2\nlet b = x ;; y\n";
        let found = texts(&format!("{lists}S {{a}} {{b}}"));
        assert_eq!(found, ["S 1 x", "S 1 y", "S 2 x", "S 2 y"]);
        assert_eq!(
            texts(&format!("{lists}S {{a}} {{a}} -- linked")),
            ["S 1 1", "S 2 2"]
        );
        assert_eq!(texts(&format!("{lists}S {{a}}{{a}}")).len(), 4);
    }

    #[test]
    fn groups_name_what_follows() {
        let found = expand("# group: one\nA\n# a comment\n\n# group: two\nB\n").unwrap();
        let groups: Vec<_> = found
            .iter()
            .map(|statement| statement.group.as_str())
            .collect();
        assert_eq!(groups, ["one", "two"]);
    }

    #[test]
    fn unknown_lists_are_errors() {
        assert!(expand("S {nothing}").is_err());
        assert!(expand("let a = 1\nS {a").is_err());
    }
}
