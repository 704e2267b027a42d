//! Files of MaxScale and ProxySQL, and the settings files that are made of them.

use migrate::{Format, Source, TranslateError};
use settings::{Configuration, FileError};

pub(crate) fn run_maxscale(input: &[u8]) {
    // A second file is what `maxscale.cnf.d` has.
    let text = String::from_utf8_lossy(input);
    let (main, other) = text.split_once('\0').unwrap_or((&text, ""));
    run(Format::MaxScale, &[main, other]);
}

pub(crate) fn run_proxysql(input: &[u8]) {
    run(Format::ProxySql, &[&String::from_utf8_lossy(input)]);
}

fn run(format: Format, texts: &[&str]) {
    let source = |(place, text): (usize, &&str)| Source {
        name: place.to_string(),
        text: (*text).to_owned(),
    };
    let sources: Vec<Source> = texts.iter().enumerate().map(source).collect();
    let is_line = |file: &str, line: usize| {
        let text = sources.iter().find(|it| it.name == file).map(|it| &it.text);
        let count = text.map_or(0, |it| 1 + it.matches('\n').count());
        (1..=count).contains(&line)
    };
    let made = match migrate::translate(format, &sources) {
        Ok(made) => made,
        Err(TranslateError::Parse(error)) => {
            assert!(is_line(&error.file, error.line), "{error}");
            return;
        }
        Err(TranslateError::Empty { .. } | TranslateError::TooLong { .. }) => return,
    };
    for note in &made.notes {
        assert!(is_line(&note.file, note.line), "{note}");
        assert_eq!(note.to_string().lines().count(), 1, "{note}");
        assert!(!note.text.is_empty(), "{note}");
    }
    let mistakes = Configuration::default().read_file(&made.text);
    let is_too_large = |it: &FileError| matches!(it, FileError::TooManySections { .. });
    if mistakes.iter().any(|it| is_too_large(&it.error)) {
        return;
    }
    // Values may be wrong, as an address that is none. The form of the file is right.
    for mistake in mistakes {
        let is_value = matches!(
            mistake.error,
            FileError::Setting(_)
                | FileError::FieldRefused { .. }
                | FileError::TooManyValues { .. }
        );
        assert!(is_value, "{mistake:?}\n{}", made.text);
    }
}
