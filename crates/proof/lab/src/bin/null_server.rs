//! A server that knows nothing: the runtime and the protocol of Plateau without a database.
//! Whoever comes is logged in. Every SELECT is answered with the same row of 120 bytes, and SHOW
//! PROCESSLIST with such a row for each client. Anything else is answered with OK.
//!
//! What a statement costs here is what the kernel, the event loop and the protocol cost alone. So
//! no server of this design keeps more of its throughput on the same machine. This one takes part
//! in `cargo xtask latency`. It takes the settings of `plateau` that matter here: `null_server
//! --set listen=127.0.0.1:4100 --set io=epoll`.

#![forbid(unsafe_code)]

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;
use sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use clap::Parser as _;
use front::{Client, Disconnect, Options, PacketMemory, Resources, Shared, system_random};
use lab::forward::proxy::AnyUser;
use runtime::{Address, Io, Listener, Runtime, Stream, TaskClass, Terminations};
use wire::{
    BinaryRow, Capabilities, ColumnDefinition, ColumnType, Command, OkKind, OkPacket, PacketWriter,
    PrepareOk, ResultHead, StatusFlags, TextRow, end_columns, end_rows,
};

#[derive(clap::Parser)]
struct Arguments {
    /// `listen=ADDRESS` and `io=DRIVER`; other settings mean nothing here.
    #[arg(long = "set")]
    settings: Vec<String>,
}

const OK: OkPacket<'static> = OkPacket {
    affected_rows: 0,
    last_insert_id: 0,
    status: StatusFlags::AUTOCOMMIT,
    warnings: 0,
    info: b"",
    session_changes: b"",
};

/// The value of the row.
const VALUE: [u8; 120] = [b'7'; 120];

/// Ids of prepared statements say what an execution is answered with.
const ROW_STATEMENT: u32 = 1;
const OK_STATEMENT: u32 = 2;

/// Clients that are logged in.
static CLIENT_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Counts a client until it is dropped.
struct LoggedIn;

impl LoggedIn {
    fn new() -> Self {
        CLIENT_COUNT.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for LoggedIn {
    fn drop(&mut self) {
        CLIENT_COUNT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// `wait_timeout` of a real server.
const IDLE_LIMIT: Duration = Duration::from_secs(28_800);

async fn serve(stream: Stream) {
    let shared = runtime::local::<Shared>().expect("set at start");
    let Ok(mut client) = Client::accept(stream, &shared, &AnyUser, 1).await else {
        return;
    };
    let _logged_in = LoggedIn::new();
    // A client that disconnects without a word is no error here.
    let _ = converse(&mut client).await;
}

async fn converse(client: &mut Client) -> Result<(), Disconnect> {
    client.welcome(&OK).await?;
    let capabilities = client.capabilities();
    loop {
        let bytes = client
            .read_command(IDLE_LIMIT, TaskClass::OutsideTransaction)
            .await?;
        match Command::decode(&bytes, capabilities) {
            Ok(Command::Quit) => return Ok(()),
            Ok(Command::Query(text)) if returns_row(text) => {
                result(client.out(), capabilities, text_row);
            }
            Ok(Command::Query(b"SHOW PROCESSLIST")) => {
                result(client.out(), capabilities, |out| {
                    for _ in 0..CLIENT_COUNT.load(Ordering::Relaxed) {
                        text_row(out);
                    }
                });
            }
            Ok(Command::Execute(execute)) if execute.statement_id == ROW_STATEMENT => {
                result(client.out(), capabilities, |out| {
                    let mut row = BinaryRow::begin(out, 1);
                    row.bytes(&VALUE);
                    row.finish();
                });
            }
            Ok(Command::Prepare(text)) => prepare(client.out(), capabilities, text),
            Ok(_) | Err(_) => OK.encode(client.out(), capabilities, OkKind::Ok),
        }
    }
}

fn returns_row(text: &[u8]) -> bool {
    text.starts_with(b"SELECT")
}

fn column() -> ColumnDefinition<'static> {
    ColumnDefinition {
        schema: b"sbtest",
        table: b"sbtest1",
        original_table: b"sbtest1",
        original_name: b"c",
        collation: 45,
        display_bytes: 480,
        ..ColumnDefinition::new(b"c", ColumnType::String)
    }
}

fn text_row(out: &mut PacketWriter) {
    let mut row = TextRow::begin(out);
    row.bytes(&VALUE);
    row.finish();
}

/// A result whose rows `append` appends.
fn result(
    out: &mut PacketWriter,
    capabilities: Capabilities,
    append: impl FnOnce(&mut PacketWriter),
) {
    ResultHead::encode(out, capabilities, 1);
    column().encode(out, capabilities);
    end_columns(out, capabilities, StatusFlags::AUTOCOMMIT, 0);
    append(out);
    end_rows(out, capabilities, &OK);
}

fn prepare(out: &mut PacketWriter, capabilities: Capabilities, text: &[u8]) {
    let parameters = text.iter().filter(|byte| **byte == b'?');
    let parameter_count = parameters.fold(0_u16, |count, _| count.saturating_add(1));
    let column_count = u16::from(returns_row(text));
    let statement_id = match column_count {
        0 => OK_STATEMENT,
        _ => ROW_STATEMENT,
    };
    let prepared = PrepareOk {
        statement_id,
        column_count,
        parameter_count,
        warnings: 0,
    };
    prepared.encode(out);
    for count in [parameter_count, column_count] {
        for _ in 0..count {
            column().encode(out, capabilities);
        }
        if count != 0 {
            end_columns(out, capabilities, StatusFlags::AUTOCOMMIT, 0);
        }
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let setting = |name: &str| {
        let values = arguments.settings.iter();
        values
            .filter_map(|it| it.strip_prefix(name)?.strip_prefix('='))
            .next_back()
    };
    let address = setting("listen").context("`--set listen=ADDRESS` is missing")?;
    let options = runtime::Options {
        io: match setting("io") {
            Some("uring") => Io::Uring,
            Some("epoll") => Io::Epoll,
            _ => Io::Auto,
        },
        ..runtime::Options::default()
    };
    let mut terminations = Terminations::install()?;
    let runtime = Runtime::start(options, || {
        let resources = Resources::new(PacketMemory::new(256 << 20), Arc::default());
        let options = Options::new("10.11.0-MariaDB-null", system_random());
        runtime::set_local(Shared::new(options, resources, Arc::default()));
    })?;
    let address = Address::Tcp(address.parse()?);
    runtime.serve(Listener::bind(&address)?, serve)?;
    writeln!(std::io::stderr(), "listening on {address}")?;
    terminations.wait();
    runtime.handle().shutdown(Duration::ZERO);
    runtime.wait()?;
    Ok(())
}
