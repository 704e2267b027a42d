//! The query log: chosen statements as JSON lines in a file. No client ever waits for its disk.
//!
//! ```text
//! statement -- Filter --> Line -- Buffer (a worker) --> Log (a bounded queue) --> Sink -- disk
//! ```
//!
//! * [`Filter`] says which statements are logged. [`Line`] is one of them, as JSON.
//! * A [`Buffer`] is a worker's. It hands its lines to the [`Log`] when it has a chunk of them, or
//!   soon after the first.
//! * [`Log`] is one a program. [`Log::write`] is called on a thread that may block. If that falls
//!   behind, lines are dropped and counted.
//! * The sink writes chunks of whole lines. What cannot be written is dropped. The program's log
//!   says so once, and once more when lines are written again.
//! * `rotation` says when a file is full, and which names move.

#![forbid(unsafe_code)]

mod escape;
mod filter;
mod line;
mod rotation;
mod route;
mod stamp;

mod buffer;
mod chunk;
mod log;
mod sink;

pub use buffer::{Added, Buffer};
pub use chunk::CHUNK_BYTES;
pub use filter::{Ended, Filter, TextForm, Why};
pub use line::{Line, Session, TEXT_BYTES_MAX};
pub use log::{Log, Numbers, QUEUE_BYTES_MAX, Wake};
pub use route::Route;
pub use sink::{Files, Opened};
pub use stamp::Stamp;
