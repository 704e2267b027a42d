//! Tests of the table of settings.

use std::collections::BTreeSet;

use super::*;
use crate::places::find;

#[test]
fn names_are_unique_and_well_formed() {
    let mut seen = BTreeSet::new();
    for setting in TABLE {
        for name in std::iter::once(&setting.name).chain(setting.aliases) {
            assert!(seen.insert(name), "{name} is declared twice");
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(name.chars().all(is_plain), "{name}");
        }
    }
}

#[test]
fn every_default_is_in_its_range_and_every_text_is_a_sentence() {
    for setting in TABLE {
        assert!(
            setting.kind.parse(setting.default).is_ok(),
            "{}",
            setting.name
        );
        assert!(setting.text.ends_with('.'), "{}", setting.name);
        assert!(
            !setting.text.contains('|'),
            "{} would break its table row",
            setting.name
        );
    }
}

#[test]
fn names_and_aliases_are_found_without_case() {
    assert_eq!(find("Max-Connections").unwrap().1.name, "max_connections");
    assert_eq!(
        find("innodb_buffer_pool_size").unwrap().1.name,
        "buffer_pool_size"
    );
    assert!(find("nothing").is_none());
}
