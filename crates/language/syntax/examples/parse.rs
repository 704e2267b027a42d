//! Parses each statement of a file and says which fail: a statement is a line, or, in a file
//! that holds zero bytes, what stands between them.
#![expect(clippy::print_stdout, reason = "a tool for people")]

use syntax::{Mode, parse};

fn main() {
    let path = std::env::args().nth(1).unwrap_or_default();
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let separator = if text.contains('\0') { '\0' } else { '\n' };
    for line in text
        .split(separator)
        .filter(|line| !line.starts_with("--") && !line.is_empty())
    {
        match parse(line.as_bytes(), Mode::default()) {
            Ok(_) => {}
            Err(error) => println!("{:.300}\n    {} near '{}'", line, error.code(), error.near),
        }
    }
}
