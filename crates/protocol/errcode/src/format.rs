//! Fills arguments into a message format of the table.
//!
//! The formats are MariaDB's own dialect of `printf`, so that they can be compared with its files.
//! These places are supported, all with an optional `-`, width and `.precision` (the most bytes
//! taken; `*` means all):
//!
//! | place | prints |
//! |---|---|
//! | `%s` | the argument, cut to the precision |
//! | `` %`s `` | the argument as a quoted identifier, quotes inside doubled |
//! | `%T` | the argument; one longer than the precision ends in `...` |
//! | `%d` `%u` `%ld` `%lu` `%lld` `%llu` | the argument, which should be a number |
//! | `%M` | a system error number followed by its text in quotes |
//! | `%%` | a percent sign |

use std::fmt::{Display, Write as _};

/// Fills `arguments` into `format`.
///
/// A format with more places than arguments gets `(null)`. That is a bug of the caller, but not
/// worth a crash.
pub(crate) fn fill(format: &str, arguments: &[&dyn Display]) -> String {
    let mut message = String::with_capacity(format.len() + 32);
    let mut arguments = arguments.iter();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        let (before, from_percent) = rest.split_at(at);
        message.push_str(before);
        let (place, after) = Place::parse(from_percent);
        rest = after;
        match place {
            Some(Place {
                kind: Kind::Percent,
                ..
            }) => message.push('%'),
            Some(place) => match arguments.next() {
                Some(argument) => place.print(&mut message, *argument),
                None => message.push_str("(null)"),
            },
            None => message.push('%'),
        }
    }
    message.push_str(rest);
    message
}

/// Number of arguments that `format` has places for.
pub(crate) fn places(format: &str) -> usize {
    let mut count = 0;
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        let (place, after) = Place::parse(rest.split_at(at).1);
        count += usize::from(place.is_some_and(|place| place.kind != Kind::Percent));
        rest = after;
    }
    count
}

/// What is printed at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Percent,
    Text,
    Dotted,
    Number,
    SystemError,
}

/// One `%` place of a format.
#[derive(Debug, Clone, Copy)]
struct Place {
    kind: Kind,
    quoted: bool,
    bytes_max: usize,
}

impl Place {
    /// Parses the place at the start of `text`, which starts with `%`, and returns the rest. `None`
    /// means a percent sign that begins no place.
    fn parse(text: &str) -> (Option<Place>, &str) {
        let body = text.strip_prefix('%').unwrap_or(text);
        let quoted = body.starts_with('`');
        let after_flags = body.trim_start_matches(['`', '-']);
        let after_width = after_flags.trim_start_matches(|c: char| c.is_ascii_digit() || c == '*');
        let (bytes_max, after_precision) = match after_width.strip_prefix('.') {
            Some(precision) => {
                let end = precision
                    .find(|c: char| !c.is_ascii_digit())
                    .unwrap_or(precision.len());
                let (digits, after) = precision.split_at(end);
                (
                    digits.parse().unwrap_or(usize::MAX),
                    after.trim_start_matches('*'),
                )
            }
            None => (usize::MAX, after_width),
        };
        let after_size = after_precision.trim_start_matches('l');
        let kind = match after_size.bytes().next() {
            Some(b'%') => Kind::Percent,
            Some(b's') => Kind::Text,
            Some(b'T') => Kind::Dotted,
            Some(b'd' | b'u') => Kind::Number,
            Some(b'M') => Kind::SystemError,
            Some(_) | None => return (None, body),
        };
        let after = after_size.get(1..).unwrap_or("");
        (
            Some(Place {
                kind,
                quoted,
                bytes_max,
            }),
            after,
        )
    }

    fn print(self, message: &mut String, argument: &dyn Display) {
        let text = argument.to_string();
        match self.kind {
            Kind::Percent => message.push('%'),
            Kind::Number => message.push_str(&text),
            Kind::SystemError => print_system_error(message, &text),
            Kind::Text if self.quoted => {
                message.push('`');
                message.push_str(&prefix(&text, self.bytes_max).replace('`', "``"));
                message.push('`');
            }
            Kind::Text => message.push_str(prefix(&text, self.bytes_max)),
            Kind::Dotted if text.len() > self.bytes_max => {
                message.push_str(prefix(&text, self.bytes_max.saturating_sub(3)));
                message.push_str("...");
            }
            Kind::Dotted => message.push_str(&text),
        }
    }
}

/// The longest prefix of `text` that has at most `bytes_max` bytes and ends between characters.
pub(crate) fn prefix(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max))
        .unwrap_or(text)
}

/// Number and text of an error of the operating system, or of a storage engine (120 and above,
/// MariaDB's `HA_ERR_*`).
fn print_system_error(message: &mut String, number: &str) {
    let text = match number.parse::<i32>() {
        Ok(121) => "Duplicate key on write or update".to_owned(),
        Ok(122) => "Internal (unspecified) error in handler".to_owned(),
        Ok(number @ 0..=119) => {
            let text = std::io::Error::from_raw_os_error(number).to_string();
            text.split(" (os error")
                .next()
                .unwrap_or_default()
                .to_owned()
        }
        Ok(_) | Err(_) => "Internal error/check (Not system error)".to_owned(),
    };
    write!(message, "{number} \"{text}\"").expect("writing to a String does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_to_its_precision_between_characters() {
        assert_eq!(fill("a '%-.3s' b", &[&"xyzw"]), "a 'xyz' b");
        assert_eq!(fill("%-.3s", &[&"x\u{e9}\u{e9}"]), "x\u{e9}");
        assert_eq!(fill("%-.*s!", &[&"name"]), "name!");
    }

    #[test]
    fn dotted_text_shows_that_it_was_cut() {
        assert_eq!(fill("%-.8T", &[&"abcdefgh"]), "abcdefgh");
        assert_eq!(fill("%-.8T", &[&"abcdefghi"]), "abcde...");
    }

    #[test]
    fn identifiers_are_quoted() {
        assert_eq!(fill("%`s.%`-.192s", &[&"a", &"b`c"]), "`a`.`b``c`");
    }

    #[test]
    fn numbers_percent_and_system_errors() {
        assert_eq!(fill("%d%% of %llu", &[&5, &7_u64]), "5% of 7");
        assert_eq!(
            fill("(errno: %M)", &[&2]),
            "(errno: 2 \"No such file or directory\")"
        );
        assert_eq!(
            fill("%M", &[&121]),
            "121 \"Duplicate key on write or update\""
        );
    }

    #[test]
    fn wrong_argument_counts_do_no_harm() {
        assert_eq!(fill("%s and %s", &[&"one"]), "one and (null)");
        assert_eq!(fill("none", &[&"one"]), "none");
        assert_eq!(fill("100% sure", &[&"one"]), "100% sure");
        assert_eq!(fill("ends in %", &[]), "ends in %");
        assert_eq!(places("%s %% %-.64T %`s % x"), 3);
    }
}
