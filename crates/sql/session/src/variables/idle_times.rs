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

/// A limit that holds for a silent client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleLimit {
    /// The variable that sets it.
    pub variable: &'static str,
    /// How long the client may be silent.
    pub seconds: u64,
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

    /// For a client outside of a transaction.
    pub fn outside(&self) -> IdleLimit {
        IdleLimit {
            variable: "wait_timeout",
            seconds: self.outside_s,
        }
    }

    /// For a client inside of a transaction that has changed nothing.
    pub fn reading(&self) -> IdleLimit {
        self.inside(IdleLimit {
            variable: "idle_readonly_transaction_timeout",
            seconds: self.readonly_transaction_s,
        })
    }

    /// For a client inside of a transaction that has changed something.
    pub fn writing(&self) -> IdleLimit {
        self.inside(IdleLimit {
            variable: "idle_write_transaction_timeout",
            seconds: self.write_transaction_s,
        })
    }

    fn inside(&self, own: IdleLimit) -> IdleLimit {
        let any = IdleLimit {
            variable: "idle_transaction_timeout",
            seconds: self.transaction_s,
        };
        let mut limits = [own, any].into_iter();
        let limit = limits.find(|limit| limit.seconds != 0);
        limit.unwrap_or_else(|| self.outside())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTSIDE: &str = "wait_timeout";
    const ANY: &str = "idle_transaction_timeout";
    const READING: &str = "idle_readonly_transaction_timeout";
    const WRITING: &str = "idle_write_transaction_timeout";

    #[test]
    fn the_limit_of_the_kind_of_transaction_comes_first() {
        for (transaction_s, readonly_transaction_s, write_transaction_s, expected) in [
            (0, 0, 0, [(OUTSIDE, 9), (OUTSIDE, 9)]),
            (5, 0, 0, [(ANY, 5), (ANY, 5)]),
            (50, 0, 0, [(ANY, 50), (ANY, 50)]),
            (5, 6, 0, [(READING, 6), (ANY, 5)]),
            (5, 0, 7, [(ANY, 5), (WRITING, 7)]),
            (0, 0, 7, [(OUTSIDE, 9), (WRITING, 7)]),
        ] {
            let times = IdleTimes {
                outside_s: 9,
                transaction_s,
                readonly_transaction_s,
                write_transaction_s,
            };
            let named = |limit: IdleLimit| (limit.variable, limit.seconds);
            assert_eq!(named(times.outside()), (OUTSIDE, 9));
            let limits = [named(times.reading()), named(times.writing())];
            assert_eq!(limits, expected, "{times:?}");
        }
    }
}
