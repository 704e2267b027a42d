//! The form of commit subjects.

use super::tree::{Finding, Tree};

/// Later commits are checked. Earlier ones broke the rule, and history is not rewritten.
pub(super) const JUDGED_SINCE: &str = "807bd5e0f4cb632959209daf12e093f6aeca23db";

/// The most columns of a subject: what `git log --oneline` shows on a narrow screen.
const SUBJECT_CHARS_MAX: usize = 72;

/// STYLE 32: `area: effect in the imperative`, without a full stop.
pub(super) fn subjects(tree: &Tree) -> Vec<Finding> {
    let told = tree.commits().filter_map(|(commit, subject)| {
        let length = subject.chars().count();
        let message = if SUBJECT_CHARS_MAX < length {
            format!("the subject has {length} characters, more than {SUBJECT_CHARS_MAX}")
        } else if !has_area(subject) {
            "the subject does not begin with `area: `".to_owned()
        } else if subject.ends_with('.') {
            "the subject ends in a full stop".to_owned()
        } else {
            return None;
        };
        Some(Finding::new(&format!("commit {commit}"), 0, message))
    });
    told.collect()
}

/// One or several names before a colon.
fn has_area(subject: &str) -> bool {
    let is_name = |name: &str| {
        let is_of_name =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-./".contains(c);
        !name.is_empty() && name.chars().all(is_of_name)
    };
    let area = subject.split_once(": ").map(|(area, _)| area);
    area.is_some_and(|area| area.split(", ").all(is_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(subject: &str) -> Vec<String> {
        let tree = Tree::default().with_commit("1a2b3c4", subject);
        subjects(&tree).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn subjects_are_held() {
        assert!(findings("lab, lock: link no private items").is_empty());
        assert!(findings(&format!("lab: {}", "x".repeat(67))).is_empty());
        assert_eq!(
            findings(&format!("lab: {}", "x".repeat(68))),
            ["commit 1a2b3c4:0: the subject has 73 characters, more than 72"]
        );
        assert_eq!(
            findings("mend a leak"),
            ["commit 1a2b3c4:0: the subject does not begin with `area: `"]
        );
        assert_eq!(
            findings("lab: mend a leak."),
            ["commit 1a2b3c4:0: the subject ends in a full stop"]
        );
    }
}
