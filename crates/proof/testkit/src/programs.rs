//! Random programs of several clients: through shared connections each gets, byte for byte, what a
//! private connection gives it.
//!
//! ```text
//! seed -- Program::draw --> Program -- play (few connections, turns by the seed) --> replies
//!                                   -- play_alone (a connection each) -----------> replies
//!                                                                    compare: Difference
//! ```
//!
//! * `action`: what a client does, and how it is sent.
//! * `draw`: the grammar. It has each item of the state that a session can have.
//! * `reply`: where the reply to a command ends.
//! * `play`: runs programs and keeps the replies.
//! * `stage`: what is prepared on a server, and rounds: draw, play twice, compare, reduce.
//! * `planted`: a proxy with one mistake, which the comparison must find.
//! * `trouble`: a proxy that is slow and breaks connections in the middle of replies.
//!
//! (I1) All that a client writes has its mark ([`mark`]): rows, values of variables, names. So
//! another client's data is known wherever it shows up ([`foreign_mark`]).
//! (I2) What a client sees does not depend on the others: each has tables and names of its own.

mod action;
mod draw;
mod planted;
mod play;
mod reply;
mod stage;
mod trouble;

pub use action::{Action, Execution, Value};
pub use draw::Program;
pub use planted::{Plant, Planted};

pub use play::{Reply, play, play_alone};
pub(crate) use reply::{Stop, read_reply};
pub use stage::{Difference, Stage, server_options};
pub use trouble::Trouble;

/// Most clients of a program; marks have one digit.
pub const CLIENTS_MAX: usize = 8;

/// Accounts that the clients share.
pub const ACCOUNTS: [&str; 3] = ["ann", "bob", "cas"];

/// What marks the data of a client.
pub fn mark(client: usize) -> String {
    format!("c{client}_")
}

/// The mark of another client in what a client has got.
pub fn foreign_mark(client: usize, bytes: &[u8]) -> Option<usize> {
    bytes.windows(3).find_map(|window| match window {
        [b'c', digit @ b'0'..=b'9', b'_'] => {
            let found = usize::from(digit - b'0');
            (found != client).then_some(found)
        }
        _ => None,
    })
}
