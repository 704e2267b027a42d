//! Rules about crates: which crate may use which, and what each manifest must say.

use std::collections::BTreeMap;

use super::tree::{Finding, Tree};

const MAP: &str = "docs/ARCHITECTURE.md";

/// A crate's place in the layer table: its layer from the top, and its order within the layer.
type Place = (usize, usize);

/// The layer table of the architecture page.
#[derive(Debug, Default)]
struct Layers {
    floors: Vec<String>,
    places: BTreeMap<String, Place>,
    /// Pairs of floors that know nothing of each other.
    apart: Vec<(String, String)>,
}

/// A crate uses only crates that precede it in the layer table, and none of a floor that its own is
/// apart from.
pub(crate) fn layers(tree: &Tree) -> Vec<Finding> {
    let layers = Layers::parse(tree.text(MAP).unwrap_or_default());
    if layers.places.is_empty() {
        return vec![Finding::new(
            MAP,
            0,
            "has no layer table between the layers marks",
        )];
    }
    let mut findings = Vec::new();
    for (path, text) in manifests_of_crates(tree) {
        match check_place(&layers, path, text) {
            Ok(mut found) => findings.append(&mut found),
            Err(message) => findings.push(Finding::new(path, 0, message)),
        }
    }
    findings
}

/// Each manifest describes its crate in one sentence and uses the workspace's lints.
pub(crate) fn manifests(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in manifests_of_crates(tree) {
        let Ok(manifest) = text.parse::<toml::Table>() else {
            continue; // cargo itself refuses it, with a better message
        };
        let describes = manifest
            .get("package")
            .and_then(|package| package.get("description"))
            .is_some_and(|text| text.as_str().is_some_and(|text| text.len() > 10));
        if !describes {
            findings.push(Finding::new(path, 0, "has no description"));
        }
        let lints = manifest
            .get("lints")
            .and_then(|lints| lints.get("workspace"));
        if lints.and_then(toml::Value::as_bool) != Some(true) {
            findings.push(Finding::new(path, 0, "does not take the workspace's lints"));
        }
    }
    findings
}

/// Each third-party library has its line in the architecture page: what for, what was weighed.
pub(crate) fn dependency_reasons(tree: &Tree) -> Vec<Finding> {
    let page = tree.text(MAP).unwrap_or_default();
    let section = page.split("## Dependencies").nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let Some(Ok(root)) = tree.text("Cargo.toml").map(str::parse::<toml::Table>) else {
        return vec![Finding::new("Cargo.toml", 0, "cannot be read")];
    };
    let own = Layers::parse(page);
    let table = root
        .get("workspace")
        .and_then(|workspace| workspace.get("dependencies"));
    let names = table
        .and_then(toml::Value::as_table)
        .into_iter()
        .flat_map(toml::Table::keys);
    names
        .filter(|name| !own.places.contains_key(*name))
        .filter(|name| !section.contains(&format!("`{name}`")))
        .map(|name| Finding::new(MAP, 0, format!("no reason for `{name}` under Dependencies")))
        .collect()
}

fn manifests_of_crates(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.files().filter(|(path, _)| {
        path.starts_with("crates/") && path.ends_with("/Cargo.toml") && path.split('/').count() == 4
    })
}

fn check_place(layers: &Layers, path: &str, text: &str) -> Result<Vec<Finding>, String> {
    let manifest: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| error.message().to_owned())?;
    let name = manifest
        .get("package")
        .and_then(|package| package.get("name"))
        .and_then(toml::Value::as_str)
        .ok_or("has no package name")?;
    let place = *layers
        .places
        .get(name)
        .ok_or(format!("`{name}` is not in the layer table"))?;
    let expected = format!("crates/{}/{name}/Cargo.toml", layers.floors[place.0]);
    if path != expected {
        return Err(format!("`{name}` belongs to {expected}"));
    }
    let mut findings = Vec::new();
    for (section, is_test) in [
        ("dependencies", false),
        ("build-dependencies", false),
        ("dev-dependencies", true),
    ] {
        let table = manifest.get(section).and_then(toml::Value::as_table);
        for used in table.into_iter().flat_map(toml::Table::keys) {
            let Some(used_place) = layers.places.get(used) else {
                continue;
            };
            let floors = (&layers.floors[place.0], &layers.floors[used_place.0]);
            if !is_test && layers.are_apart(floors) {
                let (own, other) = floors;
                let message = format!("`{name}` may not use `{used}`: {own} and {other} are apart");
                findings.push(Finding::new(path, 0, message));
            }
            // Fixtures are at the bottom of the table; every crate's tests may use them.
            let is_proof = layers.floors[used_place.0] == "proof";
            if *used_place >= place && !(is_test && is_proof) {
                let message = format!("`{name}` may not use `{used}`, which stands after it");
                findings.push(Finding::new(path, 0, message));
            }
        }
    }
    Ok(findings)
}

impl Layers {
    /// Reads the rows between the marks; the first two are the table's head.
    fn parse(page: &str) -> Layers {
        let mut layers = Layers::default();
        let Some(begin) = page.find("<!-- layers:begin") else {
            return layers;
        };
        let Some(end) = page.find("<!-- layers:end") else {
            return layers;
        };
        let table = page.get(begin..end).unwrap_or_default();
        for row in table.lines().filter(|line| line.starts_with('|')).skip(2) {
            let mut cells = row.split('|').skip(1).map(str::trim);
            let floor = cells.next().unwrap_or_default();
            let floor_index = layers.floors.len();
            layers.floors.push(floor.to_owned());
            for (index, name) in cells
                .next()
                .unwrap_or_default()
                .split_whitespace()
                .enumerate()
            {
                layers.places.insert(name.to_owned(), (floor_index, index));
            }
            let others = cells.next().unwrap_or_default().split_whitespace();
            let pairs = others.map(|other| (floor.to_owned(), other.to_owned()));
            layers.apart.extend(pairs);
        }
        layers
    }

    fn are_apart(&self, (own, other): (&String, &String)) -> bool {
        let is_between =
            |(a, b): &(String, String)| (a, b) == (own, other) || (b, a) == (own, other);
        self.apart.iter().any(is_between)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<!-- layers:begin -->\n| floor | crates |\n|---|---|\n| base | a b |\n\
                        | top | c |\n| proof | kit |\n<!-- layers:end -->\n";

    fn manifest(name: &str, rest: &str) -> String {
        format!("[package]\nname = \"{name}\"\n{rest}")
    }

    fn layer_findings(path: &str, text: &str) -> Vec<String> {
        let tree = Tree::of(&[(MAP, PAGE), (path, text)]);
        layers(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn use_of_an_earlier_crate_is_fine() {
        let text = manifest("c", "[dependencies]\na.workspace = true\nserde = \"1\"\n");
        assert!(layer_findings("crates/top/c/Cargo.toml", &text).is_empty());
        let text = manifest("a", "[dev-dependencies]\nkit.workspace = true\n");
        assert!(layer_findings("crates/base/a/Cargo.toml", &text).is_empty());
    }

    #[test]
    fn use_of_a_later_crate_is_refused() {
        let text = manifest("a", "[dependencies]\nb.workspace = true\n");
        let path = "crates/base/a/Cargo.toml";
        let expected = format!("{path}:0: `a` may not use `b`, which stands after it");
        assert_eq!(layer_findings(path, &text), [expected]);
        let text = manifest("a", "[dependencies]\nkit.workspace = true\n");
        assert_eq!(layer_findings(path, &text).len(), 1);
    }

    #[test]
    fn floors_apart_do_not_use_each_other() {
        let page = "<!-- layers:begin -->\n| floor | crates | apart from |\n|---|---|---|\n\
                    | base | a | |\n| left | b | |\n| right | c | left |\n| top | d | left |\n\
                    <!-- layers:end -->\n";
        let found = |path: &str, text: &str| {
            let findings = layers(&Tree::of(&[(MAP, page), (path, text)]));
            findings.len()
        };
        let uses = |name: &str, used: &str| {
            manifest(name, &format!("[dependencies]\n{used}.workspace = true\n"))
        };
        assert_eq!(found("crates/right/c/Cargo.toml", &uses("c", "a")), 0);
        assert_eq!(found("crates/right/c/Cargo.toml", &uses("c", "b")), 1);
        assert_eq!(found("crates/top/d/Cargo.toml", &uses("d", "b")), 1);
        assert_eq!(found("crates/top/d/Cargo.toml", &uses("d", "c")), 0);
        let test = manifest("c", "[dev-dependencies]\nb.workspace = true\n");
        assert_eq!(found("crates/right/c/Cargo.toml", &test), 0);
    }

    #[test]
    fn unknown_and_misplaced_crates_are_refused() {
        let found = layer_findings("crates/base/z/Cargo.toml", &manifest("z", ""));
        assert_eq!(
            found,
            ["crates/base/z/Cargo.toml:0: `z` is not in the layer table"]
        );
        let found = layer_findings("crates/base/c/Cargo.toml", &manifest("c", ""));
        assert_eq!(
            found,
            ["crates/base/c/Cargo.toml:0: `c` belongs to crates/top/c/Cargo.toml"]
        );
    }

    #[test]
    fn page_without_table_is_refused() {
        let found = layers(&Tree::of(&[(MAP, "# nothing")]));
        assert_eq!(
            found[0].message,
            "has no layer table between the layers marks"
        );
    }

    #[test]
    fn bare_manifest_is_refused() {
        let text = manifest("c", "");
        let found = manifests(&Tree::of(&[("crates/top/c/Cargo.toml", &text)]));
        let messages: Vec<_> = found
            .iter()
            .map(|finding| finding.message.as_str())
            .collect();
        assert_eq!(
            messages,
            ["has no description", "does not take the workspace's lints"]
        );
    }

    #[test]
    fn dependency_without_reason_is_refused() {
        let root = "[workspace.dependencies]\na = \"1\"\nserde = \"1\"\ntoml = \"1\"\n";
        let page = format!("{PAGE}\n## Dependencies\n* `toml`: settings\n## Next\n`serde`\n");
        let found = dependency_reasons(&Tree::of(&[(MAP, &page), ("Cargo.toml", root)]));
        let messages: Vec<_> = found
            .iter()
            .map(|finding| finding.message.as_str())
            .collect();
        assert_eq!(messages, ["no reason for `serde` under Dependencies"]);
    }
}
