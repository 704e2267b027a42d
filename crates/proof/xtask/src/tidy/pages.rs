//! Pages of the manual that are generated from tables in the source: they must match.

use super::tree::{Finding, Tree};

/// Path and text of each generated page.
pub(crate) fn generated() -> Vec<(&'static str, String)> {
    vec![("docs/settings.md", settings::reference_page())]
}

/// A generated page matches its table.
pub(crate) fn in_step(tree: &Tree) -> Vec<Finding> {
    compare(tree, &generated())
}

fn compare(tree: &Tree, pages: &[(&'static str, String)]) -> Vec<Finding> {
    let is_stale = |(path, text): &&(&str, String)| tree.text(path) != Some(text);
    let message = "differs from its table in the source: run `cargo xtask tidy --fix`";
    pages
        .iter()
        .filter(is_stale)
        .map(|(path, _)| Finding::new(path, 0, message))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_page_is_refused() {
        let tree = Tree::of(&[("docs/a.md", "old"), ("docs/b.md", "same")]);
        let pages = [
            ("docs/a.md", "new".to_owned()),
            ("docs/b.md", "same".to_owned()),
        ];
        let findings = compare(&tree, &pages);
        assert_eq!(
            findings.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["docs/a.md:0: differs from its table in the source: run `cargo xtask tidy --fix`"]
        );
    }
}
