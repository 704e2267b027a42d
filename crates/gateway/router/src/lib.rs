//! Where each statement of a session goes, if there are a primary and replicas. No I/O, no clock.
//!
//! ```text
//! text -- Judge --> Judged -- Session::plan --> Plan -- choose --> a server
//!                                ^                                    |
//!                                +------- Session::answered <---------+
//! ```
//!
//! [`Judge`] says what a text does, and remembers its verdicts. [`Session`] is what is known of
//! one client: its open transaction, what pins it ([`Pin`]), what it wrote last ([`Written`]). A
//! [`Plan`] says where a statement may go and what its success leaves. [`choose`] takes a server
//! out of the monitor's map. [`History`] has the commands that each connection of the session
//! needs, [`Recall`] what its statements may read of earlier ones. [`Rules`] are what an operator
//! has said beyond that. [`explain`] tells all this for a statement that is not sent.
//!
//! Rules, in this order:
//!
//! * (R1) An open transaction stays where it was begun.
//! * (R2) What pins a session keeps it at its server.
//! * (R3) What reads of the statement before goes where that was.
//! * (R4) A read goes to a replica that has what the session wrote. A transaction that may not
//!   write counts as a read.
//! * (R5) All else goes to the primary.
//!
//! The flags and changes of the session that a server reports are the truth ([`Report`]). What a
//! statement did beyond its text pins the session ([`Pin::Unknown`]).

#![forbid(unsafe_code)]

mod parts;
mod pins;
mod rules;
mod touched;

mod judge;
mod written;

mod command;
mod dialect;
mod history;
mod isolation;
mod reading;

mod choice;
mod plan;
mod recall;
mod session;

mod guidance;

mod explain;

pub use choice::{Balance, Cost, Load, ResponseTime, choose};
pub use command::Command;
pub use dialect::may_speak_oracle;
pub use explain::{
    Cause, Choice, Explanation, Heed, NamedTables, Nature, PassedOver, explain, explain_choice,
    named_tables,
};
pub use guidance::Guidance;
pub use history::{HISTORY_BYTES_MAX, HISTORY_COMMANDS_MAX, History};
pub use isolation::reads_in_its_own_way;
pub use judge::{Judge, Judged, VERDICTS_MAX};
pub use parts::Step;
pub use pins::{Pin, Pins};
pub use plan::{Goal, OF_LAST_STATEMENT, Plan, UNSEEN};
pub use reading::{Detour, LoginReading};
pub use recall::{Recall, Residue, Told};
pub use rules::{
    CacheUse, Decision, PATTERN_BYTES_MAX, RULES_MAX, Route, Rule, RuleSet, Rules, RulesError,
    Ruling, SessionFacts, TableName, TableNameError, What, Who, digest, digested, without_literals,
};
pub use session::{Loss, Report, Session};
pub use touched::{NAMES_MAX, Touched, Unkept, changes_of};
pub use written::Written;
