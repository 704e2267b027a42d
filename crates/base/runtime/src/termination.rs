//! Signals that ask the process to end: SIGTERM, SIGINT, SIGQUIT and SIGHUP. SIGXFSZ would end a
//! process that has a limit for its files: it is caught, and the write fails (EFBIG).

use std::fmt;
use std::io;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

/// Catches the signals that ask a program to end, from [`Terminations::install`] on and for good. A
/// signal that was caught and not waited for is lost, but does not kill.
pub struct Terminations {
    signals: Signals,
}

/// Which signal came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Termination {
    /// SIGTERM: a service manager, mostly.
    Terminate,
    /// SIGINT: Ctrl-C at the terminal.
    Interrupt,
    /// SIGQUIT: Ctrl-\ at the terminal. Scripts that ended mariadbd by it go on working.
    Quit,
    /// SIGHUP: the terminal is gone.
    HangUp,
}

impl Terminations {
    /// Starts to catch signals.
    pub fn install() -> io::Result<Self> {
        Ok(Self {
            signals: Signals::new([SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGXFSZ])?,
        })
    }

    /// Blocks this thread until a signal comes. The main thread calls it once all is started, then
    /// calls [`Handle::shutdown`](crate::Handle::shutdown); on a second signal it stops without
    /// patience.
    pub fn wait(&mut self) -> Termination {
        loop {
            // `forever` ends only if its handle is closed, and no code closes it.
            match self.signals.forever().next() {
                Some(SIGINT) => return Termination::Interrupt,
                Some(SIGQUIT) => return Termination::Quit,
                Some(SIGHUP) => return Termination::HangUp,
                Some(SIGTERM) => return Termination::Terminate,
                _ => {}
            }
        }
    }
}

impl fmt::Debug for Terminations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Terminations")
    }
}

impl fmt::Display for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
            Self::Quit => "SIGQUIT",
            Self::HangUp => "SIGHUP",
        })
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    #[test]
    fn signals_are_caught_and_told_apart() {
        let mut terminations = Terminations::install().unwrap();
        for (signal, expected) in [
            (Signal::TERM, Termination::Terminate),
            (Signal::INT, Termination::Interrupt),
            (Signal::QUIT, Termination::Quit),
            (Signal::HUP, Termination::HangUp),
        ] {
            kill_process(getpid(), signal).unwrap();
            assert_eq!(terminations.wait(), expected);
        }
    }
}
