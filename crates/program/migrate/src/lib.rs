//! From a settings file of MaxScale or ProxySQL to one of a gateway.
//!
//! Text goes in, and text and notes come out: nothing here reads files or connects. A setting has
//! one of three ends. It is translated; or it needs nothing, because a gateway does the same; or a
//! [`Note`] names it and says what to do. None is dropped without a note.
//!
//! * `output` is the settings file that is written.
//! * `known` judges settings that have nothing to be translated to, by tables.
//! * `cache` is what a section `cache` has.
//! * `port` says what is a port.
//! * `condition` makes patterns and networks of rules out of theirs.
//! * `maxscale` and `proxysql` each have a parser and the translation.
#![forbid(unsafe_code)]

mod error;
mod note;

mod cache;
mod condition;
mod known;
mod output;
mod port;

mod maxscale;
mod proxysql;

pub use error::{ParseError, TranslateError, What};
pub use note::{Kind, Note};

/// The largest text of all files of a configuration together. Those of users have some kilobytes;
/// a dump of ProxySQL with thousands of rules has less than this.
pub const TEXT_BYTES_MAX: usize = 4 << 20;

/// A file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// By which notes and errors name it.
    pub name: String,
    /// What it says.
    pub text: String,
}

/// What became of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translation {
    /// The settings file of a gateway.
    pub text: String,
    /// What a person has to know, in the order of the files.
    pub notes: Vec<Note>,
}

/// Whose settings file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Sections with `name=value`.
    MaxScale,
    /// Groups and lists of libconfig.
    ProxySql,
}

impl Format {
    /// The format of a text. The first line that says something is a `[section]` of MaxScale, or
    /// the begin of a group of ProxySQL.
    pub fn of(text: &str) -> Format {
        let text = text.trim_start_matches(BYTE_ORDER_MARK);
        let says = |line: &&str| !line.is_empty() && !line.starts_with(['#', ';']);
        let first = text.lines().map(str::trim).find(says);
        match first.is_some_and(|it| it.starts_with('[')) {
            true => Format::MaxScale,
            false => Format::ProxySql,
        }
    }
}

/// Some editors begin a file with it.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Translates a configuration. The first file is the main one; those of MaxScale's
/// `maxscale.cnf.d` follow it.
///
/// # Errors
/// If a file cannot be read as its format, or has nothing that a gateway could be made of.
pub fn translate(format: Format, sources: &[Source]) -> Result<Translation, TranslateError> {
    let bytes: usize = sources.iter().map(|it| it.text.len()).sum();
    if TEXT_BYTES_MAX < bytes {
        return Err(TranslateError::TooLong { bytes });
    }
    let (mut output, mut notes) = match format {
        Format::MaxScale => maxscale::translate(sources)?,
        Format::ProxySql => proxysql::translate(sources)?,
    };
    // Names come from the files, and a note is a line.
    let one_line = |text: &mut String| *text = text.replace(char::is_control, " ");
    for note in &mut notes {
        one_line(&mut note.setting);
        one_line(&mut note.text);
    }
    let place = |note: &Note| {
        let file = sources.iter().position(|it| it.name == note.file);
        (file, note.line)
    };
    notes.sort_by_key(place);
    notes.dedup();
    output.comment_rest(notes.iter().map(Note::comment));
    Ok(Translation {
        text: output.render(),
        notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_apart_by_their_first_words() {
        for (text, format) in [
            ("# x\n; y\n\n  [maxscale]\nthreads=2", Format::MaxScale),
            ("\u{feff}[maxscale]", Format::MaxScale),
            ("# x\ndatadir=\"/var\"\n", Format::ProxySql),
            ("/* x */ mysql_servers = ( )", Format::ProxySql),
            ("", Format::ProxySql),
        ] {
            assert_eq!(Format::of(text), format, "{text}");
        }
    }

    #[test]
    fn texts_have_a_limit() {
        let of_length = |bytes: usize| {
            let text = format!("[a]\n#{}", "x".repeat(bytes - 5));
            let name = "a".to_owned();
            translate(Format::MaxScale, &[Source { name, text }]).unwrap_err()
        };
        for bytes in [TEXT_BYTES_MAX - 1, TEXT_BYTES_MAX] {
            let error = of_length(bytes);
            assert!(matches!(error, TranslateError::Empty { .. }), "{error:?}");
        }
        let error = of_length(TEXT_BYTES_MAX + 1);
        assert!(matches!(error, TranslateError::TooLong { .. }), "{error:?}");
    }
}
