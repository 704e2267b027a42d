//! How long a client may be silent.

use settings::Settings;

/// The variables that limit how long a client is silent, in seconds. As in MariaDB, a limit of
/// transactions counts in place of `wait_timeout`, also if it is longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleTimes {
    /// `wait_timeout`.
    outside: u64,
    /// `idle_transaction_timeout`; 0 for none, as in the next two.
    transaction: u64,
    /// `idle_readonly_transaction_timeout`.
    readonly_transaction: u64,
    /// `idle_write_transaction_timeout`.
    write_transaction: u64,
}

impl IdleTimes {
    /// Those of a session.
    pub fn of(values: &Settings) -> Self {
        Self {
            outside: values.unsigned("wait_timeout"),
            transaction: values.unsigned("idle_transaction_timeout"),
            readonly_transaction: values.unsigned("idle_readonly_transaction_timeout"),
            write_transaction: values.unsigned("idle_write_transaction_timeout"),
        }
    }

    /// Seconds for a client outside of a transaction.
    pub fn outside(&self) -> u64 {
        self.outside
    }

    /// Seconds for a client inside of a transaction that has changed nothing.
    pub fn reading(&self) -> u64 {
        self.inside(self.readonly_transaction)
    }

    /// Seconds for a client inside of a transaction that has changed something.
    pub fn writing(&self) -> u64 {
        self.inside(self.write_transaction)
    }

    fn inside(&self, own: u64) -> u64 {
        let limits = [own, self.transaction];
        let limit = limits.into_iter().find(|limit| *limit != 0);
        limit.unwrap_or(self.outside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_the_kind_of_transaction_comes_first() {
        for (transaction, readonly_transaction, write_transaction, expected) in [
            (0, 0, 0, (9, 9)),
            (5, 0, 0, (5, 5)),
            (50, 0, 0, (50, 50)),
            (5, 6, 0, (6, 5)),
            (5, 0, 7, (5, 7)),
            (0, 0, 7, (9, 7)),
        ] {
            let times = IdleTimes {
                outside: 9,
                transaction,
                readonly_transaction,
                write_transaction,
            };
            assert_eq!(times.outside(), 9);
            let limits = (times.reading(), times.writing());
            assert_eq!(limits, expected, "{times:?}");
        }
    }
}
