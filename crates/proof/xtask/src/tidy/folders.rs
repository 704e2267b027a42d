//! Rules about the folders of a crate: how many files a folder has, and which modules use which.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{self, Use};
use super::tree::{Finding, Tree};

const FILES_MAX: usize = 20;

type Graph<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a Use>>;

/// A folder has no more files than a reader can keep in mind.
pub(crate) fn folder_size(tree: &Tree) -> Vec<Finding> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, _) in tree.sources() {
        if let Some((folder, _)) = path.rsplit_once('/') {
            *counts.entry(folder).or_default() += 1;
        }
    }
    counts
        .into_iter()
        .filter(|(_, count)| *count > FILES_MAX)
        .map(|(folder, count)| {
            let message = format!("has {count} source files, more than {FILES_MAX}");
            Finding::new(folder, 0, message)
        })
        .collect()
}

/// Modules of a crate have no cyclic uses.
pub(crate) fn cycles(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in modules::crates(tree).values() {
        let uses = modules::uses(tree, folder);
        let mut graph = Graph::new();
        for one in &uses {
            let targets = graph.entry(&one.from).or_default();
            targets.entry(&one.to).or_insert(one);
        }
        findings.extend(circle(&graph).map(|circle| describe(&circle)));
    }
    findings
}

/// The uses of one cycle, if there is one.
fn circle<'a>(graph: &Graph<'a>) -> Option<Vec<&'a Use>> {
    graph.values().flat_map(BTreeMap::values).find_map(|first| {
        let mut circle = vec![*first];
        circle.extend(way(graph, &first.to, &first.from)?);
        Some(circle)
    })
}

/// The shortest path from one module to another along uses.
fn way<'a>(graph: &Graph<'a>, from: &str, to: &str) -> Option<Vec<&'a Use>> {
    let mut reached = BTreeSet::from([from]);
    let mut ways: Vec<(&str, Vec<&'a Use>)> = vec![(from, Vec::new())];
    let mut next = 0;
    while let Some((module, way)) = ways.get(next).cloned() {
        if module == to {
            return Some(way);
        }
        for (target, one) in graph.get(module).into_iter().flatten() {
            if reached.insert(target) {
                ways.push((target, [&way[..], &[*one]].concat()));
            }
        }
        next += 1;
    }
    None
}

fn describe(circle: &[&Use]) -> Finding {
    let mut message = String::from("modules use each other in a circle:");
    for one in circle {
        let Use {
            from,
            to,
            path,
            line,
        } = one;
        let file = path
            .split_once("/src/")
            .map_or(path.as_str(), |(_, file)| file);
        message += &format!(" `{from}` uses `{to}` ({file}:{line}),");
    }
    let (path, line) = circle
        .first()
        .map_or(("", 0), |one| (one.path.as_str(), one.line));
    Finding::new(path, line, message.trim_end_matches(','))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(findings: &[Finding]) -> Vec<String> {
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn full_folder_is_refused() {
        let of = |count: usize| {
            let path = |at| format!("crates/a/b/src/f{at}.rs");
            let paths: Vec<String> = (0..count).map(path).collect();
            let mut files: Vec<(&str, &str)> =
                paths.iter().map(|path| (path.as_str(), "")).collect();
            // Another folder, and files that are no sources, are counted separately.
            files.extend([
                ("crates/a/b/src/f0/x.rs", ""),
                ("crates/a/b/src/notes.md", ""),
            ]);
            shown(&folder_size(&Tree::of(&files)))
        };
        assert!(of(FILES_MAX - 1).is_empty());
        assert!(of(FILES_MAX).is_empty());
        assert_eq!(
            of(FILES_MAX + 1),
            ["crates/a/b/src:0: has 21 source files, more than 20"]
        );
    }

    const CIRCLE: [(&str, &str); 4] = [
        ("crates/x/y/src/lib.rs", "mod a;\nmod b;\nmod c;\n"),
        ("crates/x/y/src/a.rs", "\nuse crate::b::B;\n"),
        ("crates/x/y/src/b.rs", "use crate::c::C;\n"),
        ("crates/x/y/src/c/deep.rs", "use crate::a::A;\n"),
    ];

    #[test]
    fn circle_of_modules_is_refused() {
        let expected = "crates/x/y/src/a.rs:2: modules use each other in a circle: \
                        `a` uses `b` (a.rs:2), `b` uses `c` (b.rs:1), `c` uses `a` (c/deep.rs:1)";
        let found = cycles(&Tree::of(&CIRCLE));
        assert_eq!(shown(&found), [expected]);
        // Without any one of its uses there is no cycle.
        for kept in [[0, 1, 2], [0, 1, 3], [0, 2, 3]] {
            let files = kept.map(|at| CIRCLE[at]);
            assert!(cycles(&Tree::of(&files)).is_empty(), "{kept:?}");
        }
    }
}
