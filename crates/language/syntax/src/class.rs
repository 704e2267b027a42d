//! What a statement does, without a tree: for those who route it and never execute it.
//!
//! Each stage can be used alone, and none takes a lock or does more than asked:
//!
//! * [`mod@first`]: the class and the effect on the transaction, from the first tokens. It
//!   allocates nothing. Most statements cost one token and one search for a `;`. [`State`] says
//!   what the effects lead to;
//! * [`verdict()`]: what a statement reads and changes, from all its tokens. It is made for a cache
//!   whose key is the canonical text ([`crate::canonical`]), since literals hardly matter to it;
//! * [`find_hint`]: what a comment asks of the gateway;
//! * [`replace_calls`]: a text with the answers that its calls ask for;
//! * [`names`] and [`changed_tables`]: what it may read from, and what it changes, for a cache;
//! * [`must_read_row`]: whether its reply shows that it has read from a table;
//! * [`telling_calls`]: the functions by which its answer depends on more than tables.
//!
//! Both stages guess about a text that a server may still refuse, or read in another way. The
//! server's status flags are the truth about the transaction. A guess errs on one side: what is not
//! known to be a read is not called one, and a flag that is not known is [`Guess::Unknown`].
//!
//! The rules are MariaDB 10.11's. `tests/effects` compares them with a server. An executable
//! comment that another version would read differently makes a verdict doubtful
//! ([`Facts::DEPENDS_ON_VERSION`]); the first stage reads it as MariaDB 10.11 does.
//!
//! The modules, from the bottom up: `effect` (the words of the first stage), `words` (a cursor),
//! `set` (the assignments of SET), `first`, `state`; `facts`, `verdict`; `hint`, `calls`,
//! `touched`, `rows`, `told`.

mod effect;
mod words;

pub mod set;

pub mod first;
mod state;

mod facts;
mod verdict;

mod calls;
mod hint;
mod locks;
mod rows;
mod told;
mod touched;

pub use calls::replace_calls;
pub use effect::{
    Access, Class, Completion, Effect, Guess, SetCompletion, SetEffect, Switch, Tail,
};
pub use facts::Facts;
pub use first::{
    Detail, Kill, KillTarget, Source, Statement, Statements, Xa, classify, is_several,
};

pub use hint::{COMMENT_BYTES_MAX, Hint, HintError, HintRoute, PLACE_MAX, find_hint};
pub use locks::lock_names;
pub use rows::must_read_row;
pub use state::{Flags, State};
pub use told::telling_calls;
pub use touched::{changed_tables, has_verb_of_change, names, qualified_names};
pub use verdict::{Kind, Verdict, is_server_database, verdict};
