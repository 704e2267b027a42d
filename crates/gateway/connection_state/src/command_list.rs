//! [`CommandList`]: commands as one value that is cheap to share and to compare.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Commands in their order: those that a session needs, or those that a connection has run since
/// its login. Connections with equal lists are alike.
///
/// Of each command it has the first byte, the length of the rest in four bytes, and the rest.
#[derive(Debug, Clone, Default)]
pub struct CommandList(Arc<[u8]>);

impl CommandList {
    /// The list of these commands: their first bytes and the rest of each.
    pub fn of<'a>(commands: impl Iterator<Item = (u8, &'a [u8])>) -> CommandList {
        let mut bytes = Vec::new();
        for (byte, body) in commands {
            let length = u32::try_from(body.len()).expect("no packet has so much");
            bytes.push(byte);
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(body);
        }
        CommandList(bytes.into())
    }

    /// All of it, encoded.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All commands: their first bytes and the rest of each.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &[u8])> {
        commands(&self.0)
    }

    /// The commands behind those of `done`. `None` if this list does not begin with these.
    pub fn behind<'a>(
        &'a self,
        done: &CommandList,
    ) -> Option<impl Iterator<Item = (u8, &'a [u8])> + use<'a>> {
        // Each command tells its length, so the prefix ends where a command does.
        self.0.strip_prefix(&*done.0).map(commands)
    }
}

impl PartialEq for CommandList {
    fn eq(&self, other: &CommandList) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for CommandList {}

impl Hash for CommandList {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

fn commands(bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (byte, behind) = rest.split_first()?;
        let (length, behind) = behind.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (body, behind) = behind.split_at_checked(length)?;
        rest = behind;
        Some((*byte, body))
    })
}

#[cfg(test)]
mod tests {
    use wire::CommandByte;

    use super::*;

    fn list(texts: &[&'static str]) -> CommandList {
        let command = |text: &&'static str| (CommandByte::QUERY, text.as_bytes());
        CommandList::of(texts.iter().map(command))
    }

    fn texts<'a>(commands: impl Iterator<Item = (u8, &'a [u8])>) -> Vec<&'a str> {
        let text = |(byte, body)| {
            assert_eq!(byte, CommandByte::QUERY);
            str::from_utf8(body).unwrap()
        };
        commands.map(text).collect()
    }

    #[test]
    fn a_list_knows_what_it_has_beyond_another() {
        let all = list(&["SET a = 1", "", "SET b = 2"]);
        assert_eq!(texts(all.iter()), ["SET a = 1", "", "SET b = 2"]);
        let behind = |done: &[&'static str]| all.behind(&list(done)).map(texts);
        assert_eq!(behind(&[]), Some(vec!["SET a = 1", "", "SET b = 2"]));
        assert_eq!(behind(&["SET a = 1"]), Some(vec!["", "SET b = 2"]));
        assert_eq!(behind(&["SET a = 1", "", "SET b = 2"]), Some(vec![]));
        for other in [
            &["SET a = "][..],
            &["SET b = 2"],
            &["SET a = 1", "", "SET b = 2", "SET c = 3"],
        ] {
            assert_eq!(behind(other), None, "{other:?}");
        }
        assert_eq!(all, list(&["SET a = 1", "", "SET b = 2"]));
        assert_ne!(all, list(&["SET a = 1", "SET b = 2"]));
        assert!(CommandList::default().is_empty());
    }
}
