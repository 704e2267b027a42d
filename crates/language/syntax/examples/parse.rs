//! Parses each statement of a file, `-- @group` lines between them, and says which fail.
#![expect(clippy::print_stdout, reason = "a tool for people")]

use syntax::{Mode, parse};

fn main() {
    let path = std::env::args().nth(1).unwrap_or_default();
    let text = std::fs::read_to_string(path).unwrap_or_default();
    for line in text.lines().filter(|line| !line.starts_with("-- @")) {
        match parse(line.as_bytes(), Mode::default()) {
            Ok(_) => {}
            Err(error) => println!("{line}\n    {} near '{}'", error.code(), error.near),
        }
    }
}
