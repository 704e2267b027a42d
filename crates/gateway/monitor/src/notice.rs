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
