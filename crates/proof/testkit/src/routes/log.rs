//! [`GeneralLog`]: which statements have come to a server, by the log that it writes itself.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::USERS;

/// See the module's head. The server has written a statement before it answers.
#[derive(Debug)]
pub(super) struct GeneralLog {
    path: PathBuf,
    /// What was read so far.
    offset: u64,
    /// The connections of clients. Statements also come by replication, on other threads.
    clients: HashSet<u64>,
}

/// A line that begins an entry.
#[derive(Debug, PartialEq, Eq)]
struct Entry<'a> {
    thread: u64,
    command: &'a str,
    text: &'a str,
}

impl GeneralLog {
    pub(super) fn new(path: PathBuf) -> GeneralLog {
        GeneralLog {
            path,
            offset: 0,
            clients: HashSet::new(),
        }
    }

    /// How many entries of clients have come since the last call with this command and mark.
    pub(super) fn count(&mut self, command: &str, mark: &str) -> Result<usize> {
        let mut file = File::open(&self.path).context("the server logs statements")?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        // The last line may not be whole.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n');
        bytes.truncate(whole.map_or(0, |it| it + 1));
        self.offset += stdx::to_u64(bytes.len());
        let text = String::from_utf8_lossy(&bytes);
        let mut count = 0;
        let mut is_counted = false;
        for line in text.lines() {
            let Some(entry) = entry(line) else {
                count += usize::from(is_counted && line.contains(mark));
                continue;
            };
            self.note(&entry);
            is_counted = entry.command == command && self.clients.contains(&entry.thread);
            count += usize::from(is_counted && entry.text.contains(mark));
        }
        Ok(count)
    }

    fn note(&mut self, entry: &Entry<'_>) {
        if entry.command == "Connect" || entry.command == "Change user" {
            let user = entry.text.split('@').next();
            match user.is_some_and(|it| USERS.contains(&it)) {
                true => self.clients.insert(entry.thread),
                false => self.clients.remove(&entry.thread),
            };
        }
    }
}

/// The entry that a line begins; `None` for a further line of a statement.
fn entry(line: &str) -> Option<Entry<'_>> {
    let (head, text) = line.trim_start_matches('\t').split_once('\t')?;
    let is_time = head.contains(':');
    let (head, text) = match is_time {
        true => text.split_once('\t')?,
        false => (head, text),
    };
    let (thread, command) = head.trim_start().split_once(' ')?;
    Some(Entry {
        thread: thread.parse().ok()?,
        command,
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_told_from_further_lines() {
        let read = |line| entry(line).map(|it| (it.thread, it.command, it.text));
        assert_eq!(
            read("\t\t    12 Query\tSELECT 1\t2"),
            Some((12, "Query", "SELECT 1\t2"))
        );
        assert_eq!(
            read("261128 17:00:01\t 12345 Connect\tapp@localhost on shop"),
            Some((12345, "Connect", "app@localhost on shop"))
        );
        assert_eq!(
            read("261128  7:00:01\t     3 Init DB\tshop"),
            Some((3, "Init DB", "shop"))
        );
        for line in ["FROM t", "Time\t\t    Id Command\tArgument", "", "\tb\tc"] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
