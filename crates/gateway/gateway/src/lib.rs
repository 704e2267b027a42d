//! The gateway: lets clients in by the accounts of the servers behind it, and passes on what they
//! say.
//!
//! ```text
//! client -- front::Client -- Session -- backend::Server -- server
//!                               |
//!                            Service: its servers, their accounts, what clients are greeted with
//! ```
//!
//! [`Gateway`] is one a program, [`Generation`] one a configuration, [`Worker`] one a worker and
//! configuration, a session one a client. A session lives
//! on the worker that has accepted its client, with its server connections, so no lock guards it.
//! What workers share is behind an atomic pointer to an immutable value: accounts, greetings.

#![forbid(unsafe_code)]

mod options;

mod account_list;
mod service;

mod end;
mod query_log;

mod gateway;
mod numbers;
mod worker;

mod connect;
mod connection;
mod explain;
mod guest;
mod hot;
mod kill;
mod running;
mod tasks;

mod direct;
mod pooled;

mod session;

pub use end::End;
pub use explain::Property;
pub use gateway::Gateway;
pub use gateway::generation::Generation;
pub use monitor::{DownReason, Order, Role as MonitorRole};
pub use numbers::{
    CacheView, Inside, OrderError, RuleView, ServerView, ServiceView, SessionState, SessionView,
    StatementView, WatchedView, WorkerView,
};
pub use options::{
    CacheId, CausalReads, ListenerOptions, MonitorId, MonitorOptions, Options, ResultCacheOptions,
    Role, Router, ServerId, ServerOptions, ServiceId, ServiceOptions, Sharing, SplitOptions,
    TracingOptions, Trust,
};
pub use pool::Numbers as PoolNumbers;
pub use query_log::QueryLogOptions;
pub use result_cache::{CacheOptions, Counts as CacheCounts, Lifetime, REPLY_PART};
pub use session::serve;
pub use syntax::KillTarget;
pub use syntax::ast::ExplainRoute;
pub use tasks::{keep_accounts, keep_definitions, keep_followers, keep_pool};
pub use worker::{Counters, Worker};
