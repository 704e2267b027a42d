//! [`Output`]: the settings file that a translation writes.
//!
//! It has settings, then sections in the order in which they were added. Each may have comments in
//! front. Values are written by the library that reads them, so any text comes back as it was.

use std::collections::HashSet;
use std::fmt::Write as _;

use toml::Value;

/// Columns of a comment.
const COLUMNS: usize = 96;

/// The limit of names in a settings file.
const NAME_BYTES_MAX: usize = 64;

/// A settings file.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// The settings in front of all sections.
    pub(crate) head: Block,
    /// The sections, each with its header.
    sections: Vec<(String, Block)>,
    /// Comments at the end.
    tail: Vec<String>,
}

/// Comments, and the values that stand behind them.
#[derive(Debug, Default)]
pub(crate) struct Block {
    comments: Vec<String>,
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    comment: Option<&'static str>,
    name: &'static str,
    value: Value,
}

impl Output {
    /// Adds a section of which a file may have several.
    pub(crate) fn add(&mut self, section: &str, block: Block) {
        self.sections.push((format!("[[{section}]]"), block));
    }

    /// Adds a section of which a file has one.
    pub(crate) fn add_only(&mut self, section: &str, block: Block) {
        self.sections.push((format!("[{section}]"), block));
    }

    /// Puts comments that stand nowhere yet to the end.
    pub(crate) fn comment_rest(&mut self, all: impl Iterator<Item = String>) {
        let blocks = self
            .sections
            .iter()
            .map(|(_, block)| block)
            .chain([&self.head]);
        let said: HashSet<&String> = blocks.flat_map(|it| &it.comments).collect();
        let rest: Vec<String> = all.filter(|it| !said.contains(it)).collect();
        if !rest.is_empty() {
            self.tail.push("What has no section here:".to_owned());
            self.tail.extend(rest);
        }
    }

    pub(crate) fn render(&self) -> String {
        let mut text = String::new();
        self.head.render(None, &mut text);
        for (header, block) in &self.sections {
            text.push('\n');
            block.render(Some(header), &mut text);
        }
        if !self.tail.is_empty() {
            text.push('\n');
        }
        for words in &self.tail {
            comment(&mut text, words);
        }
        text
    }
}

impl Block {
    /// A comment in front of all values. It is wrapped.
    pub(crate) fn comment(&mut self, words: impl Into<String>) {
        self.comments.push(words.into());
    }

    pub(crate) fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        self.fields.push(Field {
            comment: None,
            name,
            value: value.into(),
        });
    }

    /// The same, with a comment of its own.
    pub(crate) fn explain(
        &mut self,
        name: &'static str,
        value: impl Into<Value>,
        comment: &'static str,
    ) {
        self.set(name, value);
        if let Some(field) = self.fields.last_mut() {
            field.comment = Some(comment);
        }
    }

    /// Adds what another one has.
    pub(crate) fn append(&mut self, other: Block) {
        self.comments.extend(other.comments);
        self.fields.extend(other.fields);
    }

    /// Sets its name, which stands first.
    pub(crate) fn set_name(&mut self, name: String) {
        let field = Field {
            comment: None,
            name: "name",
            value: Value::String(name),
        };
        self.fields.insert(0, field);
    }

    fn render(&self, header: Option<&str>, text: &mut String) {
        for words in &self.comments {
            comment(text, words);
        }
        if let Some(header) = header {
            let _ = writeln!(text, "{header}");
        }
        for field in &self.fields {
            if let Some(words) = field.comment {
                comment(text, words);
            }
            let _ = writeln!(text, "{} = {}", field.name, field.value);
        }
    }
}

/// Appends a comment, in lines of at most [`COLUMNS`].
fn comment(text: &mut String, words: &str) {
    let mut line = String::from("#");
    for word in words.split_whitespace() {
        // TOML allows no control characters in comments.
        let word: String = word.chars().filter(|c| !c.is_control()).collect();
        if COLUMNS < line.len() + 1 + word.len() && line != "#" {
            let _ = writeln!(text, "{line}");
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(&word);
    }
    let _ = writeln!(text, "{line}");
}

/// Seconds, without a fraction if there is none.
pub(crate) fn seconds(milliseconds: u64) -> Value {
    let whole = i64::try_from(milliseconds / 1000).unwrap_or(i64::MAX);
    match u32::try_from(milliseconds % 1000).unwrap_or_default() {
        0 => Value::Integer(whole),
        rest => {
            let whole = u32::try_from(whole).unwrap_or(u32::MAX);
            Value::Float(f64::from(whole) + f64::from(rest) / 1000.0)
        }
    }
}

/// Seconds of a field that takes up to a year of them.
pub(crate) fn seconds_of_year(milliseconds: u64) -> Value {
    seconds(milliseconds.min(YEAR_MS))
}

const YEAR_MS: u64 = 31_536_000_000;

/// A number of bytes, or of something else.
pub(crate) fn whole(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// A list of texts.
pub(crate) fn texts(texts: impl IntoIterator<Item = String>) -> Value {
    Value::Array(texts.into_iter().map(Value::String).collect())
}

/// Names of one kind that a settings file takes, each once whatever the case of its letters.
#[derive(Debug, Default)]
pub(crate) struct Names(Vec<String>);

impl Names {
    /// A name like this one.
    pub(crate) fn make(&mut self, wanted: &str) -> String {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let letter = |c: char| if is_letter(c) { c } else { '-' };
        let name: String = wanted.chars().map(letter).take(NAME_BYTES_MAX).collect();
        let name = match name.is_empty() {
            true => "unnamed".to_owned(),
            false => name,
        };
        let mut made = name.clone();
        let mut number = 1;
        while self.0.iter().any(|it| it.eq_ignore_ascii_case(&made)) {
            number += 1;
            let end = format!("-{number}");
            let begin: String = name.chars().take(NAME_BYTES_MAX - end.len()).collect();
            made = begin + &end;
        }
        self.0.push(made.clone());
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_wrapped_and_values_come_back() {
        let mut output = Output::default();
        output.head.comment("word ".repeat(40));
        output.head.set("listen", "[::]:3306");
        let mut block = Block::default();
        block.comment("a\nb \u{7} c");
        block.set("password", "a\"b\\\u{7f}\n'");
        block.explain("interval", seconds(1500), "why");
        block.set("users", texts(["a".to_owned(), "b".to_owned()]));
        output.add("monitor", block);
        output.add_only("query_log", Block::default());
        let text = output.render();
        assert!(text.lines().all(|line| line.len() <= COLUMNS), "{text}");
        let read: toml::Table = text.parse().unwrap();
        assert_eq!(read["listen"].as_str(), Some("[::]:3306"));
        let monitor = &read["monitor"][0];
        assert_eq!(monitor["password"].as_str(), Some("a\"b\\\u{7f}\n'"));
        assert_eq!(monitor["interval"].as_float(), Some(1.5));
        assert_eq!(monitor["users"][1].as_str(), Some("b"));
        assert!(text.contains("\n# why\ninterval = 1.5\n"), "{text}");
        assert!(read["query_log"].is_table(), "{text}");
    }

    #[test]
    fn names_are_made_valid_and_told_apart() {
        let mut names = Names::default();
        assert_eq!(names.make("Read Split"), "Read-Split");
        assert_eq!(names.make("read-split"), "read-split-2");
        assert_eq!(names.make(""), "unnamed");
        for bytes in [NAME_BYTES_MAX - 1, NAME_BYTES_MAX, NAME_BYTES_MAX + 1] {
            let name = names.make(&"n".repeat(bytes));
            assert!(
                name.len() <= NAME_BYTES_MAX && name.starts_with("nnn"),
                "{name}"
            );
        }
        let again = names.make(&"n".repeat(NAME_BYTES_MAX));
        assert!(
            again.len() == NAME_BYTES_MAX && again.ends_with("-3"),
            "{again}"
        );
    }

    #[test]
    fn seconds_have_a_fraction_if_they_need_one() {
        assert_eq!(seconds(2000).to_string(), "2");
        assert_eq!(seconds(600).to_string(), "0.6");
        assert_eq!(seconds(0).to_string(), "0");
    }
}
