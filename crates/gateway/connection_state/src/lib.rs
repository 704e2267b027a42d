//! What a server's connection has of the sessions that used it, and the least that gives it the
//! state of another one. No I/O, no clock.
//!
//! ```text
//! what the session before was given  --put_right-->  what the session needs that has it now
//!    the same                  nothing to do
//!    the first commands of it  the rest of the commands
//!    another, or unknown       a reset or a login, then all commands
//! ```
//!
//! [`ConnectionState`] hears what happens on a connection: commands that were run, statements that
//! may have left something. [`ConnectionState::put_right`] says what has to be sent ([`Step`]), all
//! of it at once. Who sends it says how a step is said to the server.
//!
//! What a command may do is read from its text by the names in it alone. A name in a string or in a
//! comment costs a step too many, and does no harm.

#![forbid(unsafe_code)]

mod command_list;
mod needs;
mod state;

pub use command_list::CommandList;
pub use needs::{Needs, Origin, Reads, Role};
pub use state::{ConnectionState, Step};

use wire::CommandByte;

/// Whether a text may change what the server tells of the session. Connector/J of MariaDB does.
pub fn is_about_tracking(text: &[u8]) -> bool {
    names(text, b"session_track")
}

/// Whether a text may set a role.
fn is_about_role(text: &[u8]) -> bool {
    names(text, b"role")
}

fn names(text: &[u8], name: &[u8]) -> bool {
    let mut places = text.windows(name.len());
    places.any(|place| place.eq_ignore_ascii_case(name))
}

fn sets_option(commands: &CommandList) -> bool {
    commands
        .iter()
        .any(|(byte, _)| byte == CommandByte::SET_OPTION)
}

fn sets_role(commands: &CommandList) -> bool {
    commands.iter().any(|(_, text)| is_about_role(text))
}
