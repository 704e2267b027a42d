//! [`End`]: why a session ended.

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Its client has said that it goes.
    Quit,
    /// Its client was gone, or broke the protocol.
    Client,
    /// Its client was silent for too long.
    Idle,
    /// Its server was gone, or broke the protocol.
    Server,
    /// No server could be connected to.
    NoServer,
    /// The servers no longer let its client in.
    Refused,
    /// By KILL.
    Killed,
    /// The gateway shuts down.
    Shutdown,
}

impl End {
    /// How many there are.
    pub const COUNT: usize = End::ALL.len();

    /// Each of them.
    pub const ALL: [End; 8] = [
        End::Quit,
        End::Client,
        End::Idle,
        End::Server,
        End::NoServer,
        End::Refused,
        End::Killed,
        End::Shutdown,
    ];

    /// What it is called among the gateway's numbers.
    pub(crate) fn name(self) -> &'static str {
        match self {
            End::Quit => "quit",
            End::Client => "client_gone",
            End::Idle => "idle",
            End::Server => "server_gone",
            End::NoServer => "no_server",
            End::Refused => "refused",
            End::Killed => "killed",
            End::Shutdown => "shutdown",
        }
    }

    /// Its place in [`End::ALL`].
    pub(crate) fn index(self) -> usize {
        let found = End::ALL.iter().position(|end| *end == self);
        found.expect("all are listed")
    }
}
