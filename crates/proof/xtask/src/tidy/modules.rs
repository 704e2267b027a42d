//! Which modules of a crate use which: paths that begin with `crate` or `super`, read from tokens.
//!
//! A module is a first-level one: `src/a.rs` with all of `src/a/`. A name that the root re-exports
//! (`pub use a::Name`) counts as a use of `a`. Comments, strings, and items under `cfg(test)` or
//! `cfg(doc)` do not count. Method calls do not name a module, so they do not count either.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};

use super::tree::Tree;

/// One use of a module by another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Use {
    pub(super) from: String,
    pub(super) to: String,
    /// The file and line of the use.
    pub(super) path: String,
    pub(super) line: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind<'a> {
    Word(&'a str),
    /// `::`
    Colons,
    Mark(char),
}

#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    kind: Kind<'a>,
    line: usize,
}

/// The folders `crates/floor/name` that have sources, each with its name.
pub(super) fn crates(tree: &Tree) -> BTreeMap<String, String> {
    tree.sources()
        .filter_map(|(path, _)| {
            let (folder, _) = path.split_once("/src/")?;
            let name = folder.strip_prefix("crates/")?.split_once('/')?.1;
            (!name.contains('/')).then(|| (name.to_owned(), folder.to_owned()))
        })
        .collect()
}

/// Every use of a module of the crate by another one, in the order of the files.
pub(super) fn uses(tree: &Tree, folder: &str) -> Vec<Use> {
    let source = format!("{folder}/src/");
    let Some(root) = ["lib.rs", "main.rs"]
        .iter()
        .find_map(|file| tree.text(&format!("{source}{file}")))
    else {
        return Vec::new();
    };
    let modules = modules_of(tree, &source);
    let exports = exports(&tokens(root), &modules);
    let mut found = Vec::new();
    for (path, text) in tree.sources() {
        let Some(place) = path.strip_prefix(&source).and_then(place) else {
            continue;
        };
        let [from, ..] = place.as_slice() else {
            continue;
        };
        for (name, line) in names_at_root(&without_tests(&tokens(text)), place.len()) {
            let to = modules.get(name).or_else(|| exports.get(name));
            if let Some(to) = to.filter(|to| to != from) {
                found.push(Use {
                    from: (*from).to_owned(),
                    to: to.clone(),
                    path: path.to_owned(),
                    line,
                });
            }
        }
    }
    found
}

/// The path of a module from the root of its crate; `None` for the root itself, and for tests.
fn place(file: &str) -> Option<Vec<&str>> {
    let file = file.strip_suffix(".rs")?;
    let file = file.strip_suffix("/mod").unwrap_or(file);
    let parts: Vec<&str> = file.split('/').collect();
    let is_root = matches!(parts.as_slice(), ["lib" | "main"]) || parts.contains(&"bin");
    (!is_root && !parts.contains(&"tests")).then_some(parts)
}

fn modules_of(tree: &Tree, source: &str) -> BTreeSet<String> {
    tree.sources()
        .filter_map(|(path, _)| path.strip_prefix(source).and_then(place))
        .filter_map(|place| place.first().map(|name| (*name).to_owned()))
        .collect()
}

/// Names that `use` at the root brings to the root, each with its module.
fn exports(tokens: &[Token<'_>], modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let statements = tokens.split(|token| token.kind == Kind::Mark(';'));
    for statement in statements {
        let words = statement.iter().filter_map(|token| match token.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        });
        let mut path = words
            .skip_while(|word| *word != "use")
            .skip(1)
            .filter(|word| !["crate", "self"].contains(word));
        if let Some(module) = path.next().filter(|word| modules.contains(*word)) {
            found.extend(path.map(|name| (name.to_owned(), module.to_owned())));
        }
    }
    found
}

/// The first names of paths that begin at the crate's root, in a module at that depth.
fn names_at_root<'a>(tokens: &[Token<'a>], depth: usize) -> Vec<(&'a str, usize)> {
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|index| tokens.get(index));
        let is_start =
            !before.is_some_and(|token| matches!(token.kind, Kind::Colons | Kind::Mark('$')));
        let rest = tokens.get(index..).unwrap_or_default();
        let steps = match token.kind {
            Kind::Word("crate") if is_start => 1,
            Kind::Word("super") if is_start => rest
                .chunks(2)
                .take_while(|pair| pair.first().is_some_and(|t| t.kind == Kind::Word("super")))
                .count(),
            _ => continue,
        };
        if token.kind == Kind::Word("super") && steps != depth {
            continue;
        }
        let behind = rest.get(2 * steps..).unwrap_or_default();
        let has_colons = rest
            .get(2 * steps - 1)
            .is_some_and(|t| t.kind == Kind::Colons);
        if has_colons {
            found.extend(first_names(behind));
        }
    }
    found
}

/// `a` of `a::b`, and `a`, `b` of `{a::x, b}`.
fn first_names<'a>(tokens: &[Token<'a>]) -> Vec<(&'a str, usize)> {
    let word = |token: &Token<'a>| match token.kind {
        Kind::Word(word) => Some((word, token.line)),
        _ => None,
    };
    let Some((first, rest)) = tokens.split_first() else {
        return Vec::new();
    };
    if first.kind != Kind::Mark('{') {
        return word(first).into_iter().collect();
    }
    let mut names = Vec::new();
    let mut depth = 0_usize;
    let mut is_first = true;
    for token in rest {
        match token.kind {
            Kind::Mark('{') => depth += 1,
            Kind::Mark('}') if depth == 0 => break,
            Kind::Mark('}') => depth -= 1,
            Kind::Mark(',') if depth == 0 => is_first = true,
            Kind::Word(_) if is_first => {
                names.extend(word(token));
                is_first = false;
            }
            _ => {}
        }
    }
    names
}

/// The first and the last line of each item that only tests or documentation see.
pub(super) fn lines_for_tests(text: &str) -> Vec<RangeInclusive<usize>> {
    let tokens = tokens(text);
    let lines = |place: Range<usize>| {
        let item = tokens.get(place).unwrap_or_default();
        Some(item.first()?.line..=item.last()?.line)
    };
    let items = items_for_tests(&tokens).into_iter();
    items.filter_map(lines).collect()
}

/// The tokens without items that only tests or documentation see.
fn without_tests<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut kept = Vec::new();
    let mut next = 0;
    for item in items_for_tests(tokens) {
        kept.extend_from_slice(tokens.get(next..item.start).unwrap_or_default());
        next = item.end;
    }
    kept.extend_from_slice(tokens.get(next..).unwrap_or_default());
    kept
}

/// Where the items are that only tests or documentation see, each with its attribute.
fn items_for_tests(tokens: &[Token<'_>]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    while let Some(rest) = tokens.get(start..).filter(|rest| !rest.is_empty()) {
        let attribute = attribute_end(rest).map(|end| rest.split_at(end));
        start += match attribute {
            Some((attribute, item)) if is_for_tests(attribute) => {
                let length = rest.len() - behind_item(item).len();
                found.push(start..start + length);
                length
            }
            _ => 1,
        };
    }
    found
}

/// How many tokens the attribute takes that begins here.
fn attribute_end(tokens: &[Token<'_>]) -> Option<usize> {
    let begins = tokens.first()?.kind == Kind::Mark('#') && tokens.get(1)?.kind == Kind::Mark('[');
    let end = tokens.iter().position(|t| t.kind == Kind::Mark(']'))?;
    begins.then_some(end + 1)
}

fn is_for_tests(attribute: &[Token<'_>]) -> bool {
    let has = |word| attribute.iter().any(|token| token.kind == Kind::Word(word));
    has("cfg") && (has("test") || has("doc")) && !has("not")
}

/// The tokens after the item that begins here: after its block, its `;` or its `,`.
fn behind_item<'t, 'a>(tokens: &'t [Token<'a>]) -> &'t [Token<'a>] {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        let is_end = match token.kind {
            Kind::Mark('{' | '(' | '[') => {
                depth += 1;
                false
            }
            Kind::Mark(close @ ('}' | ')' | ']')) => {
                depth = depth.saturating_sub(1);
                depth == 0 && close == '}'
            }
            Kind::Mark(';' | ',') => depth == 0,
            _ => false,
        };
        if is_end {
            return tokens.get(index + 1..).unwrap_or_default();
        }
    }
    &[]
}

/// The words and marks of a source, without comments and strings.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = blank_length(rest).unwrap_or_else(|| {
            let (kind, length) = token(rest, first);
            found.push(Token { kind, line });
            length
        });
        let (taken, behind) = rest.split_at(length);
        line += taken.matches('\n').count();
        rest = behind;
    }
    found
}

fn token(rest: &str, first: char) -> (Kind<'_>, usize) {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let length = rest
        .find(|character| !is_word(character))
        .unwrap_or(rest.len());
    if let Some(word) = rest.get(..length).filter(|word| !word.is_empty()) {
        (Kind::Word(word), length)
    } else if rest.starts_with("::") {
        (Kind::Colons, 2)
    } else {
        (Kind::Mark(first), first.len_utf8())
    }
}

/// The length of the white space, comment, string or character here.
fn blank_length(rest: &str) -> Option<usize> {
    let space = rest.len() - rest.trim_start().len();
    if space > 0 {
        return Some(space);
    }
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(rest.find("*/").map_or(rest.len(), |end| end + 2));
    }
    if let Some(text) = rest.strip_prefix("b'").or_else(|| rest.strip_prefix('\'')) {
        let before = rest.len() - text.len();
        return Some(character_length(text).map_or(before, |length| before + length));
    }
    text_length(rest)
}

/// The length of `x'` or `\x'`; `None` for the name of a lifetime.
fn character_length(text: &str) -> Option<usize> {
    let escape = usize::from(text.starts_with('\\')) * 2;
    let end = text.get(escape..)?.find('\'')? + escape + 1;
    let is_one = escape > 0 || text.get(..end - 1)?.chars().count() == 1;
    is_one.then_some(end)
}

fn text_length(rest: &str) -> Option<usize> {
    let text = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'));
    if let Some(text) = text {
        let hashes = text.len() - text.trim_start_matches('#').len();
        if text.get(hashes..)?.starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let body = text.get(hashes + 1..)?;
            let length = body.find(&end).map_or(body.len(), |at| at + end.len());
            return Some(rest.len() - body.len() + length);
        }
    }
    let body = rest
        .strip_prefix("b\"")
        .or_else(|| rest.strip_prefix('"'))?;
    let mut is_escaped = false;
    for (index, character) in body.char_indices() {
        if character == '"' && !is_escaped {
            return Some(rest.len() - body.len() + index + 1);
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    Some(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(files: &[(&str, &str)]) -> Vec<String> {
        uses(&Tree::of(files), "crates/a/b")
            .iter()
            .map(|one| {
                let file = one.path.trim_start_matches("crates/a/b/src/");
                format!("{} -> {} at {file}:{}", one.from, one.to, one.line)
            })
            .collect()
    }

    #[test]
    fn paths_from_the_root_are_uses() {
        let found = pairs(&[
            (
                "crates/a/b/src/lib.rs",
                "mod one;\nmod two;\npub use two::{Three, four as five};\n",
            ),
            (
                "crates/a/b/src/one.rs",
                "use crate::{\n    two::{X, Y}, Three,\n};\nfn f() { super::two::f(); five(); }\n",
            ),
            (
                "crates/a/b/src/one/inner.rs",
                "use super::two;\nuse super::super::two;\n",
            ),
            (
                "crates/a/b/src/two/mod.rs",
                "use crate::two::Own;\nuse std::one;\n",
            ),
            ("crates/a/b/src/two/deep.rs", "type T = crate::one::U;\n"),
        ]);
        let expected = [
            "one -> two at one.rs:2",
            "one -> two at one.rs:2",
            "one -> two at one.rs:4",
            "one -> two at one/inner.rs:2",
            "two -> one at two/deep.rs:1",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn comments_texts_and_tests_are_no_uses() {
        let one = concat!(
            "//! [`crate::two`]\n/* crate::two */\n",
            "const A: &str = \"\\\"crate::two::\";\nconst B: &str = r#\"\"crate::two::\"#;\n",
            "const C: [char; 3] = ['\"', '\\'', 'x']; fn f<'a>(_: &'a str) {}\n",
            "#[cfg(doc)]\nuse crate::two;\n",
            "macro_rules! m { () => { $crate::two::f() } }\n",
            "#[cfg(all(test, unix))]\nmod tests { use crate::two::{X}; fn f() { 1 } }\n",
            "#[cfg(not(test))]\nuse crate::two::Y;\n",
        );
        let files = [
            ("crates/a/b/src/main.rs", "mod one;\nmod two;\n"),
            ("crates/a/b/src/one.rs", one),
            ("crates/a/b/src/one/tests.rs", "use crate::two::X;\n"),
            ("crates/a/b/src/two.rs", ""),
        ];
        assert_eq!(pairs(&files), ["one -> two at one.rs:12"]);
    }
}
