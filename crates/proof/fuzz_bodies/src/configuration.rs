//! The settings file: flat settings, sections, and the names of sections in others.

use settings::{Configuration, Settings};

pub(crate) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let mut configuration = Configuration::default();
    let mistakes = configuration.read_file(text);
    let line_count = 1 + text.matches('\n').count();
    assert!(mistakes.is_sorted_by_key(|mistake| mistake.line));
    for mistake in &mistakes {
        assert!((1..=line_count).contains(&mistake.line));
        assert_eq!(mistake.error.to_string().lines().count(), 1);
    }
    assert!(10 < configuration.settings.variables().len());
    for listener in configuration.sections.all("listener") {
        assert!((1..=line_count).contains(&listener.line()));
        let places = ["address", "socket"].map(|field| listener.text(field));
        let given = places.iter().flatten().count();
        assert!(given == 1 || !mistakes.is_empty());
    }
    // Reading it a second time gives the same.
    let mut again = Configuration::default();
    assert_eq!(again.read_file(text), mistakes);
    assert_eq!(again.settings, configuration.settings);
    for line in text.lines() {
        let _ = Settings::default().assign(line);
    }
}
