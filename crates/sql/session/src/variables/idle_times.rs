//! How long a client may be silent.

use settings::Settings;

/// The variables that limit how long a client is silent, in seconds. As in MariaDB, a limit of
/// transactions counts in place of `wait_timeout`, also if it is longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleTimes {
    /// `wait_timeout`.
    outside_s: u64,
    /// `idle_transaction_timeout`; 0 for none, as in the next two.
    transaction_s: u64,
    /// `idle_readonly_transaction_timeout`.
    readonly_transaction_s: u64,
    /// `idle_write_transaction_timeout`.
    write_transaction_s: u64,
}

impl IdleTimes {
    /// Those of a session.
    pub fn of(values: &Settings) -> Self {
        Self {
            outside_s: values.unsigned("wait_timeout"),
            transaction_s: values.unsigned("idle_transaction_timeout"),
            readonly_transaction_s: values.unsigned("idle_readonly_transaction_timeout"),
            write_transaction_s: values.unsigned("idle_write_transaction_timeout"),
        }
    }

    /// Seconds for a client outside of a transaction.
    pub fn outside_s(&self) -> u64 {
        self.outside_s
    }

    /// Seconds for a client inside of a transaction that has changed nothing.
    pub fn reading_s(&self) -> u64 {
        self.inside_s(self.readonly_transaction_s)
    }

    /// Seconds for a client inside of a transaction that has changed something.
    pub fn writing_s(&self) -> u64 {
        self.inside_s(self.write_transaction_s)
    }

    fn inside_s(&self, own_s: u64) -> u64 {
        let limits = [own_s, self.transaction_s];
        let limit = limits.into_iter().find(|limit| *limit != 0);
        limit.unwrap_or(self.outside_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_the_kind_of_transaction_comes_first() {
        for (transaction_s, readonly_transaction_s, write_transaction_s, expected) in [
            (0, 0, 0, (9, 9)),
            (5, 0, 0, (5, 5)),
            (50, 0, 0, (50, 50)),
            (5, 6, 0, (6, 5)),
            (5, 0, 7, (5, 7)),
            (0, 0, 7, (9, 7)),
        ] {
            let times = IdleTimes {
                outside_s: 9,
                transaction_s,
                readonly_transaction_s,
                write_transaction_s,
            };
            assert_eq!(times.outside_s(), 9);
            let limits = (times.reading_s(), times.writing_s());
            assert_eq!(limits, expected, "{times:?}");
        }
    }
}
