//! Rules for the signatures of functions: how many parameters, and how many of them are `bool`.

use std::collections::BTreeMap;

use super::tree::{Finding, Tree};

/// The most parameters of a function. The parts of a tuple count one by one, and `self` does not
/// count.
const PARAMETERS_MAX: usize = 6;

/// How many `bool` parameters the functions of each crate have, though an enum would show the
/// meaning at the call. A number here may only fall; a crate that is not listed has none.
const BOOL_PARAMETERS: &[(&str, usize)] = &[
    ("buffer", 1),
    ("catalog", 2),
    ("engine", 7),
    ("env", 1),
    ("errcode", 1),
    ("executor", 4),
    ("expression", 4),
    ("format", 1),
    ("function", 6),
    ("lab", 16),
    ("planner", 32),
    ("plateau", 2),
    ("runtime", 3),
    ("session", 37),
    ("sim", 1),
    ("store", 1),
    ("syntax", 18),
    ("testkit", 1),
    ("value", 16),
    ("wal", 2),
    ("wire", 5),
    ("xtask", 1),
];

/// STYLE 8: many parameters become an options struct.
pub(super) fn parameters(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in shipped(tree) {
        for function in functions(text) {
            let count: usize = function.parameters.iter().map(|it| parts(it)).sum();
            if PARAMETERS_MAX < count {
                findings.push(Finding {
                    path: path.to_owned(),
                    line: function.line,
                    message: format!(
                        "`{}` has {count} parameters, more than {PARAMETERS_MAX}: make a struct",
                        function.name
                    ),
                });
            }
        }
    }
    findings
}

/// STYLE 7: enums instead of `bool` parameters. The existing ones become fewer, never more.
pub(super) fn bool_parameters(tree: &Tree) -> Vec<Finding> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, text) in shipped(tree) {
        let Some(name) = path.split('/').nth(2) else {
            continue;
        };
        let of_function = |it: Function<'_>| it.parameters.iter().filter(|it| is_bool(it)).count();
        *counts.entry(name).or_default() += functions(text).map(of_function).sum::<usize>();
    }
    let known = |name: &str| BOOL_PARAMETERS.iter().find(|(it, _)| *it == name);
    let told = counts.into_iter().filter_map(|(name, count)| {
        let most = known(name).map_or(0, |(_, most)| *most);
        let message = match count.cmp(&most) {
            std::cmp::Ordering::Equal => return None,
            std::cmp::Ordering::Greater => {
                format!("{count} `bool` parameters, {most} are known: pass an enum")
            }
            std::cmp::Ordering::Less => {
                format!("{count} `bool` parameters, {most} are known: lower the number in tidy")
            }
        };
        Some(Finding {
            path: format!("crate {name}"),
            line: 0,
            message,
        })
    });
    told.collect()
}

/// The sources of crates without their tests, examples and benches.
fn shipped(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    let sources = tree.sources().filter(|(path, _)| {
        path.starts_with("crates/") && path.contains("/src/") && !path.contains("tests")
    });
    sources.map(|(path, text)| {
        (
            path,
            text.split("#[cfg(test)]\nmod ").next().unwrap_or(text),
        )
    })
}

/// The signature of a function.
struct Function<'t> {
    name: &'t str,
    line: usize,
    parameters: Vec<&'t str>,
}

/// The functions of a source. Comments must not contain `fn name(`: signatures are found at the
/// beginning of a line, after words only.
fn functions(text: &str) -> impl Iterator<Item = Function<'_>> {
    let lines = text.lines().scan(0, |start, line| {
        let at = *start;
        *start += line.len() + 1;
        Some((at, line))
    });
    lines.enumerate().filter_map(|(index, (start, line))| {
        let at = line.find("fn ")?;
        let is_head = |word: &str| {
            let keywords = ["pub", "const", "async", "unsafe", "extern"];
            keywords.contains(&word) || word.starts_with("pub(") || word.starts_with("in ")
        };
        if !line[..at].split_whitespace().all(is_head) {
            return None;
        }
        let head = &text[start + at + "fn ".len()..];
        let name_end = head.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        let open = start_of_parameters(head, name_end)?;
        Some(Function {
            name: &head[..name_end],
            line: index + 1,
            parameters: split(&head[open..]),
        })
    })
}

/// The text after the parenthesis that begins the parameters; generic parameters come before it.
fn start_of_parameters(head: &str, name_end: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut last = ' ';
    for (at, c) in head.char_indices().skip(name_end) {
        match c {
            '<' => depth += 1,
            '>' if last != '-' => depth = depth.checked_sub(1)?,
            '(' if depth == 0 => return Some(at + 1),
            ';' | '{' => return None,
            _ => {}
        }
        last = c;
    }
    None
}

/// The parameters up to the closing parenthesis, without `self`.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut last) = (0_usize, 0, ' ');
    let mut found = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '<' | '{' => depth += 1,
            ')' if depth == 0 => {
                found.push(text[start..at].trim());
                break;
            }
            ')' | ']' | '}' => depth -= 1,
            '>' if last != '-' && last != '=' => depth -= 1,
            ',' if depth == 0 => {
                found.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        last = c;
    }
    found.retain(|it| !it.is_empty() && !is_self(it));
    found
}

fn is_self(parameter: &str) -> bool {
    let name = parameter.split(':').next().unwrap_or(parameter);
    name.split([' ', '&']).any(|word| word == "self")
}

fn is_bool(parameter: &&str) -> bool {
    parameter.ends_with(": bool")
}

/// One, or the number of a tuple's parts.
fn parts(parameter: &str) -> usize {
    let Some(pattern) = parameter.strip_prefix('(') else {
        return 1;
    };
    let pattern = pattern.split(')').next().unwrap_or(pattern);
    pattern
        .split(',')
        .filter(|it| !it.trim().is_empty())
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(rule: fn(&Tree) -> Vec<Finding>, text: &str) -> Vec<String> {
        let tree = Tree::of(&[("crates/base/some/src/some.rs", text)]);
        rule(&tree).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn many_parameters_are_refused() {
        let six = "fn six(&mut self, a: u8, (b, c): (u8, u8), d: Box<dyn Fn(u8, u8) -> u8>,\n\
                   e: [u8; 2], f: u8) {}\n";
        assert!(findings(parameters, six).is_empty());
        let seven = "\n    pub(crate) async fn seven<'a, F: Fn(u8)>(\n        a: u8,\n\
                     (b, c): (u8, u8),\n        d: HashMap<u8, u8>,\n        e: u8,\n\
                     f: u8,\n        g: F,\n    ) {}\n";
        let message = "`seven` has 7 parameters, more than 6: make a struct";
        assert_eq!(
            findings(parameters, seven),
            [format!("crates/base/some/src/some.rs:2: {message}")]
        );
        let in_tests = format!("#[cfg(test)]\nmod tests {{\n{seven}}}\n");
        assert!(findings(parameters, &in_tests).is_empty());
        let comment = "// A fn f(a, b, c, d, e, f, g) is long.\n";
        assert!(findings(parameters, comment).is_empty());
    }

    #[test]
    fn more_bool_parameters_are_refused() {
        assert!(findings(bool_parameters, "fn none(a: u8) -> bool { true }\n").is_empty());
        assert_eq!(
            findings(bool_parameters, "fn one(a: u8, is_new: bool) {}\n"),
            ["crate some:0: 1 `bool` parameters, 0 are known: pass an enum"]
        );
        let tree = Tree::of(&[("crates/storage/store/src/lib.rs", "fn none() {}\n")]);
        let told: Vec<String> = bool_parameters(&tree)
            .iter()
            .map(Finding::to_string)
            .collect();
        let message = "0 `bool` parameters, 1 are known: lower the number in tidy";
        assert_eq!(told, [format!("crate store:0: {message}")]);
    }
}
