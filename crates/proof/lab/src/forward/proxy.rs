//! The two proxies of [`crate::forward`], each a program of its own with one worker.

use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use anyhow::Result;
use auth::Random;
use backend::{ClientSecret, Login, Server, Target, TlsMode};
use front::{Account, AccountSource, Client, Credential, Options, Peer, Shared, system_random};
use link::{Ending, Exchange, Limit, PacketMemory, Resources, Turn};
use runtime::{Address, Io, Listener, Runtime, SendMode, Stream, TaskClass, Terminations};
use wire::{Capabilities, CommandByte, OkPacket, StatusFlags};

/// A proxy before a server.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(value_enum)]
    kind: Kind,
    #[arg(value_enum)]
    io: Driver,
    /// Port of loopback to listen on.
    port: u16,
    /// Port of loopback that the server listens on.
    server_port: u16,
}

/// What a proxy does with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Copies them.
    Copy,
    /// Forwards packets from link to link.
    Link,
}

/// What a proxy's loop asks the kernel by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Driver {
    Uring,
    Epoll,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Copy => "copy",
            Kind::Link => "link",
        })
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Driver::Uring => "uring",
            Driver::Epoll => "epoll",
        })
    }
}

/// Longer than any statement of the load takes.
const TIMEOUT: Duration = Duration::from_secs(600);

/// What the worker's connections share.
struct Worker {
    shared: Rc<Shared>,
    server: Address,
    /// Queries and executions seen.
    statement_count: Cell<u64>,
    /// All status flags that ended a reply.
    flags: Cell<u16>,
}

/// Lets any user in without a password. The server behind the proxy checks the login again.
#[derive(Debug)]
pub struct AnyUser;

impl AccountSource for AnyUser {
    fn find(&self, user: &str, _peer: Peer) -> Option<Account> {
        Some(Account {
            user: user.to_owned(),
            host: "%".to_owned(),
            credential: Credential::Trusted,
            is_locked: false,
            requires_tls: false,
        })
    }
}

/// Serves until it is told to end.
pub fn run(arguments: &Arguments) -> Result<()> {
    let options = runtime::Options {
        worker_count: 1,
        io: match arguments.io {
            Driver::Uring => Io::Uring,
            Driver::Epoll => Io::Epoll,
        },
        ..runtime::Options::default()
    };
    let mut terminations = Terminations::install()?;
    let server = Address::Tcp(([127, 0, 0, 1], arguments.server_port).into());
    let runtime = Runtime::start(options, move || {
        let resources = Resources::new(PacketMemory::new(256 << 20), Arc::default());
        let options = Options::new("10.11.0-MariaDB-proxy", system_random());
        runtime::set_local(Rc::new(Worker {
            shared: Shared::new(options, resources, Arc::default()),
            server: server.clone(),
            statement_count: Cell::new(0),
            flags: Cell::new(0),
        }));
    })?;
    let address = Address::Tcp(([127, 0, 0, 1], arguments.port).into());
    let listener = Listener::bind(&address)?;
    match arguments.kind {
        Kind::Copy => runtime.serve(listener, |stream| async {
            // A connection that ends is nobody's trouble here.
            let _ = copy(stream).await;
        })?,
        Kind::Link => runtime.serve(listener, |stream| async {
            let _ = forward(stream).await;
        })?,
    }
    println!("listening on {address}");
    terminations.wait();
    let (statements, flags) = runtime.block_on_worker(0, || async {
        let worker: Rc<Worker> = runtime::local().expect("set at start");
        (worker.statement_count.get(), worker.flags.get())
    });
    println!("{statements} statements, status flags {flags:#x}");
    runtime.handle().shutdown(Duration::ZERO);
    runtime.wait()?;
    Ok(())
}

/// Copies what comes from either side to the other. The loop serves it as it serves the other
/// proxy: a wait for the server stands in the middle of a statement.
async fn copy(mut client: Stream) -> io::Result<()> {
    let worker: Rc<Worker> = runtime::local().expect("set at start");
    let mut server = Stream::connect(&worker.server).await?;
    let mut class = TaskClass::OutsideTransaction;
    loop {
        let (bytes, to_server) = poll_fn(|context| {
            if let Poll::Ready(bytes) = client.poll_receive(context) {
                return Poll::Ready((bytes, true));
            }
            if let Poll::Ready(bytes) = server.poll_receive(context) {
                return Poll::Ready((bytes, false));
            }
            runtime::set_task_class(class);
            Poll::Pending
        })
        .await;
        let bytes = bytes?;
        if bytes.is_empty() {
            return Ok(());
        }
        let mut buffer = runtime::spent_buffer().unwrap_or_default();
        buffer.extend_from_slice(&bytes);
        drop(bytes);
        let to = if to_server { &mut server } else { &mut client };
        to.send_by(buffer, SendMode::Post).await?;
        class = if to_server {
            TaskClass::Busy
        } else {
            TaskClass::OutsideTransaction
        };
    }
}

/// Logs a client in here and at the server, and passes on packets.
async fn forward(stream: Stream) -> Result<()> {
    let worker: Rc<Worker> = runtime::local().expect("set at start");
    let mut client = Client::accept(stream, &worker.shared, &AnyUser, 1).await?;
    let (mut server, agreed) = log_in(&worker, &client).await?;
    let ok = OkPacket {
        status: server.status(),
        ..OkPacket::default()
    };
    client.welcome(&ok).await?;
    loop {
        let link = client.link();
        link.peek_command(TIMEOUT, TaskClass::OutsideTransaction)
            .await?;
        let mut exchange = Exchange::command(link, server.link(), agreed).await?;
        match exchange.command_byte() {
            CommandByte::QUIT => return Ok(()),
            CommandByte::QUERY | CommandByte::STMT_EXECUTE => {
                worker.statement_count.set(worker.statement_count.get() + 1);
            }
            _ => {}
        }
        let limit = Limit::after(TIMEOUT);
        let ending = loop {
            match exchange.reply(link, server.link(), limit).await? {
                Turn::Over(ending) => break ending,
                Turn::File => exchange.file(link, server.link()).await?,
                Turn::Authentication => exchange.authentication(link, server.link()).await?,
            }
        };
        if let Ending::Status(StatusFlags(flags)) = ending {
            worker.flags.set(worker.flags.get() | flags);
        }
    }
}

/// The client's user at the server: with its capabilities, but for the ends of lists and for
/// tracking, which the proxy wants for itself.
async fn log_in(worker: &Worker, client: &Client) -> Result<(Server, link::Agreed)> {
    let own = Capabilities::DEPRECATE_EOF | Capabilities::SESSION_TRACK;
    let info = client.info();
    let login = Login {
        database: info.database.clone(),
        capabilities: info.capabilities | own,
        ..Login::new(info.user.clone(), ClientSecret::password(b""))
    };
    let target = Target {
        address: worker.server.clone(),
        tls: TlsMode::Off,
        proxy_header: None,
        connect_timeout: TIMEOUT,
        io_timeout: TIMEOUT,
    };
    let source = Arc::clone(&worker.shared.options().random);
    let mut fill = |bytes: &mut [u8]| source(bytes);
    let resources = worker.shared.resources();
    let server = Server::connect(&target, &login, resources, &mut Random(&mut fill)).await?;
    let agreed = server.agreed_with(info.capabilities)?;
    Ok((server, agreed))
}
