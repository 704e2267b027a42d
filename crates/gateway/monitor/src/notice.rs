//! [`Notice`]: what is wrong with the servers together.

use crate::state::ServerId;

/// Something wrong that lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notice {
    /// No server takes writes.
    NoPrimary,
    /// A second server is writable beside the primary, and does not replicate from a listed one.
    SecondWritable(ServerId),
    /// A server replicates from one that is not listed.
    SourceNotListed(ServerId),
    /// Two servers have one `server_id`, so that sources are found by address alone.
    SameNumber(ServerId, ServerId),
    /// The account may not ask how the server's replication does.
    Denied(ServerId),
    /// The server belongs to another Galera cluster, or to another half of a split one.
    OtherCluster(ServerId),
    /// Flow control holds the server for a large share of the time.
    FlowControl(ServerId),
}

impl Notice {
    /// The problem in words, and the server that it is about.
    pub(crate) fn shown(&self) -> (&'static str, Option<ServerId>) {
        match *self {
            Notice::NoPrimary => ("no server takes writes", None),
            Notice::SecondWritable(server) => ("second writable server", Some(server)),
            Notice::SourceNotListed(server) => {
                ("replicates from a server that is not listed", Some(server))
            }
            Notice::SameNumber(server, _) => ("two servers have one server_id", Some(server)),
            Notice::Denied(server) => ("account may not see replication", Some(server)),
            Notice::OtherCluster(server) => ("server is in another Galera cluster", Some(server)),
            Notice::FlowControl(server) => ("flow control holds the Galera cluster", Some(server)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_told_in_words_with_its_server() {
        let about = |notice: Notice| notice.shown();
        assert_eq!(about(Notice::NoPrimary), ("no server takes writes", None));
        let second = about(Notice::SecondWritable(ServerId(2)));
        assert_eq!(second, ("second writable server", Some(ServerId(2))));
        let (_, server) = about(Notice::SameNumber(ServerId(1), ServerId(2)));
        assert_eq!(server, Some(ServerId(1)));
    }
}
